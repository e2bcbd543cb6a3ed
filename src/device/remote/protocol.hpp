// What ergometerd and its clients say to each other: one JSON object a line (docs/daemon-protocol.md). Both directions
// stand here, so that the daemon and the backend cannot differ. Pure functions; every parser takes foreign bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "device/sensor.hpp"

namespace ergometer::remote {

inline constexpr const char* kSchema = "ergometer.daemon/1";
// Below the host root.
inline constexpr const char* kSocket = "/run/ergometer/ergometerd.sock";
// Longest lines, their ends included. A client may close on a longer one, as the daemon does. The larger one is for
// those who may control: a node of many CPUs has some hundred controls.
inline constexpr std::size_t kMostRequestBytes = 1024;
inline constexpr std::size_t kMostControlBytes = 256 << 10;
inline constexpr std::size_t kMostReplyBytes = 1 << 20;
// Most values (rows times columns) and events of one reply.
inline constexpr std::size_t kMostValues = 16384;
inline constexpr std::size_t kMostEvents = 64;

// A control that a lease shall cover. The daemon finds it by backend, device and knob: devices are numbered otherwise
// where a container or a job sees a part of the node.
struct WantedControl {
  std::string name, backend, device_id;
  std::vector<std::string> values;  // all that may be set later, as to_text(ControlValue) writes them
};

struct WantedSetting {
  int control = 0;  // number in the lease
  std::string value;
};

// What the node's resource manager tells of a job.
struct JobNote {
  std::string job;  // is_job_id()
  std::optional<std::int64_t> uid;
  std::string user;
  bool exclusive = false;  // no other job may use the node
};

struct Request {
  enum class Kind { list, read, lease, apply, observe, restore, job_begin, job_end, job };
  Kind kind = Kind::list;
  std::string sensor;                  // read: its name
  std::optional<std::uint64_t> after;  // read: the cursor of the last reply; unset: only what is read from now on
  std::string holder{};                   // lease: for people: "study demo"
  std::vector<WantedControl> controls{};  // lease
  std::vector<WantedSetting> settings{};  // apply
  JobNote note{};                         // job_begin; job_end and job: its `job` alone
};

// Letters, digits and "._+-", at most 64, no dot in front: it names a folder.
[[nodiscard]] bool is_job_id(std::string_view text);

// The answer to a read request.
struct Batch {
  std::uint64_t cursor = 0;  // for the next request's `after`
  std::uint64_t lost = 0;    // rows and events that were overwritten before they were asked for
  bool more = false;         // there is more: ask again at once
  std::vector<Row> rows;     // oldest first, all with their time
  std::vector<Readings::Note> events;
};

// What the daemon says first.
[[nodiscard]] std::string greeting_line(const std::string& version, MonoTime now);
[[nodiscard]] std::string request_line(const Request& request);
[[nodiscard]] std::string sensors_line(const std::vector<SensorInfo>& sensors);
[[nodiscard]] std::string batch_line(const Batch& batch);
[[nodiscard]] std::string error_line(const Error& error);

// The parsers of what the daemon says return its own error where the line is one, and `corrupt` for what they cannot
// understand.
// The daemon's time at its greeting. `unsupported` where the daemon speaks another version.
[[nodiscard]] Result<MonoTime> parse_greeting(std::string_view line);
[[nodiscard]] Result<Request> parse_request(std::string_view line);
[[nodiscard]] Result<std::vector<SensorInfo>> parse_sensors(std::string_view line);
// Every row has exactly `columns` values.
[[nodiscard]] Result<Batch> parse_batch(std::string_view line, std::size_t columns);

}  // namespace ergometer::remote
