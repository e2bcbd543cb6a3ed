#include "device/remote/protocol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "device/remote/json_line.hpp"
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

constexpr std::array<std::pair<Request::Kind, const char*>, 6> kDone{{
    {Request::Kind::list, "list"},
    {Request::Kind::read, "read"},
    {Request::Kind::lease, "lease"},
    {Request::Kind::apply, "apply"},
    {Request::Kind::observe, "observe"},
    {Request::Kind::restore, "restore"},
}};
constexpr std::size_t kMostJobId = 64;

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

// Not braces alone: an object of one pair would become a list.
Json object_of(const char* key, Json value) {
  Json json = Json::object();
  json[key] = std::move(value);
  return json;
}

std::string lease_line(const Request& request) {
  Json controls = Json::array();
  for (const auto& control : request.controls)
    controls.push_back({{"name", control.name},
                        {"backend", control.backend},
                        {"device_id", control.device_id},
                        {"values", control.values}});
  Json json = {{"do", "lease"}, {"holder", request.holder}};
  json["controls"] = std::move(controls);
  return line_of(json);
}

std::string apply_line(const Request& request) {
  Json settings = Json::array();
  for (const auto& setting : request.settings)
    settings.push_back({{"control", setting.control}, {"value", setting.value}});
  Json json = {{"do", "apply"}};
  json["settings"] = std::move(settings);
  return line_of(json);
}

void read_note(JsonObject& o, JobNote& note, bool whole_note) {
  o.read("job", note.job);
  if (!is_job_id(note.job)) o.complain("job", "the id of a job: letters, digits and ._+-, at most 64");
  if (!whole_note) return;
  o.read("uid", note.uid);
  o.read("user", note.user);
  o.read("exclusive", note.exclusive);
  if (!note.uid || *note.uid < 0 || *note.uid >= UINT32_MAX) o.complain("uid", "the number of the job's user");
}

// Requests about jobs are said without "do", as their senders do it: {"job_begin":{...}}, {"job":"12"}.
void read_job_request(JsonObject& o, Request& request) {
  const auto take = [&](const char* key, Request::Kind kind, bool whole_note) {
    o.read_object(key, [&](JsonObject& note) {
      request.kind = kind;
      read_note(note, request.note, whole_note);
    });
  };
  take("job_begin", Request::Kind::job_begin, true);
  take("job_end", Request::Kind::job_end, false);
  if (request.kind != Request::Kind::list) return;
  o.read("job", request.note.job);
  if (request.note.job.empty()) return;
  request.kind = Request::Kind::job;
  if (!is_job_id(request.note.job)) o.complain("job", "the id of a job: letters, digits and ._+-, at most 64");
}

void read_lease(JsonObject& o, Request& request) {
  o.read("holder", request.holder);
  o.read_objects("controls", [&](JsonObject& c) {
    WantedControl control;
    c.read("name", control.name);
    c.read("backend", control.backend);
    c.read("device_id", control.device_id);
    c.read("values", control.values);
    request.controls.push_back(std::move(control));
  });
}

void read_settings(JsonObject& o, Request& request) {
  o.read_objects("settings", [&](JsonObject& s) {
    WantedSetting setting;
    s.read("control", setting.control);
    s.read("value", setting.value);
    request.settings.push_back(std::move(setting));
  });
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

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

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

bool is_job_id(std::string_view text) {
  return !text.empty() && text.size() <= kMostJobId && text.front() != '.' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '+' || c == '-';
  });
}

std::string request_line(const Request& request) {
  switch (request.kind) {
    case Request::Kind::list:
      return line_of({{"do", "list"}});
    case Request::Kind::read:
      return line_of({{"do", "read"},
                      {"sensor", request.sensor},
                      {"after", request.after ? Json(static_cast<std::int64_t>(*request.after)) : Json(nullptr)}});
    case Request::Kind::lease:
      return lease_line(request);
    case Request::Kind::apply:
      return apply_line(request);
    case Request::Kind::observe:
      return line_of({{"do", "observe"}});
    case Request::Kind::restore:
      return line_of({{"do", "restore"}});
    case Request::Kind::job_begin: {
      Json note = {{"job", request.note.job}, {"uid", nullptr}, {"user", request.note.user}};
      if (request.note.uid) note["uid"] = *request.note.uid;
      if (request.note.exclusive) note["exclusive"] = true;
      return line_of(object_of("job_begin", std::move(note)));
    }
    case Request::Kind::job_end:
      return line_of(object_of("job_end", {{"job", request.note.job}}));
    case Request::Kind::job:
      return line_of({{"job", request.note.job}});
  }
  return {};
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
    return fail(
        ErrorCode::unsupported,
        fmt::format("ergometerd {} speaks {}, this program {}", version.substr(0, 40), schema.substr(0, 40), kSchema),
        "install ergometer and ergometerd of the same version, then: sudo systemctl restart ergometerd");
  if (!now) return not_understood();
  return *now;
}

Result<Request> parse_request(std::string_view line) {
  std::string what;
  Request request;
  std::optional<std::int64_t> after;
  bool unknown = false;
  const auto read = read_json_object(line, "the request", [&](JsonObject& o) {
    o.read("do", what);
    o.read("sensor", request.sensor);
    o.read("after", after);
    if (after && *after < 0) o.complain("after", "a cursor");
    if (what.empty()) {
      read_job_request(o, request);
      return;
    }
    const auto known = std::ranges::find(kDone, what, [](const auto& entry) { return std::string_view(entry.second); });
    if (known != kDone.end()) request.kind = known->first;
    if (known == kDone.end() || (request.kind == Request::Kind::read && request.sensor.empty())) unknown = true;
    if (request.kind == Request::Kind::lease) read_lease(o, request);
    if (request.kind == Request::Kind::apply) read_settings(o, request);
  });
  if (!read) return tl::unexpected(Error{ErrorCode::corrupt, read.error().message, "see docs/daemon-protocol.md"});
  if (after) request.after = static_cast<std::uint64_t>(*after);
  if (unknown || (what.empty() && request.kind == Request::Kind::list))
    return fail(ErrorCode::invalid_argument, "the request asks for nothing that is known",
                "see docs/daemon-protocol.md");
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
