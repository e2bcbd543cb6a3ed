#include "device/profiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/toml.hpp"
#include "device/built_in_profiles.hpp"

namespace ergometer {
namespace {

struct ValueField {
  const char* key;
  std::optional<SourcedValue> ChannelProfile::*value;
  double least, most;
};
constexpr double kDayMs = 86'400'000;
constexpr ValueField kValues[] = {{"period_ms", &ChannelProfile::period_ms, 1e-3, kDayMs},
                                  {"window_ms", &ChannelProfile::window_ms, 0, kDayMs},
                                  {"delay_ms", &ChannelProfile::delay_ms, 0, kDayMs},
                                  {"sampled_share", &ChannelProfile::sampled_share, 1e-6, 1},
                                  {"resolution", &ChannelProfile::resolution, 0, 1e9},
                                  {"gain", &ChannelProfile::gain, 1e-6, 1e6},
                                  {"gain_tolerance", &ChannelProfile::gain_tolerance, 0, 10},
                                  {"offset_w", &ChannelProfile::offset_w, -1e6, 1e6},
                                  {"offset_tolerance_w", &ChannelProfile::offset_tolerance_w, 0, 1e6}};

// Whole words: "A100" is in "NVIDIA A100-SXM4", not in "RTX A1000".
bool has_words(const std::string& text, const std::string& words) {
  const auto hay = lower(text), needle = lower(words);
  const auto word = [&](std::size_t i) { return i < hay.size() && std::isalnum(static_cast<unsigned char>(hay[i])); };
  for (auto at = hay.find(needle); at != std::string::npos; at = hay.find(needle, at + 1))
    if (!needle.empty() && (at == 0 || !word(at - 1)) && !word(at + needle.size())) return true;
  return false;
}

bool fits_pattern(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    for (std::size_t i = 0; i <= text.size(); ++i)
      if (fits_pattern(text.substr(i), pattern.substr(1))) return true;
    return false;
  }
  return !text.empty() && text.front() == pattern.front() && fits_pattern(text.substr(1), pattern.substr(1));
}

template <class T>
bool listed(const std::vector<T>& list, const T& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

bool fits(const ChannelProfile& p, const Channel& c) {
  const bool column = p.columns.empty() || std::any_of(p.columns.begin(), p.columns.end(), [&](const auto& pattern) {
                        return fits_pattern(c.column, pattern);
                      });
  return column && c.method && listed(p.methods, *c.method) && listed(p.scopes, c.scope) &&
         (!p.quantity || *p.quantity == c.quantity);
}

bool fits(const Profile& p, const Node& node, const std::string& interface, const Channel& c) {
  if (!listed(p.interfaces, interface) || !listed(p.devices, c.device)) return false;
  const auto any = [](const std::vector<std::string>& words, const std::string& name) {
    return std::any_of(words.begin(), words.end(), [&](const auto& w) { return has_words(name, w); });
  };
  if (!p.cpus.empty() && !any(p.cpus, node.cpu.model)) return false;
  if (p.gpus.empty()) return true;
  const auto gpu = std::find_if(node.gpus.begin(), node.gpus.end(), [&](const GpuInfo& g) {
    return (!g.uuid.empty() && g.uuid == c.device) || fmt::format("gpu/{}", g.index) == c.domain;
  });
  return gpu != node.gpus.end() && any(p.gpus, gpu->name);
}

// How close a profile is to one piece of hardware; the closest come first.
int distance(const Profile& p) {
  if (!p.devices.empty()) return 0;
  return p.gpus.empty() && p.cpus.empty() ? 2 : 1;
}

void sort_by_distance(std::vector<Profile>& profiles) {
  std::stable_sort(profiles.begin(), profiles.end(),
                   [](const Profile& a, const Profile& b) { return distance(a) < distance(b); });
}

bool set(std::optional<double>& field, const std::optional<SourcedValue>& value) {
  if (field || !value) return false;
  field = value->value;
  return true;
}
bool set(std::optional<Nanos>& field, const std::optional<SourcedValue>& value) {
  if (field || !value) return false;
  field = from_seconds(value->value * 1e-3);
  return true;
}

bool complete(Channel& c, const ChannelProfile& p) {
  bool changed = set(c.period, p.period_ms);
  changed |= set(c.window, p.window_ms);
  changed |= set(c.delay, p.delay_ms);
  changed |= set(c.sampled_share, p.sampled_share);
  changed |= set(c.resolution, p.resolution);
  changed |= set(c.gain, p.gain);
  changed |= set(c.gain_tolerance, p.gain_tolerance);
  changed |= set(c.offset_w, p.offset_w);
  changed |= set(c.offset_tolerance_w, p.offset_tolerance_w);
  return changed;
}

// Reads one table; the first error stays.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string where) : table_(table), where_(std::move(where)) {}

  void known(const std::vector<std::string>& keys) {
    for (const auto& [key, node] : table_)
      if (const std::string name(key.str()); std::find(keys.begin(), keys.end(), name) == keys.end())
        problem(fmt::format("unknown key \"{}\"", name), fmt::format("did you mean \"{}\"?", nearest_name(name, keys)));
  }
  std::vector<std::string> words(const char* key) {
    std::vector<std::string> out;
    const auto node = table_[key];
    if (!node) return out;
    if (const auto* array = node.as_array()) {
      for (const auto& item : *array) {
        if (const auto text = item.value<std::string>(); text && !text->empty())
          out.push_back(*text);
        else
          problem(fmt::format("{} must be a list of words", key), fmt::format("{} = [\"NAME\"]", key));
      }
    }
    if (out.empty()) problem(fmt::format("{} must be a list of words", key), fmt::format("{} = [\"NAME\"]", key));
    return out;
  }
  template <class T>
  std::vector<T> meanings(const char* key, std::optional<T> (*from)(std::string_view)) {
    std::vector<T> out;
    for (const auto& word : words(key)) {
      if (const auto meaning = from(word))
        out.push_back(*meaning);
      else
        problem(fmt::format("{}: unknown word \"{}\"", key, word), "see docs/run-format.md");
    }
    return out;
  }
  std::optional<SourcedValue> value(const ValueField& field) {
    const auto node = table_[field.key];
    if (!node) return std::nullopt;
    const auto* table = node.as_table();
    const auto number = table ? (*table)["value"].value<double>() : std::nullopt;
    const auto source = table ? (*table)["source"].value<std::string>() : std::nullopt;
    if (!number || !std::isfinite(*number) || !source || source->empty()) {
      problem(fmt::format("{} needs a value and its source", field.key),
              fmt::format("{} = {{ value = 1, source = \"where it is from\" }}", field.key));
      return std::nullopt;
    }
    if (*number < field.least || *number > field.most)
      problem(fmt::format("{} is {}, outside of {} to {}", field.key, *number, field.least, field.most), "");
    return SourcedValue{*number, *source};
  }
  void problem(std::string message, std::string hint) {
    if (!error_) error_ = Error{ErrorCode::corrupt, where_ + ": " + std::move(message), std::move(hint)};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  const toml::table& table_;
  std::string where_;
  std::optional<Error> error_;
};

Result<ChannelProfile> parse_channel(const toml::table& table, const std::string& where) {
  TableReader reader(table, where);
  std::vector<std::string> keys{"columns", "methods", "scopes", "quantity"};
  for (const auto& field : kValues) keys.emplace_back(field.key);
  reader.known(keys);
  ChannelProfile out;
  out.columns = reader.words("columns");
  out.methods = reader.meanings<Method>("methods", method_from);
  out.scopes = reader.meanings<Scope>("scopes", scope_from);
  if (const auto node = table["quantity"]) {
    out.quantity = quantity_from(node.value_or(std::string{}));
    if (!out.quantity) reader.problem("quantity must be \"power\" or \"energy\"", "");
  }
  for (const auto& field : kValues) out.*field.value = reader.value(field);
  if (reader.error()) return tl::unexpected(*reader.error());
  return out;
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

void write_words(std::string& out, const char* key, const std::vector<std::string>& words) {
  if (words.empty()) return;
  out += fmt::format("{} = [", key);
  for (std::size_t i = 0; i < words.size(); ++i) out += (i ? ", " : "") + toml_string(words[i]);
  out += "]\n";
}

}  // namespace

Result<Profile> parse_profile(std::string_view toml, const std::string& where) {
  const auto parsed = toml::parse(toml, where);
  if (!parsed)
    return fail(ErrorCode::corrupt,
                fmt::format("{}:{}: {}", where, parsed.error().source().begin.line, parsed.error().description()));
  TableReader reader(parsed.table(), where);
  reader.known({"name", "devices", "gpus", "cpus", "interfaces", "channel"});
  Profile out;
  out.name = parsed.table()["name"].value_or(std::string{});
  if (out.name.empty()) reader.problem("a profile needs a name", "name = \"NAME\"");
  out.devices = reader.words("devices");
  out.gpus = reader.words("gpus");
  out.cpus = reader.words("cpus");
  out.interfaces = reader.words("interfaces");
  if (out.devices.empty() && out.gpus.empty() && out.cpus.empty() && out.interfaces.empty())
    reader.problem("nothing says which devices the profile is for", "give devices, gpus, cpus or interfaces");
  const auto* channels = parsed.table()["channel"].as_array();
  if (!channels || channels->empty()) reader.problem("there is no [[channel]]", "");
  if (reader.error()) return tl::unexpected(*reader.error());
  for (std::size_t i = 0; i < channels->size(); ++i) {
    const auto place = fmt::format("{}: channel {}", where, i + 1);
    const auto* table = channels->get(i)->as_table();
    if (!table) return fail(ErrorCode::corrupt, place + ": not a table", "write [[channel]]");
    auto channel = parse_channel(*table, place);
    if (!channel) return tl::unexpected(channel.error());
    out.channels.push_back(std::move(*channel));
  }
  return out;
}

std::string to_toml(const Profile& profile) {
  std::string out = fmt::format("name = {}\n", toml_string(profile.name));
  write_words(out, "devices", profile.devices);
  write_words(out, "gpus", profile.gpus);
  write_words(out, "cpus", profile.cpus);
  write_words(out, "interfaces", profile.interfaces);
  for (const auto& channel : profile.channels) {
    out += "\n[[channel]]\n";
    write_words(out, "columns", channel.columns);
    std::vector<std::string> methods, scopes;
    for (const auto m : channel.methods) methods.emplace_back(to_word(m));
    for (const auto s : channel.scopes) scopes.emplace_back(to_word(s));
    write_words(out, "methods", methods);
    write_words(out, "scopes", scopes);
    if (channel.quantity) out += fmt::format("quantity = \"{}\"\n", to_word(*channel.quantity));
    for (const auto& field : kValues)
      if (const auto& value = channel.*field.value)
        out += fmt::format("{} = {{ value = {}, source = {} }}\n", field.key, format_double(value->value),
                           toml_string(value->source));
  }
  return out;
}

const std::vector<Profile>& built_in_profiles() {
  static const std::vector<Profile> profiles = [] {
    std::vector<Profile> out;
    for (const auto& file : kBuiltInProfiles)
      if (auto profile = parse_profile(file.text, std::string(file.name))) out.push_back(std::move(*profile));
    sort_by_distance(out);
    return out;
  }();
  return profiles;
}

std::filesystem::path user_profile_dir(const Environment& environment) {
  const auto value = [&](const char* name) {
    const auto it = environment.find(name);
    return std::filesystem::path(it == environment.end() ? std::string{} : it->second);
  };
  if (const auto config = value("XDG_CONFIG_HOME"); config.is_absolute()) return config / "ergometer/profiles";
  if (const auto home = value("HOME"); home.is_absolute()) return home / ".config/ergometer/profiles";
  return {};
}

std::vector<Profile> load_profiles(const std::filesystem::path& folder, std::vector<Warning>& warnings) {
  std::vector<Profile> out;
  if (folder.empty()) return out;
  for (const auto& name : list_dir(folder)) {
    if (!name.ends_with(".toml")) continue;
    const auto file = folder / name;
    auto text = read_file(file);
    auto profile = text ? parse_profile(*text, file.string()) : Result<Profile>(tl::unexpected(text.error()));
    if (profile)
      out.push_back(std::move(*profile));
    else
      warnings.push_back({"profile", profile.error().message + "; the profile is not used",
                          profile.error().hint.empty() ? "correct or remove the file" : profile.error().hint});
  }
  sort_by_distance(out);
  return out;
}

void apply_profiles(const std::vector<Profile>& profiles, const Node& node, const std::string& interface,
                    std::vector<Channel>& channels) {
  for (auto& c : channels) {
    if (!c.method || !c.measured) continue;
    for (const auto& profile : profiles) {
      if (!fits(profile, node, interface, c)) continue;
      bool used = false;
      for (const auto& values : profile.channels)
        if (fits(values, c)) used |= complete(c, values);
      if (used) c.profile += (c.profile.empty() ? "" : ", ") + profile.name;
    }
  }
}

}  // namespace ergometer
