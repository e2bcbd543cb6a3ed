#include "device/remote/protocol.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_object.hpp"
#include "model/sensor_json.hpp"

namespace ergometer::remote {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<ErrorCode, const char*>, 11> kCodes{{
    {ErrorCode::invalid_argument, "invalid_argument"},
    {ErrorCode::not_found, "not_found"},
    {ErrorCode::permission_denied, "permission_denied"},
    {ErrorCode::unsupported, "unsupported"},
    {ErrorCode::unavailable, "unavailable"},
    {ErrorCode::lost, "lost"},
    {ErrorCode::timeout, "timeout"},
    {ErrorCode::corrupt, "corrupt"},
    {ErrorCode::io, "io"},
    {ErrorCode::exists, "exists"},
    {ErrorCode::internal, "internal"},
}};

std::string word_of(ErrorCode code) {
  for (const auto& [known, word] : kCodes)
    if (known == code) return word;
  return "internal";
}

ErrorCode code_of(std::string_view word) {
  for (const auto& [code, known] : kCodes)
    if (known == word) return code;
  return ErrorCode::internal;
}

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

// The error in a reply, if it is one.
void read_error(JsonObject& o, std::optional<Error>& out) {
  o.read_object("error", [&](JsonObject& e) {
    std::string code;
    Error error;
    e.read("code", code);
    e.read("message", error.message);
    e.read("hint", error.hint);
    error.code = code_of(code);
    out = std::move(error);
  });
}

tl::unexpected<Error> not_understood() {
  return fail(ErrorCode::corrupt, "the daemon's answer cannot be understood",
              "ergometer and ergometerd should be of the same version");
}

std::optional<std::int64_t> whole(const Json& value) {
  // An unsigned number above the signed ones would come out negative.
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX))
    return std::nullopt;
  return value.get<std::int64_t>();
}

