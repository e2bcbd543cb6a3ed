// ergometer calibrate: what this machine's sensors do. Makes loads of known times, measures them as any run, and finds
// each channel's update period, window, delay, resolution and cost (analysis/calibration.hpp).
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <random>
#include <thread>

#include "analysis/calibration.hpp"
#include "base/number.hpp"
#include "calibrate_result.hpp"
#include "command.hpp"
#include "device/load/load.hpp"
#include "device/profiles.hpp"
#include "discover_options.hpp"
#include "ergometer/region.hpp"
#include "measure/session.hpp"
#include "run_folder.hpp"
#include "store/run_reader.hpp"

namespace ergometer::cli {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// Fast enough to see a driver's 20 ms; what cannot be read so fast is read as fast as it goes.
constexpr Nanos kInterval = 5ms;
constexpr unsigned kSeed = 20220101;

struct CalibrateOptions {
  std::vector<std::string> devices;
  std::string output, store = "runs", from, profiles;
  std::string length = "40s";
  MeterOptions meter;
};

struct Target {
  std::string region;  // "gpu0", "cpu"
  std::unique_ptr<Load> load;
};

// Two long steps, whose levels and windows of a second show, then on and off at random: no wave of one frequency, which
// a sensor of the same rhythm could see always at the same point.
std::vector<Nanos> schedule(Nanos length) {
  std::vector<Nanos> times{2s, 3s, 3s, 2s};  // off, on, off, on, ...
  std::mt19937 random(kSeed);
  Nanos sum = 10s;
  while (sum < length) {
    // From 60 to 800 ms; the generator's own numbers, since the library's distributions differ between systems.
    times.push_back(Nanos(60ms) + Nanos(random() % 740'000'000U));
    sum += times.back();
  }
  if (times.size() % 2 == 0) times.push_back(500ms);
  return times;
}

Result<void> play(Target& target, Nanos length) {
  const ScopedRegion whole(target.region.c_str());
  bool on = false;
  for (const Nanos time : schedule(length)) {
    if (on) {
      const ScopedRegion load("load");
      if (auto done = target.load->burn(time); !done) return done;
    } else {
      std::this_thread::sleep_for(time);
    }
    on = !on;
  }
  return {};
}

bool wants(const CalibrateOptions& options, const std::string& device) {
  if (options.devices.empty()) return true;
  return std::find(options.devices.begin(), options.devices.end(), device) != options.devices.end();
}

// The loads that were asked for; without a request every one that works here.
Result<std::vector<Target>> find_targets(const CalibrateOptions& options, const Host& host, const Node& node) {
  std::vector<Target> targets;
  std::vector<std::string> known{"cpu"};
  for (const auto& gpu : node.gpus) known.push_back(fmt::format("gpu/{}", gpu.index));
  for (const auto& device : options.devices)
    if (std::find(known.begin(), known.end(), device) == known.end())
      return fail(ErrorCode::invalid_argument, fmt::format("there is no device \"{}\" here", device),
                  fmt::format("known are: {}", fmt::join(known, ", ")));
  if (wants(options, "cpu")) targets.push_back({"cpu", make_cpu_load()});
  for (const auto& gpu : node.gpus) {
    if (!wants(options, fmt::format("gpu/{}", gpu.index))) continue;
    auto load = make_cuda_load(host, gpu);
    if (load) {
      targets.push_back({fmt::format("gpu{}", gpu.index), std::move(*load)});
    } else if (!options.devices.empty()) {
      return tl::unexpected(load.error());
    } else {
      fmt::print(stderr, "ergometer: no load on GPU {}: {}\n", gpu.index, load.error().message);
    }
  }
  return targets;
}

Result<void> record(const CalibrateOptions& options, const Context& context, const fs::path& dir) {
  // Before the first marker of this process.
  ::setenv("ERGOMETER_RUN", dir.c_str(), 1);
  SessionOptions session_options;
  session_options.run_dir = dir;
  session_options.name = "calibration";
  session_options.discover = default_discover_options(context);
  session_options.discover.interval = kInterval;
  session_options.discover.dense = true;
  auto session = Session::start(context.host(), std::move(session_options));
  if (!session) return tl::unexpected(session.error());
  const auto& sensors = (*session)->node().sensors;
  if (std::ranges::none_of(sensors, [](const SensorInfo& s) { return std::ranges::any_of(s.channels, gives_power); }))
    return fail(ErrorCode::not_found, "no sensor of this machine tells a measured power or energy",
                "ergometer doctor says which sensors this machine has and how to allow them");
  auto targets = find_targets(options, context.host(), (*session)->node());
  Result<void> played = targets ? Result<void>{} : tl::unexpected(targets.error());
  (*session)->command_begins();
  const Nanos length = *parse_duration(options.length);
  for (std::size_t i = 0; targets && i < targets->size() && played; ++i) {
    auto& target = (*targets)[i];
    fmt::print(stderr, "ergometer: load on {}, {:.0f} s\n", target.load->name(), seconds(length));
    played = play(target, length);
  }
  (*session)->command_ended(std::nullopt, std::nullopt);
  if (const auto stopped = (*session)->stop(); !stopped) return tl::unexpected(stopped.error());
  std::error_code ec;
  fs::remove_all(dir / "markers", ec);  // of this process, which lives on; regions.csv holds them
  return played;
}

int calibrate(const CalibrateOptions& options, const Context& context) {
  // A file that is not there is told before the load, not after it.
  if (!options.meter.file.empty() && ::access(options.meter.file.c_str(), R_OK) != 0)
    return report_error(errno_error("read", options.meter.file, errno));
  fs::path dir = options.from;
  if (options.from.empty()) {
    const auto folder = run_folder(options.output, options.store, "calibration");
    if (!folder) return report_error(folder.error(), kCannotMeasure);
    dir = folder->path;
    if (const auto recorded = record(options, context, dir); !recorded) {
      std::error_code ec;
      if (folder->created) fs::remove_all(dir, ec);  // ours, and of no use
      const bool usage = recorded.error().code == ErrorCode::invalid_argument;
      return report_error(recorded.error(), usage ? kUsage : kCannotMeasure);
    }
  }
  auto reader = RunReader::open(dir);
  if (!reader) return report_error(reader.error());
  const fs::path profiles =
      options.profiles.empty() ? user_profile_dir(current_environment()) : fs::path(options.profiles);
  if (profiles.empty())
    return report_error({ErrorCode::not_found,
                         "there is no folder for profiles: neither XDG_CONFIG_HOME nor HOME is set",
                         "give one with --profiles DIR"});
  std::optional<MeterReadings> meter;
  if (!options.meter.file.empty()) {
    auto read = read_meter(options.meter, *reader, context);
    if (!read) return report_error(read.error());
    meter = std::move(*read);
  }
  return report_calibration(*reader, profiles, meter);
}

}  // namespace

