#include "daemon/job_record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.hpp"
#include "base/json_object.hpp"
#include "model/job_domain_json.hpp"
#include "base/number.hpp"
#include "device/remote/protocol.hpp"

namespace ergometer::daemon {
namespace {
namespace fs = std::filesystem;

using Json = nlohmann::ordered_json;

constexpr const char* kJobSchema = "ergometer.job-part/1";
constexpr std::size_t kMostRecordBytes = 16 << 20;
constexpr std::array<std::pair<JobState, const char*>, 3> kStates{
    {{JobState::running, "running"}, {JobState::complete, "complete"}, {JobState::cut, "cut"}}};

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json domain_json(const DomainEnergy& d) {
  return {{"domain", d.domain},
          {"device", d.device},
          {"scope", to_word(d.scope)},
          {"method", to_word(d.method)},
          {"measured", d.measured},
          {"energy_j", or_null(d.energy_j)},
          {"uncertainty_j", or_null(d.uncertainty_j)},
          {"coverage", d.coverage},
          {"mean_power_w", or_null(d.mean_power_w)},
          {"max_power_w", or_null(d.max_power_w)},
          {"in_total", d.in_total}};
}

Json record_json(const JobRecord& r) {
  Json json = {{"schema", kJobSchema},
               {"job", r.job},
               {"uid", r.uid},
               {"user", r.user},
               {"node", r.node},
               {"exclusive", r.exclusive},
               {"attempt", r.attempt},
               {"state", to_word(r.state)},
               {"begin_ns", to_ns(r.begin)},
               {"end_ns", to_ns(r.end)},
               {"begin_unix_ns", to_ns(r.begin_wall)},
               {"end_unix_ns", to_ns(r.end_wall)},
               {"interval_ns", r.interval.count()},
               {"boot_id", r.boot_id},
               {"version", r.version}};
  Json domains = Json::array(), others = Json::array(), last = Json::array();
  for (const auto& domain : r.domains) domains.push_back(domain_json(domain));
  for (const auto& [job, overlap_s] : r.others) others.push_back({{"job", job}, {"overlap_s", overlap_s}});
  for (const auto& reading : r.last) {
    Json values = Json::array();
    for (const auto& value : reading.values) values.push_back(or_null(value));
    Json one = {{"sensor", reading.sensor}, {"t_ns", to_ns(reading.t)}};
    one["columns"] = reading.columns;
    one["values"] = std::move(values);
    last.push_back(std::move(one));
  }
  json["domains"] = std::move(domains);
  json["others"] = std::move(others);
  if (r.state == JobState::running) json["last"] = std::move(last);
  return json;
}

LastReading reading_from(JsonObject& o) {
  LastReading reading;
  std::optional<MonoTime> t;
  o.read("sensor", reading.sensor);
  o.read("t_ns", t);
  o.read("columns", reading.columns);
  o.read("values", reading.values);
  if (!t || reading.values.size() != reading.columns.size()) o.complain("values", "a value for each column, at a time");
  reading.t = t.value_or(MonoTime{});
  return reading;
}

void read_times(JsonObject& o, JobRecord& r) {
  std::optional<MonoTime> begin, end;
  std::optional<std::int64_t> begin_wall, end_wall;
  o.read("begin_ns", begin);
  o.read("end_ns", end);
  o.read("begin_unix_ns", begin_wall);
  o.read("end_unix_ns", end_wall);
  o.read("interval_ns", r.interval);
  if (!begin || !end || !begin_wall || !end_wall) o.complain("begin_ns", "begin and end on both clocks");
  r.begin = begin.value_or(MonoTime{});
  r.end = end.value_or(MonoTime{});
  r.begin_wall = wall_ns(begin_wall.value_or(0));
  r.end_wall = wall_ns(end_wall.value_or(0));
}

// Readers see the old record or the new one, and a machine that dies keeps one of them.
Result<void> replace_file(const fs::path& file, std::string_view text, uid_t owner) {
  const fs::path aside = file.string() + ".new";
  int fd = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return tl::unexpected(errno_error("create", aside, errno));
  int error = 0;
  for (auto rest = text; !rest.empty() && error == 0;) {
    const ssize_t n = ::write(fd, rest.data(), rest.size());
    if (n >= 0)
      rest.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR)
      error = errno;
  }
  if (error == 0 && owner != ::geteuid() && ::fchown(fd, owner, static_cast<gid_t>(-1)) != 0) error = errno;
  if (error == 0 && ::fchmod(fd, 0640) != 0) error = errno;
  if (error == 0 && ::fdatasync(fd) != 0) error = errno;
  close_fd(fd);
  if (error == 0 && ::rename(aside.c_str(), file.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(aside.c_str());
  return tl::unexpected(errno_error("write", file, error));
}

// Whatever the daemon's umask: users must reach their records.
Result<void> make_open_folder(const fs::path& folder) {
  std::error_code ec;
  if (!fs::create_directories(folder, ec) && !ec) return {};
  if (ec) return tl::unexpected(errno_error("create", folder, ec.value()));
  if (::chmod(folder.c_str(), 0755) != 0) return tl::unexpected(errno_error("open to its users", folder, errno));
  return {};
}

}  // namespace

const char* to_word(JobState state) {
  for (const auto& [known, word] : kStates)
    if (known == state) return word;
  return "cut";
}

std::string job_record_text(const JobRecord& record) {
  return record_json(record).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string job_record_line(const JobRecord& record) {
  auto json = record_json(record);
  json.erase("last");
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<JobRecord> parse_job_record(std::string_view text, const std::string& source) {
  JobRecord r;
  const auto read = read_json(text, source, kJobSchema, [&](JsonObject& o) {
    std::string state;
    std::optional<std::int64_t> uid;
    o.read("job", r.job);
    o.read("uid", uid);
    o.read("user", r.user);
    o.read("node", r.node);
    o.read("exclusive", r.exclusive);
    o.read("attempt", r.attempt);
    o.read("state", state);
    o.read("boot_id", r.boot_id);
    o.read("version", r.version);
    read_times(o, r);
    o.read_objects("domains", [&](JsonObject& d) { r.domains.push_back(job_domain_from(d)); });
    o.read_objects("others", [&](JsonObject& other) {
      std::string job;
      std::optional<double> overlap_s;
      other.read("job", job);
      other.read("overlap_s", overlap_s);
      if (overlap_s) r.others[job] = *overlap_s;
    });
    o.read_objects("last", [&](JsonObject& l) { r.last.push_back(reading_from(l)); });
    bool known = false;
    for (const auto& [one, word] : kStates)
      if (word == state) r.state = one, known = true;
    if (!known) o.complain("state", "running, complete or cut");
    if (!remote::is_job_id(r.job)) o.complain("job", "the id of a job");
    if (!uid || *uid < 0 || *uid >= UINT32_MAX) o.complain("uid", "the number of the job's user");
    r.uid = uid.value_or(0);
  });
  if (!read) return tl::unexpected(read.error());
  return r;
}

fs::path JobFolder::file_of(const std::string& job) const { return folder_ / job / (node_ + ".json"); }

bool JobFolder::is_ours(const std::string& name) const {
  if (!name.starts_with(node_) || !name.ends_with(".json")) return false;
  const auto middle = std::string_view(name).substr(node_.size(), name.size() - node_.size() - 5);
  return middle.empty() || (middle.front() == '~' && parse_uint(middle.substr(1)));
}

Result<void> JobFolder::write(const JobRecord& record) const {
  for (const auto& folder : {folder_, folder_ / record.job})
    if (auto made = make_open_folder(folder); !made) return made;
  return replace_file(file_of(record.job), job_record_text(record), static_cast<uid_t>(record.uid));
}

Result<JobRecord> JobFolder::read(const std::string& job) const {
  const auto file = file_of(job);
  const auto text = read_file(file, kMostRecordBytes);
  if (!text) return tl::unexpected(text.error());
  return parse_job_record(*text, file.string());
}

std::vector<JobRecord> JobFolder::running(std::vector<Error>& problems) const {
  std::vector<JobRecord> all;
  for (const auto& job : list_dir(folder_)) {
    if (!remote::is_job_id(job)) continue;
    auto record = read(job);
    if (!record && record.error().code != ErrorCode::not_found) problems.push_back(record.error());
    if (record && record->state == JobState::running && record->job == job) all.push_back(std::move(*record));
  }
  return all;
}

Result<int> JobFolder::set_aside(const std::string& job) const {
  std::error_code ec;
  const auto file = file_of(job);
  if (!fs::exists(file, ec)) return 0;
  int next = 1;
  const auto aside = [&] { return folder_ / job / fmt::format("{}~{}.json", node_, next); };
  while (fs::exists(aside(), ec)) ++next;
  if (::rename(file.c_str(), aside().c_str()) != 0) return tl::unexpected(errno_error("rename", file, errno));
  return next;
}

void JobFolder::remove_older(WallTime oldest) const {
  for (const auto& job : list_dir(folder_)) {
    if (!remote::is_job_id(job)) continue;
    bool removed = false;
    for (const auto& name : list_dir(folder_ / job)) {
      const auto file = folder_ / job / name;
      struct stat st {};
      if (!is_ours(name) || ::lstat(file.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
      if (st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec >= to_ns(oldest)) continue;
      removed |= ::unlink(file.c_str()) == 0;
    }
    // Other nodes may have records in it.
    if (removed) ::rmdir((folder_ / job).c_str());
  }
}

}  // namespace ergometer::daemon
