// `ergometer bench`: a workload or any command over lists of GPU counts, power caps, clocks and batches, after the protocol
// of arXiv:2201.12423. It writes a study file and runs it.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <memory>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/registry.hpp"
#include "discover_options.hpp"
#include "study.hpp"
#include "study_world.hpp"

namespace ergometer::cli {
namespace {
namespace fs = std::filesystem;

struct BenchOptions {
  std::string workload, data = "synthetic", device, options;
  std::string gpus, power_limit, clock, memory_clock, batch, cool_down, output, store = "runs", site_command;
  int repeat = 1;
};

// A TOML string of one line.
std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

// "1, 2" as a list of TOML texts; "0+2" of a GPU list names these two.
std::string toml_list(const std::string& list, bool gpus = false) {
  std::string out;
  for (const auto part : split(list, ',')) {
    auto level = std::string(trim(part));
    if (level.empty()) continue;
    if (gpus)
      for (auto& c : level)
        if (c == '+') c = ',';
    out += fmt::format("{}{}", out.empty() ? "" : ", ", parse_int(level) ? level : toml_text(level));
  }
  return "[" + out + "]";
}

bool has_gpu(const Context& context) {
  const auto found = discover_controls(context.host(), default_discover_options(context), {"nvml"});
  return !found.controls.empty();
}

std::string command_line(const BenchOptions& options, const Context& context) {
  if (!context.measured_command.empty()) {
    std::string words;
    for (const auto& word : context.measured_command)
      words += fmt::format("{}{}", words.empty() ? "" : ", ", toml_text(word));
    return "command = [" + words + "]\n";
  }
  const bool on_gpu = options.device.empty() ? !options.gpus.empty() || has_gpu(context) : options.device == "cuda";
  std::string command = fmt::format("ergometer-workload train {} --data {{data}} --device {}", options.workload,
                                    on_gpu ? "cuda" : "cpu");
  if (!options.gpus.empty()) command += " --ranks {gpus}";
  if (!options.batch.empty()) command += " --batch {batch}";
  return fmt::format("command = {}\n", toml_text(command + " {options}"));
}

std::string study_text(const BenchOptions& options, const Context& context, const std::string& name) {
  std::string text = fmt::format("# Written by ergometer bench.\nname = {}\n{}", toml_text(name), command_line(options, context));
  if (context.measured_command.empty())
    text += fmt::format("\n[parameters]\ndata = {}\noptions = {}\n", toml_text(options.data), toml_text(options.options));
  text += "\n[factors]\n";
  const std::pair<const char*, const std::string*> factors[] = {{"power_limit", &options.power_limit},
                                                                {"graphics_clock", &options.clock},
                                                                {"memory_clock", &options.memory_clock},
                                                                {"batch", &options.batch}};
  if (!options.gpus.empty()) text += fmt::format("gpus = {}\n", toml_list(options.gpus, true));
  for (const auto& [factor, list] : factors)
    if (!list->empty()) text += fmt::format("{} = {}\n", factor, toml_list(*list));
  // A study without a factor still has its one cell.
  const bool none = options.gpus.empty() && options.power_limit.empty() && options.clock.empty() &&
                    options.memory_clock.empty() && options.batch.empty();
  if (none) text += "ranks = [1]\n";
  text += fmt::format("\n[runs]\nrepetitions = {}\n", options.repeat);
  if (!options.cool_down.empty()) text += fmt::format("cool_down = {}\n", toml_text(options.cool_down));
  return text;
}

std::string time_name() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  return ::localtime_r(&now, &local) ? fmt::format("{:%Y%m%d-%H%M%S}", local) : fmt::to_string(now);
}

int bench(const Context& context, const BenchOptions& options) {
  if (options.workload.empty() == context.measured_command.empty())
    return report_error({ErrorCode::invalid_argument, "bench takes either a workload or a command after two dashes",
                         "write: ergometer bench resnet50 --batch 32,64, or: ergometer bench --batch 32,64 -- ./train --batch {batch}"});
  const auto what = options.workload.empty() ? fs::path(context.measured_command.front()).filename().string() : options.workload;
  const auto name = "bench-" + file_name_of(what);
  StudySource source{study_text(options, context, name), "the bench's study", {}};
  StudyTarget target;
  target.folder = options.output.empty() ? fs::path(options.store) / fmt::format("{}-{}", name, time_name()) : fs::path(options.output);
  target.exists = is_study_folder(target.folder);
  target.source = std::move(source);
  StudyOptions study;
  study.study = target.folder.string();
  study.site_command = options.site_command;
  const int code = run_target(context, study, target);
  if (is_study_folder(target.folder)) {
    fmt::print(stderr, "\n");
    if (const int shown = study_show(study); shown != 0 && code == 0) return shown;
  }
  return code;
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("bench", "Time and energy per epoch over GPU counts, power caps, clocks and batches");
  const auto options = std::make_shared<BenchOptions>();
  sub->add_option("WORKLOAD", options->workload, "A workload of ergometer-workload; or a command after two dashes");
  sub->add_option("--gpus", options->gpus, "How many GPUs, as in 1,2,4; or which: 0+2")->type_name("LIST");
  sub->add_option("--power-limit", options->power_limit, "As in 100W,200W,250W or 40%,100%")->type_name("LIST");
  sub->add_option("--clock", options->clock, "Graphics clock, as in 135MHz,735MHz or 53%")->type_name("LIST");
  sub->add_option("--memory-clock", options->memory_clock)->type_name("LIST");
  sub->add_option("--batch", options->batch, "{batch} in the command")->type_name("LIST");
  sub->add_option("--repeat", options->repeat, "Runs of each combination")->type_name("N")->check(CLI::Range(1, 10000));
  sub->add_option("--cool-down", options->cool_down, "Time between two runs")->type_name("TIME");
  sub->add_option("--data", options->data, "Folder of the workload's data set")->type_name("DIR")->capture_default_str();
  sub->add_option("--device", options->device, "Where the workload computes (default: cuda where there is a GPU)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  sub->add_option("--options", options->options, "More options of the workload, as in '--epochs 2 --steps 100'");
  sub->add_option("--control-command", options->site_command, "The site's own command that sets limits")->type_name("COMMAND");
  sub->add_option("-o,--output", options->output, "Folder of the bench; one that was interrupted goes on")->type_name("FOLDER");
  sub->add_option("--store", options->store, "Folder for new benches")->type_name("DIR")->capture_default_str();
  sub->footer(
      "Examples:\n"
      "  ergometer bench resnet50 --gpus 1,2,4 --power-limit 100W,200W,250W --clock 135MHz,735MHz,1380MHz\n"
      "  ergometer bench --batch 16,32 --repeat 3 -- python3 train.py --batch {batch}\n");
  sub->callback([&context, options] { context.exit_code = bench(context, *options); });
}

}  // namespace ergometer::cli
