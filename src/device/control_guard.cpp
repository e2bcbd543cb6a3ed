#include "device/control_guard.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>

namespace ergometer {
namespace {

Error changed_by_others(const std::string& name, const ControlValue& now, const ControlValue& last) {
  return {ErrorCode::exists,
          fmt::format("{} is {} now and not {}: somebody else changed it meanwhile; it is left to them", name,
                      to_text(now), to_text(last)),
          "find out who sets it (a scheduler, a tuning service, a colleague) and begin again"};
}

// Whether one of the settings would have no effect without this control.
bool is_needed(const std::vector<ControlSetting>& settings, const std::string& name) {
  return std::ranges::any_of(settings, [&](const ControlSetting& setting) {
    const auto& needs = setting.control->describe().needs;
    return std::ranges::any_of(needs, [&](const auto& need) { return need.first == name; });
  });
}

// How far a running value may be from the asked one: one step of what the device can do.
double effect_tolerance(const ControlInfo& info) {
  double step = info.resolution;
  for (std::size_t i = 1; i < info.choices.size(); ++i) {
    const double gap = number_of(info.choices[i]) - number_of(info.choices[i - 1]);
    step = i == 1 ? std::max(gap, info.resolution) : std::min(step, std::max(gap, info.resolution));
  }
  return step;
}

std::string time_text(std::int64_t unix_s) {
  const std::time_t time = unix_s;
  std::tm local{};
  if (!::localtime_r(&time, &local)) return "unknown time";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

}  // namespace

std::string left_over_text(const Journal& journal, const std::string& boot_id) {
  const bool restarted = !journal.boot_id.empty() && !boot_id.empty() && journal.boot_id != boot_id;
  std::string what;
  for (const auto& item : journal.items) {
    if (!item.changed()) continue;
    what += fmt::format("{}{} {}", what.empty() ? "" : ", ", item.name, to_text(item.set.back()));
    what += item.found ? fmt::format(" (was {})", to_text(*item.found)) : " (locked)";
  }
  const auto who = fmt::format("PID {} ({}) at {}", journal.owner_pid, journal.owner, time_text(journal.since_unix_s));
  if (restarted) return fmt::format("{} had changed controls when the machine went down: {}", who, what);
  if (journal.kept) return fmt::format("still set on purpose by {}: {}", who, what);
  return fmt::format("still set by {}, which did not restore: {}", who, what);
}

namespace {

class OwnSession final : public ControlSession {
 public:
  OwnSession(const Host& host, GuardOptions options) : host_(host), options_(std::move(options)) {}
  ~OwnSession() override { OwnSession::restore(); }
  // Errors: those of ControlGuard::acquire. What was touched is as it was when the session has ended.
  [[nodiscard]] Result<void> begin(const std::vector<ControlSetting>& settings);
  Result<std::vector<Applied>> apply(std::vector<ControlSetting> settings) override;
  std::vector<Applied> observe() override;
  std::vector<Restored> restore() override;
  Result<void> keep() override;

 private:
  struct Entry {
    std::shared_ptr<Control> control;
    std::optional<ControlValue> requested;  // of the last apply
    std::optional<ControlValue> effective;
    bool changed = false;  // set to something else than what was found
  };

  Result<void> take_node();
  Result<void> guard_lives();
  Result<void> prepare(const std::vector<ControlSetting>& settings);
  Result<void> prove_permission(const std::vector<ControlSetting>& settings);
  Result<void> set(std::size_t index, const ControlValue& value);
  Result<void> write(std::size_t index, const ControlValue& value);
  Result<void> give_back_unnamed(std::vector<ControlSetting>& settings);
  Applied look_at(Entry& entry, bool under_load) const;
  void release();

