// Requests and responses of the power commands of IPMI controllers, as bytes: DCMI, Intel Node Manager, Lenovo XCC.
// Pure; used by the ipmi sensors, tests and fuzzing. Byte 0 of both is the command, byte 1 of a response the completion
// code, as FreeIPMI's raw interface has them; all numbers are little-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace ergometer::ipmi {

using Bytes = std::vector<std::uint8_t>;
using View = std::span<const std::uint8_t>;

// One command: network function, and the bytes from the command on.
struct Command {
  std::uint8_t netfn;
  Bytes bytes;
};
[[nodiscard]] Command device_id_command();
[[nodiscard]] Command dcmi_command();                             // Get Power Reading, system power statistics
[[nodiscard]] Command node_manager_command(std::uint8_t domain);  // Get Statistics; 0 platform, 1 CPU, 2 memory
[[nodiscard]] Command xcc_energy_command();                       // Lenovo OEM, energy FIFO
[[nodiscard]] Command xcc_power_command();                        // Lenovo OEM, power of the parts

inline constexpr std::uint32_t kIntel = 343, kLenovo = 19046;  // IANA enterprise numbers

// Errors of all: `unsupported` for the completion codes that say so (0xC1, 0xD5 and the like), `permission_denied` for
// 0xD4, `timeout` for 0xC3, `unavailable` for any other code that is not 0, `corrupt` for bytes that are no answer to
// the command.
[[nodiscard]] Result<std::uint32_t> parse_manufacturer(View response);

// DCMI and Node Manager tell the same: momentary power and statistics over a reporting period.
struct PowerStatistics {
  double current_w = 0;            // never 0
  double average_w = 0;            // over `period_s`
  std::uint32_t stamp = 0;         // the controller's clock in seconds
  std::optional<double> period_s;  // unset: the controller gives 0 or "for ever"
  bool active = true;              // false: the controller says that it does not measure
};
// Also `unavailable`: power 0, which no running machine draws; with the state "not active" measuring is switched off.
[[nodiscard]] Result<PowerStatistics> parse_dcmi(View response);
[[nodiscard]] Result<PowerStatistics> parse_node_manager(View response);

// What an energy request gives: SD650 counts joules; SD650 V2 answers a longer form with a mean power instead.
struct XccEnergy {
  std::optional<double> energy_j, power_w;  // one of them
  double stamp_s = 0;                       // the controller's clock
};
[[nodiscard]] Result<XccEnergy> parse_xcc_energy(View response);

struct XccPower {
  double board_w = 0;           // without GPUs
  std::optional<double> gpu_w;  // of the GPU board; unset: there is none
  double stamp_s = 0;
};
[[nodiscard]] Result<XccPower> parse_xcc_power(View response);

}  // namespace ergometer::ipmi
