#include "device/meter/meter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "base/text.hpp"
#include "device/meter/format.hpp"
#include "device/node_meter.hpp"
#include "device/tool.hpp"

namespace ergometer {
namespace {

using namespace meter;
using namespace std::chrono_literals;

constexpr Nanos kFileInterval = 500ms, kCommandInterval = 1s;
constexpr Nanos kSilence = 10s;       // without a new line the meter has stopped
constexpr Nanos kNotYet = 2s;         // a time stamp may be ahead of us by so much
constexpr Nanos kWrittenLate = 120s;  // ... and behind us by so much, for programs that write in blocks
constexpr Nanos kFirstLine = 3s;      // a command may take so long for a line
constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kMostAtOnce = 1 << 20;

// A text file that grows: whole lines as they are added, and the file that takes its place under the same name.
class Tail {
 public:
  explicit Tail(std::string path) : path_(std::move(path)) {}
  ~Tail() { close(); }
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;

  // Calls `line` for each new one. `anew` is called first where the file was replaced or cut.
  template <class Anew, class Each>
  Result<void> read(Anew anew, Each each) {
    struct stat there {};
    if (::stat(path_.c_str(), &there) != 0) return tl::unexpected(errno_error("read", path_, errno));
    if (fd_ >= 0 && (there.st_ino != inode_ || there.st_size < offset_)) close();
    if (fd_ < 0) {
      fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
      if (fd_ < 0) return tl::unexpected(errno_error("open", path_, errno));
      inode_ = there.st_ino;
      anew();
    }
    std::array<char, 65536> buffer{};
    for (std::size_t taken = 0; taken < kMostAtOnce;) {
      const auto n = ::pread(fd_, buffer.data(), buffer.size(), offset_);
      if (n < 0) return tl::unexpected(errno_error("read", path_, errno));
      if (n == 0) break;
      offset_ += n;
      taken += static_cast<std::size_t>(n);
      rest_.append(buffer.data(), static_cast<std::size_t>(n));
      std::size_t begin = 0;
      for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
        if (!trim(std::string_view(rest_).substr(begin, end - begin)).empty())
          each(trim(std::string_view(rest_).substr(begin, end - begin)));
        begin = end + 1;
      }
      rest_.erase(0, begin);
      if (rest_.size() > kLongestLine) return fail(ErrorCode::corrupt, path_ + " has a line of more than 4096 bytes");
    }
    return {};
  }

 private:
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    offset_ = 0;
    rest_.clear();
  }
  std::string path_, rest_;
  int fd_ = -1;
  ino_t inode_ = 0;
  off_t offset_ = 0;
};

// A meter's time stamps on the monotonic clock. Stamps of the machine's own clock are believed; those of a clock that
// runs elsewhere are placed by their arrival, keeping their distances.
class MeterClock {
 public:
  explicit MeterClock(Clock& clock) : clock_(clock) {}
  // For the newest stamp of what was just read: decides whose clock it is.
  void judge(const Format& format, std::int64_t newest_ns, Readings& out) {
    const Nanos behind = clock_.now() - own(format, newest_ns);
    const bool strange = behind < -kNotYet || behind > kWrittenLate;
    const Nanos offset(to_ns(clock_.now()) - newest_ns);
    if (strange && !offset_)
      out.event("clock", fmt::format("the meter's clock is {:.1f} s {} ours: its rows are placed by their arrival",
                                     std::abs(seconds(behind)), behind < Nanos{0} ? "ahead of" : "behind"));
    if (!strange) offset_.reset();
    // A line can be late, never early; a step of the meter's clock begins anew.
    else if (!offset_ || offset < *offset_ || offset - *offset_ > kWrittenLate)
      offset_ = offset;
  }
  MonoTime place(const Format& format, std::int64_t stamp_ns) {
    return offset_ ? mono_ns(stamp_ns + offset_->count()) : own(format, stamp_ns);
  }

 private:
  MonoTime own(const Format& format, std::int64_t stamp_ns) {
    return format.time == Time::monotonic ? mono_ns(stamp_ns) : clock_.to_mono(wall_ns(stamp_ns));
  }
  Clock& clock_;
  std::optional<Nanos> offset_;
};

class MeterFileSensor final : public Sensor {
 public:
  MeterFileSensor(SensorInfo info, std::shared_ptr<Clock> clock, const std::string& path, Wishes wishes)
      : Sensor(std::move(info)),
        clock_(std::move(clock)),
        tail_(path),
        wishes_(std::move(wishes)),
        times_(*clock_),
        last_line_(clock_->now()) {}

  Result<void> read(Readings& out) override {
    std::vector<Line> lines;
    std::optional<Error> error;
    std::size_t unreadable = 0;
    auto done =
        tail_.read([&] { format_.reset(); }, [&](std::string_view text) { take(text, lines, unreadable, error); });
    if (unreadable > 0) out.event("rejected", fmt::format("{} lines are none of the meter's format", unreadable));
    if (!done || error) return tl::unexpected(done ? *error : done.error());
    // What was there before we looked belongs to the time before the measurement, and lacks an arrival.
    if (std::exchange(first_, false) && format_ && format_->time == Time::arrival) lines.clear();
    note_silence(!lines.empty(), out);
    if (!lines.empty()) deliver(lines, out);
    return {};
  }

