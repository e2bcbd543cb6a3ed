#include "device/fake/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "base/text.hpp"
#include "base/toml.hpp"

namespace ergometer::fake {
namespace {

// Reads the keys of one table and remembers the first error, so that the parser reads as a list of keys.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string_view where, std::vector<std::string> known)
      : table_(table), where_(where) {
    for (const auto& [key, value] : table_) {
      const std::string name(key.str());
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const auto nearest = nearest_name(name, known);
      set_error(fmt::format("unknown key \"{}\"", name),
                nearest.empty() ? fmt::format("known are: {}", fmt::join(known, ", "))
                                : fmt::format("did you mean \"{}\"?", nearest));
    }
  }

  void text(const char* key, std::string& out, bool required = false) {
    const auto* node = table_.get(key);
    if (!node) return missing(key, required);
    if (const auto value = node->value<std::string>()) out = *value;
    else set_error(fmt::format("\"{}\" must be a text", key), fmt::format("write {} = \"...\"", key));
  }
  void number(const char* key, double& out, bool required = false) {
    const auto* node = table_.get(key);
    if (!node) return missing(key, required);
    if (const auto value = node->value<double>(); value && std::isfinite(*value)) out = *value;
    else set_error(fmt::format("\"{}\" must be a number", key), fmt::format("write {} = 1.5", key));
  }
  void number(const char* key, std::optional<double>& out) {
    double value = 0;
    number(key, value);
    if (table_.contains(key)) out = value;
  }
  void boolean(const char* key, bool& out) {
    const auto* node = table_.get(key);
    if (!node) return;
    if (const auto value = node->value<bool>()) out = *value;
    else set_error(fmt::format("\"{}\" must be true or false", key), "");
  }
  void duration(const char* key, Nanos& out, bool required = false) {
    std::string value;
    text(key, value, required);
    if (value.empty()) return;
    if (const auto parsed = parse_duration(value)) out = *parsed;
    else set_error(fmt::format("\"{}\" is not a duration: \"{}\"", key, value), "write a number and a unit: 100ms, 5s");
  }
  void numbers(const char* key, std::vector<double>& out) {
    const auto* node = table_.get(key);
    const auto* array = node ? node->as_array() : nullptr;
    if (!array) return set_error(fmt::format("\"{}\" must be a list of numbers", key), fmt::format("{} = [0, 1]", key));
    for (const auto& item : *array) {
      if (const auto value = item.value<double>()) out.push_back(*value);
      else set_error(fmt::format("\"{}\" must be a list of numbers", key), fmt::format("{} = [0, 1]", key));
    }
  }
  void set_error(std::string message, std::string hint) {
    if (!error_) error_ = Error{ErrorCode::invalid_argument, fmt::format("{}: {}", where_, message), std::move(hint)};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void missing(const char* key, bool required) {
    if (required) set_error(fmt::format("\"{}\" is missing", key), fmt::format("add {} = ...", key));
  }
  const toml::table& table_;
  std::string where_;
  std::optional<Error> error_;
};

template <class E>
std::optional<E> word(std::string_view text, std::initializer_list<std::pair<const char*, E>> words,
                      TableReader& reader, const char* key) {
  std::vector<std::string> known;
  for (const auto& [name, value] : words) {
    if (text == name) return value;
    known.emplace_back(name);
  }
  reader.set_error(fmt::format("unknown {} \"{}\"", key, text), fmt::format("one of: {}", fmt::join(known, ", ")));
  return std::nullopt;
}

Result<Shape> parse_shape(const toml::table& table, const std::string& where) {
  TableReader reader(table, where,
                     {"kind", "value_w", "low_w", "high_w", "period_s", "duty", "times_s", "values_w"});
  Shape shape;
  std::string kind;
  reader.text("kind", kind, true);
  using Kind = Shape::Kind;
  if (const auto parsed = word<Kind>(kind,
                                     {{"constant", Kind::constant}, {"square", Kind::square}, {"ramp", Kind::ramp},
                                      {"steps", Kind::steps}},
                                     reader, "kind"))
    shape.kind = *parsed;
  if (shape.kind == Kind::constant) {
    reader.number("value_w", shape.low_w, true);
    shape.high_w = shape.low_w;
  } else if (shape.kind == Kind::steps) {
    reader.numbers("times_s", shape.times_s);
    reader.numbers("values_w", shape.values_w);
    if (shape.times_s.size() != shape.values_w.size() || !std::is_sorted(shape.times_s.begin(), shape.times_s.end()))
      reader.set_error("times_s and values_w must be of one length, times ascending", "times_s = [0, 1]");
  } else {
    reader.number("low_w", shape.low_w, true);
    reader.number("high_w", shape.high_w, true);
    reader.number("period_s", shape.period_s, true);
    reader.number("duty", shape.duty);
    if (shape.period_s <= 0 || shape.duty < 0 || shape.duty > 1)
      reader.set_error("period_s must be above 0 and duty within 0 and 1", "period_s = 1.0, duty = 0.5");
  }
  if (reader.error()) return tl::unexpected(*reader.error());
  return shape;
}

Result<Fault> parse_fault(const toml::table& table, const std::string& where) {
  TableReader reader(table, where, {"kind", "from", "to", "value_w"});
  Fault fault;
  std::string kind;
  reader.text("kind", kind, true);
  using Kind = Fault::Kind;
  if (const auto parsed = word<Kind>(kind,
                                     {{"missing", Kind::missing}, {"lost", Kind::lost}, {"stuck", Kind::stuck},
                                      {"reset", Kind::reset}, {"spike", Kind::spike}, {"block", Kind::block}},
                                     reader, "kind"))
    fault.kind = *parsed;
  reader.duration("from", fault.from, true);
  fault.to = Nanos::max();
  reader.duration("to", fault.to);
  reader.number("value_w", fault.value);
  if (reader.error()) return tl::unexpected(*reader.error());
  return fault;
}

Result<SensorSpec> parse_sensor(const toml::table& table, const std::string& where) {
  TableReader reader(table, where,
                     {"name", "domain", "device", "scope", "counter", "method", "measured", "in_total", "interval",
                      "update_period", "range_j", "max_power_w", "initial_j", "shape", "fault"});
  SensorSpec spec;
  reader.text("name", spec.name, true);
  reader.text("domain", spec.domain, true);
  spec.device = spec.name;
  reader.text("device", spec.device);
  std::string scope = "node", method;
  reader.text("scope", scope);
  if (const auto parsed = scope_from(scope)) spec.scope = *parsed;
  else reader.set_error(fmt::format("unknown scope \"{}\"", scope), "e.g. gpu, package, dram, psys, node");
  reader.boolean("counter", spec.counter);
  spec.method = spec.counter ? Method::counter : Method::integral;
  reader.text("method", method);
  if (!method.empty()) {
    if (const auto parsed = method_from(method)) spec.method = *parsed;
    else reader.set_error(fmt::format("unknown method \"{}\"", method), "samples, counter, integral, average, model");
  }
  reader.boolean("measured", spec.measured);
  reader.boolean("in_total", spec.in_total);
  reader.duration("interval", spec.interval);
  Nanos period{0};
  reader.duration("update_period", period);
  if (period > Nanos{0}) spec.update_period = period;
  reader.number("range_j", spec.range_j);
  reader.number("max_power_w", spec.max_power_w);
  reader.number("initial_j", spec.initial_j);
  if (spec.interval <= Nanos{0}) reader.set_error("interval must be above 0", "interval = \"100ms\"");
  if (spec.name != file_name_of(spec.name)) reader.set_error("name may hold letters, digits, '.', '_', '-'", "");

  if (const auto* shape = table["shape"].as_table()) {
    auto parsed = parse_shape(*shape, where + ".shape");
    if (!parsed) return tl::unexpected(parsed.error());
    spec.shape = std::move(*parsed);
  } else {
    reader.set_error("\"shape\" is missing", "add shape = { kind = \"constant\", value_w = 100 }");
  }
  if (const auto* faults = table["fault"].as_array()) {
    for (const auto& item : *faults) {
      const auto* fault = item.as_table();
      auto parsed = fault ? parse_fault(*fault, where + ".fault")
                          : Result<Fault>(fail(ErrorCode::invalid_argument, where + ": \"fault\" must be tables"));
      if (!parsed) return tl::unexpected(parsed.error());
      spec.faults.push_back(*parsed);
    }
  }
  if (reader.error()) return tl::unexpected(*reader.error());
  return spec;
}

}  // namespace

double Shape::power_w(double t_s) const {
  switch (kind) {
    case Kind::constant: return low_w;
    case Kind::square: return std::fmod(t_s, period_s) < duty * period_s ? high_w : low_w;
    case Kind::ramp: return t_s >= period_s ? high_w : low_w + (high_w - low_w) * t_s / period_s;
    case Kind::steps: {
      const auto after = std::upper_bound(times_s.begin(), times_s.end(), t_s);
      return after == times_s.begin() ? 0.0 : values_w[static_cast<std::size_t>(after - times_s.begin()) - 1];
    }
  }
  return 0;
}

double Shape::energy_j(double t_s) const {
  switch (kind) {
    case Kind::constant: return low_w * t_s;
    case Kind::square: {
      const double periods = std::floor(t_s / period_s);
      const double rest = t_s - periods * period_s;
      const double high_s = std::min(rest, duty * period_s);
      return periods * period_s * (duty * high_w + (1 - duty) * low_w) + high_s * high_w + (rest - high_s) * low_w;
    }
    case Kind::ramp: {
      const double rising = std::min(t_s, period_s);
      return rising * (low_w + power_w(rising)) / 2 + (t_s - rising) * high_w;
    }
    case Kind::steps: {
      double energy = 0;
      for (std::size_t i = 0; i < times_s.size() && times_s[i] < t_s; ++i) {
        const double until = i + 1 < times_s.size() ? std::min(times_s[i + 1], t_s) : t_s;
        energy += values_w[i] * (until - times_s[i]);
      }
      return energy;
    }
  }
  return 0;
}

Result<std::vector<SensorSpec>> parse_scenario(std::string_view toml_text, std::string_view source) {
  const auto parsed = toml::parse(toml_text, std::string(source));
  if (!parsed)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}:{}: {}", source, parsed.error().source().begin.line, parsed.error().description()),
                "see the scenario format in docs/sensors.md");
  const auto& root = parsed.table();
  const auto* sensors = root["sensor"].as_array();
  if (!sensors || sensors->empty() || root.size() != 1)
    return fail(ErrorCode::invalid_argument, fmt::format("{}: a scenario is a list of [[sensor]] tables", source),
                "see the scenario format in docs/sensors.md");
  std::vector<SensorSpec> specs;
  for (const auto& item : *sensors) {
    const auto* table = item.as_table();
    const auto where = fmt::format("{}:{}: sensor", source, item.source().begin.line);
    if (!table) return fail(ErrorCode::invalid_argument, where + " is not a table", "write [[sensor]]");
    auto spec = parse_sensor(*table, where);
    if (!spec) return tl::unexpected(spec.error());
    const bool known = std::any_of(specs.begin(), specs.end(), [&](const auto& s) { return s.name == spec->name; });
    if (known) return fail(ErrorCode::invalid_argument, fmt::format("{} \"{}\" appears twice", where, spec->name));
    specs.push_back(std::move(*spec));
  }
  return specs;
}

}  // namespace ergometer::fake
