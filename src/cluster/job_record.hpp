// Reads what ergometerd wrote of a job on one node (docs/job-record.md). Used by `ergometer job`.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cluster/job_account.hpp"
#include "model/warning.hpp"

namespace ergometer {

struct DaemonJobRecord {
  JobPart part;
  std::vector<Warning> warnings;  // other jobs on the node, a node that restarted
};

// Errors: as read_file (permission_denied for a record of somebody else); corrupt with what is wrong.
[[nodiscard]] Result<DaemonJobRecord> read_job_record(const std::filesystem::path& file);
[[nodiscard]] Result<DaemonJobRecord> parse_daemon_record(std::string_view text, const std::string& source);

}  // namespace ergometer
