// The bytes that ClockServer and ask_clock exchange (clock_service.hpp). Used by these two.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ergometer::clock_wire {

inline constexpr std::size_t kQuestion = 8, kAnswer = 16;
inline constexpr std::size_t kLongestGreeting = 128;
inline constexpr unsigned kMostQuestions = 1000;  // of one connection

inline std::string greeting(std::string_view asker) { return "ergometer-clock/1 " + std::string(asker) + "\n"; }

inline void append_time(std::string& out, std::int64_t ns) {
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(static_cast<std::uint64_t>(ns) >> shift & 0xff);
}

// Of the 8 bytes from `at` on.
inline std::int64_t time_at(std::string_view bytes, std::size_t at) {
  std::uint64_t ns = 0;
  for (std::size_t i = 0; i < 8; ++i) ns = ns << 8 | static_cast<unsigned char>(bytes[at + i]);
  return static_cast<std::int64_t>(ns);
}

}  // namespace ergometer::clock_wire
