#include "ergometer/ergometer.hpp"

#include <stdlib.h>

#include <filesystem>

#include "base/text.hpp"
#include "library/load_run.hpp"
#include "measure/session.hpp"

namespace ergometer {
namespace {

namespace fs = std::filesystem;

std::string describe(const Error& error) {
  return error.hint.empty() ? error.message : error.message + " (" + error.hint + ")";
}

MeasurementResult result_of(const Summary& summary) {
  MeasurementResult result;
  result.duration_s = summary.run.duration_s.value_or(0);
  result.energy_j = summary.run.energy_j;
  result.uncertainty_j = summary.run.uncertainty_j;
  for (const auto& node : summary.nodes)
    for (const auto& d : node.domains)
      result.domains.push_back(
          {d.domain, to_word(d.method), d.measured, d.in_total, d.energy_j, d.uncertainty_j, d.coverage});
  for (const auto& warning : summary.warnings) result.warnings.push_back(warning.message);
  return result;
}

}  // namespace

struct Measurement::State {
  std::unique_ptr<Session> session;
  fs::path temporary;  // parent of the run, removed at the end
  MeasurementResult result;
  std::string error;

  ~State() { end_session(); }

  void end_session() {
    session.reset();
    std::error_code ec;
    if (!temporary.empty()) fs::remove_all(temporary, ec);
  }

  // A new folder in the system's one for temporary files; empty, with `error` set, if that is not possible.
  fs::path make_temporary() {
    std::error_code ec;
    const fs::path parent = fs::temp_directory_path(ec);
    if (ec) {
      error = "there is no folder for temporary files (set TMPDIR to one): " + ec.message();
      return {};
    }
    std::string pattern = (parent / "ergometer-XXXXXX").string();
    if (::mkdtemp(pattern.data())) return pattern;
    error = "cannot create a folder below " + parent.string();
    return {};
  }

  void start(const MeasurementOptions& options) {
    SessionOptions session_options;
    session_options.run_dir = options.run_dir;
    if (options.run_dir.empty()) {
      temporary = make_temporary();
      if (temporary.empty()) return;
      session_options.run_dir = temporary / "run";
    }
    session_options.name = options.name;
    std::error_code ec;  // the working directory may be gone
    session_options.directory = fs::current_path(ec).string();
    session_options.discover.interval = from_seconds(options.interval_s);
    session_options.discover.only = options.sensors;
    session_options.discover.nvml_path = options.nvml_path;
    session_options.discover.environment = current_environment();
    auto started = Session::start(Host::real(options.host_root), std::move(session_options));
    if (!started) {
      error = describe(started.error());
      return;
    }
    session = std::move(*started);
    session->command_begins();
  }

  // Once; later calls find no session.
  void stop() {
    if (!session) return;
    session->command_ended(std::nullopt, std::nullopt);
    if (const auto manifest = session->stop(); !manifest)
      error = describe(manifest.error());
    else if (const auto loaded = load_run(session->run_dir()); loaded)
      result = result_of(loaded->summary);
    else
      error = describe(loaded.error());
    end_session();
  }
};

Measurement::Measurement(const MeasurementOptions& options) : state_(std::make_unique<State>()) {
  // As for --interval; written so that NaN is refused as well.
  if (options.interval_s >= 0.001 && options.interval_s <= 3600)
    state_->start(options);
  else
    state_->error = "interval_s must be from 0.001 to 3600";
}

Measurement::~Measurement() = default;
Measurement::Measurement(Measurement&&) noexcept = default;
Measurement& Measurement::operator=(Measurement&&) noexcept = default;

const std::string& Measurement::error() const { return state_->error; }

const MeasurementResult& Measurement::stop() {
  state_->stop();
  return state_->result;
}

}  // namespace ergometer
