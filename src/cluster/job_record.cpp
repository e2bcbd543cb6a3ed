#include "cluster/job_record.hpp"

#include <fmt/format.h>

#include "base/file.hpp"
#include "base/json_object.hpp"
#include "model/job_domain_json.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kLargestRecord = 16 << 20;

}  // namespace

Result<DaemonJobRecord> parse_daemon_record(std::string_view text, const std::string& source) {
  DaemonJobRecord out;
  auto& part = out.part;
  part.source = JobPart::Source::daemon;
  part.path = source;
  const auto read = read_json(text, source, "ergometer.job-part/1", [&](JsonObject& o) {
    std::string state, others;
    std::optional<std::int64_t> begin, end;
    o.read("node", part.node);
    o.read("state", state);
    o.read("begin_unix_ns", begin);
    o.read("end_unix_ns", end);
    if (part.node.empty()) o.complain("node", "the name of a node");
    if (!begin || !end || *end < *begin) o.complain("end_unix_ns", "an end after begin_unix_ns");
    part.begin = wall_ns(begin.value_or(0));
    part.end = wall_ns(end.value_or(0));
    part.complete = state == "complete";
    o.read_objects("domains", [&](JsonObject& d) { part.domains.push_back(job_domain_from(d)); });
    o.read_objects("others", [&](JsonObject& other) {
      std::string job;
      other.read("job", job);
      others += (others.empty() ? "" : ", ") + job;
    });
    if (!others.empty())
      out.warnings.push_back({"node-shared",
                              fmt::format("{} had other jobs in this time as well ({}): its energy is the whole node's",
                                          part.node, others),
                              "ask for whole nodes with --exclusive to know a job's own"});
    if (state == "cut")
      out.warnings.push_back(
          {"record-cut", fmt::format("{} restarted: what it used until the job's end is not known", part.node), ""});
  });
  if (!read) return tl::unexpected(read.error());
  return out;
}

Result<DaemonJobRecord> read_job_record(const std::filesystem::path& file) {
  const auto text = read_file(file, kLargestRecord);
  if (!text) return tl::unexpected(text.error());
  return parse_daemon_record(*text, file.string());
}

}  // namespace ergometer
