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

struct ControlGuard::State {
  struct Entry {
    std::shared_ptr<Control> control;
    std::optional<ControlValue> requested;  // of the last apply
    std::optional<ControlValue> effective;
    bool changed = false;  // set to something else than what was found
  };

  Host host;
  GuardOptions options;
  std::optional<ControlLock> lock;
  std::filesystem::path journal_path;
  std::optional<Guardian> guardian;
  std::optional<JournalWriter> journal;  // there: something may be set
  std::vector<Entry> entries;            // in the order of the journal's items

  Result<void> guard_lives();
  Result<void> prepare(const std::vector<ControlSetting>& settings);
  Result<void> prove_permission(const std::vector<ControlSetting>& settings);
  Result<void> set(std::size_t index, const ControlValue& value);
  Result<void> write(std::size_t index, const ControlValue& value);
  Result<void> give_back_unnamed(std::vector<ControlSetting>& settings);
  Applied observe(Entry& entry, bool under_load) const;
  std::vector<Restored> restore();
  void release();
};

// Starts a guardian, or a new one in place of one that was killed.
Result<void> ControlGuard::State::guard_lives() {
  if (options.guardian.empty() || (guardian && guardian->alive())) return {};
  guardian.reset();
  auto started = Guardian::start(options.guardian, lock->fd(), journal_path);
  if (!started) return tl::unexpected(started.error());
  guardian = std::move(*started);
  for (const auto& entry : entries) entry.control->hold_while_setting(guardian->life_fd());
  return {};
}

Result<void> ControlGuard::State::prepare(const std::vector<ControlSetting>& settings) {
  Journal begun;
  begun.owner_pid = ::getpid();
  begun.owner = options.holder;
  begun.since_unix_s = to_ns(host.clock->wall()) / 1'000'000'000;
  begun.boot_id = boot_id(host.root);
  begun.nvml_path = options.nvml_path;
  begun.site_command = options.site_command;
  for (const auto& setting : settings) {
    const auto& info = setting.control->describe();
    if (auto checked = check_value(info, setting.value); !checked) return checked;
    if (std::ranges::any_of(entries, [&](const auto& entry) { return entry.control == setting.control; })) continue;
    JournalItem item{info.name, info.backend, info.device_id, info.unit, {}, {}, false};
    if (info.readable) {
      auto found = setting.control->get();
      if (!found) return tl::unexpected(found.error());
      item.found = std::move(*found);
    }
    begun.items.push_back(std::move(item));
    entries.push_back({setting.control, {}, {}, false});
  }
  if (auto lives = guard_lives(); !lives) return lives;
  auto created = JournalWriter::create(journal_path, std::move(begun));
  if (!created) return tl::unexpected(created.error());
  journal.emplace(std::move(*created));
  return {};
}

// Writing what is there anyway changes nothing, and shows before anything starts whether we may.
Result<void> ControlGuard::State::prove_permission(const std::vector<ControlSetting>& settings) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& found = journal->journal().items[i].found;
    if (found) {
      if (auto done = write(i, *found); !done) return done;
      continue;
    }
    const auto first = std::ranges::find(settings, entries[i].control, &ControlSetting::control);
    if (auto done = write(i, first->value); !done) return done;
    if (auto done = entries[i].control->reset(); !done) return done;
  }
  return {};
}

// Journal, set, read back.
Result<void> ControlGuard::State::write(std::size_t index, const ControlValue& value) {
  auto& control = *entries[index].control;
  if (auto noted = journal->will_set(index, value); !noted) return noted;
  if (auto done = control.set(value); !done) return done;
  if (!control.describe().readable) return {};
  const auto now = control.get();
  if (!now) return tl::unexpected(now.error());
  if (*now != value)
    if (auto noted = journal->will_set(index, *now); !noted) return noted;
  if (!same_value(control.describe(), *now, value))
    return fail(ErrorCode::io,
                fmt::format("{} was set to {} and reads {}", control.describe().name, to_text(value), to_text(*now)),
                "another limit or service may hold it: see `ergometer control show`");
  return {};
}

Result<void> ControlGuard::State::set(std::size_t index, const ControlValue& value) {
  auto& entry = entries[index];
  const auto& item = journal->journal().items[index];
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
Result<void> ControlGuard::State::give_back_unnamed(std::vector<ControlSetting>& settings) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto& entry = entries[i];
    const bool named = std::ranges::find(settings, entry.control, &ControlSetting::control) != settings.end();
    if (named || !entry.changed || is_needed(settings, entry.control->describe().name)) continue;
    entry.changed = false;
    if (const auto& found = journal->journal().items[i].found)
      settings.push_back({entry.control, *found, {}});
    else if (auto done = entry.control->reset(); !done)
      return done;
  }
  return {};
}

