// One command on its way: its process, its streams if they are looked at, and its epochs. The same for a command that
// is measured here and for one whose node another process measures. Used by run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "model/warning.hpp"
#include "run_epochs.hpp"
#include "run_live.hpp"
#include "run_output.hpp"
#include "run_process.hpp"

namespace ergometer::cli {

class RunCommand {
 public:
  // Forks (see Command::prepare). `epochs` may be null: then the command inherits our streams. `signals` must outlive
  // this.
  [[nodiscard]] static Result<std::unique_ptr<RunCommand>> prepare(const std::filesystem::path& file,
                                                                   const std::vector<std::string>& argv,
                                                                   const std::filesystem::path& marker_root,
                                                                   std::unique_ptr<EpochMarks> epochs,
                                                                   Signals& signals);
  // Lets it go. Error: what exec answered. `warn` is told of trouble that does not keep it from running; `live` gives
  // way to what it prints.
  [[nodiscard]] Result<void> begin(const std::function<void(Warning)>& warn, LiveLine& live);
  struct Ended {
    CommandEnd how;
    MonoTime at;  // of the command itself; what it left running may end later
  };
  // Waits for its end and that of its streams; `tick` each `period` (never if 0).
  [[nodiscard]] Ended wait(Nanos period, const std::function<void()>& tick);

 private:
  RunCommand(std::filesystem::path marker_root, std::unique_ptr<EpochMarks> epochs, std::vector<Passthrough> streams,
             Command command, Signals& signals)
      : marker_root_(std::move(marker_root)),
        epochs_(std::move(epochs)),
        streams_(std::move(streams)),
        command_(std::move(command)),
        signals_(signals) {}
  std::filesystem::path marker_root_;
  std::unique_ptr<EpochMarks> epochs_;
  std::vector<Passthrough> streams_;
  Command command_;
  Signals& signals_;
};

}  // namespace ergometer::cli
