// What the fake driver plays: read from a text file of key = value lines, see README.md. Part of the fake NVML.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fakes/nvml/shape.hpp"

namespace fake_nvml {

// FUNCTION CODE FROM TO: the function ("*": any) returns the code while FROM <= t < TO (seconds).
struct Fault {
  std::string function;
  int code = 999;
  double from = 0, to = 1e18;
};

// FUNCTION AT SECONDS: the first call at or after AT takes so long (real time).
struct Block {
  std::string function;
  double at = 0, seconds = 0;
  bool done = false;
};

struct Process {
  std::uint32_t pid = 0;
  std::uint64_t bytes = 0;      // all ones: not available
  unsigned sm = 0, memory = 0;  // its utilisation in %
  bool active = false;          // whether that is told
};

struct Slice {
  std::string uuid;
  unsigned gpu_instance = 0, compute_instance = 0;
  unsigned multiprocessors = 0;  // 0: not told
};

// AFTER_WRITES WATTS: when so many writes were made, somebody else sets the power limit.
struct OtherActor {
  int after_writes = 0;
  double watts = 0;
};

// FUNCTION CODE AFTER_WRITES [TIMES]: the function fails with the code once so many writes were made, so often.
struct WriteFault {
  std::string function;
  int code = 999, after_writes = 0, times = 1 << 30;
};

struct GpuScript {
  std::string uuid, name = "NVIDIA Fake", bus_id;
  unsigned architecture = 9;
  int compute_major = 9, compute_minor = 0;
  Shape power, memory_power, utilisation, memory_utilisation, sm_clock, memory_clock, temperature, memory_temperature;
  Shape energy_mj;  // overrides the integral of `power`
  bool energy_raw = false;
  double energy_start_mj = 0;
  double update_ms = 100, average_ms = 1000, sample_ms = 20, utilisation_sample_ms = 200;
  double memory_total = 0;
  Shape memory_used;
  double limit_w = 700, default_w = 700, min_w = 200, max_w = 700;
  double requested_w = -1;          // the management limit at the start; negative: limit_w
  double cap_w = 1e9;               // of another limit, out of our band: what is enforced never exceeds it
  std::vector<unsigned> clocks, memory_clocks;  // MHz, supported
  bool persistence = false;
  bool clock_obeys = true;          // false: a lock is accepted and has no effect
  Shape process_utilisation;
  std::vector<Process> processes;
  std::map<unsigned, Shape> gpm;                             // by metric id
  std::map<std::pair<unsigned, unsigned>, Shape> slice_gpm;  // by GPU instance and metric id
  std::map<unsigned, Shape> throttle_s;  // by field id: share of time (0..1) in which the counter runs
  std::uint64_t reasons = 0;
  std::vector<Slice> slices;
  bool mig = false;
  std::set<std::string> unsupported;  // function names, "field:ID", "field:ID:SCOPE", "samples:TYPE"
  std::vector<Fault> faults;
  std::vector<Block> blocks;
  std::vector<OtherActor> others;
  std::vector<WriteFault> write_faults;
};

struct Scenario {
  std::string driver_version = "580.159.04", nvml_version = "13.580.159.04";
  int cuda_version = 13000;
  std::string state_path, log_path;  // of settings and of writes, shared by all processes; "": of this one alone
  double write_ms = 0;               // a write waits so long before and after it takes effect
  std::vector<GpuScript> gpus;
  std::vector<Fault> faults;
  std::vector<Block> blocks;
};

// Empty path: one GPU with the defaults. Problems are listed in `errors` (unknown keys, bad values) with their line.
Scenario load_scenario(const std::string& path, std::vector<std::string>& errors);

}  // namespace fake_nvml
