#include "daemon/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/toml.hpp"
#include "daemon/control_rules.hpp"
#include "device/registry.hpp"

namespace ergometer::daemon {
namespace {

constexpr Nanos kShortest = std::chrono::milliseconds(1), kLongest = std::chrono::seconds(10);
constexpr std::uint64_t kMostDays = 36500;
// What is of a process or of one run, and what needs an account, is nothing that a daemon could read for others.
constexpr std::array<std::string_view, 9> kNotServed{"procfs", "model",   "remote", "replay",       "slurm",
                                                     "fake",   "redfish", "meter",  "meter-command"};

using Parsed = std::optional<std::string>;  // what is wrong

std::optional<std::vector<std::string>> words_of(const toml::node& node) {
  const auto* list = node.as_array();
  if (!list) return std::nullopt;
  std::vector<std::string> words;
  for (const auto& item : *list) {
    const auto word = item.value_exact<std::string>();
    if (!word || word->empty()) return std::nullopt;
    words.push_back(*word);
  }
  return words;
}

Parsed read_words(const toml::node& node, std::vector<std::string>& out) {
  auto words = words_of(node);
  if (!words) return "a list of names in quotes: [\"a\", \"b\"]";
  out = std::move(*words);
  return std::nullopt;
}

Parsed read_sensors(const toml::node& node, std::vector<std::string>& out) {
  if (auto wrong = read_words(node, out)) return wrong;
  auto known = known_interfaces();
  std::erase_if(known, [](const std::string& name) { return std::ranges::count(kNotServed, name) > 0; });
  const bool all_known =
      std::ranges::all_of(out, [&](const auto& name) { return std::ranges::count(known, name) > 0; });
  if (all_known && !out.empty()) return std::nullopt;
  return fmt::format("a list of interfaces that a daemon can serve: {}", fmt::join(known, ", "));
}

Parsed read_time(const toml::node& node, Nanos shortest, Nanos longest, const char* range, Nanos& out) {
  const auto text = node.value_exact<std::string>();
  const auto time = text ? parse_duration(*text) : std::nullopt;
  if (!time || *time < shortest || *time > longest) return fmt::format("a duration from {}", range);
  out = *time;
  return std::nullopt;
}

// Days, which are no unit of a measurement: "90d".
Parsed read_keep(const toml::node& node, Nanos& out) {
  const auto text = node.value_exact<std::string>();
  const auto days =
      text && text->ends_with('d') ? parse_uint(std::string_view(*text).substr(0, text->size() - 1)) : std::nullopt;
  if (!days || *days < 1 || *days > kMostDays) return fmt::format("a number of days from \"1d\" to \"{}d\"", kMostDays);
  out = std::chrono::hours(24) * static_cast<int>(*days);
  return std::nullopt;
}

Parsed read_flag(const toml::node& node, bool& out) {
  const auto value = node.value_exact<bool>();
  if (!value) return "true or false";
  out = *value;
  return std::nullopt;
}

Parsed read_path(const toml::node& node, std::filesystem::path& out) {
  const auto text = node.value_exact<std::string>();
  if (!text || !text->starts_with('/')) return "a folder's path from the root: \"/var/lib/ergometer/jobs\"";
  out = *text;
  return std::nullopt;
}

Parsed read_controls(const toml::node& node, std::vector<std::string>& out) {
  if (auto wrong = read_words(node, out)) return wrong;
  for (const auto& text : out)
    if (const auto allowed = parse_allowed(text); !allowed)
      return fmt::format("a list of controls ({}; {})", allowed.error().message, allowed.error().hint);
  return std::nullopt;
}

Parsed read_clients(const toml::node& node, int& out) {
  const auto number = node.value_exact<std::int64_t>();
  if (!number || *number < 1 || *number > 4096) return "a whole number from 1 to 4096";
  out = static_cast<int>(*number);
  return std::nullopt;
}

Parsed read_address(const toml::node& node, std::string& out) {
  const auto text = node.value_exact<std::string>();
  const auto colon = text ? text->rfind(':') : std::string::npos;
  const auto port = colon == std::string::npos ? std::nullopt : parse_uint(text->substr(colon + 1));
  if (!port || *port > 65535 || colon == 0) return "an address with a port: \"127.0.0.1:9788\" or \"[::1]:9788\"";
  out = *text;
  return std::nullopt;
}

using Reader = Parsed (*)(const toml::node&, Config&);
const std::vector<std::pair<std::string, Reader>>& readers() {
  static const std::vector<std::pair<std::string, Reader>> all{
      {"read-groups", [](const toml::node& node, Config& c) { return read_words(node, c.read_groups); }},
      {"read-users", [](const toml::node& node, Config& c) { return read_words(node, c.read_users); }},
      {"sensors", [](const toml::node& node, Config& c) { return read_sensors(node, c.sensors); }},
      {"interval", [](const toml::node& node,
                      Config& c) { return read_time(node, kShortest, kLongest, "\"1ms\" to \"10s\"", c.interval); }},
      {"max-clients", [](const toml::node& node, Config& c) { return read_clients(node, c.max_clients); }},
      {"metrics", [](const toml::node& node, Config& c) { return read_address(node, c.metrics); }},
      {"control-groups", [](const toml::node& node, Config& c) { return read_words(node, c.control_groups); }},
      {"control-users", [](const toml::node& node, Config& c) { return read_words(node, c.control_users); }},
      {"control-jobs", [](const toml::node& node, Config& c) { return read_flag(node, c.control_jobs); }},
      {"controls", [](const toml::node& node, Config& c) { return read_controls(node, c.controls); }},
      {"jobs", [](const toml::node& node, Config& c) { return read_flag(node, c.jobs); }},
      {"job-interval",
       [](const toml::node& node, Config& c) {
         return read_time(node, std::chrono::seconds(1), std::chrono::hours(1), "\"1s\" to \"1h\"", c.job_interval);
       }},
      {"job-records", [](const toml::node& node, Config& c) { return read_path(node, c.job_records); }},
      {"job-keep", [](const toml::node& node, Config& c) { return read_keep(node, c.job_keep); }},
  };
  return all;
}

}  // namespace

Result<Config> parse_config(const std::string& text, const std::string& file) {
  std::vector<std::string> known;
  for (const auto& reader : readers()) known.push_back(reader.first);
  const auto parsed = toml::parse(text, file);
  if (!parsed)
    return fail(ErrorCode::corrupt,
                fmt::format("{}:{}: {}", file, parsed.error().source().begin.line, parsed.error().description()),
                "the file is TOML: KEY = VALUE");
  Config config;
  for (const auto& [key, node] : parsed.table()) {
    const auto where = fmt::format("{}:{}", file, node.source().begin.line);
    const std::string name(key.str());
    const auto reader = std::ranges::find(readers(), name, [](const auto& entry) { return entry.first; });
    if (reader == readers().end()) {
      const auto nearest = nearest_name(name, known);
      return fail(ErrorCode::invalid_argument, fmt::format("{}: unknown key \"{}\"", where, name),
                  nearest.empty() ? fmt::format("known are: {}", fmt::join(known, ", "))
                                  : fmt::format("did you mean \"{}\"?", nearest));
    }
    if (const auto wrong = reader->second(node, config))
      return fail(ErrorCode::invalid_argument, fmt::format("{}: {} must be {}", where, name, *wrong),
                  "see docs/daemon.md");
  }
  if (config.control_jobs && !config.jobs)
    return fail(ErrorCode::invalid_argument, fmt::format("{}: control-jobs needs jobs = true", file),
                "only from the resource manager's word the daemon knows whose job has the node to itself");
  return config;
}

Result<Config> load_config(const std::filesystem::path& file, bool required) {
  const auto text = read_file(file);
  if (!text && text.error().code == ErrorCode::not_found && !required) return Config{};
  if (!text) return tl::unexpected(text.error());
  return parse_config(*text, file.string());
}

}  // namespace ergometer::daemon
