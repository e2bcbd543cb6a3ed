// The journal of changed controls, and values as people write them. What a journal says is written to devices.
#include "device/control_journal.hpp"
#include "target.hpp"

using namespace ergometer;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz_text(data, size);
  if (const auto journal = parse_journal(text))
    for (const auto& item : journal->items) {
      fuzz_check(!item.found || unit_of(*item.found) == item.unit);
      for (const auto& value : item.set) fuzz_check(unit_of(value) == item.unit);
    }
  for (const auto unit : {ControlUnit::watts, ControlUnit::hertz, ControlUnit::word})
    if (const auto value = parse_value(text, unit)) fuzz_check(parse_value(to_text(*value), unit) == value);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "ergometer.control/1\nowner\t42\tstudy demo\nsince\t1796000000\nboot\tb\nnvml\tlibnvidia-ml.so.1\ncommand\t\n"
      "item\tgpu/0/power\tnvml\tGPU-aa\tW\t250 W\nitem\tgpu/0/clock\tnvml\tGPU-aa\tHz\t\n"
      "item\tcpu/0/governor\tcpufreq\tpolicy0\tword\tpowersave\nset\t0\t200 W\nset\t1\t1200 MHz\nsettled\t0\nkeep\n",
      "200W",
      "132.5 W",
      "1.2GHz",
      "1234567 Hz",
      "performance"};
}
