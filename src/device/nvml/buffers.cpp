#include "device/nvml/buffers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ergometer::nvml {
namespace {

constexpr std::size_t kRoom = 512;  // rings seen so far hold 71 to 120 samples
constexpr std::size_t kMaxRoom = kRoom << 6;
constexpr Nanos kFirstLook = std::chrono::seconds(2);

// Samples newer than `since_us`, all of them: a buffer without room gets the first ones only, or an error, by driver.
// not_found: nothing new.
Return fetch(const Driver::Access& access, Sampling kind, std::uint64_t since_us, std::vector<Sample>& buffer,
             ValueType& type, unsigned& count) {
  if (buffer.size() < kRoom) buffer.resize(kRoom);
  for (;;) {
    count = static_cast<unsigned>(buffer.size());
    type = ValueType::u32;
    const Return code = access.api->samples(access.device, kind, since_us, &type, &count, buffer.data());
    const bool full = code == Return::insufficient_size || (code == Return::success && count >= buffer.size());
    if (full && buffer.size() < kMaxRoom) {
      buffer.resize(buffer.size() * 4);
      continue;
    }
    count = code == Return::success ? std::min(count, static_cast<unsigned>(buffer.size())) : 0;
    return code;
  }
}

}  // namespace

struct BufferSensor::Timed {
  std::uint64_t us = 0;
  std::size_t column = 0;
  ValueType type = ValueType::u32;
  Value value{};
};

BufferProbe probe_buffer(const Driver::Access& access, Sampling kind) {
  BufferProbe probe;
  if (!access.api->samples) return {Return::function_not_found, {}};
  std::vector<Sample> buffer;
  ValueType type{};
  unsigned count = 0;
  probe.code = fetch(access, kind, 0, buffer, type, count);
  if (probe.code == Return::not_found || probe.code == Return::no_data) probe.code = Return::success;
  std::vector<std::uint64_t> steps;
  for (unsigned i = 1; i < count; ++i)
    if (buffer[i].timestamp_us > buffer[i - 1].timestamp_us)
      steps.push_back(buffer[i].timestamp_us - buffer[i - 1].timestamp_us);
  if (steps.size() >= 8) {
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    const auto ms = (*middle + 500) / 1000;
    if (ms > 0) probe.period = std::chrono::milliseconds(ms);
  }
  return probe;
}

BufferColumn power_buffer(const GpuFacts& gpu, std::optional<Nanos> period) {
  Channel channel = gpu_channel(gpu, "power_w", Quantity::power, "W");
  channel.method = Method::samples;
  channel.period = period.value_or(std::chrono::milliseconds(20));
  channel.resolution = 0.001;
  channel.max_power_w = gpu.info.max_power_limit_w;
  channel.note = "driver's sample buffer (nvmlDeviceGetSamples 0), driver's time stamps";
  return {Sampling::power, 1000, gpu.power_limit_w, std::move(channel)};
}

BufferColumn utilisation_buffer(const GpuFacts& gpu, Sampling kind, std::optional<Nanos> period) {
  const bool whole = kind == Sampling::gpu_utilization;
  Channel channel =
      gpu_channel(gpu, whole ? "sampled_gpu_active_ratio" : "sampled_memory_active_ratio", Quantity::ratio, "1");
  channel.period = period.value_or(std::chrono::milliseconds(200));
  channel.note = fmt::format("driver's sample buffer (nvmlDeviceGetSamples {}), as {} but without gaps",
                             static_cast<unsigned>(kind), whole ? "gpu_active_ratio" : "memory_active_ratio");
  return {kind, 100, 1, std::move(channel)};
}

BufferSensor::BufferSensor(std::shared_ptr<Driver> driver, std::shared_ptr<Gpu> gpu, SensorInfo info,
                           std::vector<BufferColumn> columns)
    : Sensor(std::move(info)),
      driver_(std::move(driver)),
      gpu_(std::move(gpu)),
      columns_(std::move(columns)),
      last_us_(columns_.size()),
      off_(columns_.size()),
      cells_(column_names(info_)) {}

