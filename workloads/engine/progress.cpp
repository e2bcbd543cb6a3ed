#include "engine/progress.hpp"

#include <fmt/format.h>

namespace ergometer::workload {
namespace {

constexpr std::chrono::milliseconds kBetweenLines{200};

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

void Progress::start(std::string name, std::int64_t steps) {
  name_ = std::move(name);
  steps_ = steps;
  began_ = Clock::now();
  last_ = began_;
}

void Progress::advance(std::int64_t steps_done, std::int64_t samples_done) {
  if (!on_) return;
  const auto now = Clock::now();
  if (now - last_ < kBetweenLines) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const double left = seconds / static_cast<double>(steps_done) * static_cast<double>(steps_ - steps_done);
  const std::string line = fmt::format("{}: {}/{}, {:.0f} {}/s, {} left", name_, steps_done, steps_,
                                       static_cast<double>(samples_done) / seconds, unit_, clock_text(left));
  out_ << '\r' << line << std::string(shown_ > line.size() ? shown_ - line.size() : 0, ' ') << std::flush;
  shown_ = line.size();
}

void Progress::clear() {
  if (shown_ == 0) return;
  out_ << '\r' << std::string(shown_, ' ') << '\r' << std::flush;
  shown_ = 0;
}

}  // namespace ergometer::workload
