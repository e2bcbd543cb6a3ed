#include "app/config_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <system_error>

#include "core/text.hpp"

namespace ergometer::workload {
namespace {

constexpr std::string_view kOption = "--config";

std::optional<std::string> config_path(const std::vector<std::string>& arguments) {
  std::optional<std::string> path;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == kOption && i + 1 < arguments.size()) path = arguments[i + 1];
    if (arguments[i].rfind(std::string(kOption) + "=", 0) == 0) path = arguments[i].substr(kOption.size() + 1);
  }
  return path;
}

std::vector<std::string> keys_of(const CLI::App& command) {
  std::vector<std::string> keys;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name != "help" && name != "config") keys.push_back(name);
    }
  }
  return keys;
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

Result<std::vector<CLI::ConfigItem>> read_items(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file) return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)), {}};
  try {
    return CLI::ConfigTOML().from_config(file);
  } catch (const CLI::Error& error) {
    return Error{Fault::usage, fmt::format("{}: {}", path, error.what()), "write lines of the form: epochs = 3"};
  }
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Result<std::vector<std::string>> with_config_file(const CLI::App& app, std::vector<std::string> arguments) {
  const auto path = config_path(arguments);
  const auto commands = names_of_commands(app);
  if (!path || !contains(commands, arguments.front())) return arguments;
  const auto items = read_items(*path);
  if (!items) return items.error();
  const std::string& command = arguments.front();
  const auto keys = keys_of(*app.get_subcommand(command));
  std::vector<std::string> result = {command};
  for (const CLI::ConfigItem& item : *items) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's marks where a section begins and ends
    const std::string section = fmt::format("{}", fmt::join(item.parents, "."));
    if (!section.empty() && !contains(commands, section)) {
      return Error{Fault::usage, fmt::format("{}: unknown section [{}]", *path, section),
                   fmt::format("did you mean [{}]?", nearest(section, commands))};
    }
    if (!section.empty() && section != command) continue;
    if (!contains(keys, item.name)) {
      return Error{Fault::usage, fmt::format("{}: '{}' is no option of {}", *path, item.name, command),
                   fmt::format("did you mean '{}'?", nearest(item.name, keys))};
    }
    for (const std::string& value : item.inputs) result.push_back(fmt::format("--{}={}", item.name, value));
  }
  result.insert(result.end(), arguments.begin() + 1, arguments.end());
  return result;
}

}  // namespace ergometer::workload
