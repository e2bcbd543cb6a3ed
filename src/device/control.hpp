// Control: one settable knob of a device (a power limit, a clock, a governor), implemented by the backends that can
// set something. Values and what is known of a knob are plain data; ControlGuard sets and restores them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "model/sensor_info.hpp"

namespace ergometer {

using Hertz = Unit<struct HertzTag>;

// A word is a governor's name, or "on" and "off".
using ControlValue = std::variant<Watts, Hertz, std::string>;
enum class ControlUnit { watts, hertz, word };  // in the order of ControlValue

// Which end of a pair (the lowest and the highest frequency) a control is.
enum class Bound { none, lower, upper };

struct ControlInfo {
  std::string name;         // "gpu/0/power": device and knob
  std::string backend;      // "nvml", "rapl", "cpufreq", "amdgpu"
  std::string device_id;    // the same after a restart: UUID, zone, policy, bus id
  std::string device_name;  // for people
  ControlUnit unit = ControlUnit::watts;
  bool readable = true;                       // false: the device does not tell what was set; it can only be reset
  std::optional<ControlValue> default_value;  // unset: not known
  std::optional<ControlValue> lowest, highest;
  std::vector<ControlValue> choices;  // if there are any, only these can be set; numbers ascend
  double resolution = 0;              // W or Hz: two numbers that differ by no more are one setting
  Bound bound = Bound::none;
  int rank = 0;  // lower ones are set first and restored last
  // What must hold for this control to have an effect: names of controls of the same backend, with the value.
  std::vector<std::pair<std::string, ControlValue>> needs;
  std::string writers;           // who may set it
  std::optional<bool> writable;  // whether this process may, where that is known without trying
  std::optional<bool> visible;   // whether the measured command can use the device; unset: not known
};

// Thread-compatible. get() and effective() change nothing.
class Control {
 public:
  virtual ~Control() = default;
  [[nodiscard]] const ControlInfo& describe() const { return info_; }
  // What is set now. Errors: unsupported where it cannot be read back; lost; corrupt.
  [[nodiscard]] virtual Result<ControlValue> get() = 0;
  // Errors: permission_denied with the remedies, unsupported, invalid_argument with the range, lost, io.
  [[nodiscard]] virtual Result<void> set(const ControlValue& value) = 0;
  // Back to what the driver does by itself; only for controls that cannot be read back.
  [[nodiscard]] virtual Result<void> reset();
  // What the device goes by now: the enforced limit, the running clock. May differ from what is set.
  [[nodiscard]] virtual Result<ControlValue> effective() { return get(); }
  // A descriptor that whatever set() starts must hold open until it has ended: a guardian waits for its closing before
  // it restores. -1: none.
  virtual void hold_while_setting(int /*fd*/) {}

 protected:
  explicit Control(ControlInfo info) : info_(std::move(info)) {}
  ControlInfo info_;
};

// All controls of a machine; what cannot be set is listed with its reason.
struct ControlDiscovery {
  std::vector<std::shared_ptr<Control>> controls;
  std::vector<Absence> absences;
};

// "gpu/0" of "gpu/0/power", and "power".
[[nodiscard]] std::string_view device_of(std::string_view name);
[[nodiscard]] std::string_view knob_of(std::string_view name);

[[nodiscard]] ControlUnit unit_of(const ControlValue& value);
// In W or Hz; 0 for a word.
[[nodiscard]] double number_of(const ControlValue& value);
[[nodiscard]] ControlValue make_value(ControlUnit unit, double number);
// "250 W", "1200 MHz", "performance": reads back as the same value.
[[nodiscard]] std::string to_text(const ControlValue& value);
// As to_text writes it and as people do: "250W", "1.2 GHz", "800000kHz", "performance". A number without a unit, or
// with another unit than `unit`, is nullopt.
[[nodiscard]] std::optional<ControlValue> parse_value(std::string_view text, ControlUnit unit);
// Whether both are one setting of this control.
[[nodiscard]] bool same_value(const ControlInfo& info, const ControlValue& a, const ControlValue& b);
// "200 to 700 W", "345 to 1980 MHz, 110 values", "performance, powersave", "" if nothing is known.
[[nodiscard]] std::string range_text(const ControlInfo& info);

// What a caller without permission can do about it; named in every such error.
[[nodiscard]] std::string permission_remedy();

}  // namespace ergometer
