// Restoring what a journal says was changed. The same for a guard that ends, its guardian, and the next start.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "device/control_journal.hpp"

namespace ergometer {

enum class RestoreOutcome {
  untouched,  // it was what it had been: nothing was written
  restored,   // written and read back
  reset,      // given back to the driver; it cannot be read
  foreign,    // somebody else changed it: theirs was left
  restarted,  // the machine restarted since, so nothing of ours is left; it was not written
  failed,     // still not what it was
};

struct Restored {
  std::string name;
  RestoreOutcome outcome = RestoreOutcome::untouched;
  std::string text;  // a sentence for people
  std::string hint;
};

using FindControl = std::function<std::shared_ptr<Control>(const JournalItem&)>;

// The control of an item among those found now: by what stays the same, not by its number.
[[nodiscard]] std::shared_ptr<Control> control_of(const JournalItem& item,
                                                  const std::vector<std::shared_ptr<Control>>& controls);

// Restores in reverse order, each item checked first and read back after; one that fails is tried again after the
// others, up to `tries` times with growing waits, and hinders none. Settled items are noted in the journal. One entry
// an item that was changed, in the order in which they were set. `boot_id` is that of now.
[[nodiscard]] std::vector<Restored> restore_journal(JournalWriter& journal, const FindControl& find,
                                                    const std::string& boot_id, Clock& clock, int tries = 6);

[[nodiscard]] bool any_failed(const std::vector<Restored>& all);

// The kernel's id of this start of the machine; "" if it does not tell.
[[nodiscard]] std::string boot_id(const HostRoot& root);

}  // namespace ergometer
