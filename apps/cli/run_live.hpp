// The line that shows a run while it goes on: elapsed, watts by domain, joules so far, current region. Used by run.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "measure/session.hpp"

namespace ergometer::cli {

// The text of the line, at most `width` columns wide and without control characters.
[[nodiscard]] std::string live_text(const LiveView& view, int width);

// Draws on standard error, and only if that is a terminal on which we are in the foreground. Members may be called from
// several threads.
class LiveLine {
 public:
  explicit LiveLine(bool wanted);
  ~LiveLine() { erase(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;
  [[nodiscard]] bool wanted() const { return wanted_; }
  void draw(const LiveView& view);
  void erase();
  // Before `bytes` of the command go to the same terminal: erases the line, and keeps it away while the cursor stands
  // in the middle of a line of the command's.
  void make_room(std::string_view bytes);

 private:
  void erase_locked();
  std::mutex mutex_;
  bool wanted_ = false;
  bool drawn_ = false;
  bool mid_line_ = false;
};

// Columns of the terminal on standard error; 100 if it is none.
[[nodiscard]] int terminal_width();

}  // namespace ergometer::cli