Return BufferSensor::harvest(const Driver::Access& access, std::size_t column, std::vector<Timed>& into) {
  // A wall clock that was set back would leave us waiting for samples newer than the future.
  const auto now_us = static_cast<std::uint64_t>(to_ns(driver_->clock().wall()) / 1000);
  if (last_us_[column] > now_us + 1'000'000) last_us_[column] = 0;
  ValueType type{};
  unsigned count = 0;
  const Return code = fetch(access, columns_[column].kind, last_us_[column], buffer_, type, count);
  std::uint64_t newest = last_us_[column];
  for (unsigned i = 0; i < count; ++i) {
    const auto& sample = buffer_[i];
    // Unused entries of the ring have no time.
    if (sample.timestamp_us == 0 || sample.timestamp_us <= last_us_[column]) continue;
    newest = std::max(newest, sample.timestamp_us);
    into.push_back({sample.timestamp_us, column, type, sample.value});
  }
  last_us_[column] = newest;
  return code;
}

Result<void> BufferSensor::read(Readings& out) {
  auto access = driver_->access(*gpu_);
  if (!access) return tl::unexpected(access.error());
  if (access->generation != generation_) {
    generation_ = access->generation;
    off_.assign(columns_.size(), false);
  }
  std::vector<Timed> samples;
  bool answered = false;
  Return failure = Return::success;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (off_[i]) continue;
    const Return code = harvest(*access, i, samples);
    if (code == Return::success || code == Return::not_found || code == Return::no_data) {
      answered = true;
    } else if (code == Return::not_supported || code == Return::function_not_found) {
      off_[i] = true;
      out.event("note", fmt::format("GPU {}: sample buffer of {}: {}; not asked again", gpu_->index,
                                    columns_[i].channel.column, to_text(code)));
    } else {
      failure = code;
    }
  }
  access->lock.unlock();
  if (!answered && failure != Return::success) {
    if (is_fatal(failure)) driver_->report(*gpu_, false);
    return fail(is_fatal(failure) ? ErrorCode::lost : ErrorCode::unavailable,
                fmt::format("GPU {} ({}): {}", gpu_->index, gpu_->uuid, to_text(failure)));
  }
  if (answered) driver_->report(*gpu_, true);

  std::stable_sort(samples.begin(), samples.end(), [](const Timed& a, const Timed& b) { return a.us < b.us; });
  Clock& clock = driver_->clock();
  const MonoTime now = clock.now();
  const std::int64_t wall_zero_ns = to_ns(clock.to_mono(wall_ns(0)));
  const MonoTime oldest = first_ ? now - kFirstLook : mono_ns(0);
  bool future = false;
  for (std::size_t i = 0; i < samples.size();) {
    const std::uint64_t us = samples[i].us;
    const MonoTime t = mono_ns(wall_zero_ns + static_cast<std::int64_t>(us) * 1000);
    cells_.begin();
    for (; i < samples.size() && samples[i].us == us; ++i) {
      const auto& sample = samples[i];
      const auto& column = columns_[sample.column];
      const double number = number_of(sample.type, sample.value);
      if (sample.type == ValueType::u32)
        cells_.put(sample.column, std::uint64_t{sample.value.u32}, number / column.divisor, column.limit);
      else
        cells_.put(sample.column, number / column.divisor, column.limit);
    }
    cells_.finish(out);
    // After a step of the wall clock backwards, old samples would lie in the future and hide the new ones.
    if (t > now + std::chrono::milliseconds(100))
      future = true;
    else if (t >= oldest)
      out.add_at(t, cells_.values());
  }
  if (future && !future_)
    out.event("clock", fmt::format("GPU {}: samples with a time in the future are left out (the wall clock was set "
                                   "back)",
                                   gpu_->index));
  future_ = future;
  first_ = false;
  return {};
}

}  // namespace ergometer::nvml
