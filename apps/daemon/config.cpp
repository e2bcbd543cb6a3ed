#include "daemon/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/toml.hpp"
#include "device/registry.hpp"

namespace ergometer::daemon {
namespace {

constexpr Nanos kShortest = std::chrono::milliseconds(1), kLongest = std::chrono::seconds(10);
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
  const bool all_known = std::ranges::all_of(out, [&](const auto& name) { return std::ranges::count(known, name) > 0; });
  if (all_known && !out.empty()) return std::nullopt;
  return fmt::format("a list of interfaces that a daemon can serve: {}", fmt::join(known, ", "));
}

Parsed read_interval(const toml::node& node, Nanos& out) {
  const auto text = node.value_exact<std::string>();
  const auto interval = text ? parse_duration(*text) : std::nullopt;
  if (!interval || *interval < kShortest || *interval > kLongest) return "a duration from \"1ms\" to \"10s\"";
  out = *interval;
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

Parsed read_value(std::string_view key, const toml::node& node, Config& config) {
  if (key == "read-groups") return read_words(node, config.read_groups);
  if (key == "read-users") return read_words(node, config.read_users);
  if (key == "sensors") return read_sensors(node, config.sensors);
  if (key == "interval") return read_interval(node, config.interval);
  if (key == "max-clients") return read_clients(node, config.max_clients);
  return read_address(node, config.metrics);
}

}  // namespace

Result<Config> parse_config(const std::string& text, const std::string& file) {
  static const std::vector<std::string> known{"read-groups", "read-users",  "sensors",
                                              "interval",    "max-clients", "metrics"};
  const auto parsed = toml::parse(text, file);
  if (!parsed)
    return fail(ErrorCode::corrupt,
                fmt::format("{}:{}: {}", file, parsed.error().source().begin.line, parsed.error().description()),
                "the file is TOML: KEY = VALUE");
  Config config;
  for (const auto& [key, node] : parsed.table()) {
    const auto where = fmt::format("{}:{}", file, node.source().begin.line);
    const std::string name(key.str());
    if (std::ranges::count(known, name) == 0) {
      const auto nearest = nearest_name(name, known);
      return fail(ErrorCode::invalid_argument, fmt::format("{}: unknown key \"{}\"", where, name),
                  nearest.empty() ? fmt::format("known are: {}", fmt::join(known, ", "))
                                  : fmt::format("did you mean \"{}\"?", nearest));
    }
    if (const auto wrong = read_value(name, node, config))
      return fail(ErrorCode::invalid_argument, fmt::format("{}: {} must be {}", where, name, *wrong),
                  "see docs/daemon.md");
  }
  return config;
}

Result<Config> load_config(const std::filesystem::path& file, bool required) {
  const auto text = read_file(file);
  if (!text && text.error().code == ErrorCode::not_found && !required) return Config{};
  if (!text) return tl::unexpected(text.error());
  return parse_config(*text, file.string());
}

}  // namespace ergometer::daemon
