// How fast sample files are read and written: a power channel at 20 ms as the driver's buffer gives it, and a counter
// with its read width; in frames of half a second, as a run writes them.
#include <benchmark/benchmark.h>

#include <string>

#include "base/number.hpp"
#include "store/sample_file.hpp"
#include "store/zstd_frames.hpp"

namespace {

using namespace ergometer;

constexpr int kRowsOfFrame = 25, kFrames = 8000;

std::string rows(int frame, bool counter) {
  std::string text;
  if (frame == 0) text = counter ? "t_ns,read_ns,energy_j,power_w\n" : "t_ns,power_w\n";
  for (int i = 0; i < kRowsOfFrame; ++i) {
    const std::int64_t n = static_cast<std::int64_t>(frame) * kRowsOfFrame + i;
    append_int(text, 1796024300361819000 + n * 20000000);
    if (counter) {
      text += ",412";
      append_int(text, n % 100);
      text += ',';
      append_double(text, static_cast<double>(2713297 + n * 14) / 1000);
    }
    text += ',';
    append_double(text, static_cast<double>(690000 + n * 7919 % 15000) / 1000);
    text += '\n';
  }
  return text;
}

void read_samples(benchmark::State& state) {
  const bool compressed = state.range(0) != 0, counter = state.range(1) != 0;
  FrameCompressor compressor;
  std::string content;
  std::size_t text_bytes = 0;
  for (int i = 0; i < kFrames; ++i) {
    const std::string text = rows(i, counter);
    text_bytes += text.size();
    content += compressed ? std::string(compressor.compress(text).value_or("")) : text;
  }
  for (auto _ : state) {
    std::vector<Warning> warnings;
    const auto trace = parse_samples(content, compressed, "gpu0-samples", nullptr, "FILE", warnings);
    if (!trace || trace->rows() != static_cast<std::size_t>(kFrames) * kRowsOfFrame || !warnings.empty())
      state.SkipWithError("the rows are not all there");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(text_bytes) * static_cast<std::int64_t>(state.iterations()));
  state.SetItemsProcessed(static_cast<std::int64_t>(kFrames) * kRowsOfFrame *
                          static_cast<std::int64_t>(state.iterations()));
  state.counters["ratio"] = static_cast<double>(text_bytes) / static_cast<double>(content.size());
}

void compress_frame(benchmark::State& state) {
  FrameCompressor compressor;
  const std::string text = rows(1, true);
  for (auto _ : state) benchmark::DoNotOptimize(compressor.compress(text));
}

}  // namespace

BENCHMARK(read_samples)->ArgNames({"zst", "counter"})->Args({1, 0})->Args({1, 1})->Args({0, 0});
BENCHMARK(compress_frame);
BENCHMARK_MAIN();
