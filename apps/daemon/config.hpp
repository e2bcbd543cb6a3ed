// The daemon's configuration, ergometerd.toml (docs/daemon.md). Used by main.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace ergometer::daemon {

struct Config {
  std::vector<std::string> read_groups{"ergometer"}, read_users;
  std::vector<std::string> sensors{"rapl", "ipmi", "hwmon", "cray"};  // interfaces
  // No sensor is read more often, whoever asks: a finer processor power tells of secrets (CVE-2020-8694).
  Nanos interval = std::chrono::milliseconds(50);
  int max_clients = 512;
  std::string metrics;  // "ADDRESS:PORT" of the Prometheus endpoint; "": none
  // Who may set controls beside root, and the owners of jobs that have the node to themselves.
  std::vector<std::string> control_groups, control_users;
  bool control_jobs = false;
  std::vector<std::string> controls{"*"};  // what may be set: parse_allowed()
  bool jobs = false;                       // the resource manager tells of jobs, and each gets a record
  Nanos job_interval = std::chrono::seconds(10);
  std::filesystem::path job_records = "/var/lib/ergometer/jobs";  // below the host root
  Nanos job_keep = std::chrono::hours(90 * 24);                   // records of jobs that ended so long ago are removed
};

// Errors: a file that is no TOML; a key or a kind of value that is not known, with its line and the nearest key.
[[nodiscard]] Result<Config> parse_config(const std::string& text, const std::string& file);
// The defaults where `file` does not exist and is not `required`.
[[nodiscard]] Result<Config> load_config(const std::filesystem::path& file, bool required);

}  // namespace ergometer::daemon