 private:
  void take(std::string_view text, std::vector<Line>& lines, std::size_t& unreadable, std::optional<Error>& error) {
    if (error) return;
    if (!format_) {
      auto format = format_of(text, wishes_);
      if (!format) {
        error = format.error();
        return;
      }
      format_ = *format;
      if (format_->has_header) return;
    }
    if (auto line = parse_line(text, *format_))
      lines.push_back(*line);
    else
      ++unreadable;
  }

  void note_silence(bool any, Readings& out) {
    const MonoTime now = clock_->now();
    if (any) {
      if (silent_) out.event("back", fmt::format("the meter writes again after {:.0f} s", seconds(now - last_line_)));
      silent_ = false;
      last_line_ = now;
    } else if (!silent_ && now - last_line_ > kSilence) {
      silent_ = true;
      out.event("stuck", fmt::format("no new line of the meter for {:.0f} s", seconds(now - last_line_)));
    }
  }

  void deliver(const std::vector<Line>& lines, Readings& out) {
    std::size_t refused = 0;
    if (lines.back().stamp_ns) times_.judge(*format_, *lines.back().stamp_ns, out);
    const MonoTime now = clock_->now();
    for (const auto& line : lines) {
      if (!line.power_w) ++refused;
      // Several lines of one arrival: the newest is of now, the others have no time.
      if (!line.stamp_ns && &line != &lines.back()) continue;
      out.add_at(line.stamp_ns ? times_.place(*format_, *line.stamp_ns) : now, {line.power_w});
      if (line.power_w) watch_.see(*line.power_w, now, out);
    }
    if (refused > 0 && !std::exchange(refused_told_, true))
      out.event("rejected", fmt::format("{} readings are blank, 0 W or above 100 kW: is the unit right?", refused));
    if (refused == 0) refused_told_ = false;
  }

  std::shared_ptr<Clock> clock_;
  Tail tail_;
  Wishes wishes_;
  std::optional<Format> format_;
  MeterClock times_;
  MonoTime last_line_;
  StandstillWatch watch_{"the meter's power"};
  bool first_ = true, silent_ = false, refused_told_ = false;
};

// A command that prints a number and ends is run again for each reading; one that goes on printing is listened to.
class MeterCommandSensor final : public Sensor {
 public:
  MeterCommandSensor(SensorInfo info, std::shared_ptr<Clock> clock, std::string command, Environment environment,
                     double to_watts)
      : Sensor(std::move(info)),
        clock_(std::move(clock)),
        command_(std::move(command)),
        environment_(std::move(environment)),
        to_watts_(to_watts),
        last_line_(clock_->now()) {}

  Result<void> read(Readings& out) override {
    if (!tool_)
      if (auto begun = begin(); !begun) return begun;
    bool goes_on = listen();
    auto line = newest_line(!goes_on);
    if (!goes_on && !line && answered_) {  // it ended after the line that we had from it
      if (auto begun = begin(); !begun) return begun;
      goes_on = listen();
      line = newest_line(!goes_on);
    }
    if (!goes_on) return finish(line, out);
    if (text_.size() > kLongestLine) return restart(ErrorCode::corrupt, "the meter's command prints no lines");
    if (line) return deliver(*line, out);
    // A slow command has nothing new yet.
    if (clock_->now() - last_line_ > kSilence)
      return restart(ErrorCode::timeout, fmt::format("the meter's command printed nothing for {:.0f} s and was ended",
                                                     seconds(clock_->now() - last_line_)));
    return {};
  }

 private:
  Result<void> begin() {
    tool_.reset();
    auto started = Tool::start({"/bin/sh", "-c", command_}, environment_);
    if (!started) return tl::unexpected(started.error());
    tool_.emplace(std::move(*started));
    text_.clear();
    answered_ = false;
    last_line_ = clock_->now();
    return {};
  }

  // Takes in what the command has printed, and waits where that is no whole line yet; false if it has ended.
  bool listen() {
    const auto deadline = std::chrono::steady_clock::now() + kFirstLine;
    for (;;) {
      const std::size_t before = text_.size();
      const bool whole = text_.find('\n') != std::string::npos;
      const Nanos left = deadline - std::chrono::steady_clock::now();
      if (!tool_->read(text_, whole ? 0ms : left)) return false;
      const bool grew = text_.size() != before;
      if (text_.size() > kLongestLine || (!grew && (whole || left <= 0ms))) return true;
    }
  }

