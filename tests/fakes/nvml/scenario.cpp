#include "fakes/nvml/scenario.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>

namespace fake_nvml {
namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

template <class Number>
bool parse(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

bool parse_seconds(const std::string& text, double& value) {
  if (text == "inf") {
    value = 1e18;
    return true;
  }
  return parse(text, value);
}

bool add_fault(std::vector<Fault>& faults, const std::string& value) {
  const auto words = words_of(value);
  Fault fault;
  if (words.size() < 2 || words.size() > 4 || !parse(words[1], fault.code)) return false;
  fault.function = words[0];
  if (words.size() > 2 && !parse_seconds(words[2], fault.from)) return false;
  if (words.size() > 3 && !parse_seconds(words[3], fault.to)) return false;
  faults.push_back(std::move(fault));
  return true;
}

bool add_block(std::vector<Block>& blocks, const std::string& value) {
  const auto words = words_of(value);
  Block block;
  if (words.size() != 3 || !parse(words[1], block.at) || !parse(words[2], block.seconds)) return false;
  block.function = words[0];
  blocks.push_back(std::move(block));
  return true;
}

// PID:BYTES or PID:- (not available); PID:BYTES:SM:MEMORY with the utilisation of the process in %.
bool add_processes(GpuScript& gpu, const std::string& value) {
  gpu.processes.clear();
  for (const auto& word : words_of(value)) {
    const auto colon = word.find(':');
    Process process;
    if (colon == std::string::npos || !parse(word.substr(0, colon), process.pid)) return false;
    auto bytes = word.substr(colon + 1);
    if (const auto second = bytes.find(':'); second != std::string::npos) {
      const auto third = bytes.find(':', second + 1);
      process.active = true;
      if (third == std::string::npos || !parse(bytes.substr(second + 1, third - second - 1), process.sm) ||
          !parse(bytes.substr(third + 1), process.memory))
        return false;
      bytes.resize(second);
    }
    if (bytes == "-")
      process.bytes = ~std::uint64_t{0};
    else if (!parse(bytes, process.bytes))
      return false;
    gpu.processes.push_back(process);
  }
  return true;
}

// UUID/GI/CI or UUID/GI/CI/MULTIPROCESSORS ...
bool add_slices(GpuScript& gpu, const std::string& value) {
  gpu.slices.clear();
  for (const auto& word : words_of(value)) {
    const auto first = word.find('/');
    const auto second = word.find('/', first + 1);
    if (first == std::string::npos || second == std::string::npos) return false;
    Slice slice;
    slice.uuid = word.substr(0, first);
    const auto third = word.find('/', second + 1);
    const auto compute = word.substr(second + 1, third == std::string::npos ? third : third - second - 1);
    if (!parse(word.substr(first + 1, second - first - 1), slice.gpu_instance) ||
        !parse(compute, slice.compute_instance) ||
        (third != std::string::npos && !parse(word.substr(third + 1), slice.multiprocessors)))
      return false;
    gpu.slices.push_back(std::move(slice));
  }
  gpu.mig = true;
  return true;
}

// LOW HIGH STEP, or a list of MHz after "list".
bool set_clocks(std::vector<unsigned>& clocks, const std::string& value) {
  const auto words = words_of(value);
  unsigned low = 0, high = 0, step = 0;
  clocks.clear();
  if (words.size() == 3 && parse(words[0], low) && parse(words[1], high) && parse(words[2], step) && step > 0) {
    for (unsigned mhz = low; mhz <= high; mhz += step) clocks.push_back(mhz);
    return true;
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    clocks.push_back(0);
    if (!parse(words[i], clocks.back())) return false;
  }
  return !words.empty() && words[0] == "list";
}

bool add_other(GpuScript& gpu, const std::string& value) {
  const auto words = words_of(value);
  OtherActor other;
  if (words.size() != 2 || !parse(words[0], other.after_writes) || !parse(words[1], other.watts)) return false;
  gpu.others.push_back(other);
  return true;
}

bool add_write_fault(GpuScript& gpu, const std::string& value) {
  const auto words = words_of(value);
  WriteFault fault;
  if (words.size() < 3 || words.size() > 4 || !parse(words[1], fault.code) || !parse(words[2], fault.after_writes))
    return false;
  fault.function = words[0];
  if (words.size() == 4 && !parse(words[3], fault.times)) return false;
  gpu.write_faults.push_back(fault);
  return true;
}

bool set_compute(GpuScript& gpu, const std::string& value) {
  const auto dot = value.find('.');
  return dot != std::string::npos && parse(value.substr(0, dot), gpu.compute_major) &&
         parse(value.substr(dot + 1), gpu.compute_minor);
}

// Keys of one GPU. Numbered ones ("gpm.2", "throttle.74") carry an id.
bool set_gpu(GpuScript& gpu, const std::string& key, const std::string& value) {
  const std::map<std::string, Shape*> shapes = {{"power", &gpu.power},
                                                {"memory_power", &gpu.memory_power},
                                                {"utilisation", &gpu.utilisation},
                                                {"memory_utilisation", &gpu.memory_utilisation},
                                                {"sm_clock", &gpu.sm_clock},
                                                {"memory_clock", &gpu.memory_clock},
                                                {"temperature", &gpu.temperature},
                                                {"memory_temperature", &gpu.memory_temperature},
                                                {"process_utilisation", &gpu.process_utilisation},
                                                {"memory_used", &gpu.memory_used}};
  const std::map<std::string, double*> numbers = {{"energy_start_mj", &gpu.energy_start_mj},
                                                  {"update_ms", &gpu.update_ms},
                                                  {"average_ms", &gpu.average_ms},
                                                  {"sample_ms", &gpu.sample_ms},
                                                  {"utilisation_sample_ms", &gpu.utilisation_sample_ms},
                                                  {"memory_total", &gpu.memory_total},
                                                  {"limit", &gpu.limit_w},
                                                  {"limit_default", &gpu.default_w},
                                                  {"limit_min", &gpu.min_w},
                                                  {"limit_max", &gpu.max_w},
                                                  {"limit_requested", &gpu.requested_w},
                                                  {"limit_cap", &gpu.cap_w}};
  if (const auto it = shapes.find(key); it != shapes.end()) return it->second->parse(value);
  if (const auto it = numbers.find(key); it != numbers.end()) return parse(value, *it->second);
  if (key == "energy_mj") return gpu.energy_raw = gpu.energy_mj.parse(value);
  if (key == "uuid") return gpu.uuid = value, true;
  if (key == "name") return gpu.name = value, true;
  if (key == "bus_id") return gpu.bus_id = value, true;
  if (key == "architecture") return parse(value, gpu.architecture);
  if (key == "compute") return set_compute(gpu, value);
  if (key == "reasons") return parse(value, gpu.reasons);
  if (key == "processes") return add_processes(gpu, value);
  if (key == "mig") return add_slices(gpu, value);
  if (key == "fault") return add_fault(gpu.faults, value);
  if (key == "block") return add_block(gpu.blocks, value);
  if (key == "clocks") return set_clocks(gpu.clocks, value);
  if (key == "memory_clocks") return set_clocks(gpu.memory_clocks, value);
  if (key == "persistence") return gpu.persistence = value == "on", value == "on" || value == "off";
  if (key == "clock_obeys") return gpu.clock_obeys = value == "yes", value == "yes" || value == "no";
  if (key == "other") return add_other(gpu, value);
  if (key == "write_fault") return add_write_fault(gpu, value);
  if (key == "unsupported") {
    for (const auto& word : words_of(value)) gpu.unsupported.insert(word);
    return true;
  }
  unsigned id = 0;
  if (unsigned instance = 0; key.starts_with("mig") && key.find(".gpm.") != std::string::npos) {
    const auto dot = key.find('.');
    return parse(key.substr(3, dot - 3), instance) && parse(key.substr(dot + 5), id) &&
           gpu.slice_gpm[{instance, id}].parse(value);
  }
  if (key.starts_with("gpm.") && parse(key.substr(4), id)) return gpu.gpm[id].parse(value);
  if (key.starts_with("throttle.") && parse(key.substr(9), id)) return gpu.throttle_s[id].parse(value);
  return false;
}

bool set_global(Scenario& scenario, const std::string& key, const std::string& value) {
  if (key == "driver_version") return scenario.driver_version = value, true;
  if (key == "nvml_version") return scenario.nvml_version = value, true;
  if (key == "cuda_version") return parse(value, scenario.cuda_version);
  if (key == "fault") return add_fault(scenario.faults, value);
  if (key == "block") return add_block(scenario.blocks, value);
  if (key == "state") return scenario.state_path = value, true;
  if (key == "log") return scenario.log_path = value, true;
  if (key == "write_ms") return parse(value, scenario.write_ms);
  return false;
}

GpuScript default_gpu(unsigned index) {
  GpuScript gpu;
  gpu.uuid = fmt::format("GPU-{:08x}-0000-0000-0000-{:012x}", index, index);
  gpu.bus_id = fmt::format("00000000:{:02X}:00.0", index + 1);
  gpu.power.parse("100");
  gpu.memory_power.parse("30");
  gpu.utilisation.parse("50");
  gpu.memory_utilisation.parse("20");
  gpu.sm_clock.parse("1980");
  gpu.memory_clock.parse("3201");
  gpu.temperature.parse("40");
  gpu.memory_temperature.parse("45");
  gpu.process_utilisation.parse("-");
  gpu.memory_total = 150754820096.0;
  gpu.memory_used.parse("1073741824");
  set_clocks(gpu.clocks, "345 1980 15");
  set_clocks(gpu.memory_clocks, "list 2201 3201");
  return gpu;
}

struct Line {
  int number = 0;
  std::string key, value;
};

}  // namespace

Scenario load_scenario(const std::string& path, std::vector<std::string>& errors) {
  Scenario scenario;
  std::vector<Line> lines;
  if (!path.empty()) {
    std::ifstream in(path);
    if (!in) errors.push_back("cannot read " + path);
    int number = 0;
    for (std::string text; std::getline(in, text);) {
      ++number;
      text = trimmed(text);
      if (text.empty() || text[0] == '#') continue;
      const auto equals = text.find('=');
      if (equals == std::string::npos) {
        errors.push_back(fmt::format("{}:{}: no '='", path, number));
        continue;
      }
      lines.push_back({number, trimmed(text.substr(0, equals)), trimmed(text.substr(equals + 1))});
    }
  }
  unsigned count = 1;
  for (const auto& line : lines)
    if (line.key == "gpus") parse(line.value, count);
  for (unsigned i = 0; i < count; ++i) scenario.gpus.push_back(default_gpu(i));

  for (const auto& line : lines) {
    bool known = line.key == "gpus";
    if (line.key.starts_with("gpu.")) {
      known = true;
      for (auto& gpu : scenario.gpus) known = set_gpu(gpu, line.key.substr(4), line.value) && known;
    } else if (const auto dot = line.key.find('.'); line.key.starts_with("gpu") && dot != std::string::npos) {
      unsigned index = 0;
      known = parse(line.key.substr(3, dot - 3), index) && index < count &&
              set_gpu(scenario.gpus[index], line.key.substr(dot + 1), line.value);
    } else if (!known) {
      known = set_global(scenario, line.key, line.value);
    }
    if (!known) errors.push_back(fmt::format("{}:{}: {} = {}", path, line.number, line.key, line.value));
  }
  return scenario;
}

}  // namespace fake_nvml
