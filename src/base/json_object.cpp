#include "base/json_object.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace ergometer {
namespace {

using Parsed = nlohmann::json;

// The member, or null if it is missing or null.
const Parsed* member(const void* object, const char* key) {
  const Parsed& json = *static_cast<const Parsed*>(object);
  const auto it = json.find(key);
  return it == json.end() || it->is_null() ? nullptr : &*it;
}

std::optional<std::int64_t> integer(const Parsed& value, std::int64_t lowest, std::int64_t highest) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(highest))
    return std::nullopt;
  const auto out = value.get<std::int64_t>();
  if (out < lowest || out > highest) return std::nullopt;
  return out;
}

std::optional<std::int64_t> integer(const Parsed& value) {
  return integer(value, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
}

}  // namespace

void JsonObject::complain(const std::string& key, const std::string& expected) {
  if (complaint_.empty()) complaint_ = fmt::format("{}{} must be {}", where_, key, expected);
}

void JsonObject::read(const char* key, std::string& out) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  if (value->is_string())
    out = value->get_ref<const std::string&>();
  else
    complain(key, "a string");
}

void JsonObject::read(const char* key, bool& out) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  if (value->is_boolean())
    out = value->get<bool>();
  else
    complain(key, "true or false");
}

void JsonObject::read(const char* key, std::optional<std::int64_t>& out) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  if (const auto number = integer(*value))
    out = *number;
  else
    complain(key, "a whole number below 2^63");
}

void JsonObject::read(const char* key, std::optional<int>& out) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  const auto number = integer(*value, std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
  if (number)
    out = static_cast<int>(*number);
  else
    complain(key, "a whole number below 2^31");
}

void JsonObject::read(const char* key, int& out) {
  std::optional<int> value;
  read(key, value);
  out = value.value_or(out);
}

void JsonObject::read(const char* key, std::optional<MonoTime>& out) {
  std::optional<std::int64_t> value;
  read(key, value);
  if (value) out = mono_ns(*value);
}

void JsonObject::read(const char* key, std::optional<Nanos>& out) {
  std::optional<std::int64_t> value;
  read(key, value);
  if (value) out = Nanos(*value);
}

void JsonObject::read(const char* key, Nanos& out) {
  std::optional<Nanos> value;
  read(key, value);
  out = value.value_or(out);
}

void JsonObject::read(const char* key, std::optional<double>& out) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  if (value->is_number() && std::isfinite(value->get<double>()))
    out = value->get<double>();
  else
    complain(key, "a number");
}

void JsonObject::read(const char* key, std::vector<std::string>& out) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  if (!value->is_array()) return complain(key, "an array of strings");
  for (const Parsed& entry : *value) {
    if (!entry.is_string()) return complain(key, "an array of strings");
    out.push_back(entry.get_ref<const std::string&>());
  }
}

void JsonObject::read(const char* key, std::vector<int>& out) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  if (!value->is_array()) return complain(key, "an array of whole numbers");
  for (const Parsed& entry : *value) {
    const auto number = integer(entry, std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
    if (!number) return complain(key, "an array of whole numbers below 2^31");
    out.push_back(static_cast<int>(*number));
  }
}

void JsonObject::read(const char* key, std::vector<std::optional<double>>& out) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  if (!value->is_array()) return complain(key, "an array of numbers");
  for (const Parsed& entry : *value) {
    if (entry.is_null()) {
      out.emplace_back();
    } else if (entry.is_number() && std::isfinite(entry.get<double>())) {
      out.emplace_back(entry.get<double>());
    } else {
      return complain(key, "an array of numbers");
    }
  }
}

void JsonObject::read(const char* key, std::map<std::string, std::string>& out) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  if (!value->is_object()) return complain(key, "an object of strings");
  for (const auto& [name, entry] : value->items()) {
    if (!entry.is_string()) return complain(key, "an object of strings");
    out[name] = entry.get_ref<const std::string&>();
  }
}

void JsonObject::read_object(const char* key, const std::function<void(JsonObject&)>& use) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  if (!value->is_object()) return complain(key, "an object");
  JsonObject object(value, where_ + key + ".", complaint_);
  use(object);
}

void JsonObject::read_objects(const char* key, const std::function<void(JsonObject&)>& use) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  if (!value->is_array()) return complain(key, "an array of objects");
  for (std::size_t i = 0; i < value->size(); ++i) {
    const Parsed& entry = (*value)[i];
    if (!entry.is_object()) return complain(key, "an array of objects");
    JsonObject object(&entry, fmt::format("{}{}[{}].", where_, key, i), complaint_);
    use(object);
  }
}

void JsonObject::read_members(const char* key,
                              const std::function<void(const std::string&, JsonObject&)>& use) {
  const Parsed* value = member(json_, key);
  if (!value) return;
  if (!value->is_object()) return complain(key, "an object of objects");
  for (const auto& [name, entry] : value->items()) {
    if (!entry.is_object()) return complain(std::string(key) + "." + name, "an object");
    JsonObject object(&entry, fmt::format("{}{}.{}.", where_, key, name), complaint_);
    use(name, object);
  }
}

Result<void> read_json(std::string_view text, const std::string& source, const char* schema,
                       const std::function<void(JsonObject&)>& use) {
  const std::string expected =
      fmt::format("expected is an object with \"schema\": \"{}\" (docs/run-format.md)", schema);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const Parsed json = Parsed::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_discarded())
    return fail(ErrorCode::corrupt, fmt::format("{} is damaged or cut: it is no JSON", source), expected);
  std::string complaint;
  if (!json.is_object()) return fail(ErrorCode::corrupt, fmt::format("{} holds no JSON object", source), expected);
  JsonObject object(&json, "", complaint);
  std::string found;
  object.read("schema", found);
  if (found != schema) {
    const std::string_view family = std::string_view(schema).substr(0, std::string_view(schema).rfind('/') + 1);
    if (found.starts_with(family))
      return fail(ErrorCode::unsupported,
                  fmt::format("{} is of the version {}; this program reads {}", source, found, schema),
                  "read it with the version of ergometer that wrote it, or a later one");
    return fail(ErrorCode::corrupt,
                found.empty() ? fmt::format("{} has no schema", source)
                              : fmt::format("{} is something else: its schema is \"{}\"", source, found.substr(0, 60)),
                expected);
  }
  use(object);
  if (!complaint.empty())
    return fail(ErrorCode::corrupt, fmt::format("{}: {}", source, complaint),
                "correct the value, or remove it: a missing value is null");
  return {};
}

Result<void> read_json_object(std::string_view text, const std::string& source,
                              const std::function<void(JsonObject&)>& use) {
  const Parsed json = Parsed::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return fail(ErrorCode::corrupt, fmt::format("{} is no JSON object", source));
  std::string complaint;
  JsonObject object(&json, "", complaint);
  use(object);
  if (!complaint.empty()) return fail(ErrorCode::corrupt, fmt::format("{}: {}", source, complaint));
  return {};
}

}  // namespace ergometer