  // The last complete line, taken out of the text with all before it; at the end of the output the rest counts too.
  std::optional<std::string> newest_line(bool at_end) {
    if (at_end && !trim(text_).empty()) text_ += '\n';
    std::optional<std::string> newest;
    std::size_t begin = 0;
    for (auto end = text_.find('\n'); end != std::string::npos; end = text_.find('\n', begin)) {
      const auto line = trim(std::string_view(text_).substr(begin, end - begin));
      if (!line.empty()) newest = line;
      begin = end + 1;
    }
    text_.erase(0, begin);
    return newest;
  }

  Result<void> finish(const std::optional<std::string>& line, Readings& out) {
    const auto code = tool_->exit_code(1s);
    tool_.reset();
    if (code && *code != 0) return fail(ErrorCode::unavailable, fmt::format("the meter's command ends with {}", *code));
    if (!line) return fail(ErrorCode::unavailable, "the meter's command prints nothing");
    return deliver(*line, out);
  }

  Result<void> restart(ErrorCode code, std::string why) {
    tool_.reset();
    return fail(code, std::move(why));
  }

  Result<void> deliver(const std::string& line, Readings& out) {
    last_line_ = clock_->now();
    answered_ = true;
    const auto watts = parse_watts(line, to_watts_);
    if (!watts)
      return fail(ErrorCode::corrupt, fmt::format("the meter's command prints \"{}\", which is no power above 0 and up "
                                                  "to 100 kW",
                                                  line.substr(0, 40)));
    watch_.see(*watts, last_line_, out);
    out.add_at(last_line_, {watts});
    return {};
  }

  std::shared_ptr<Clock> clock_;
  std::string command_;
  Environment environment_;
  double to_watts_;
  std::optional<Tool> tool_;
  std::string text_;
  bool answered_ = false;
  MonoTime last_line_;
  StandstillWatch watch_{"the meter's power"};
};

SensorInfo info_of(std::string name, Nanos interval, const std::string& device) {
  SensorInfo info;
  info.name = info.interface = std::move(name);
  info.interval = interval;
  info.own_time = true;
  info.channels.push_back(node_power_channel("meter_power_w", device, "a power meter outside of the machine"));
  return info;
}

// Whether the file is there and what it holds can be read; a file without a line yet may be.
Result<void> check_file(const std::string& path, const Wishes& wishes) {
  if (!wishes.time.empty() && wishes.time != "wall" && wishes.time != "monotonic" && wishes.time != "arrival")
    return fail(ErrorCode::invalid_argument, fmt::format("[meter] time cannot be \"{}\"", wishes.time),
                "it is one of wall, monotonic, arrival");
  if (!std::filesystem::is_regular_file(path))
    return fail(ErrorCode::not_found, path + " is no file", "start the program that writes it first");
  Tail tail(path);
  std::optional<Error> error;
  bool first = true;
  auto done = tail.read([] {},
                        [&](std::string_view line) {
                          if (!std::exchange(first, false)) return;
                          if (auto format = format_of(line, wishes); !format) error = format.error();
                        });
  if (!done) return done;
  if (error) return fail(error->code, path + ": " + error->message, error->hint);
  return {};
}

void discover_file(const Host& host, const DiscoverOptions& options, const std::string& path, Discovery& out) {
  const Wishes wishes{meter_setting(options, "meter.column"), meter_setting(options, "meter.unit"),
                      meter_setting(options, "meter.time")};
  if (const auto good = check_file(path, wishes); !good)
    return meter_absent(out, "meter", "meter file", good.error(), true);
  out.sensors.push_back(
      std::make_shared<MeterFileSensor>(info_of("meter", kFileInterval, path), host.clock, path, wishes));
}

void discover_command(const Host& host, const DiscoverOptions& options, const std::string& command, Discovery& out) {
  const auto unit = meter_setting(options, "meter.unit");
  const auto to_watts = watts_per(unit.empty() ? "W" : unit);
  if (!to_watts)
    return meter_absent(out, "meter-command", "meter command",
                        {ErrorCode::invalid_argument, fmt::format("\"{}\" is no unit of a meter", unit),
                         "[meter] unit is one of W, mW, kW"},
                        true);
  out.sensors.push_back(
      std::make_shared<MeterCommandSensor>(info_of("meter-command", kCommandInterval, "meter command"), host.clock,
                                           command, options.environment, *to_watts));
}

}  // namespace

void discover_meter(const Host& host, const DiscoverOptions& options, Discovery& out) {
  const auto file = meter_target(options, "meter", "meter.file");
  const auto command = meter_target(options, "meter-command", "meter.command");
  if (!file.empty()) discover_file(host, options, file, out);
  if (!command.empty()) discover_command(host, options, command, out);
  for (const auto& request : options.only)
    if ((request == "meter" && file.empty()) || (request == "meter-command" && command.empty()))
      meter_absent(
          out, request.c_str(), "meter",
          {ErrorCode::invalid_argument, "nothing is named",
           "write --sensors meter=FILE or meter-command=COMMAND, or [meter] file or command in ergometer.toml"},
          true);
}

}  // namespace ergometer
