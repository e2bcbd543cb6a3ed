// Profiles: what is known of a device's readings (update period, window, gain, ...), each value with its source. The
// built-in ones are the files of profiles/, embedded in the program; a folder of the user's comes before them. The
// registry completes the channels that the backends found with them; calibration writes one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/result.hpp"
#include "model/channel.hpp"
#include "model/node.hpp"
#include "model/warning.hpp"

namespace ergometer {

struct SourcedValue {
  double value = 0;
  std::string source;  // document, measurement, or "assumed: why"; never empty
};

// Values for the channels that fit every condition that is not empty.
struct ChannelProfile {
  std::vector<std::string> columns;  // names; '*' stands for any text
  std::vector<Method> methods;
  std::vector<Scope> scopes;
  std::optional<Quantity> quantity;
  // In the units of their names; the meaning is Channel's.
  std::optional<SourcedValue> period_ms, window_ms, delay_ms, sampled_share, resolution, gain, gain_tolerance, offset_w,
      offset_tolerance_w;
};

// A profile fits a device if every condition that is not empty does; at least one is not.
struct Profile {
  std::string name;
  std::vector<std::string> devices;     // GPU UUIDs, or Channel::device of others: one calibrated piece
  std::vector<std::string> gpus;        // words of the GPU's name: "A100", "RTX 3090"
  std::vector<std::string> cpus;        // words of the processor's name
  std::vector<std::string> interfaces;  // SensorInfo::interface
  std::vector<ChannelProfile> channels;
};

// Errors: no TOML, an unknown key, a value without source, out of range, or without meaning; `where` names the text.
[[nodiscard]] Result<Profile> parse_profile(std::string_view toml, const std::string& where);
// The text that parse_profile reads back.
[[nodiscard]] std::string to_toml(const Profile& profile);

// The embedded profiles, closest first: of one device, of a kind of device, of an interface.
[[nodiscard]] const std::vector<Profile>& built_in_profiles();
// $XDG_CONFIG_HOME/ergometer/profiles, or $HOME/.config/ergometer/profiles; "" if neither is set.
[[nodiscard]] std::filesystem::path user_profile_dir(const Environment& environment);
// The *.toml files of a folder, closest first. A file that cannot be read or parsed is left out with a warning.
[[nodiscard]] std::vector<Profile> load_profiles(const std::filesystem::path& folder, std::vector<Warning>& warnings);

// Sets the fields that are still unset in the power and energy channels of a sensor, from the first profile that has
// a value, and adds the profile's name to Channel::profile. Doing it twice changes nothing.
void apply_profiles(const std::vector<Profile>& profiles, const Node& node, const std::string& interface,
                    std::vector<Channel>& channels);

}  // namespace ergometer
