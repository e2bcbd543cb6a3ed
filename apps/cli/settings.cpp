#include "settings.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/toml.hpp"
#include "device/registry.hpp"

extern char** environ;

namespace ergometer::cli {
namespace {
namespace fs = std::filesystem;

// Known to this program or its libraries, though no option.
const std::set<std::string, std::less<>> kOtherVariables{"ERGOMETER_RUN", "ERGOMETER_LAUNCH", "ERGOMETER_LOCAL_DIR"};

bool is_setting(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  return !names.empty() && names.front() != "help" && names.front() != "version" && names.front() != "output";
}

// Long name of each option that may stand in a file -> the options of that name, in whatever subcommand.
std::multimap<std::string, CLI::Option*> settable(CLI::App& app) {
  std::multimap<std::string, CLI::Option*> options;
  const auto add = [&](CLI::App* of) {
    for (auto* option : of->get_options())
      if (is_setting(*option)) options.emplace(option->get_lnames().front(), option);
  };
  add(&app);
  for (auto* subcommand : app.get_subcommands([](CLI::App*) { return true; })) add(subcommand);
  return options;
}

std::vector<std::string> names_of(const std::multimap<std::string, CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const auto& [name, option] : options)
    if (names.empty() || names.back() != name) names.push_back(name);
  return names;
}

std::string variable_of(std::string_view name) {
  std::string variable = "ERGOMETER_";
  for (const char c : name)
    variable += c == '-' || c == '.' ? '_' : (c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  return variable;
}

std::optional<fs::path> settings_file() {
  std::error_code ec;
  if (fs::exists("ergometer.toml", ec)) return fs::path("ergometer.toml");
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = xdg && *xdg ? fs::path(xdg) : home && *home ? fs::path(home) / ".config" : fs::path();
  const auto file = base / "ergometer" / "ergometer.toml";
  if (!base.empty() && fs::exists(file, ec)) return file;
  return std::nullopt;
}

// [ipmi], [redfish] and [meter]: whole tables of settings that are no options, since accounts stand in them.
bool is_meter_table(std::string_view name) { return name == "ipmi" || name == "redfish" || name == "meter"; }

// A TOML value in the form of a command-line word; a list becomes words with commas between.
std::optional<std::string> word_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto whole = node.value_exact<std::int64_t>()) return fmt::to_string(*whole);
  if (const auto number = node.value_exact<double>()) return format_double(*number);
  if (const auto* list = node.as_array()) {
    std::string words;
    for (const auto& item : *list) {
      const auto word = word_of(item);
      if (!word || item.is_array()) return std::nullopt;
      if (!words.empty()) words += ',';
      words += *word;
    }
    return words;
  }
  return std::nullopt;
}

// A password in a file that others can read is none.
Result<void> check_private(const fs::path& file) {
  std::error_code ec;
  const auto others = fs::perms::group_all | fs::perms::others_all;
  if ((fs::status(file, ec).permissions() & others) == fs::perms::none) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} holds a password and other users can read it", file.string()),
              fmt::format("run: chmod 600 {}", file.string()));
}

Result<void> read_meter_table(const fs::path& file, const std::string& table, const toml::node& node,
                              std::map<std::string, std::string>& values) {
  const auto known = known_meter_settings();
  if (!node.is_table())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}:{}: \"{}\" is a table", file.string(), node.source().begin.line, table),
                fmt::format("write [{}] and its settings below it", table));
  for (const auto& [key, value] : *node.as_table()) {
    const auto name = fmt::format("{}.{}", table, key.str());
    const auto where = fmt::format("{}:{}", file.string(), value.source().begin.line);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto nearest = nearest_name(name, known);
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: unknown setting \"{}\" of [{}]", where, key.str(), table),
                  nearest.empty() ? "see docs/node-meters.md" : fmt::format("did you mean {}?", nearest));
    }
    const auto word = value.is_array() ? std::nullopt : word_of(value);
    if (!word) return fail(ErrorCode::invalid_argument, fmt::format("{}: \"{}\" is no value", where, key.str()));
    if (key.str() == "password")
      if (auto hidden = check_private(file); !hidden) return hidden;
    values.emplace(name, *word);
  }
  return {};
}