void add_calibrate(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("calibrate", "Find out what the sensors of this machine do, with loads of its own");
  auto options = std::make_shared<CalibrateOptions>();
  sub->add_option("--device", options->devices, "Only these: cpu, gpu/0, ... (default: all)")->delimiter(',');
  sub->add_option("--length", options->length, "How long each device is loaded, from 20s on")
      ->type_name("TIME")
      ->capture_default_str()
      ->check(CLI::Validator(
          [](const std::string& text) {
            const auto length = parse_duration(text);
            return length && *length >= 20s && *length <= 1h ? std::string()
                                                             : "a length must be from 20s to 1h, not " + text;
          },
          ""));
  sub->add_option("-o,--output", options->output, "Folder of the record (default: STORE/calibration-TIME)")
      ->type_name("RUN");
  sub->add_option("--store", options->store, "Folder for new runs")->type_name("DIR")->capture_default_str();
  sub->add_option("--profiles", options->profiles,
                  "Folder for the profiles that later runs go by (default: ~/.config/ergometer/profiles)")
      ->type_name("DIR");
  sub->add_option("--from", options->from, "Look again at the record of an earlier calibration")->type_name("RUN");
  sub->add_option("--meter", options->meter.file,
                  "A power meter's CSV over the same time: fits gain and offset of what it measures")
      ->type_name("FILE");
  sub->add_option("--meter-of", options->meter.domain, "What the meter measures: node, gpu/0, package/0, ...")
      ->type_name("DOMAIN")
      ->capture_default_str();
  sub->add_option("--offset", options->meter.offset_s,
                  "Seconds to add to the meter's times; up to 5 s are found by themselves");
  sub->callback([options, &context] { context.exit_code = calibrate(*options, context); });
}

}  // namespace ergometer::cli
