#include "run_live.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>

namespace ergometer::cli {
namespace {

std::string elapsed_text(Nanos elapsed) {
  const auto s = static_cast<long long>(seconds(elapsed));
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string energy_text(double joules) {
  if (std::abs(joules) < 1e4) return fmt::format("{:.0f} J", joules);
  if (std::abs(joules) < 1e7) return fmt::format("{:.2f} kJ", joules / 1e3);
  return fmt::format("{:.2f} MJ", joules / 1e6);
}

// `text` cut to `width` characters, none of them able to move the cursor.
std::string fitted(const std::string& text, int width) {
  std::string out;
  int used = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xC0) == 0x80;
    if (!continues && ++used > width) break;
    out += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return out;
}

void put(const std::string& text) { [[maybe_unused]] const auto n = ::write(STDERR_FILENO, text.data(), text.size()); }

bool in_foreground() { return ::tcgetpgrp(STDERR_FILENO) == ::getpgrp(); }

}  // namespace

std::string live_text(const LiveView& view, int width) {
  std::string text = elapsed_text(view.elapsed);
  for (const auto& domain : view.domains)
    text += fmt::format("  {} {}{}", domain.domain, domain.measured ? "" : "~",
                        domain.power_w ? fmt::format("{:.0f} W", *domain.power_w) : std::string("-"));
  if (view.energy_j) text += "  " + energy_text(*view.energy_j);
  if (!view.region.empty()) text += "  " + view.region;
  return fitted(text, width);
}

LiveLine::LiveLine(bool wanted) : wanted_(wanted && ::isatty(STDERR_FILENO) == 1) {}

void LiveLine::draw(const LiveView& view) {
  std::lock_guard lock(mutex_);
  if (!wanted_ || mid_line_ || !in_foreground()) return;
  // The last column stays free, since writing into it makes some terminals go to the next line; the cursor returns to
  // the first, so that what the command prints itself begins there.
  put("\r" + live_text(view, terminal_width() - 1) + "\x1b[K\r");
  drawn_ = true;
}

void LiveLine::erase() {
  std::lock_guard lock(mutex_);
  erase_locked();
}

void LiveLine::erase_locked() {
  if (drawn_ && in_foreground()) put("\r\x1b[K");
  drawn_ = false;
}

void LiveLine::make_room(std::string_view bytes) {
  if (!wanted_ || bytes.empty()) return;
  std::lock_guard lock(mutex_);
  erase_locked();
  mid_line_ = bytes.back() != '\n';
}

int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

}  // namespace ergometer::cli