  Host host_;
  GuardOptions options_;
  std::optional<ControlLock> lock_;
  std::filesystem::path journal_path_;
  std::optional<Guardian> guardian_;
  std::optional<JournalWriter> journal_;  // there: something may be set
  std::vector<Entry> entries_;            // in the order of the journal's items
};

// Starts a guardian, or a new one in place of one that was killed.
Result<void> OwnSession::guard_lives() {
  if (options_.guardian.empty() || (guardian_ && guardian_->alive())) return {};
  guardian_.reset();
  auto started = Guardian::start(options_.guardian, lock_->fd(), journal_path_);
  if (!started) return tl::unexpected(started.error());
  guardian_ = std::move(*started);
  for (const auto& entry : entries_) entry.control->hold_while_setting(guardian_->life_fd());
  return {};
}

Result<void> OwnSession::prepare(const std::vector<ControlSetting>& settings) {
  Journal begun;
  begun.owner_pid = ::getpid();
  begun.owner = options_.holder;
  begun.since_unix_s = to_ns(host_.clock->wall()) / 1'000'000'000;
  begun.boot_id = boot_id(host_.root);
  begun.nvml_path = options_.nvml_path;
  begun.site_command = options_.site_command;
  for (const auto& setting : settings) {
    const auto& info = setting.control->describe();
    if (auto checked = check_value(info, setting.value); !checked) return checked;
    if (std::ranges::any_of(entries_, [&](const auto& entry) { return entry.control == setting.control; })) continue;
    JournalItem item{info.name, info.backend, info.device_id, info.unit, {}, {}, false};
    if (info.readable) {
      auto found = setting.control->get();
      if (!found) return tl::unexpected(found.error());
      item.found = std::move(*found);
    }
    begun.items.push_back(std::move(item));
    entries_.push_back({setting.control, {}, {}, false});
  }
  if (auto lives = guard_lives(); !lives) return lives;
  auto created = JournalWriter::create(journal_path_, std::move(begun));
  if (!created) return tl::unexpected(created.error());
  journal_.emplace(std::move(*created));
  return {};
}

// Writing what is there anyway changes nothing, and shows before anything starts whether we may.
Result<void> OwnSession::prove_permission(const std::vector<ControlSetting>& settings) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto& found = journal_->journal().items[i].found;
    if (found) {
      if (auto done = write(i, *found); !done) return done;
      continue;
    }
    const auto first = std::ranges::find(settings, entries_[i].control, &ControlSetting::control);
    if (auto done = write(i, first->value); !done) {
      // What was refused has changed nothing, and would be refused again when the journal is restored.
      if (done.error().code == ErrorCode::permission_denied)
        if (auto noted = journal_->settled(i); !noted) return noted;
      return done;
    }
    if (auto done = entries_[i].control->reset(); !done) return done;
  }
  return {};
}

// Journal, set, read back.
Result<void> OwnSession::write(std::size_t index, const ControlValue& value) {
  auto& control = *entries_[index].control;
  if (auto noted = journal_->will_set(index, value); !noted) return noted;
  if (auto done = control.set(value); !done) return done;
  if (!control.describe().readable) return {};
  const auto now = control.get();
  if (!now) return tl::unexpected(now.error());
  if (*now != value)
    if (auto noted = journal_->will_set(index, *now); !noted) return noted;
  if (!same_value(control.describe(), *now, value))
    return fail(ErrorCode::io,
                fmt::format("{} was set to {} and reads {}", control.describe().name, to_text(value), to_text(*now)),
                "another limit or service may hold it: see `ergometer control show`");
  return {};
}

Result<void> OwnSession::set(std::size_t index, const ControlValue& value) {
  auto& entry = entries_[index];
  const auto& item = journal_->journal().items[index];
  const auto& info = entry.control->describe();
  if (info.readable) {
    const auto now = entry.control->get();
    if (!now) return tl::unexpected(now.error());
    const auto& last = item.set.empty() ? *item.found : entry.requested.value_or(*item.found);
    const auto is_now = [&](const ControlValue& known) { return same_value(info, known, *now); };
    if (!is_now(*item.found) && std::ranges::none_of(item.set, is_now))
      return tl::unexpected(changed_by_others(info.name, *now, last));
  }
  entry.changed = true;
  if (auto done = write(index, value); !done) return done;
  entry.requested = value;
  entry.effective.reset();
  return {};
}

// A level is the whole of what is set: what the last one changed and this one does not name goes back.
Result<void> OwnSession::give_back_unnamed(std::vector<ControlSetting>& settings) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    auto& entry = entries_[i];
    const bool named = std::ranges::find(settings, entry.control, &ControlSetting::control) != settings.end();
    if (named || !entry.changed || is_needed(settings, entry.control->describe().name)) continue;
    entry.changed = false;
    if (const auto& found = journal_->journal().items[i].found)
      settings.push_back({entry.control, *found, {}});
    else if (auto done = entry.control->reset(); !done)
      return done;
  }
  return {};
}

// Only under load does a running clock tell whether its lock is in effect.
Applied OwnSession::look_at(Entry& entry, bool under_load) const {
  const auto& info = entry.control->describe();
  if (info.readable || under_load)
    if (const auto now = entry.control->effective()) {
      // A clock that idles below its lock is no contradiction; one above it is, and one that never reaches it.
      const bool higher = !entry.effective || number_of(*now) > number_of(*entry.effective);
      if (info.readable || higher) entry.effective = *now;
    }
  Applied applied{info.name, *entry.requested, entry.effective, true};
  if (!applied.effective) return applied;
  if (info.readable)
    applied.in_effect = same_value(info, *applied.effective, applied.requested);
  else
    applied.in_effect =
        std::abs(number_of(*applied.effective) - number_of(applied.requested)) <= effect_tolerance(info);
  return applied;
}

