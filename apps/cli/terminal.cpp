#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

namespace ergometer::cli {

int table_width() {
  constexpr int kUsualWidth = 100;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= kNarrowestTerminal) return size.ws_col;
  return kUsualWidth;
}

}  // namespace ergometer::cli
