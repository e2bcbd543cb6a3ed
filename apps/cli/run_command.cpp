#include "run_command.hpp"

#include <unistd.h>

namespace ergometer::cli {
namespace {

Result<std::vector<Passthrough>> open_streams() {
  std::vector<Passthrough> streams;
  for (const int target : {STDOUT_FILENO, STDERR_FILENO}) {
    auto stream = Passthrough::create(target);
    if (!stream) return tl::unexpected(stream.error());
    streams.push_back(std::move(*stream));
  }
  return streams;
}

}  // namespace

Result<std::unique_ptr<RunCommand>> RunCommand::prepare(const std::filesystem::path& file,
                                                        const std::vector<std::string>& argv,
                                                        const std::filesystem::path& marker_root,
                                                        std::unique_ptr<EpochMarks> epochs, Signals& signals) {
  std::vector<Passthrough> streams;
  Command::Streams ends;
  if (epochs) {
    auto opened = open_streams();
    if (!opened) return tl::unexpected(opened.error());
    streams = std::move(*opened);
    ends = {streams[0].command_end(), streams[1].command_end()};
  }
  std::map<std::string, std::string> environment;
  if (!marker_root.empty()) environment["ERGOMETER_RUN"] = marker_root.string();
  auto command = Command::prepare(file, argv, environment, signals, ends);
  if (!command) return tl::unexpected(command.error());
  return std::unique_ptr<RunCommand>(
      new RunCommand(marker_root, std::move(epochs), std::move(streams), std::move(*command), signals));
}

Result<void> RunCommand::begin(const std::function<void(Warning)>& warn, LiveLine& live) {
  if (epochs_) {
    if (auto begun = epochs_->begin(marker_root_, command_.pid(), SystemClock().now()); !begun)
      warn({"output", begun.error().message, begun.error().hint});
    for (auto& stream : streams_)
      stream.start([this](std::string_view line, MonoTime t) { epochs_->line(line, t); },
                   [&live](std::string_view bytes) { live.make_room(bytes); });
    command_.on_resize = [this] {
      for (const auto& stream : streams_) stream.resize();
    };
  }
  return command_.begin();
}

RunCommand::Ended RunCommand::wait(Nanos period, const std::function<void()>& tick) {
  const CommandEnd end = command_.wait(signals_, period, tick);
  const MonoTime ended = SystemClock().now();
  command_.end_tree(signals_);
  for (auto& stream : streams_) stream.finish();
  if (epochs_) epochs_->end(ended);
  return {end, ended};
}

}  // namespace ergometer::cli
