#include "model/sensor_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_object.hpp"

namespace ergometer {
namespace {

using Json = nlohmann::ordered_json;

Json channel_number(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}
Json channel_duration(std::optional<Nanos> d) { return d ? Json(d->count()) : Json(nullptr); }

Json channel_to_json(const Channel& c) {
  return {{"column", c.column},
          {"quantity", to_word(c.quantity)},
          {"unit", c.unit},
          {"behaviour", to_word(c.behaviour)},
          {"domain", c.domain},
          {"device", c.device},
          {"scope", to_word(c.scope)},
          {"method", c.method ? Json(to_word(*c.method)) : Json(nullptr)},
          {"measured", c.measured},
          {"in_total", c.in_total},
          {"range", channel_number(c.range)},
          {"period_ns", channel_duration(c.period)},
          {"window_ns", channel_duration(c.window)},
          {"resolution", channel_number(c.resolution)},
          {"max_power_w", channel_number(c.max_power_w)},
          {"delay_ns", channel_duration(c.delay)},
          {"sampled_share", channel_number(c.sampled_share)},
          {"gain", channel_number(c.gain)},
          {"offset_w", channel_number(c.offset_w)},
          {"gain_tolerance", channel_number(c.gain_tolerance)},
          {"offset_tolerance_w", channel_number(c.offset_tolerance_w)},
          {"profile", c.profile},
          {"note", c.note}};
}

// A word of a fixed set; an unknown one is an error, since its meaning cannot be guessed.
template <class T>
void read_word(JsonObject& object, const char* key, std::optional<T> (*from)(std::string_view), T& out) {
  std::string word;
  object.read(key, word);
  if (word.empty()) return;
  if (const auto value = from(word))
    out = *value;
  else
    object.complain(key, "one of the words in docs/run-format.md");
}

Channel read_channel(JsonObject& o) {
  Channel c;
  o.read("column", c.column);
  read_word(o, "quantity", quantity_from, c.quantity);
  o.read("unit", c.unit);
  read_word(o, "behaviour", behaviour_from, c.behaviour);
  o.read("domain", c.domain);
  o.read("device", c.device);
  read_word(o, "scope", scope_from, c.scope);
  std::string method;
  o.read("method", method);
  if (!method.empty()) {
    c.method = method_from(method);
    if (!c.method) o.complain("method", "one of the words in docs/run-format.md");
  }
  o.read("measured", c.measured);
  o.read("in_total", c.in_total);
  o.read("range", c.range);
  o.read("period_ns", c.period);
  o.read("window_ns", c.window);
  o.read("resolution", c.resolution);
  o.read("max_power_w", c.max_power_w);
  o.read("delay_ns", c.delay);
  o.read("sampled_share", c.sampled_share);
  o.read("gain", c.gain);
  o.read("offset_w", c.offset_w);
  o.read("gain_tolerance", c.gain_tolerance);
  o.read("offset_tolerance_w", c.offset_tolerance_w);
  o.read("profile", c.profile);
  o.read("note", c.note);
  return c;
}

}  // namespace

Json sensor_to_json(const SensorInfo& s) {
  Json channels = Json::array();
  for (const auto& c : s.channels) channels.push_back(channel_to_json(c));
  return {{"name", s.name},
          {"interface", s.interface},
          {"interval_ns", s.interval.count()},
          {"own_time", s.own_time},
          {"note", s.note},
          {"channels", std::move(channels)}};
}

SensorInfo sensor_from_json(JsonObject& o) {
  SensorInfo s;
  o.read("name", s.name);
  o.read("interface", s.interface);
  o.read("interval_ns", s.interval);
  o.read("own_time", s.own_time);
  o.read("note", s.note);
  o.read_objects("channels", [&](JsonObject& c) { s.channels.push_back(read_channel(c)); });
  return s;
}

}  // namespace ergometer
