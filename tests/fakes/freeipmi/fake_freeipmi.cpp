// A libfreeipmi.so.17 with the ABI that the ipmi backend uses, answered by the test's own function.
#include "fakes/freeipmi/fake_freeipmi.hpp"

#include <algorithm>
#include <cstring>

namespace {

FakeBmc bmc;
int context;  // its address stands for a session

// What a board says that nobody scripts: by DCMI 360 W, measured, statistics since the last reset.
std::optional<FakeBmc::Bytes> plain_board(std::uint8_t netfn, const FakeBmc::Bytes& request) {
  if (netfn == 0x06) return FakeBmc::Bytes{0x01, 0, 0x20, 1, 3, 0x10, 2, 0xBF, 0x7C, 0x2A, 0, 0x34, 0x12};
  if (netfn != 0x2C) return FakeBmc::Bytes{request.at(0), 0xC1};
  return FakeBmc::Bytes{0x02, 0, 0xDC, 0x68, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x40};
}

int answer(std::uint8_t netfn, const void* request, unsigned length, void* response, unsigned room, int channel) {
  const auto* bytes = static_cast<const std::uint8_t*>(request);
  ++bmc.commands;
  const FakeBmc::Bytes asked(bytes, bytes + length);
  const auto said = bmc.answer ? bmc.answer(netfn, asked, channel) : plain_board(netfn, asked);
  if (!said) return -1;
  const auto n = std::min<std::size_t>(said->size(), room);
  std::memcpy(response, said->data(), n);
  return static_cast<int>(n);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT FakeBmc* fake_bmc() { return &bmc; }

EXPORT void* ipmi_ctx_create() { return &context; }
EXPORT void ipmi_ctx_destroy(void*) { ++bmc.closed; }
EXPORT char* ipmi_ctx_errormsg(void*) { return bmc.error.data(); }

EXPORT int ipmi_ctx_open_inband(void*, int driver, int, std::uint16_t, std::uint8_t, const char* device, unsigned,
                                unsigned) {
  ++bmc.opened;
  bmc.host = device;
  return bmc.refuse || driver != 7 ? -1 : 0;
}

EXPORT int ipmi_ctx_open_outofband_2_0(void*, const char* host, const char* user, const char* password,
                                       const unsigned char*, unsigned, std::uint8_t, std::uint8_t suite, unsigned,
                                       unsigned, unsigned, unsigned) {
  ++bmc.opened;
  bmc.host = host;
  bmc.account = std::string(user) + ":" + password;
  bmc.suite = suite;
  return bmc.refuse || (bmc.only_suite && suite != bmc.only_suite) ? -1 : 0;
}

EXPORT int ipmi_cmd_raw(void*, std::uint8_t, std::uint8_t netfn, const void* request, unsigned length, void* response,
                        unsigned room) {
  return answer(netfn, request, length, response, room, -1);
}

EXPORT int ipmi_cmd_raw_ipmb(void*, std::uint8_t channel, std::uint8_t address, std::uint8_t, std::uint8_t netfn,
                             const void* request, unsigned length, void* response, unsigned room) {
  return address == 0x2C ? answer(netfn, request, length, response, room, channel) : -1;
}
