#include "store/import/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "base/file.hpp"
#include "base/text.hpp"
#include "store/import/readers.hpp"
#include "store/run_writer.hpp"

namespace ergometer::foreign {
namespace {

constexpr std::int64_t kFirstReading = 1'000'000'000;  // where the first reading lies on the run's clock
constexpr std::size_t kRowsAtOnce = 4096;
constexpr std::size_t kLargestFile = std::size_t{4} << 30U;
constexpr std::string_view kHdf5Magic = "\x89HDF\r\n\x1a\n";

// Puts a further log's readings to the node; sensors of one name get a number.
void add_to_node(ImportedLog& node, ImportedLog log) {
  for (auto& trace : log.traces) {
    const auto taken = [&](const std::string& name) {
      return std::any_of(node.traces.begin(), node.traces.end(), [&](const Trace& t) { return t.info.name == name; });
    };
    const std::string base = trace.info.name;
    for (int n = 2; taken(trace.info.name); ++n) trace.info.name = fmt::format("{}-{}", base, n);
    node.node.sensors.push_back(trace.info);
    node.traces.push_back(std::move(trace));
  }
  for (auto& gpu : log.node.gpus) {
    const auto same = [&](const GpuInfo& g) { return g.index == gpu.index; };
    if (std::none_of(node.node.gpus.begin(), node.node.gpus.end(), same)) node.node.gpus.push_back(std::move(gpu));
  }
}

Result<void> write_trace(RunWriter& writer, const std::string& node, const Trace& trace, std::int64_t shift_ns) {
  const auto stream = writer.open_samples(node, trace.info);
  if (!stream) return tl::unexpected(stream.error());
  std::vector<Row> rows;
  for (std::size_t i = 0; i < trace.rows(); ++i) {
    Row& row = rows.emplace_back();
    row.t = mono_ns(trace.t_ns[i] - shift_ns);
    for (const auto& column : trace.columns) row.values.push_back(column[i]);
    if (rows.size() < kRowsAtOnce && i + 1 < trace.rows()) continue;
    (*stream)->append(rows);
    rows.clear();
    if (auto done = writer.flush(); !done) return done;
  }
  return {};
}

}  // namespace

void warn_of_left_out(std::vector<Warning>& warnings, const std::string& source, std::size_t count,
                      std::size_t first_line, const std::string& why) {
  if (count == 0) return;
  warnings.push_back({"import-rows", fmt::format("{}: {} row{} left out: {} (first: line {})", source, count,
                                                 count == 1 ? "" : "s", why, first_line),
                      ""});
}

bool put_in_order(Trace& trace) {
  const bool ordered = std::adjacent_find(trace.t_ns.begin(), trace.t_ns.end(), std::greater_equal<>()) == trace.t_ns.end();
  if (ordered) return false;
  std::vector<std::size_t> order(trace.rows());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return trace.t_ns[a] < trace.t_ns[b]; });
  Trace sorted = Trace::empty(trace.info);
  for (const std::size_t i : order) {
    if (!sorted.t_ns.empty() && sorted.t_ns.back() == trace.t_ns[i]) continue;
    Row row{mono_ns(trace.t_ns[i]), Nanos{0}, {}};
    for (const auto& column : trace.columns) row.values.push_back(column[i]);
    sorted.push(row);
  }
  trace = std::move(sorted);
  return true;
}

Result<Imported> import_text(std::string_view text, const std::string& source, const ImportOptions& options) {
  auto csv = ForeignCsv::open(text, source);
  if (!csv) return tl::unexpected(csv.error());
  const auto as_imported = [](auto result) -> Result<Imported> {
    if (!result) return tl::unexpected(result.error());
    return Imported(std::move(*result));
  };
  if (is_study_csv(csv->header())) return as_imported(read_study_csv(*csv, source));
  if (is_slurm_series(csv->header())) return as_imported(read_slurm_series(*csv, source));
  if (is_gpu_log(csv->header())) return as_imported(read_gpu_log(*csv, source, options));
  std::string columns;
  for (const auto& name : csv->header()) columns += (columns.empty() ? "" : ", ") + name.substr(0, 40);
  if (columns.size() > 300) columns = columns.substr(0, 300) + " ...";
  return fail(ErrorCode::unsupported, fmt::format("{} is of no known form; its first line is: {}", source, columns),
              "known are nvidia-smi --query-gpu=timestamp,... --format=csv (with its header), the Supercloud forms, "
              "Slurm's profiles, codecarbon's emissions.csv, and Zeus's power traces and window logs");
}

Result<Imported> import_file(const std::filesystem::path& file, const ImportOptions& options) {
  std::array<char, kHdf5Magic.size()> first{};
  if (std::ifstream in(file, std::ios::binary); in.read(first.data(), first.size()) &&
                                                std::string_view(first.data(), first.size()) == kHdf5Magic) {
    auto logs = read_slurm_profile(file);
    if (!logs) return tl::unexpected(logs.error());
    return Imported(std::move(*logs));
  }
  const auto text = read_file(file, kLargestFile);
  if (!text) return tl::unexpected(text.error());
  return import_text(*text, file.filename().string(), options);
}

Result<Manifest> write_imported_run(const std::filesystem::path& dir, std::vector<ImportedLog> logs, Manifest manifest) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = std::numeric_limits<std::int64_t>::min();
  std::map<std::string, ImportedLog> nodes;
  const bool relative = !logs.empty() && logs.front().relative;
  for (auto& log : logs) {
    if (log.relative != relative)
      return fail(ErrorCode::invalid_argument, "some of the files have times of the calendar and some only seconds",
                  "import them apart: nothing ties their clocks together");
    for (const auto& trace : log.traces) {
      if (trace.t_ns.empty()) continue;
      first = std::min(first, trace.t_ns.front());
      last = std::max(last, trace.t_ns.back());
    }
    manifest.warnings.insert(manifest.warnings.end(), log.warnings.begin(), log.warnings.end());
    const auto known = nodes.find(log.node.name);
    if (known == nodes.end())
      nodes.emplace(log.node.name, std::move(log));
    else
      add_to_node(known->second, std::move(log));
  }
  if (first > last) return fail(ErrorCode::invalid_argument, "the files hold no reading");
  const std::int64_t shift = first - kFirstReading;
  manifest.state = "running";  // until everything is written
  if (!relative) manifest.clocks = {{mono_ns(kFirstReading), wall_ns(first)}};
  manifest.begin = mono_ns(kFirstReading);
  manifest.end = mono_ns(last - shift);
  for (const auto& [name, log] : nodes) manifest.nodes.push_back(name);
  const auto writer = RunWriter::create(dir, manifest);
  if (!writer) return tl::unexpected(writer.error());
  for (const auto& [name, log] : nodes) {
    if (auto done = (*writer)->write_node(log.node); !done) return tl::unexpected(done.error());
    for (const auto& trace : log.traces)
      if (auto done = write_trace(**writer, name, trace, shift); !done) return tl::unexpected(done.error());
    if (auto done = (*writer)->write_regions(name, *manifest.end); !done) return tl::unexpected(done.error());
  }
  manifest.state = "complete";
  if (auto done = (*writer)->write_manifest(manifest); !done) return tl::unexpected(done.error());
  return manifest;
}

}  // namespace ergometer::foreign
