#include "device/remote/control_protocol.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "device/remote/json_line.hpp"

namespace ergometer::remote {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<RestoreOutcome, std::string_view>, 6> kOutcomes{{
    {RestoreOutcome::untouched, "untouched"},
    {RestoreOutcome::restored, "restored"},
    {RestoreOutcome::reset, "reset"},
    {RestoreOutcome::foreign, "foreign"},
    {RestoreOutcome::restarted, "restarted"},
    {RestoreOutcome::failed, "failed"},
}};

std::string_view word_of(RestoreOutcome outcome) {
  return std::ranges::find(kOutcomes, outcome, [](const auto& known) { return known.first; })->second;
}

// An outcome that is not known was none that can be relied on.
RestoreOutcome outcome_of(std::string_view word) {
  const auto known = std::ranges::find(kOutcomes, word, [](const auto& entry) { return entry.second; });
  return known == kOutcomes.end() ? RestoreOutcome::failed : known->first;
}

// Reads an answer whose list stands at `key`.
Result<void> read_answer(std::string_view line, const char* key, const std::function<void(JsonObject&)>& use) {
  std::optional<Error> refused;
  const auto read = read_json_object(line, "the daemon's answer", [&](JsonObject& o) {
    read_error(o, refused);
    use(o);
  });
  if (read && refused) return tl::unexpected(*refused);
  const Json json = Json::parse(line.begin(), line.end(), nullptr, false);
  if (!read || !json.contains(key)) return not_understood();
  return {};
}

Json list_of(const char* key, Json list) {
  Json json = Json::object();
  json[key] = std::move(list);
  return json;
}

}  // namespace

std::string lease_answer_line(int controls) { return line_of({{"leased", controls}}); }

std::string applied_line(const std::vector<AppliedSetting>& applied) {
  Json list = Json::array();
  for (const auto& one : applied)
    list.push_back({{"control", one.control},
                    {"requested", one.requested},
                    {"effective", one.effective ? Json(*one.effective) : Json(nullptr)},
                    {"in_effect", one.in_effect}});
  return line_of(list_of("applied", std::move(list)));
}

std::string restored_line(const std::vector<RestoredControl>& restored) {
  Json list = Json::array();
  for (const auto& one : restored)
    list.push_back({{"control", one.control},
                    {"name", one.what.name},
                    {"outcome", word_of(one.what.outcome)},
                    {"text", one.what.text},
                    {"hint", one.what.hint}});
  return line_of(list_of("restored", std::move(list)));
}

Result<int> parse_lease_answer(std::string_view line) {
  int controls = -1;
  const auto read = read_answer(line, "leased", [&](JsonObject& o) { o.read("leased", controls); });
  if (!read) return tl::unexpected(read.error());
  if (controls < 0) return not_understood();
  return controls;
}

Result<std::vector<AppliedSetting>> parse_applied(std::string_view line) {
  std::vector<AppliedSetting> applied;
  const auto read = read_answer(line, "applied", [&](JsonObject& o) {
    o.read_objects("applied", [&](JsonObject& a) {
      AppliedSetting one;
      std::string effective;
      a.read("control", one.control);
      a.read("requested", one.requested);
      a.read("effective", effective);
      a.read("in_effect", one.in_effect);
      if (!effective.empty()) one.effective = std::move(effective);
      applied.push_back(std::move(one));
    });
  });
  if (!read) return tl::unexpected(read.error());
  return applied;
}

Result<std::vector<RestoredControl>> parse_restored(std::string_view line) {
  std::vector<RestoredControl> restored;
  const auto read = read_answer(line, "restored", [&](JsonObject& o) {
    o.read_objects("restored", [&](JsonObject& r) {
      RestoredControl one;
      std::string outcome;
      r.read("control", one.control);
      r.read("name", one.what.name);
      r.read("outcome", outcome);
      r.read("text", one.what.text);
      r.read("hint", one.what.hint);
      one.what.outcome = outcome_of(outcome);
      restored.push_back(std::move(one));
    });
  });
  if (!read) return tl::unexpected(read.error());
  return restored;
}

}  // namespace ergometer::remote
