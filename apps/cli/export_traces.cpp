#include "export_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "report/supercloud.hpp"
#include "report/trace_events.hpp"
#include "store/run_reader.hpp"

namespace ergometer::cli {
namespace {

constexpr std::size_t kRowsAtOnce = 16384;
constexpr std::size_t kLargestTorchTrace = std::size_t{4} << 30U;
constexpr int kFirstProcess = 5'000'000;  // above every process id of Linux

// One row a value that is there: long form, since sensors have different columns and times.
std::string sample_rows(const Trace& trace, const std::string& node, std::size_t begin, std::size_t end) {
  std::string out;
  for (std::size_t row = begin; row < end; ++row) {
    for (std::size_t c = 0; c < trace.columns.size(); ++c) {
      const auto value = trace.columns[c][row];
      if (!value) continue;
      append_int(out, trace.t_ns[row]);
      out += ',';
      append_csv_field(out, node);
      out += ',';
      append_csv_field(out, trace.info.name);
      out += ',';
      append_csv_field(out, trace.info.channels[c].domain);
      out += ',';
      append_csv_field(out, trace.info.channels[c].column);
      out += ',';
      append_double(out, *value);
      out += '\n';
    }
  }
  return out;
}

// A node's counters, then its regions.
Result<void> write_events(RunReader& reader, const Node& node, int process, const TraceClock& clock, OutputFile& out) {
  std::string text;
  append_process(text, process, "ergometer: " + node.name);
  for (const auto& sensor : reader.sensors(node.name)) {
    const auto trace = reader.samples(node.name, sensor);
    if (!trace) return tl::unexpected(trace.error());
    for (std::size_t row = 0; row < trace->rows(); row += kRowsAtOnce) {
      append_counters(text, *trace, process, clock, row, std::min(row + kRowsAtOnce, trace->rows()));
      if (auto ok = out.write(text); !ok) return ok;
      text.clear();
    }
  }
  const auto regions = reader.regions(node.name);
  if (!regions) return tl::unexpected(regions.error());
  append_slices(text, *regions, clock);
  return out.write(text);
}

}  // namespace

Result<void> export_samples(const std::string& run, OutputFile& out) {
  auto reader = RunReader::open(run);
  if (!reader) return tl::unexpected(reader.error());
  if (auto ok = out.write("t_ns,node,sensor,domain,column,value\n"); !ok) return ok;
  for (const auto& node : reader->nodes()) {
    for (const auto& sensor : reader->sensors(node.name)) {
      const auto trace = reader->samples(node.name, sensor);
      if (!trace) return tl::unexpected(trace.error());
      for (std::size_t row = 0; row < trace->rows(); row += kRowsAtOnce)
        if (auto ok = out.write(sample_rows(*trace, node.name, row, std::min(row + kRowsAtOnce, trace->rows()))); !ok)
          return ok;
    }
  }
  return {};
}

Result<void> export_perfetto(const std::string& run, const std::string& torch_trace, OutputFile& out) {
  auto reader = RunReader::open(run);
  if (!reader) return tl::unexpected(reader.error());
  std::string torch;
  TorchTrace place;
  if (!torch_trace.empty()) {
    auto text = read_file(torch_trace, kLargestTorchTrace);
    if (!text) return tl::unexpected(text.error());
    torch = std::move(*text);
    const auto found = inspect_torch_trace(torch, torch_trace);
    if (!found) return tl::unexpected(found.error());
    if (reader->manifest().clocks.empty())
      return fail(ErrorCode::invalid_argument, fmt::format("{} does not say when it ran, so nothing ties it to {}", run, torch_trace),
                  "export it without --torch-trace");
    place = *found;
  }
  const TraceClock clock(reader->manifest().clocks, place.base_ns);
  const std::string_view before = std::string_view(torch).substr(0, place.insert_at);
  if (auto ok = out.write(torch.empty() ? "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" : before); !ok) return ok;
  int process = kFirstProcess;
  for (const auto& node : reader->nodes())
    if (auto ok = write_events(*reader, node, process++, clock, out); !ok) return ok;
  // The list's last event has no comma behind it: one that says nothing more ends it, unless the profiler's follow.
  if (torch.empty() || !place.has_events) {
    std::string last;
    append_process(last, kFirstProcess - 1, "ergometer");
    last.resize(last.size() - 2);
    if (auto ok = out.write(last); !ok) return ok;
  }
  return out.write(torch.empty() ? "\n]}\n" : std::string_view(torch).substr(place.insert_at));
}

Result<void> export_supercloud(const std::string& run, OutputFile& out) {
  auto reader = RunReader::open(run);
  if (!reader) return tl::unexpected(reader.error());
  if (reader->nodes().size() > 1)
    return fail(ErrorCode::unsupported, fmt::format("{} is of several nodes; the Supercloud form has a file a node", run),
                "use --format csv --samples");
  bool any = false;
  for (const auto& node : reader->nodes()) {
    // Sensors of one GPU together: gpu0, gpu0-samples, ...
    std::map<int, std::vector<Trace>> gpus;
    for (const auto& sensor : reader->sensors(node.name)) {
      if (!sensor.starts_with("gpu")) continue;
      auto trace = reader->samples(node.name, sensor);
      if (!trace) return tl::unexpected(trace.error());
      if (trace->info.channels.empty() || !trace->info.channels[0].domain.starts_with("gpu/")) continue;
      const auto index = parse_int(std::string_view(trace->info.channels[0].domain).substr(4));
      if (index) gpus[static_cast<int>(*index)].push_back(std::move(*trace));
    }
    for (const auto& [index, traces] : gpus) {
      std::vector<const Trace*> pointers;
      for (const auto& trace : traces) pointers.push_back(&trace);
      const auto rows = supercloud_rows(pointers, index, reader->manifest().clocks);
      if (rows.empty()) continue;
      if (auto ok = out.write(any ? rows : kSupercloudHeader + rows); !ok) return ok;
      any = true;
    }
  }
  if (any) return {};
  return fail(ErrorCode::not_found, fmt::format("{} has no GPU with power or utilisation", run),
              "the Supercloud form is of GPUs; use --format csv --samples");
}

}  // namespace ergometer::cli
