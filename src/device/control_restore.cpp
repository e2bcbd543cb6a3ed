#include "device/control_restore.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/file.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

using std::chrono::milliseconds;

bool is_ours(const JournalItem& item, const ControlInfo& info, const ControlValue& now) {
  return std::ranges::any_of(item.set, [&](const auto& value) { return same_value(info, value, now); });
}

Restored give_back(const JournalItem& item, Control& control) {
  if (const auto done = control.reset(); !done)
    return {item.name, RestoreOutcome::failed, done.error().message, done.error().hint};
  return {item.name, RestoreOutcome::reset, fmt::format("{} reset to the driver's own choice", item.name), {}};
}

// Nothing of ours outlives a restart, so what is there now is not ours to write.
Restored after_restart(const JournalItem& item, Control* control) {
  const auto now = control && item.found ? control->get() : fail(ErrorCode::unsupported, "");
  if (now && same_value(control->describe(), *now, *item.found))
    return {item.name, RestoreOutcome::untouched, fmt::format("{} is {}, as before", item.name, to_text(*now)), {}};
  if (now)
    return {item.name, RestoreOutcome::restarted,
            fmt::format("{} is {} since the machine restarted (it was {} before); left alone", item.name, to_text(*now),
                        to_text(*item.found)),
            fmt::format("if it should be {}: ergometer control set {}={}", to_text(*item.found), item.name,
                        to_text(*item.found))};
  return {item.name,
          RestoreOutcome::restarted,
          fmt::format("{}: the machine restarted, nothing is set any more", item.name),
          {}};
}

Restored write_back(const JournalItem& item, Control& control) {
  const auto& info = control.describe();
  if (const auto done = control.set(*item.found); !done)
    return {item.name, RestoreOutcome::failed, done.error().message, done.error().hint};
  const auto now = control.get();
  if (!now) return {item.name, RestoreOutcome::failed, now.error().message, now.error().hint};
  if (!same_value(info, *now, *item.found))
    return {item.name,
            RestoreOutcome::failed,
            fmt::format("{} was set back to {} and reads {}", item.name, to_text(*item.found), to_text(*now)),
            {}};
  return {item.name, RestoreOutcome::restored, fmt::format("{} restored to {}", item.name, to_text(*now)), {}};
}

Restored restore_item(const JournalItem& item, Control* control, bool restarted) {
  if (restarted) return after_restart(item, control);
  if (!control)
    return {item.name, RestoreOutcome::failed,
            fmt::format("{}: the device ({}) is not there now", item.name, item.device_id),
            "when it is back: ergometer control restore"};
  if (!item.found) return give_back(item, *control);
  const auto now = control->get();
  // What cannot be understood and was set by us is set back; what cannot be reached is tried again.
  if (!now && now.error().code != ErrorCode::corrupt)
    return {item.name, RestoreOutcome::failed, now.error().message, now.error().hint};
  if (now && same_value(control->describe(), *now, *item.found))
    return {item.name, RestoreOutcome::untouched, fmt::format("{} is {}", item.name, to_text(*now)), {}};
  if (now && !is_ours(item, control->describe(), *now))
    return {item.name,
            RestoreOutcome::foreign,
            fmt::format("{} is {} now: somebody else changed it meanwhile; left alone (before us it was {})", item.name,
                        to_text(*now), to_text(*item.found)),
            {}};
  return write_back(item, *control);
}

}  // namespace

std::shared_ptr<Control> control_of(const JournalItem& item, const std::vector<std::shared_ptr<Control>>& controls) {
  const auto it = std::ranges::find_if(controls, [&](const auto& control) {
    const auto& info = control->describe();
    return info.backend == item.backend && info.device_id == item.device_id && knob_of(info.name) == knob_of(item.name);
  });
  return it == controls.end() ? nullptr : *it;
}

std::vector<Restored> restore_journal(JournalWriter& journal, const FindControl& find, const std::string& boot_id,
                                      Clock& clock, int tries) {
  const auto& before = journal.journal().boot_id;
  const bool restarted = !before.empty() && !boot_id.empty() && before != boot_id;
  const auto& items = journal.journal().items;
  std::map<std::size_t, Restored> results;
  StopSignal never;
  for (int attempt = 0; attempt < tries; ++attempt) {
    bool waiting = false;
    for (std::size_t i = items.size(); i-- > 0;) {
      if (!items[i].changed()) continue;
      const auto control = find(items[i]);
      auto result = restore_item(items[i], control.get(), restarted);
      const bool failed = result.outcome == RestoreOutcome::failed;
      waiting |= failed;
      results[i] = std::move(result);
      // A journal that cannot be written only means that the next start looks at this item once more.
      if (!failed && !journal.settled(i)) continue;
    }
    if (!waiting) break;
    if (attempt + 1 < tries) clock.sleep_until(clock.now() + milliseconds(20) * (1 << std::min(attempt, 6)), never);
  }
  std::vector<Restored> all;
  for (auto& [item, result] : results) all.push_back(std::move(result));
  return all;
}

bool any_failed(const std::vector<Restored>& all) {
  return std::ranges::any_of(all, [](const auto& one) { return one.outcome == RestoreOutcome::failed; });
}

std::string boot_id(const HostRoot& root) {
  const auto text = read_file(root.path("/proc/sys/kernel/random/boot_id"), 4096);
  return text ? std::string(trim(*text)) : std::string();
}

}  // namespace ergometer