// Only under load does a running clock tell whether its lock is in effect.
Applied ControlGuard::State::observe(Entry& entry, bool under_load) const {
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

std::vector<Restored> ControlGuard::State::restore() {
  std::vector<Restored> all;
  if (journal) {
    const auto find = [this](const JournalItem& item) {
      const auto index = static_cast<std::size_t>(&item - journal->journal().items.data());
      return entries[index].control;
    };
    all = restore_journal(*journal, find, journal->journal().boot_id, *host.clock);
    if (!any_failed(all))
      if (auto removed = journal->remove(); !removed)
        all.push_back({"journal", RestoreOutcome::failed, removed.error().message, removed.error().hint});
  }
  release();
  return all;
}

void ControlGuard::State::release() {
  journal.reset();
  guardian.reset();  // it finds no journal, or one whose rest it tries itself
  lock.reset();
}

ControlGuard::ControlGuard(std::unique_ptr<State> state) : state_(std::move(state)) {}
ControlGuard::ControlGuard(ControlGuard&&) noexcept = default;

ControlGuard& ControlGuard::operator=(ControlGuard&& other) noexcept {
  if (state_) state_->restore();
  state_ = std::move(other.state_);
  return *this;
}

ControlGuard::~ControlGuard() {
  if (state_) state_->restore();
}

Result<ControlGuard> ControlGuard::acquire(const Host& host, const std::vector<ControlSetting>& settings,
                                           GuardOptions options) {
  auto state = std::make_unique<State>();
  state->host = host;
  state->options = std::move(options);
  auto lock = ControlLock::take(state->options.places.lock, state->options.holder);
  if (!lock) return tl::unexpected(lock.error());
  state->lock.emplace(std::move(*lock));
  if (const auto left = existing_journal(state->options.places)) {
    const auto journal = read_journal(*left);
    if (!journal) return tl::unexpected(journal.error());
    if (journal->changed())
      return fail(ErrorCode::exists, left_over_text(*journal, boot_id(host.root)), "first: ergometer control restore");
    // Its writer died before it changed anything.
    std::error_code ec;
    std::filesystem::remove(*left, ec);
  }
  auto path = writable_journal(state->options.places);
  if (!path) return tl::unexpected(path.error());
  state->journal_path = std::move(*path);
  auto ordered = settings;
  sort_for_setting(ordered);
  ControlGuard guard(std::move(state));
  if (auto prepared = guard.state_->prepare(ordered); !prepared) return tl::unexpected(prepared.error());
  if (auto proven = guard.state_->prove_permission(ordered); !proven) return tl::unexpected(proven.error());
  return guard;
}

Result<std::vector<Applied>> ControlGuard::apply(std::vector<ControlSetting> settings) {
  if (!state_) return fail(ErrorCode::internal, "the control guard has ended");
  auto& state = *state_;
  const auto entry_of = [&](const ControlSetting& setting) {
    return std::ranges::find(state.entries, setting.control, &State::Entry::control);
  };
  for (const auto& setting : settings) {
    const auto& info = setting.control->describe();
    if (entry_of(setting) == state.entries.end())
      return fail(ErrorCode::internal, info.name + " was not acquired and is not touched");
    if (auto checked = check_value(info, setting.value); !checked) return tl::unexpected(checked.error());
  }
  if (auto lives = state.guard_lives(); !lives) return tl::unexpected(lives.error());
  if (auto given = state.give_back_unnamed(settings); !given) return tl::unexpected(given.error());
  sort_for_setting(settings);
  std::vector<std::size_t> order;
  for (const auto& setting : settings) {
    const auto index = static_cast<std::size_t>(entry_of(setting) - state.entries.begin());
    if (auto done = state.set(index, setting.value); !done) return tl::unexpected(done.error());
    order.push_back(index);
  }
  std::vector<Applied> all;
  for (const auto index : order) all.push_back(state.observe(state.entries[index], false));
  return all;
}

std::vector<Applied> ControlGuard::observe() {
  std::vector<Applied> all;
  if (state_)
    for (auto& entry : state_->entries)
      if (entry.changed && entry.requested) all.push_back(state_->observe(entry, true));
  return all;
}

std::vector<Restored> ControlGuard::restore() {
  if (!state_) return {};
  auto all = state_->restore();
  state_.reset();
  return all;
}

Result<void> ControlGuard::keep() {
  if (!state_) return fail(ErrorCode::internal, "the control guard has ended");
  if (auto kept = state_->journal->keep(); !kept) return kept;
  state_->release();
  state_.reset();
  return {};
}

}  // namespace ergometer