Result<std::map<std::string, std::string>> read_settings(const fs::path& file, const std::vector<std::string>& known) {
  const auto text = read_file(file);
  if (!text) return tl::unexpected(text.error());
  const auto parsed = toml::parse(*text, file.string());
  if (!parsed)
    return fail(
        ErrorCode::corrupt,
        fmt::format("{}:{}: {}", file.string(), parsed.error().source().begin.line, parsed.error().description()),
        "the file is TOML: NAME = \"VALUE\"");
  std::map<std::string, std::string> values;
  for (const auto& [key, node] : parsed.table()) {
    const std::string name(key.str());
    if (is_meter_table(name)) {
      if (auto read = read_meter_table(file, name, node, values); !read) return tl::unexpected(read.error());
      continue;
    }
    const auto where = fmt::format("{}:{}", file.string(), node.source().begin.line);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto nearest = nearest_name(name, known);
      return fail(ErrorCode::invalid_argument, fmt::format("{}: unknown setting \"{}\"", where, name),
                  nearest.empty() ? "settings are the long names of the options, see: ergometer run --help"
                                  : fmt::format("did you mean \"{}\"?", nearest));
    }
    const auto word = word_of(node);
    if (!word)
      return fail(ErrorCode::invalid_argument, fmt::format("{}: \"{}\" is neither a value nor a list", where, name),
                  fmt::format("write it as on the command line: {} = \"...\"", name));
    values.emplace(name, *word);
  }
  return values;
}

Result<void> set_default(CLI::Option& option, const std::string& value, const std::string& where) {
  try {
    option.run_callback_for_default();
    option.default_val(value);
    // The command line decides whether an option is required and what excludes what; a default satisfies it.
    option.required(false);
  } catch (const CLI::Error& error) {
    return fail(ErrorCode::invalid_argument, fmt::format("{}: {}", where, error.what()),
                fmt::format("see what --{} takes: ergometer run --help", option.get_lnames().front()));
  }
  return {};
}

// A misspelt variable would go unnoticed; one that is far from every known name belongs to somebody else.
Result<void> check_variables(const std::vector<std::string>& known) {
  std::vector<std::string> variables;
  for (const auto& name : known) variables.push_back(variable_of(name));
  for (const auto& name : known_meter_settings()) variables.push_back(variable_of(name));
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    const auto name = text.substr(0, text.find('='));
    if (!name.starts_with("ERGOMETER_") || kOtherVariables.contains(name)) continue;
    if (std::find(variables.begin(), variables.end(), name) != variables.end()) continue;
    // A slip or two, and in a long word: short names lie close to one another by chance.
    const std::size_t slips = std::min<std::size_t>(2, (name.size() - std::string_view("ERGOMETER_").size()) / 3);
    for (const auto& variable : variables)
      if (edit_distance(name, variable) <= slips)
        return fail(ErrorCode::invalid_argument, fmt::format("unknown environment variable {}", name),
                    fmt::format("did you mean {}?", variable));
  }
  return {};
}

// --- errors of the command line -----------------------------------------------------------------------------------

std::vector<std::string> option_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) words.push_back("--" + name);
    for (const auto& name : option->get_snames()) words.push_back("-" + name);
  }
  return words;
}

