// A sensor whose readings a test writes as a function of time, and the sink that keeps what a Sampler makes of them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "measure/sampler.hpp"

namespace ergometer::test {

class ScriptedSensor final : public Sensor {
 public:
  using Script = std::function<Result<void>(MonoTime now, Readings& out)>;
  ScriptedSensor(std::shared_ptr<Clock> clock, Nanos interval, Script script, bool own_time = false)
      : Sensor(describe(interval, own_time)), clock_(std::move(clock)), script_(std::move(script)) {}
  Result<void> read(Readings& out) override { return script_(clock_->now(), out); }

 private:
  static SensorInfo describe(Nanos interval, bool own_time) {
    SensorInfo info;
    info.name = "scripted";
    info.interface = "fake";
    info.interval = interval;
    info.own_time = own_time;
    Channel channel;
    channel.column = "power_w";
    channel.quantity = Quantity::power;
    channel.unit = "W";
    info.channels = {channel};
    return info;
  }
  std::shared_ptr<Clock> clock_;
  Script script_;
};

struct Kept {
  std::mutex mutex;
  std::vector<Row> rows;
  std::vector<Event> events;

  SamplerSink sink() {
    return {[this](std::span<const Row> more) {
              std::lock_guard lock(mutex);
              rows.insert(rows.end(), more.begin(), more.end());
            },
            [this](const Event& event) {
              std::lock_guard lock(mutex);
              events.push_back(event);
            }};
  }
  std::vector<std::string> kinds() {
    std::lock_guard lock(mutex);
    std::vector<std::string> out;
    for (const auto& event : events) out.push_back(event.kind);
    return out;
  }
};

}  // namespace ergometer::test
