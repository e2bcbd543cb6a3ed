// The controller behind the fake libfreeipmi: a test sets what it answers and sees what it was asked. Reached through
// the library's symbol fake_bmc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

struct FakeBmc {
  using Bytes = std::vector<std::uint8_t>;
  // netfn, request from the command on, channel of a bridged command or -1; nothing: no answer, with `error`. Without
  // a function a plain board answers.
  std::function<std::optional<Bytes>(std::uint8_t, Bytes, int)> answer;
  std::string error = "session timeout";
  bool refuse = false;          // no session can be opened
  std::uint8_t only_suite = 0;  // the one cipher suite that it takes; 0: any
  int opened = 0, closed = 0, commands = 0;
  std::string host, account;
  std::uint8_t suite = 0;
};

extern "C" FakeBmc* fake_bmc();
