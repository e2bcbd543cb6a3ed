// The sample reader, compressed and plain. The first byte chooses.
#include "model/trace.hpp"
#include "store/sample_file.hpp"
#include "store/zstd_frames.hpp"
#include "target.hpp"

using namespace ergometer;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto content = fuzz_text(data + 1, size - 1);
  const bool compressed = data[0] & 1;
  SensorInfo info;
  info.own_time = data[0] & 4;
  info.channels.resize(1);
  info.channels[0].column = "power_w";
  std::vector<Warning> warnings;
  const auto trace =
      parse_samples(content, compressed, "gpu0-samples", data[0] & 2 ? &info : nullptr, "input", warnings);
  if (trace) {
    fuzz_check(trace->columns.size() == trace->info.channels.size());
    fuzz_check(trace->read_ns.size() == (trace->info.own_time ? 0 : trace->rows()));
    for (std::size_t i = 1; i < trace->rows(); ++i) fuzz_check(trace->t_ns[i - 1] < trace->t_ns[i]);
    for (const auto& column : trace->columns) fuzz_check(column.size() == trace->rows());
  }
  (void)last_sample_ns(content, compressed);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string header = "t_ns,read_ns,power_w,energy_j\n";
  const std::string rows = "10,1,1.5,\n20,2,,1e3\n30,1,697.12345678901234,-0.5\n\"40\",1, 2 ,nan\n";
  FrameCompressor compressor;
  std::string frames = "\x01";
  for (const auto& text : {header + rows, std::string("50,1,2,3\n"), std::string(5000, '7') + "\n"})
    frames += compressor.compress(text).value_or("");
  return {std::string(1, '\0') + header + rows, "\x02" + rows, frames, "\x03" + frames.substr(1),
          "\x04\xEF\xBB\xBFt_ns,power_w\r\n1,2\r\n"};
}
