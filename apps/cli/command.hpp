// What the subcommands of `ergometer` share: one function a file registers its options and its action with CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/host.hpp"

namespace ergometer::cli {

// Exit codes of the tool itself; `run` otherwise returns the command's own.
inline constexpr int kUsage = 2;            // bad options, bad input, bad run directory
inline constexpr int kCannotMeasure = 3;    // the measurement could not start
inline constexpr int kNotExecutable = 126;  // as in a shell
inline constexpr int kNotFound = 127;

// Options that every command takes, and the exit code that main returns.
struct Context {
  std::filesystem::path host_root;              // --host-root, ERGOMETER_HOST_ROOT
  std::string nvml_path = "libnvidia-ml.so.1";  // --nvml, ERGOMETER_NVML
  std::vector<std::string> measured_command;    // what follows "--"
  std::map<std::string, std::string> meter_settings;  // [ipmi], [redfish], [meter] of ergometer.toml, ERGOMETER_IPMI_...
  int exit_code = 0;
  [[nodiscard]] Host host() const { return Host::real(host_root); }
};

// For commands that read whole runs: keeps freed memory for the next sensor instead of giving it back to the kernel,
// which would cost more than the reading itself. The process ends soon after.
void keep_freed_memory();

// Prints "ergometer: MESSAGE" and, on a line of its own, the hint, to standard error. Returns `code`.
int report_error(const Error& error, int code = kUsage);

// One a file of the same name. Each adds its subcommand to `app`; its callback sets context.exit_code.
void add_run(CLI::App& app, Context& context);
void add_step(CLI::App& app, Context& context);
void add_show(CLI::App& app, Context& context);
void add_list(CLI::App& app, Context& context);
void add_export(CLI::App& app, Context& context);
void add_compare(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_import(CLI::App& app, Context& context);
void add_merge(CLI::App& app, Context& context);
void add_sensors(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_mark(CLI::App& app, Context& context);
void add_calibrate(CLI::App& app, Context& context);
void add_control(CLI::App& app, Context& context);
void add_check_meter(CLI::App& app, Context& context);
void add_study(CLI::App& app, Context& context);
void add_job(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);

}  // namespace ergometer::cli