// The option or subcommand that nobody knows, if that is what is wrong, with the nearest known word.
std::optional<Error> explain_unknown(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> commands;
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) commands.push_back(sub->get_name());
  const CLI::App* sub = nullptr;
  auto options = option_words(app);
  for (const auto& argument : arguments) {
    if (argument.size() > 1 && argument.front() == '-') {
      const auto word = argument.substr(0, argument.find('='));
      if (std::find(options.begin(), options.end(), word) != options.end() || !word.starts_with("--")) continue;
      const auto nearest = nearest_name(word, options);
      return Error{ErrorCode::invalid_argument, fmt::format("unknown option {}", word),
                   nearest.empty() ? fmt::format("see: ergometer {}--help", sub ? sub->get_name() + " " : "")
                                   : fmt::format("did you mean {}?", nearest)};
    }
    if (sub) continue;
    if (std::find(commands.begin(), commands.end(), argument) != commands.end()) {
      sub = app.get_subcommand(argument);
      const auto own = option_words(*sub);
      options.insert(options.end(), own.begin(), own.end());
    }
  }
  if (sub || arguments.empty()) return std::nullopt;
  for (const auto& argument : arguments) {
    if (argument.starts_with('-')) continue;
    const auto nearest = nearest_name(argument, commands);
    return Error{ErrorCode::invalid_argument, fmt::format("unknown command \"{}\"", argument),
                 nearest.empty() ? "see: ergometer --help" : fmt::format("did you mean \"{}\"?", nearest)};
  }
  return std::nullopt;
}

}  // namespace

void add_global_options(CLI::App& app, Context& context) {
  app.set_version_flag("--version", std::string("ergometer " ERGOMETER_VERSION));
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--host-root", context.host_root, "Read /sys, /proc and /dev below this folder")->type_name("DIR");
  app.add_option("--nvml", context.nvml_path, "The NVML library to load")->type_name("PATH")->capture_default_str();
  app.footer(
      "Examples:\n"
      "  ergometer run -- python3 train.py          measure a command and print its energy\n"
      "  ergometer show runs/python3-20260131-120000   look at it again\n"
      "  ergometer sensors                          what can be measured here\n"
      "  ergometer doctor                           what cannot, and how to change that\n");
}

Result<void> apply_settings(CLI::App& app, Context& context) {
  const auto options = settable(app);
  const auto known = names_of(options);
  if (auto checked = check_variables(known); !checked) return checked;
  std::map<std::string, std::string> from_file;
  std::string file_name;
  if (const auto file = settings_file()) {
    auto values = read_settings(*file, known);
    if (!values) return tl::unexpected(values.error());
    from_file = std::move(*values);
    file_name = file->string();
  }
  for (const auto& name : known_meter_settings()) {
    const std::string variable = variable_of(name);
    const char* value = std::getenv(variable.c_str());
    const auto in_file = from_file.find(name);
    if (value && *value)
      context.meter_settings[name] = value;
    else if (in_file != from_file.end())
      context.meter_settings[name] = in_file->second;
    // Neither the measured command nor the record of its environment needs an account.
    if (value) ::unsetenv(variable.c_str());
  }
  for (const auto& [name, option] : options) {
    const std::string variable = variable_of(name);
    const char* value = std::getenv(variable.c_str());
    const auto in_file = from_file.find(name);
    Result<void> done;
    if (value && *value)
      done = set_default(*option, value, variable);
    else if (in_file != from_file.end())
      done = set_default(*option, in_file->second, fmt::format("{}: {}", file_name, name));
    if (!done) return done;
  }
  return {};
}

void keep_freed_memory() {
  // One heap for all threads, since only the main one can grow without new mappings.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

int report_error(const Error& error, int code) {
  fmt::print(stderr, "ergometer: {}\n", error.message);
  if (!error.hint.empty()) fmt::print(stderr, "  {}\n", error.hint);
  return code;
}

int parse_and_run(CLI::App& app, Context& context, int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes != arguments.end()) {
    context.measured_command.assign(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
    app.parse(reversed);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    if (const auto unknown = explain_unknown(app, arguments)) return report_error(*unknown);
    const auto used = app.get_subcommands();
    const std::string command = used.empty() ? "" : used.front()->get_name();
    std::string hint = command.empty() ? "see: ergometer --help" : fmt::format("see: ergometer {} --help", command);
    if (command == "run" && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
      hint = "the command stands after two dashes: ergometer run [OPTIONS] -- COMMAND ...";
    return report_error(Error{ErrorCode::invalid_argument, error.what(), hint});
  }
  return context.exit_code;
}

}  // namespace ergometer::cli
