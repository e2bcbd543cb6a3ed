#include "device/ipmi/messages.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ergometer::ipmi {
namespace {

constexpr std::uint8_t kNetfnApp = 0x06, kNetfnGroup = 0x2C, kNetfnOem = 0x2E, kNetfnLenovo = 0x3A;
constexpr std::uint8_t kGetDeviceId = 0x01, kGetPowerReading = 0x02, kGetNodeManagerStatistics = 0xC8, kXcc = 0x32;
constexpr std::uint8_t kDcmiGroup = 0xDC;
constexpr std::uint16_t kBlank = 0xFFFF;  // "no value" of controllers that fill with ones
constexpr std::uint8_t kDcmiActive = 0x40;

std::uint64_t number(View bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{bytes[at + i]} << (8 * i);
  return value;
}

tl::unexpected<Error> refused(std::uint8_t code) {
  const auto text = fmt::format("the controller answers completion code 0x{:02X}", code);
  switch (code) {
    case 0xC1:
    case 0xC2:
    case 0xC9:
    case 0xCC:
    case 0xCD:
    case 0xD5:
    case 0xD6:
      return fail(ErrorCode::unsupported, text + ": unsupported", "");
    case 0xD4:
      return fail(ErrorCode::permission_denied, text + ": insufficient privilege", "use an account with more rights");
    case 0xC3:
      return fail(ErrorCode::timeout, text + ": timeout", "");
    default:
      return fail(ErrorCode::unavailable, text, "");
  }
}

// That these bytes answer `command` with at least `length` bytes in all, and begin with `head` after the code.
Result<void> check(View response, std::uint8_t command, std::size_t length, std::initializer_list<std::uint8_t> head) {
  if (response.size() < 2 || response[0] != command)
    return fail(ErrorCode::corrupt, fmt::format("{} bytes that answer no command 0x{:02X}", response.size(), command));
  if (response[1] != 0) return refused(response[1]);
  if (response.size() < length || !std::equal(head.begin(), head.end(), response.begin() + 2))
    return fail(ErrorCode::corrupt, fmt::format("{} bytes that are no answer to command 0x{:02X} (expected {})",
                                                response.size(), command, length));
  return {};
}

// Four 16-bit powers (current, least, most, mean), a time stamp and a period, from `at` on.
Result<PowerStatistics> statistics(View response, std::size_t at, double period_unit_s) {
  const auto current = number(response, at, 2);
  if (current == kBlank) return fail(ErrorCode::unavailable, "the controller gives no power (all ones)");
  PowerStatistics out;
  out.current_w = static_cast<double>(current);
  out.average_w = static_cast<double>(number(response, at + 6, 2));
  out.stamp = static_cast<std::uint32_t>(number(response, at + 8, 4));
  const auto period = number(response, at + 12, 4);
  if (period > 0 && period < 0xFFFFFFFF) out.period_s = static_cast<double>(period) * period_unit_s;
  return out;
}

Result<PowerStatistics> not_zero(PowerStatistics reading) {
  if (reading.current_w > 0) return reading;
  if (!reading.active)
    return fail(ErrorCode::unavailable, "the controller reads 0 W and says that power measurement is not active",
                "switch it on: ipmi-dcmi --activate-power-limit, or power monitoring in the firmware's set-up");
  return fail(ErrorCode::unavailable, "the controller reads 0 W, which a running machine never draws");
}

}  // namespace

Command device_id_command() { return {kNetfnApp, {kGetDeviceId}}; }
Command dcmi_command() { return {kNetfnGroup, {kGetPowerReading, kDcmiGroup, 0x01, 0x00, 0x00}}; }
Command node_manager_command(std::uint8_t domain) {
  return {kNetfnOem, {kGetNodeManagerStatistics, 0x57, 0x01, 0x00, 0x01, domain, 0x00}};
}
Command xcc_energy_command() { return {kNetfnLenovo, {kXcc, 0x04, 0x02, 0x00, 0x00, 0x00}}; }
Command xcc_power_command() { return {kNetfnLenovo, {kXcc, 0x04, 0x08, 0x00, 0x00, 0x00}}; }

Result<std::uint32_t> parse_manufacturer(View response) {
  if (auto ok = check(response, kGetDeviceId, 13, {}); !ok) return tl::unexpected(ok.error());
  return static_cast<std::uint32_t>(number(response, 8, 3)) & 0xFFFFF;  // 20 bits, the rest is reserved
}

Result<PowerStatistics> parse_dcmi(View response) {
  if (auto ok = check(response, kGetPowerReading, 20, {kDcmiGroup}); !ok) return tl::unexpected(ok.error());
  auto reading = statistics(response, 3, 1e-3);
  if (!reading) return reading;
  reading->active = response[19] & kDcmiActive;
  return not_zero(*reading);
}

Result<PowerStatistics> parse_node_manager(View response) {
  if (auto ok = check(response, kGetNodeManagerStatistics, 21, {0x57, 0x01, 0x00}); !ok)
    return tl::unexpected(ok.error());
  const auto reading = statistics(response, 5, 1.0);
  return reading ? not_zero(*reading) : reading;
}

Result<XccEnergy> parse_xcc_energy(View response) {
  constexpr std::size_t kJoules = 16, kV2 = 40;  // sizes of the two forms
  if (auto ok = check(response, kXcc, kJoules, {}); !ok) return tl::unexpected(ok.error());
  XccEnergy out;
  if (response.size() == kJoules) {
    const auto mj = number(response, 8, 2), ms = number(response, 14, 2);
    if (mj > 999 || ms > 999) return fail(ErrorCode::corrupt, "an XCC energy reading with more than 999 mJ or ms");
    out.energy_j = static_cast<double>(number(response, 4, 4)) + static_cast<double>(mj) * 1e-3;
    out.stamp_s = static_cast<double>(number(response, 10, 4)) + static_cast<double>(ms) * 1e-3;
    if (*out.energy_j == 0) return fail(ErrorCode::unavailable, "the XCC energy counter is 0");
    return out;
  }
  if (response.size() != kV2)
    return fail(ErrorCode::corrupt,
                fmt::format("an XCC energy reading of {} bytes (16 and 40 are known)", response.size()));
  const auto count = number(response, 2, 2), ms = number(response, 38, 2);
  if (count == 0 || ms > 999) return fail(ErrorCode::unavailable, "an XCC power reading over no samples");
  const double sum_w = static_cast<double>(number(response, 4, 4)) + static_cast<double>(number(response, 8, 2)) * 1e-3;
  out.power_w = sum_w / static_cast<double>(count);
  out.stamp_s = static_cast<double>(number(response, 34, 4)) + static_cast<double>(ms) * 1e-3;
  if (*out.power_w <= 0 || *out.power_w >= kBlank) return fail(ErrorCode::unavailable, "the XCC gives no power");
  return out;
}

Result<XccPower> parse_xcc_power(View response) {
  if (auto ok = check(response, kXcc, 16, {}); !ok) return tl::unexpected(ok.error());
  const auto board = number(response, 8, 2), gpu = number(response, 10, 2), ms = number(response, 6, 2);
  if (board == 0 || board == kBlank || ms > 999) return fail(ErrorCode::unavailable, "the XCC gives no power");
  XccPower out;
  out.board_w = static_cast<double>(board);
  if (gpu != 0 && gpu != kBlank) out.gpu_w = static_cast<double>(gpu);
  out.stamp_s = static_cast<double>(number(response, 2, 4)) + static_cast<double>(ms) * 1e-3;
  return out;
}

}  // namespace ergometer::ipmi
