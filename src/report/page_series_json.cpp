#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/number.hpp"
#include "report/page_json.hpp"

namespace ergometer::page {
namespace {

// Five digits: finer than any sensor, half the size of all.
void append_short(std::string& out, double value) { fmt::format_to(std::back_inserter(out), "{:.5g}", value); }

void append_optional(std::string& out, const std::optional<double>& value) {
  if (value && std::isfinite(*value))
    append_short(out, *value);
  else
    out += "null";
}

template <class Values>
void append_list(std::string& out, const Values& values) {
  out += '[';
  for (const auto& value : values) {
    if (out.back() != '[') out += ',';
    append_optional(out, value);
  }
  out += ']';
}

// Times as whole steps since the one before, the first since the origin: a few digits each.
void append_times(std::string& out, const ThinSeries& points, std::int64_t origin_ns) {
  const std::int64_t span = points.t_ns.empty() ? 0 : points.t_ns.back() - points.t_ns.front();
  std::int64_t step = 1'000'000;  // 1 ms; a millionth of a long run
  while (step < span / 1'000'000) step *= 10;
  out += ",\"t_step_s\":";
  append_double(out, static_cast<double>(step) * 1e-9);
  out += ",\"t\":[";
  std::int64_t before = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i > 0) out += ',';
    const std::int64_t ns = points.t_ns[i] - origin_ns;
    const std::int64_t now = (ns + (ns < 0 ? -step / 2 : step / 2)) / step;
    append_int(out, now - before);
    before = now;
  }
  out += ']';
}

}  // namespace

Json factors_json(const PageFactors& factors) {
  const auto as_number = [](const std::string& text) { return json_number(parse_double(text)); };
  return {{"price_per_kwh", as_number(factors.price)},
          {"currency", factors.currency},
          {"carbon_g_per_kwh", as_number(factors.carbon)}};
}

std::string dump(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

void append_series(std::string& out, const PageSeries& series, std::int64_t origin_ns) {
  const Channel& c = series.channel;
  static constexpr const char* kRoles[] = {"power", "gauge", "rate"};
  const Json head{{"node", series.node},
                  {"sensor", series.sensor},
                  {"column", c.column},
                  {"domain", c.domain},
                  {"device", c.device},
                  {"scope", to_word(c.scope)},
                  {"quantity", to_word(c.quantity)},
                  {"method", c.method ? Json(to_word(*c.method)) : Json(nullptr)},
                  {"measured", c.measured},
                  {"role", kRoles[static_cast<int>(series.role)]},
                  {"unit", series.unit},
                  {"readings", series.readings},
                  {"usual_s", json_number(static_cast<double>(series.usual_ns) * 1e-9)},
                  {"mean", json_number(series.mean)},
                  {"lowest", json_number(series.lowest)},
                  {"highest", json_number(series.highest)}};
  out += dump(head);
  out.pop_back();
  append_times(out, series.points, origin_ns);
  out += ",\"v\":";
  append_list(out, series.points.values);
  out += ",\"spread\":{\"low\":";
  append_short(out, series.spread.low);
  out += ",\"high\":";
  append_short(out, series.spread.high);
  out += ",\"share\":";
  append_list(out, series.spread.share);
  out += "},\"parts\":{\"width_ns\":";
  append_int(out, series.parts.width_ns);
  out += ",\"first\":";
  append_int(out, series.parts.first);
  out += ",\"v\":";
  append_list(out, series.parts.values);
  out += "}}";
}

}  // namespace ergometer::page
