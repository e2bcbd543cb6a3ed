// JsonObject: reads the members of a JSON object with their kinds checked; the first complaint is kept and becomes the
// text's error. Used for run.json, node.json, a study's table.json and what the daemon says. The JSON library stays out
// of this header.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ergometer {

class JsonObject {
 public:
  // Each read leaves `out` as it is if the key is missing or null, and complains about a value of another kind.
  void read(const char* key, std::string& out);
  void read(const char* key, bool& out);
  void read(const char* key, int& out);
  void read(const char* key, Nanos& out);
  void read(const char* key, std::optional<double>& out);
  void read(const char* key, std::optional<int>& out);
  void read(const char* key, std::optional<std::int64_t>& out);
  void read(const char* key, std::optional<MonoTime>& out);
  void read(const char* key, std::optional<Nanos>& out);
  void read(const char* key, std::vector<std::string>& out);
  void read(const char* key, std::vector<int>& out);
  void read(const char* key, std::vector<std::optional<double>>& out);  // null entries are unset
  void read(const char* key, std::map<std::string, std::string>& out);
  void read_object(const char* key, const std::function<void(JsonObject&)>& use);
  void read_objects(const char* key, const std::function<void(JsonObject&)>& use);
  // Each member of the object at `key`, itself an object, with its name.
  void read_members(const char* key, const std::function<void(const std::string&, JsonObject&)>& use);
  void complain(const std::string& key, const std::string& expected);

 private:
  friend Result<void> read_json(std::string_view, const std::string&, const char*,
                                const std::function<void(JsonObject&)>&);
  friend Result<void> read_json_object(std::string_view, const std::string&,
                                       const std::function<void(JsonObject&)>&);
  JsonObject(const void* json, std::string where, std::string& complaint)
      : json_(json), where_(std::move(where)), complaint_(complaint) {}
  const void* json_;        // the library's object
  std::string where_;       // "gpus[1]."
  std::string& complaint_;  // "" while all is well
};

// Parses `text` and hands its object to `use`. Errors name `source`: no JSON, no object, another schema than `schema`
// ("ergometer.run/1"; another number after the slash is a version that this program does not know), or what a read
// complained about.
[[nodiscard]] Result<void> read_json(std::string_view text, const std::string& source, const char* schema,
                                     const std::function<void(JsonObject&)>& use);
// The same for an object without a schema of its own, a part of something that has one.
[[nodiscard]] Result<void> read_json_object(std::string_view text, const std::string& source,
                                            const std::function<void(JsonObject&)>& use);

}  // namespace ergometer
