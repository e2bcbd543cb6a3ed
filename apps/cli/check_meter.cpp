// `ergometer check-meter RUN`: whether two sources of a run agree, by MLPerf Training's rule for power meters. Exit 0
// if they do, 1 if not, 2 if the run cannot tell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>
#include <memory>

#include "analysis/meter_check.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "library/load_run.hpp"
#include "meter_file.hpp"
#include "store/run_reader.hpp"

namespace ergometer::cli {
namespace {
namespace fs = std::filesystem;

constexpr const char* kImported = "node-meter";  // name of the sample file, which says that it is of the node
constexpr int kDisagree = 1;

struct CheckOptions {
  std::string run, sources, import;
  double offset_s = 0;
};

// A power or energy channel of one sensor of a node.
struct Source {
  std::string node, sensor, column;
  Channel channel;
  [[nodiscard]] std::string name() const { return sensor + "/" + column; }
};

std::vector<Source> sources_of(const RunReader& reader) {
  std::vector<Source> out;
  for (const auto& node : reader.nodes())
    for (const auto& sensor : reader.sensors(node.name)) {
      const auto trace = reader.samples(node.name, sensor);
      if (!trace) continue;
      for (const auto& channel : trace->info.channels)
        if (channel.method && channel.measured) out.push_back({node.name, sensor, channel.column, channel});
    }
  return out;
}

Result<Source> find_source(const std::vector<Source>& all, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& s : all) {
    if (name == s.name() || name == s.sensor) return s;
    names.push_back(s.name());
  }
  const auto nearest = nearest_name(name, names);
  return fail(ErrorCode::invalid_argument, fmt::format("the run has no source \"{}\"", name),
              names.empty()     ? std::string("it holds no measured power and no energy")
              : nearest.empty() ? fmt::format("it has: {}", fmt::join(names, ", "))
                                : fmt::format("did you mean \"{}\"?", nearest));
}

// The two that are asked for; else the first two node meters of different sensors, the imported one as the reference.
Result<std::pair<Source, Source>> choose(const std::vector<Source>& all, const std::string& asked) {
  if (!asked.empty()) {
    const auto names = split(asked, ',');
    if (names.size() != 2)
      return fail(ErrorCode::invalid_argument, "--sources takes two names", "write --sources A,B; B is the reference");
    const auto a = find_source(all, trim(names[0])), b = find_source(all, trim(names[1]));
    if (!a || !b) return tl::unexpected(a ? b.error() : a.error());
    return std::pair(*a, *b);
  }
  std::vector<Source> meters;
  for (const auto& s : all) {
    if (s.channel.scope != Scope::node) continue;
    if (meters.empty() || meters.back().sensor != s.sensor || meters.back().node != s.node) meters.push_back(s);
  }
  std::ranges::stable_sort(meters, {}, [](const Source& s) {
    return std::pair(s.node, s.sensor == kImported || s.sensor.starts_with("meter"));
  });
  if (meters.size() < 2 || meters[0].node != meters[1].node) {
    std::vector<std::string> names;
    for (const auto& s : all) names.push_back(s.name());
    return fail(
        ErrorCode::invalid_argument, fmt::format("the run has {} node meters, two are needed", meters.size()),
        fmt::format("name two of its sources with --sources A,B ({}), or bring a meter's file with --import FILE",
                    names.empty() ? "it has none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  std::size_t last = 1;
  while (last + 1 < meters.size() && meters[last + 1].node == meters[0].node) ++last;
  return std::pair(meters[0], meters[last]);
}

// --- bringing in a meter's file --------------------------------------------------------------------------------------

Result<void> import_meter(const RunReader& reader, const CheckOptions& options, const Context& context) {
  const auto& manifest = reader.manifest();
  if (manifest.clocks.empty() || reader.nodes().empty())
    return fail(ErrorCode::invalid_argument, options.run + " does not say which wall time it was measured at");
  const Nanos offset = from_seconds(options.offset_s);
  const auto read = read_meter_of_run(options.import, manifest, context);
  if (!read) return tl::unexpected(read.error());
  const MonoTime first =
      manifest.idle_before ? manifest.idle_before->begin : manifest.begin.value_or(manifest.clocks.front().mono);
  const MonoTime last =
      manifest.idle_after ? manifest.idle_after->end : manifest.end.value_or(manifest.clocks.back().mono);
  std::string csv = "t_ns,power_w\n";
  std::size_t inside = 0;
  std::optional<MonoTime> before;
  for (const auto& row : read->rows) {
    const MonoTime t = row.t + offset;
    if (t < first - std::chrono::minutes(1) || t > last + std::chrono::minutes(1) || (before && t <= *before)) continue;
    before = t;
    inside += t >= first && t <= last ? 1 : 0;
    append_int(csv, to_ns(t));
    csv += ',';
    if (row.values[0]) append_double(csv, *row.values[0]);
    csv += '\n';
  }
  if (inside == 0)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("no row of {} lies in the run: its rows are from {:.0f} s to {:.0f} s after the run's beginning, "
                    "which lasted {:.0f} s",
                    options.import, seconds(read->rows.front().t + offset - first),
                    seconds(read->rows.back().t + offset - first), seconds(last - first)),
        "if the meter has another clock, move its times with --offset SECONDS");
  const auto folder = reader.dir() / "nodes" / reader.nodes().front().name / "samples";
  const auto file = folder / (std::string(kImported) + ".csv");
  if (fs::exists(file)) return fail(ErrorCode::exists, file.string() + " exists", "delete it to import a meter anew");
  if (auto written = write_file_atomically(file, csv); !written) return written;
  fmt::print("imported {} rows of {} as sensor {}", inside, options.import, kImported);
  if (read->unreadable > 0) fmt::print(", {} lines left out", read->unreadable);
  if (read->refused > 0) fmt::print(", {} without a value", read->refused);
  fmt::print("\n");
  // What was derived before lacks the meter.
  const auto run = load_run(options.run);
  return run ? write_summary(options.run, run->summary) : tl::unexpected(run.error());
}

// --- the check -------------------------------------------------------------------------------------------------------

void print(const MeterCheck& check, const Source& a, const Source& b, MonoTime begin) {
  fmt::print("MLPerf Training's rule for power meters: {} disjoint minutes, Olympic means within {:g} %\n",
             kMeterWindows, kMeterTolerance * 100);
  fmt::print("  source     {}  ({})\n  reference  {}  ({})\n", a.name(), a.channel.domain, b.name(), b.channel.domain);
  if (a.channel.domain != b.channel.domain)
    fmt::print("  note: {} and {} are different parts of the machine\n", a.channel.domain, b.channel.domain);
  if (!check.windows.empty())
    fmt::print("  {:>10} {:>12} {:>12} {:>9}\n", "from s", "source W", "reference W", "differ");
  for (const auto& w : check.windows)
    fmt::print("  {:>10.1f} {:>12.2f} {:>12.2f} {:>8.2f}%\n", seconds(w.begin - begin), w.a_w, w.b_w,
               100 * (w.a_w - w.b_w) / w.b_w);
  if (check.a_w && check.b_w) fmt::print("  {:>10} {:>12.2f} {:>12.2f}", "Olympic", *check.a_w, *check.b_w);
  if (check.difference) fmt::print(" {:>8.2f}%", 100 * *check.difference);
  if (check.a_w) fmt::print("\n");
  if (!check.missing.empty())
    fmt::print("NO VERDICT: {}\n", check.missing);
  else
    fmt::print("{}\n", check.agrees() ? "PASS: within 5 %" : "FAIL: not within 5 %");
  if (check.difference)
    fmt::print(
        "  the rule asks for this under different loads: idle and two benchmarks ({} minutes were there to choose "
        "from)\n",
        check.minutes);
}

Result<int> run_check(const CheckOptions& options, const Context& context) {
  auto reader = RunReader::open(options.run);
  if (reader && !options.import.empty()) {
    if (auto done = import_meter(*reader, options, context); !done) return tl::unexpected(done.error());
    reader = RunReader::open(options.run);
  }
  if (!reader) return tl::unexpected(reader.error());
  const auto pair = choose(sources_of(*reader), options.sources);
  if (!pair) return tl::unexpected(pair.error());
  const auto& [a, b] = *pair;
  const auto trace_a = reader->samples(a.node, a.sensor), trace_b = reader->samples(b.node, b.sensor);
  if (!trace_a || !trace_b) return tl::unexpected(trace_a ? trace_b.error() : trace_a.error());
  const auto check = check_meter({&*trace_a, *trace_a->column(a.column)}, {&*trace_b, *trace_b->column(b.column)});
  const MonoTime begin = reader->manifest().begin.value_or(check.windows.empty() ? MonoTime{} : check.windows[0].begin);
  print(check, a, b, begin);
  return !check.missing.empty() ? kUsage : check.agrees() ? 0 : kDisagree;
}

}  // namespace

void add_check_meter(CLI::App& app, Context& context) {
  const auto options = std::make_shared<CheckOptions>();
  auto* command = app.add_subcommand("check-meter", "Compare two power sources of a run by MLPerf's rule for meters");
  command->add_option("RUN", options->run, "run directory")->required();
  command->add_option("--sources", options->sources, "two sensors or SENSOR/COLUMN, the reference last")
      ->type_name("A,B");
  command->add_option("--import", options->import, "first bring a power meter's CSV into the run")->type_name("FILE");
  command->add_option("--offset", options->offset_s, "seconds to add to the imported file's times");
  command->callback([options, &context] {
    const auto code = run_check(*options, context);
    context.exit_code = code ? *code : report_error(code.error());
  });
}

}  // namespace ergometer::cli