std::vector<Restored> OwnSession::restore() {
  std::vector<Restored> all;
  if (journal_) {
    const auto find = [this](const JournalItem& item) {
      const auto index = static_cast<std::size_t>(&item - journal_->journal().items.data());
      return entries_[index].control;
    };
    all = restore_journal(*journal_, find, journal_->journal().boot_id, *host_.clock);
    if (!any_failed(all))
      if (auto removed = journal_->remove(); !removed)
        all.push_back({"journal", RestoreOutcome::failed, removed.error().message, removed.error().hint});
  }
  release();
  return all;
}

void OwnSession::release() {
  journal_.reset();
  guardian_.reset();  // it finds no journal, or one whose rest it tries itself
  lock_.reset();
}

// The right to change this node's controls, and the place where the journal will be.
Result<void> OwnSession::take_node() {
  auto lock = ControlLock::take(options_.places.lock, options_.holder);
  if (!lock) return tl::unexpected(lock.error());
  lock_.emplace(std::move(*lock));
  if (const auto left = existing_journal(options_.places)) {
    const auto journal = read_journal(*left);
    if (!journal) return tl::unexpected(journal.error());
    if (journal->changed())
      return fail(ErrorCode::exists, left_over_text(*journal, boot_id(host_.root)), "first: ergometer control restore");
    // Its writer died before it changed anything.
    std::error_code ec;
    std::filesystem::remove(*left, ec);
  }
  auto path = writable_journal(options_.places);
  if (!path) return tl::unexpected(path.error());
  journal_path_ = std::move(*path);
  return {};
}

Result<void> OwnSession::begin(const std::vector<ControlSetting>& settings) {
  if (auto taken = take_node(); !taken) return taken;
  auto ordered = settings;
  sort_for_setting(ordered);
  if (auto prepared = prepare(ordered); !prepared) return prepared;
  return prove_permission(ordered);
}

Result<std::vector<Applied>> OwnSession::apply(std::vector<ControlSetting> settings) {
  const auto entry_of = [&](const ControlSetting& setting) {
    return std::ranges::find(entries_, setting.control, &Entry::control);
  };
  for (const auto& setting : settings) {
    const auto& info = setting.control->describe();
    if (entry_of(setting) == entries_.end())
      return fail(ErrorCode::internal, info.name + " was not acquired and is not touched");
    if (auto checked = check_value(info, setting.value); !checked) return tl::unexpected(checked.error());
  }
  if (auto lives = guard_lives(); !lives) return tl::unexpected(lives.error());
  if (auto given = give_back_unnamed(settings); !given) return tl::unexpected(given.error());
  sort_for_setting(settings);
  std::vector<std::size_t> order;
  for (const auto& setting : settings) {
    const auto index = static_cast<std::size_t>(entry_of(setting) - entries_.begin());
    if (auto done = set(index, setting.value); !done) return tl::unexpected(done.error());
    order.push_back(index);
  }
  std::vector<Applied> all;
  for (const auto index : order) all.push_back(look_at(entries_[index], false));
  return all;
}

std::vector<Applied> OwnSession::observe() {
  std::vector<Applied> all;
  for (auto& entry : entries_)
    if (entry.changed && entry.requested) all.push_back(look_at(entry, true));
  return all;
}

Result<void> OwnSession::keep() {
  if (auto kept = journal_->keep(); !kept) return kept;
  release();
  return {};
}

tl::unexpected<Error> has_ended() { return fail(ErrorCode::internal, "the control guard has ended"); }

}  // namespace

Result<ControlGuard> ControlGuard::acquire(const Host& host, const std::vector<ControlSetting>& settings,
                                           GuardOptions options) {
  auto own = std::make_unique<OwnSession>(host, options);
  const auto begun = own->begin(settings);
  if (begun) return ControlGuard(std::move(own));
  own.reset();  // the node is free for whoever is asked
  if (begun.error().code != ErrorCode::permission_denied || !options.elsewhere) return tl::unexpected(begun.error());
  auto other = options.elsewhere(settings, options.holder);
  if (other) return ControlGuard(std::move(*other));
  return tl::unexpected(other.error().code == ErrorCode::not_found ? begun.error() : other.error());
}

Result<std::vector<Applied>> ControlGuard::apply(std::vector<ControlSetting> settings) {
  if (!session_) return has_ended();
  return session_->apply(std::move(settings));
}

std::vector<Applied> ControlGuard::observe() { return session_ ? session_->observe() : std::vector<Applied>{}; }

std::vector<Restored> ControlGuard::restore() {
  if (!session_) return {};
  auto all = session_->restore();
  session_.reset();
  return all;
}

Result<void> ControlGuard::keep() {
  if (!session_) return has_ended();
  auto kept = session_->keep();
  if (kept) session_.reset();
  return kept;
}

}  // namespace ergometer