std::optional<std::uint64_t> natural(const Json& object, const char* key) {
  const auto it = object.find(key);
  const auto value = it == object.end() ? std::nullopt : whole(*it);
  if (!value || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<Row> row_from(const Json& json, std::size_t columns) {
  if (!json.is_array() || json.size() != columns + 1) return std::nullopt;
  const auto t = whole(json.front());
  if (!t) return std::nullopt;
  Row row{mono_ns(*t), Nanos{0}, {}};
  for (std::size_t i = 1; i < json.size(); ++i) {
    if (!json[i].is_null() && !json[i].is_number()) return std::nullopt;
    row.values.push_back(json[i].is_null() ? std::nullopt : std::optional(json[i].get<double>()));
  }
  return row;
}

}  // namespace

std::string greeting_line(const std::string& version, MonoTime now) {
  return line_of({{"schema", kSchema}, {"version", version}, {"now_ns", to_ns(now)}});
}

std::string request_line(const Request& request) {
  if (request.kind == Request::Kind::list) return "{\"do\":\"list\"}\n";
  return line_of({{"do", "read"},
                  {"sensor", request.sensor},
                  {"after", request.after ? Json(static_cast<std::int64_t>(*request.after)) : Json(nullptr)}});
}

std::string sensors_line(const std::vector<SensorInfo>& sensors) {
  Json list = Json::array();
  for (const auto& sensor : sensors) list.push_back(sensor_to_json(sensor));
  Json json = Json::object();
  json["sensors"] = std::move(list);
  return line_of(json);
}

std::string batch_line(const Batch& batch) {
  Json rows = Json::array(), events = Json::array();
  for (const auto& row : batch.rows) {
    Json values = Json::array({to_ns(row.t)});
    for (const auto& value : row.values) values.push_back(value ? Json(*value) : Json(nullptr));
    rows.push_back(std::move(values));
  }
  for (const auto& event : batch.events) events.push_back({{"kind", event.kind}, {"detail", event.detail}});
  return line_of({{"cursor", static_cast<std::int64_t>(batch.cursor)},
                  {"lost", static_cast<std::int64_t>(batch.lost)},
                  {"more", batch.more},
                  {"rows", std::move(rows)},
                  {"events", std::move(events)}});
}

std::string error_line(const Error& error) {
  Json json = Json::object();
  json["error"] = {{"code", word_of(error.code)}, {"message", error.message}, {"hint", error.hint}};
  return line_of(json);
}

Result<MonoTime> parse_greeting(std::string_view line) {
  std::string schema, version;
  std::optional<MonoTime> now;
  std::optional<Error> refused;
  const auto read = read_json_object(line, "the daemon's greeting", [&](JsonObject& o) {
    read_error(o, refused);
    o.read("schema", schema);
    o.read("version", version);
    o.read("now_ns", now);
  });
  if (read && refused) return tl::unexpected(*refused);
  if (!read || !schema.starts_with("ergometer.daemon/"))
    return fail(ErrorCode::unsupported, "what answers is no ergometerd",
                "see which program holds the socket: sudo ss -lxp");
  if (schema != kSchema)
    return fail(ErrorCode::unsupported,
                fmt::format("ergometerd {} speaks {}, this program {}", version.substr(0, 40), schema.substr(0, 40),
                            kSchema),
                "install ergometer and ergometerd of the same version, then: sudo systemctl restart ergometerd");
  if (!now) return not_understood();
  return *now;
}

Result<Request> parse_request(std::string_view line) {
  std::string what;
  Request request;
  std::optional<std::int64_t> after;
  const auto read = read_json_object(line, "the request", [&](JsonObject& o) {
    o.read("do", what);
    o.read("sensor", request.sensor);
    o.read("after", after);
    if (after && *after < 0) o.complain("after", "a cursor");
  });
  if (!read) return tl::unexpected(Error{ErrorCode::corrupt, read.error().message, "see docs/daemon-protocol.md"});
  if (after) request.after = static_cast<std::uint64_t>(*after);
  if (what == "list") return request;
  if (what != "read" || request.sensor.empty())
    return fail(ErrorCode::invalid_argument, "the request asks for nothing that is known",
                "see docs/daemon-protocol.md");
  request.kind = Request::Kind::read;
  return request;
}

Result<std::vector<SensorInfo>> parse_sensors(std::string_view line) {
  std::vector<SensorInfo> sensors;
  std::optional<Error> refused;
  const auto read = read_json_object(line, "the daemon's list", [&](JsonObject& o) {
    read_error(o, refused);
    o.read_objects("sensors", [&](JsonObject& s) { sensors.push_back(sensor_from_json(s)); });
  });
  if (!read) return not_understood();
  if (refused) return tl::unexpected(*refused);
  return sensors;
}

Result<Batch> parse_batch(std::string_view line, std::size_t columns) {
  const Json json = Json::parse(line.begin(), line.end(), nullptr, false);
  if (!json.is_object()) return not_understood();
  if (json.contains("error")) {
    std::optional<Error> refused;
    if (!read_json_object(line, "the daemon's answer", [&](JsonObject& o) { read_error(o, refused); }) || !refused)
      return not_understood();
    return tl::unexpected(*refused);
  }
  const auto cursor = natural(json, "cursor"), lost = natural(json, "lost");
  const auto rows = json.find("rows"), events = json.find("events"), more = json.find("more");
  if (!cursor || !lost || rows == json.end() || !rows->is_array() || events == json.end() || !events->is_array() ||
      more == json.end() || !more->is_boolean())
    return not_understood();
  Batch batch{*cursor, *lost, more->get<bool>(), {}, {}};
  for (const auto& entry : *rows) {
    auto row = row_from(entry, columns);
    if (!row) return not_understood();
    batch.rows.push_back(std::move(*row));
  }
  for (const auto& entry : *events) {
    if (!entry.is_object() || !entry.contains("kind") || !entry["kind"].is_string() || !entry.contains("detail") ||
        !entry["detail"].is_string())
      return not_understood();
    batch.events.push_back({entry["kind"].get<std::string>(), entry["detail"].get<std::string>()});
  }
  return batch;
}

}  // namespace ergometer::remote
