// What the SPANK plugin is told: by the site in plugstack.conf, and by the user with --ergometer. Pure; used by
// plugin.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ergometer::spank {

// `required ergometer_spank.so KEY=VALUE ...`
struct SiteOptions {
  bool by_default = false;                         // default=on: steps are measured unless a user says off
  std::string program = "/usr/bin/ergometer";      // program=
  std::string folder = "%h/ergometer-jobs/%j/%s";  // dir=: of a step's run
  std::string host_root;                           // host_root=: ERGOMETER_HOST_ROOT of the sampler; "" is the machine
  std::string daemon;                              // daemon=SOCKET; "" is ergometerd's own place
  bool tell_daemon = true;                         // jobs=off: ergometerd hears of no jobs
  bool exclusive = false;                          // exclusive=on: a job has its nodes for itself
};

// `--ergometer[=WORD,...]`
struct StepOptions {
  bool measure = true;   // "off" (and "on", which is what the bare option means)
  std::string folder;    // dir=
  std::string interval;  // interval=
  std::string sensors;   // sensors=A+B, as `ergometer run --sensors A,B`
};

// Both complain about the first word that is wrong, with the nearest known one. What was right before it is in `out`.
[[nodiscard]] Result<void> read_site_options(const std::vector<std::string_view>& words, SiteOptions& out);
[[nodiscard]] Result<void> read_step_options(std::string_view text, StepOptions& out);

// What stands for % in a folder or host root: %h home, %u user, %j job, %s step, %n node.
struct Place {
  std::string home, user, job, step, node;
};
// Error: a % of another kind, a value that is not known, or a path that is not absolute.
[[nodiscard]] Result<std::string> fill_in(std::string_view form, const Place& place);

}  // namespace ergometer::spank
