#include "job_runs.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/file.hpp"
#include "base/text.hpp"
#include "cluster/job_record.hpp"
#include "library/load_run.hpp"
#include "store/run_reader.hpp"

namespace ergometer::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Slurm's times are whole seconds of the controller's clock, and a sampler begins before its step.
constexpr Nanos kSlack = 120s;

std::string own_name() {
  std::array<char, 4096> buffer{};
  passwd entry{}, *found = nullptr;
  return ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found ? found->pw_name : "";
}

// Where a user's index lies. Our own follows HOME, as the plugin does.
fs::path home_of(const std::string& user) {
  if (user.empty() || user == own_name()) {
    const char* home = std::getenv("HOME");
    return home ? home : "";
  }
  std::array<char, 4096> buffer{};
  passwd entry{}, *found = nullptr;
  return ::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found ? found->pw_dir : "";
}

WallTime wall_at(const Manifest& manifest, MonoTime t) {
  const ClockPair* nearest = nullptr;
  for (const auto& pair : manifest.clocks)
    if (!nearest || std::abs(to_ns(pair.mono) - to_ns(t)) < std::abs(to_ns(nearest->mono) - to_ns(t))) nearest = &pair;
  return nearest ? nearest->wall + (t - nearest->mono) : WallTime{};
}

MonoTime mono_at(const Manifest& manifest, WallTime t) {
  const ClockPair* nearest = nullptr;
  for (const auto& pair : manifest.clocks)
    if (!nearest || std::abs(to_ns(pair.wall) - to_ns(t)) < std::abs(to_ns(nearest->wall) - to_ns(t))) nearest = &pair;
  return nearest ? nearest->mono + (t - nearest->wall) : mono_ns(to_ns(t));
}

std::set<std::string> idle_gpus(const NodeSummary& node) {
  std::set<std::string> out;
  if (!node.account) return out;
  for (const auto& part : node.account->parts)
    if (part.role == PartRole::idle_gpu) out.insert(part.domain);
  return out;
}

class Collector {
 public:
  Collector(const SlurmJob& job, JobMeasurements& out) : job_(job), out_(out) {}

  void add_run(const fs::path& dir, const std::string& step, bool given) {
    std::error_code ec;
    const auto real = fs::weakly_canonical(dir, ec);
    if (!seen_.insert(ec ? dir : real).second) return;
    const auto run = load_run(dir);
    if (!run) {
      out_.warnings.push_back(
          {"run-unreadable", fmt::format("step {}: {}", step, run.error().message), run.error().hint});
      return;
    }
    const auto& manifest = run->manifest;
    if (manifest.clocks.empty()) return;
    const MonoTime first = manifest.begin.value_or(manifest.clocks.front().mono);
    const auto begin = wall_at(manifest, first);
    const auto end = begin + from_seconds(run->summary.run.duration_s.value_or(0));
    if (!given && !belongs(begin, end)) return;
    for (const auto& node : run->summary.nodes)
      out_.parts.push_back({JobPart::Source::run, dir.string(), step, node.name, begin, end,
                            manifest.state == "complete", node.domains, idle_gpus(node)});
    for (const auto& node : run->nodes)
      if (node.memory_limit_bytes) limits_[node.name] = *node.memory_limit_bytes;
    if (manifest.state == "complete") add_warnings(run->summary.warnings);
  }

  void add_index(const fs::path& folder) {
    std::error_code ec;
    fs::directory_iterator probe(folder, ec);
    if (ec == std::errc::permission_denied) {
      out_.warnings.push_back(
          {"not-yours", fmt::format("the runs of {} are not yours to read", job_.user), "their owner can ask"});
      return;
    }
    for (const auto& name : list_dir(folder)) add_run(fs::read_symlink(folder / name, ec), name, false);
  }

  void add_record(const fs::path& file) {
    const auto record = read_job_record(file);
    if (!record) {
      const bool refused = record.error().code == ErrorCode::permission_denied;
      out_.warnings.push_back({refused ? "not-yours" : "record-unreadable", record.error().message,
                               refused ? "the daemon's records are for the job's owner" : record.error().hint});
    } else if (belongs(record->part.begin, record->part.end)) {
      out_.parts.push_back(record->part);
      add_warnings(record->warnings);
    }
  }

  void finish() {
    for (const auto& [node, bytes] : limits_) out_.memory_bytes = out_.memory_bytes.value_or(0) + bytes;
  }

 private:
  [[nodiscard]] bool belongs(WallTime begin, WallTime end) const {
    return !job_.begin || (end + kSlack >= *job_.begin && (!job_.end || begin - kSlack <= *job_.end));
  }

  // Of many steps a trouble of the node is told once.
  void add_warnings(const std::vector<Warning>& warnings) {
    for (const auto& warning : warnings)
      if (std::find(out_.warnings.begin(), out_.warnings.end(), warning) == out_.warnings.end())
        out_.warnings.push_back(warning);
  }

  const SlurmJob& job_;
  JobMeasurements& out_;
  std::set<fs::path> seen_;
  std::map<std::string, double> limits_;
};

}  // namespace

JobMeasurements measurements_of(const SlurmJob& job, const JobPlaces& places) {
  JobMeasurements out;
  Collector collector(job, out);
  for (const auto& run : places.runs) collector.add_run(run, run.filename().string(), true);
  const auto home = home_of(job.user);
  const auto index = home / ".local/share/ergometer/jobs";
  if (!home.empty())
    for (const auto& cluster : list_dir(index))
      if (job.cluster.empty() || cluster == file_name_of(job.cluster)) collector.add_index(index / cluster / job.id);
  const auto folder = places.records / job.id;
  std::error_code ec;
  fs::directory_iterator probe(folder, ec);
  if (ec == std::errc::permission_denied)
    out.warnings.push_back({"not-yours", fmt::format("the daemon's records of job {} are not yours to read", job.shown),
                            "they are for the job's owner"});
  for (const auto& name : list_dir(folder))
    if (name.ends_with(".json")) collector.add_record(folder / name);
  collector.finish();
  return out;
}

std::vector<DomainEnergy> cut_part(const JobPart& part, WallTime begin, WallTime end) {
  if (part.source != JobPart::Source::run) return {};
  const auto reader = RunReader::open(part.path);
  if (!reader) return {};
  const auto run =
      load_run(part.path, {}, Interval{mono_at(reader->manifest(), begin), mono_at(reader->manifest(), end)});
  if (!run) return {};
  for (const auto& node : run->summary.nodes)
    if (node.name == part.node) return node.domains;
  return {};
}

}  // namespace ergometer::cli
