// Builds small runs in memory: traces from lists of (seconds, value), regions from seconds.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "analysis/summarise.hpp"

namespace ergometer::test {

inline MonoTime at(double s) { return mono_ns(from_seconds(s).count()); }

using Readings = std::vector<std::pair<double, std::optional<double>>>;

inline Channel power(std::string domain, Scope scope, Method method = Method::integral) {
  Channel c;
  c.column = "power_w";
  c.quantity = Quantity::power;
  c.unit = "W";
  c.domain = std::move(domain);
  c.scope = scope;
  c.method = method;
  c.measured = method != Method::model;
  return c;
}

inline Channel counter(std::string domain, Scope scope, std::optional<double> range = {},
                       std::optional<double> max_power_w = {}) {
  Channel c = power(std::move(domain), scope, Method::counter);
  c.column = "energy_j";
  c.quantity = Quantity::energy;
  c.unit = "J";
  c.behaviour = Behaviour::counter;
  c.range = range;
  c.max_power_w = max_power_w;
  return c;
}

inline Channel gauge(std::string column, Quantity quantity, std::string domain, Scope scope) {
  Channel c;
  c.column = std::move(column);
  c.quantity = quantity;
  c.domain = std::move(domain);
  c.scope = scope;
  return c;
}

inline Trace trace(std::string sensor, Channel channel, const Readings& readings, double interval_s = 1.0,
                   bool own_time = false) {
  SensorInfo info;
  info.name = std::move(sensor);
  info.interval = from_seconds(interval_s);
  info.own_time = own_time;
  info.channels = {std::move(channel)};
  Trace t = Trace::empty(std::move(info));
  for (const auto& [s, value] : readings) t.push(Row{at(s), Nanos{0}, {value}});
  return t;
}

// Readings of f at first, first + step, ... up to and including last.
inline Readings readings_of(const std::function<double(double)>& f, double first, double last, double step) {
  Readings out;
  for (int i = 0; first + i * step <= last + 1e-9; ++i) out.push_back({first + i * step, f(first + i * step)});
  return out;
}
inline Readings constant(double value, double first, double last, double step = 1.0) {
  return readings_of([value](double) { return value; }, first, last, step);
}

inline Region region(std::string path, double begin, double end,
                     std::vector<std::pair<std::string, std::string>> attributes = {}) {
  Region r;
  r.path = std::move(path);
  r.begin = at(begin);
  r.end = at(end);
  r.attributes = std::move(attributes);
  return r;
}

inline Manifest run_of(double begin, double end) {
  Manifest m;
  m.state = "complete";
  m.begin = at(begin);
  m.end = at(end);
  m.exit_code = 0;
  return m;
}

inline Summary summarise(const Manifest& manifest, const std::vector<Trace>& traces, std::vector<Region> regions = {},
                         Node node = {}, const std::vector<Event>& events = {}) {
  if (node.name.empty()) node.name = "host";
  Summariser s(manifest);
  s.add_node(node, std::move(regions), events);
  for (const auto& t : traces) s.add_trace(node.name, t);
  return s.finish();
}

inline const DomainEnergy& domain(const std::vector<DomainEnergy>& domains, std::string_view name) {
  for (const auto& d : domains)
    if (d.domain == name) return d;
  static const DomainEnergy none;  // tells itself by its empty name
  return none;
}
inline const DomainEnergy& domain(const Summary& s, std::string_view name) {
  return domain(s.nodes.at(0).domains, name);
}

inline std::size_t count_warnings(const Summary& s, std::string_view code) {
  std::size_t n = 0;
  for (const auto& w : s.warnings) n += w.code == code ? 1 : 0;
  return n;
}
inline std::string warning_text(const Summary& s, std::string_view code) {
  for (const auto& w : s.warnings)
    if (w.code == code) return w.message;
  return {};
}

}  // namespace ergometer::test
