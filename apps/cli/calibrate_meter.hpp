// Calibration against a power meter: which part of the machine the meter is on, its readings on our clock, and what
// they say about each channel. Used by calibrate.cpp and calibrate_result.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/calibration.hpp"
#include "command.hpp"
#include "device/profiles.hpp"
#include "store/run_reader.hpp"

namespace ergometer::cli {

struct MeterOptions {
  std::string file;             // "": no meter
  std::string domain = "node";  // what the meter measures
  double offset_s = 0;          // added to the file's times
};

struct MeterReadings {
  MeterOptions options;
  Reference reference;
};

// The file's rows that lie in the run. Errors: as of meter files; no row in the run; a domain without a channel.
[[nodiscard]] Result<MeterReadings> read_meter(const MeterOptions& options, const RunReader& reader,
                                               const Context& context);

// Largest error of the meter's clock, besides --offset, that is found by itself.
inline constexpr double kMostClockError_s = 5;

// One channel of the meter's domain. `own_delay`: of the channel, as its load told.
struct MeterFinding {
  Channel channel;
  MeterCalibration fit;
  std::optional<Estimate> own_delay;
};
// A table of gains and offsets, and how far the clocks are apart. Errors: no channel follows the meter; a gain that
// only another unit or another part of the machine explains.
[[nodiscard]] Result<std::string> tell_meter(const MeterReadings& meter, const std::vector<MeterFinding>& findings);

// Sets gain and offset with their tolerances.
void put_meter(const ChannelCalibration& fit, const std::string& source, ChannelProfile& out);

}  // namespace ergometer::cli
