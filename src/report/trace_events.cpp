#include "report/trace_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/number.hpp"

namespace ergometer {
namespace {

using EventJson = nlohmann::json;

std::string json_quoted(std::string_view text) {
  return EventJson(std::string(text)).dump(-1, ' ', false, EventJson::error_handler_t::replace);
}

// What a channel is called on its track, and the factor to the shown unit; "" for what is not shown.
struct Track {
  std::string name, unit;
  double factor = 1;
};

Track track_of(const Channel& c) {
  const bool energy = c.quantity == Quantity::energy && c.behaviour == Behaviour::counter;
  if (energy) return {c.domain + " power from " + c.column, "W", 1};
  if (c.behaviour == Behaviour::counter) return {};
  switch (c.quantity) {
    case Quantity::power: return {c.domain + " " + c.column, "W", 1};
    case Quantity::ratio: return {c.domain + " " + c.column, "%", 100};
    case Quantity::bytes: return {c.domain + " " + c.column, "MiB", 1.0 / (1 << 20)};
    case Quantity::temperature: return {c.domain + " " + c.column, "Cel", 1};
    case Quantity::frequency: return {c.domain + " " + c.column, "MHz", 1e-6};
    default: return {};
  }
}

// Finds the two things of a trace that matter without building it in memory.
class TorchTraceReader : public nlohmann::json_sax<EventJson> {
 public:
  std::optional<std::int64_t> base_ns;
  bool is_object = false, events = false, has_events = false;
  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t v) override { return number(v); }
  bool number_unsigned(number_unsigned_t v) override { return number(static_cast<std::int64_t>(v)); }
  bool number_float(number_float_t v, const string_t&) override { return number(static_cast<std::int64_t>(v)); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override {
    if (depth_ == 0) is_object = true;
    value();
    ++depth_;
    return true;
  }
  bool key(string_t& k) override {
    if (depth_ == 1) key_ = k;
    return true;
  }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override {
    if (depth_ == 1 && key_ == "traceEvents") events = true;
    ++depth_;
    return true;
  }
  bool end_array() override { return --depth_, true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool value() {
    if (depth_ == 2 && key_ == "traceEvents") has_events = true;
    return true;
  }
  bool number(std::int64_t v) {
    if (depth_ == 1 && key_ == "baseTimeNanoseconds") base_ns = v;
    return value();
  }
  std::size_t depth_ = 0;
  std::string key_;
};

// Behind the '[' of the outermost "traceEvents".
std::optional<std::size_t> events_begin(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const std::size_t begin = i + 1;
    for (++i; i < text.size() && text[i] != '"'; ++i)
      if (text[i] == '\\') ++i;
    if (depth != 1 || text.substr(begin, i - begin) != "traceEvents") continue;
    std::size_t at = i + 1;
    while (at < text.size() && (text[at] == ' ' || text[at] == ':' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
      ++at;
    if (at < text.size() && text[at] == '[') return at + 1;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t TraceClock::since_base_ns(std::int64_t mono) const {
  if (clocks_.empty()) return mono - base_ns_;
  // The offset changes where the wall clock was set or drifts: between two pairs it goes over in a straight line.
  const auto next = std::find_if(clocks_.begin(), clocks_.end(), [&](const ClockPair& p) { return to_ns(p.mono) >= mono; });
  const auto offset = [](const ClockPair& p) { return to_ns(p.wall) - to_ns(p.mono); };
  if (next == clocks_.begin()) return mono + offset(*next) - base_ns_;
  if (next == clocks_.end()) return mono + offset(clocks_.back()) - base_ns_;
  const auto& before = *(next - 1);
  const auto length = static_cast<double>(to_ns(next->mono) - to_ns(before.mono));
  const double part = length > 0 ? static_cast<double>(mono - to_ns(before.mono)) / length : 0;
  const auto between = static_cast<std::int64_t>(part * static_cast<double>(offset(*next) - offset(before)));
  return mono + offset(before) + between - base_ns_;
}

std::string TraceClock::microseconds(std::int64_t mono) const {
  const std::int64_t ns = since_base_ns(mono);
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
}

void append_process(std::string& out, int process, std::string_view name) {
  out += fmt::format("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":{}}}}},\n", process,
                     json_quoted(name));
}

void append_counters(std::string& out, const Trace& trace, int process, const TraceClock& clock, std::size_t begin,
                     std::size_t end) {
  for (std::size_t c = 0; c < trace.columns.size(); ++c) {
    const Channel& channel = trace.info.channels[c];
    const Track track = track_of(channel);
    if (track.name.empty()) continue;
    const std::string name = json_quoted(track.name), unit = json_quoted(track.unit);
    const auto add = [&](std::int64_t t, double value) {
      out += fmt::format("{{\"ph\":\"C\",\"name\":{},\"pid\":{},\"ts\":{},\"args\":{{{}:{}}}}},\n", name, process,
                         clock.microseconds(t), unit, format_double(value));
    };
    const bool differences = channel.behaviour == Behaviour::counter;
    for (std::size_t row = begin; row < end; ++row) {
      const auto value = trace.columns[c][row];
      if (!value) continue;
      if (!differences) {
        add(trace.t_ns[row], *value * track.factor);
        continue;
      }
      if (row == 0) continue;
      const auto before = trace.columns[c][row - 1];
      const double length_s = static_cast<double>(trace.t_ns[row] - trace.t_ns[row - 1]) / 1e9;
      // A wrap or reset tells no power here; the summary corrects it.
      if (before && *value >= *before && length_s > 0) add(trace.t_ns[row - 1], (*value - *before) / length_s);
    }
  }
}

void append_slices(std::string& out, const std::vector<Region>& regions, const TraceClock& clock) {
  for (const auto& r : regions) {
    const auto slash = r.path.rfind('/');
    const std::string_view name = std::string_view(r.path).substr(slash == std::string::npos ? 0 : slash + 1);
    const std::int64_t duration = std::max<std::int64_t>(0, (r.end - r.begin).count());
    out += fmt::format(
        "{{\"ph\":\"X\",\"cat\":\"ergometer\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}.{:03},\"args\":{{"
        "\"path\":{}",
        json_quoted(name), r.pid, r.tid, clock.microseconds(to_ns(r.begin)), duration / 1000, duration % 1000, json_quoted(r.path));
    for (const auto& [key, value] : r.attributes) out += fmt::format(",{}:{}", json_quoted(key), json_quoted(value));
    out += "}},\n";
  }
}

Result<TorchTrace> inspect_torch_trace(std::string_view text, const std::string& source) {
  TorchTraceReader reader;
  if (!EventJson::sax_parse(text.begin(), text.end(), &reader) || !reader.is_object || !reader.events)
    return fail(ErrorCode::corrupt, fmt::format("{} is no trace of the PyTorch profiler: it has no traceEvents", source),
                "name the file that export_chrome_trace wrote, unpacked if it ends with .gz");
  const auto at = events_begin(text);
  if (!at) return fail(ErrorCode::corrupt, fmt::format("{}: its traceEvents is no list", source));
  return TorchTrace{reader.base_ns.value_or(0), *at, reader.has_events};
}

}  // namespace ergometer
