#include "study/study_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/number.hpp"
#include "base/text.hpp"
#include "study/cell_command.hpp"
#include "study/study_rules.hpp"
#include "study/toml_table.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kMostLevels = 1000;

const std::vector<std::string>& design_words() {
  static const std::vector<std::string> words{"full", "one-at-a-time", "fraction", "cells"};
  return words;
}
const std::vector<std::string>& executor_words() {
  static const std::vector<std::string> words{"here", "mpirun", "srun", "sbatch"};
  return words;
}

// Whole table of NAME = value.
void read_texts(TomlTable& table, std::map<std::string, std::string>& out) {
  for (const auto& [key, node] : table.toml()) {
    const auto text = text_of(node);
    if (!text)
      table.complain(TomlTable::line_of(node), fmt::format("\"{}\" is one value", key.str()),
                     fmt::format("write {} = \"...\"; what varies stands in [factors]", key.str()));
    else
      out[std::string(key.str())] = *text;
  }
}

// --- factors --------------------------------------------------------------------------------------------------------

void read_levels(TomlTable& table, const toml::node& node, Factor& factor) {
  const auto* list = node.as_array();
  const int line = TomlTable::line_of(node);
  if (!list || list->empty() || list->size() > kMostLevels) {
    table.complain(line, fmt::format("the factor \"{}\" needs its levels", factor.name),
                   fmt::format("write {} = [..., ...], from 1 to {} levels", factor.name, kMostLevels));
    return;
  }
  for (const auto& item : *list) {
    const auto text = text_of(item);
    if (!text) {
      table.complain(TomlTable::line_of(item), fmt::format("a level of \"{}\" is one value", factor.name),
                     "write numbers, texts, true or false");
      return;
    }
    if (std::ranges::find(factor.levels, *text) != factor.levels.end())
      table.complain(TomlTable::line_of(item), fmt::format("{} has the level \"{}\" twice", factor.name, *text),
                     "leave one out; repetitions = N in [runs] repeats cells");
    if (const auto checked = check_level(factor, *text); !checked)
      table.complain(TomlTable::line_of(item), checked.error().message, checked.error().hint);
    factor.levels.push_back(*text);
  }
}

void read_factor(TomlTable& table, const std::string& name, const toml::node& node, int line, StudyFile& file) {
  Factor factor;
  factor.name = name;
  factor.line = line;
  factor.kind = factor_kind(name);
  factor.unit = factor_unit(factor.kind);
  const toml::node* levels = &node;
  if (const auto* whole = node.as_table()) {
    std::optional<Error> first;
    TomlTable inner(*whole, table.source(), fmt::format("the factor {}", name), first);
    inner.only({"levels", "unit", "environment"});
    inner.read("environment", factor.variable);
    if (factor.kind == FactorKind::parameter) inner.read("unit", factor.unit);
    if (!factor.variable.empty()) factor.kind = FactorKind::environment;
    levels = whole->get("levels");
    if (!levels)
      inner.complain(line, fmt::format("the factor \"{}\" has no levels", name), "write levels = [..., ...]");
    if (first) table.complain(line, first->message.substr(first->message.find(": ") + 2), first->hint);
  }
  if (levels) read_levels(table, *levels, factor);
  file.factors.push_back(std::move(factor));
}

void read_factors(TomlTable& table, StudyFile& file) {
  // In the order of the file: the table shows them so.
  std::map<int, std::vector<std::pair<std::string, const toml::node*>>> by_line;
  for (const auto& [key, node] : table.toml())
    by_line[static_cast<int>(key.source().begin.line)].emplace_back(std::string(key.str()), &node);
  for (const auto& [line, factors] : by_line)
    for (const auto& [name, node] : factors) read_factor(table, name, *node, line, file);
}

// Levels of the command line take the place of the file's.
void apply_level_overrides(TomlTable& top, StudyFile& file, const StudyOverrides& overrides) {
  for (const auto& [name, levels] : overrides.levels) {
    const auto index = std::ranges::find(file.factors, name, &Factor::name);
    if (levels.empty()) {
      if (index != file.factors.end()) file.factors.erase(index);
      continue;
    }
    if (index == file.factors.end() && !file.parameters.contains(name) && factor_kind(name) == FactorKind::parameter) {
      std::vector<std::string> known = known_factors();
      for (const auto& factor : file.factors) known.push_back(factor.name);
      for (const auto& [parameter, text] : file.parameters) known.push_back(parameter);
      const auto nearest = nearest_name(name, known);
      top.complain(1, fmt::format("the study has neither a factor nor a parameter \"{}\"", name),
                   nearest.empty() ? fmt::format("there are: {}", fmt::join(known, ", ")) : fmt::format("did you mean --levels {}=...?", nearest));
      continue;
    }
    Factor factor;
    if (index != file.factors.end())
      factor = *index;
    else
      factor = {name, factor_kind(name), factor_unit(factor_kind(name)), {}, {}, 1};
    factor.levels.clear();
    for (const auto& level : levels) {
      if (const auto checked = check_level(factor, level); !checked)
        top.complain(factor.line, checked.error().message, checked.error().hint);
      if (std::ranges::find(factor.levels, level) == factor.levels.end()) factor.levels.push_back(level);
    }
    if (index != file.factors.end())
      *index = std::move(factor);
    else
      file.factors.push_back(std::move(factor));
  }
}

// Every factor must have an effect: a known meaning, or a place in the command.
void check_factors_used(TomlTable& top, const StudyFile& file) {
  const auto used = names_in_command(file);
  for (const auto& factor : file.factors) {
    if (factor.kind != FactorKind::parameter || used.contains(factor.name) || file.by_level.contains(factor.name))
      continue;
    auto known = known_factors();
    known.insert(known.end(), used.begin(), used.end());
    const auto nearest = nearest_name(factor.name, known);
    top.complain(factor.line, fmt::format("the factor \"{}\" has no effect: it is no known factor, and the command has no {{{}}}", factor.name, factor.name),
                 nearest.empty() ? fmt::format("write {{{}}} into the command, or name one of: {}", factor.name,
                                               fmt::join(known_factors(), ", "))
                                 : fmt::format("did you mean \"{}\"?", nearest));
  }
}

// --- design ---------------------------------------------------------------------------------------------------------

std::optional<std::size_t> factor_index(const StudyFile& file, const std::string& name) {
  for (std::size_t i = 0; i < file.factors.size(); ++i)
    if (file.factors[i].name == name) return i;
  return std::nullopt;
}

// { FACTOR = LEVEL } or, where `several`, { FACTOR = [LEVEL, ...] }.
LevelChoice read_choice_of_levels(TomlTable& table, const toml::node& node, const StudyFile& file,
                                  const StudyOverrides& overrides, bool several) {
  LevelChoice choice;
  const auto* cell = node.as_table();
  if (!cell) {
    table.complain(TomlTable::line_of(node), "a cell is a table", "write { FACTOR = LEVEL, ... }");
    return choice;
  }
  for (const auto& [key, value] : *cell) {
    const std::string name(key.str());
    const int line = TomlTable::line_of(value);
    const auto index = factor_index(file, name);
    if (!index && overrides.levels.contains(name)) continue;
    if (!index) {
      std::vector<std::string> names;
      for (const auto& factor : file.factors) names.push_back(factor.name);
      const auto nearest = nearest_name(name, names);
      table.complain(line, fmt::format("there is no factor \"{}\"", name),
                     nearest.empty() ? fmt::format("factors are: {}", fmt::join(names, ", "))
                                     : fmt::format("did you mean \"{}\"?", nearest));
      continue;
    }
    std::vector<const toml::node*> values{&value};
    if (const auto* list = value.as_array(); list && several) {
      values.clear();
      for (const auto& item : *list) values.push_back(&item);
    }
    const auto& levels = file.factors[*index].levels;
    for (const auto* item : values) {
      const auto text = text_of(*item).value_or("");
      const auto found = std::ranges::find(levels, text);
      if (found == levels.end()) {
        if (!overrides.levels.contains(name))
          table.complain(line, fmt::format("{} has no level \"{}\"", name, text),
                         fmt::format("its levels are: {}", fmt::join(levels, ", ")));
      } else
        choice[*index].push_back(static_cast<std::size_t>(found - levels.begin()));
    }
  }
  return choice;
}

std::vector<LevelChoice> read_choices(TomlTable& table, const char* key, const StudyFile& file,
                                      const StudyOverrides& overrides, bool several) {
  std::vector<LevelChoice> all;
  const auto* node = table.toml().get(key);
  if (!node) return all;
  const auto* list = node->as_array();
  if (!list) {
    table.complain(TomlTable::line_of(*node), fmt::format("\"{}\" is a list of cells", key),
                   fmt::format("write {} = [{{ FACTOR = LEVEL, ... }}, ...]", key));
    return all;
  }
  for (const auto& item : *list) {
    auto choice = read_choice_of_levels(table, item, file, overrides, several);
    // An exclusion whose level is gone excludes nothing.
    const bool whole = item.as_table() && choice.size() == item.as_table()->size();
    if (whole || overrides.levels.empty()) all.push_back(std::move(choice));
  }
  return all;
}

void check_listed_cells(TomlTable& table, const StudyFile& file, const DesignSpec& design) {
  if (design.kind != DesignKind::cells) return;
  if (design.cells.empty()) {
    table.complain(design.line, "the design lists no cells", "write cells = [{ FACTOR = LEVEL, ... }, ...]");
    return;
  }
  for (std::size_t i = 0; i < design.cells.size(); ++i)
    for (std::size_t f = 0; f < file.factors.size(); ++f)
      if (!design.cells[i].contains(f))
        table.complain(design.line, fmt::format("cell {} of the list does not say {}", i + 1, file.factors[f].name),
                       fmt::format("add {} = {}", file.factors[f].name, file.factors[f].levels.front()));
}

void read_design(TomlTable& table, StudyFile& file, const StudyOverrides& overrides) {
  auto& design = file.design;
  table.only({"kind", "base", "fraction", "cells", "exclude"});
  design.line = TomlTable::line_of(table.toml());
  design.kind = static_cast<DesignKind>(read_choice(table, "kind", design_words(), 0));
  if (overrides.design) design.kind = *overrides.design;
  table.read("fraction", design.fraction, 2);
  if (const auto* base = table.toml().get("base")) {
    const auto choice = read_choice_of_levels(table, *base, file, overrides, false);
    for (std::size_t i = 0; i < file.factors.size(); ++i) {
      if (overrides.levels.contains(file.factors[i].name) && !choice.contains(i)) {
        design.base.push_back(0);
        continue;
      }
      if (!choice.contains(i) || choice.at(i).empty()) {
        table.complain(TomlTable::line_of(*base), fmt::format("the base does not say {}", file.factors[i].name),
                       fmt::format("add {} = {}", file.factors[i].name, file.factors[i].levels.back()));
        break;
      }
      design.base.push_back(choice.at(i).front());
    }
  }
  design.cells = read_choices(table, "cells", file, overrides, false);
  design.exclude = read_choices(table, "exclude", file, overrides, true);
  check_listed_cells(table, file, design);
}

// --- where ----------------------------------------------------------------------------------------------------------

void read_where(TomlTable& table, Placement& where, const StudyOverrides& overrides) {
  table.only({"executor", "options", "constraint", "job"});
  where.kind = static_cast<ExecutorKind>(read_choice(table, "executor", executor_words(), 0));
  if (overrides.executor) where.kind = *overrides.executor;
  table.read("options", where.options);
  table.read("constraint", where.constraint);
  where.job_per_block = read_choice(table, "job", {"cell", "block"}, 0) == 1;
  if (!where.constraint.empty() && !overrides.executor && where.kind != ExecutorKind::sbatch)
    table.complain(TomlTable::line_of(*table.toml().get("constraint")), "only jobs have a constraint",
                   "write executor = \"sbatch\", or leave constraint out");
}

// --- the command ----------------------------------------------------------------------------------------------------

void read_command(TomlTable& top, StudyFile& file) {
  const auto* node = top.toml().get("command");
  if (!node) {
    // A workload by name.
    if (factor_index(file, "workload") || file.parameters.contains("workload")) {
      file.command = {"ergometer-workload", "{mode}", "{workload}", "--data", "{data}", "{options}"};
      file.parameters.try_emplace("mode", "train");
      file.parameters.try_emplace("data", "synthetic");
      file.parameters.try_emplace("options", "");
      return;
    }
    top.complain(1, "the study has neither a command nor a workload",
                 "write command = \"./train --batch {batch}\", or workload = \"resnet50\"");
    return;
  }
  const int line = TomlTable::line_of(*node);
  if (node->is_array()) {
    file.words_split = false;
    top.read("command", file.command);
  } else {
    std::string text;
    top.read("command", text);
    auto words = split_words(text);
    if (!words) return top.complain(line, words.error().message, words.error().hint);
    file.command = std::move(*words);
  }
  if (file.command.empty()) top.complain(line, "the command is empty", "write command = \"./train --batch {batch}\"");
}

void read_levels_tables(TomlTable& table, StudyFile& file, const StudyOverrides& overrides) {
  for (const auto& [key, node] : table.toml()) {
    const std::string name(key.str());
    const auto index = factor_index(file, name);
    const auto* levels = node.as_table();
    const bool overridden = overrides.levels.contains(name);
    if (!index && overridden) continue;
    if (!index || !levels) {
      table.complain(TomlTable::line_of(node), fmt::format("[levels.{}] belongs to no factor", name),
                     "write [levels.FACTOR.LEVEL]");
      continue;
    }
    const auto& known = file.factors[*index].levels;
    for (const auto& [level, inner] : *levels) {
      const std::string text(level.str());
      const auto* values = inner.as_table();
      if (overridden && std::ranges::find(known, text) == known.end()) continue;
      if (std::ranges::find(known, text) == known.end() || !values) {
        const auto nearest = nearest_name(text, known);
        table.complain(TomlTable::line_of(inner), fmt::format("{} has no level \"{}\"", name, text),
                       nearest.empty() ? fmt::format("its levels are: {}", fmt::join(known, ", "))
                                       : fmt::format("did you mean \"{}\"?", nearest));
        continue;
      }
      std::optional<Error> first;
      TomlTable reader(*values, table.source(), fmt::format("[levels.{}.{}]", name, text), first);
      read_texts(reader, file.by_level[name][text]);
      if (first) table.complain(TomlTable::line_of(inner), first->message, first->hint);
    }
  }
}

void apply_parameter_overrides(TomlTable& top, StudyFile& file, const StudyOverrides& overrides) {
  for (const auto& [name, value] : overrides.parameters) {
    if (file.parameters.contains(name)) {
      file.parameters[name] = value;
      continue;
    }
    std::vector<std::string> known;
    for (const auto& [parameter, text] : file.parameters) known.push_back(parameter);
    const auto nearest = nearest_name(name, known);
    top.complain(1, fmt::format("the study has no parameter \"{}\"", name),
                 nearest.empty() ? fmt::format("parameters are: {}", known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")))
                                 : fmt::format("did you mean --set {}=...?", nearest));
  }
}

void check_placeholders(TomlTable& top, const StudyFile& file) {
  if (const auto unknown = unknown_placeholder(file))
    top.complain(top.toml().get("command") ? TomlTable::line_of(*top.toml().get("command")) : 1, unknown->message,
                 unknown->hint);
}

void read_top(TomlTable& top, StudyFile& file, const StudyOverrides& overrides) {
  top.only({"name", "description", "command", "workload", "gpus", "parameters", "environment", "levels", "factors",
            "design", "runs", "validity", "where"});
  top.read("name", file.name);
  top.read("description", file.description);
  if (file.name.empty() || file_name_of(file.name) != file.name)
    top.complain(1, file.name.empty() ? "the study has no name" : fmt::format("\"{}\" cannot name a folder", file.name),
                 "write name = \"caps\": letters, digits, points, - and _");
  top.table("parameters", [&](TomlTable& table) { read_texts(table, file.parameters); });
  top.table("environment", [&](TomlTable& table) { read_texts(table, file.environment); });
  if (top.toml().get("workload")) top.read("workload", file.parameters["workload"]);
  if (const auto* gpus = top.toml().get("gpus")) {
    std::vector<std::string> words;
    top.read("gpus", words);
    for (const auto& word : words) {
      const auto index = parse_int(word);
      if (index && *index >= 0 && *index < 1024)
        file.gpus.push_back(static_cast<int>(*index));
      else
        top.complain(TomlTable::line_of(*gpus), fmt::format("\"{}\" is no GPU", word), "write gpus = [0, 1]");
    }
  }
  top.table("factors", [&](TomlTable& table) { read_factors(table, file); });
  apply_level_overrides(top, file, overrides);
  if (file.factors.empty())
    top.complain(1, "the study has no factors", "write [factors] and, below it, batch = [16, 32]");
  top.table("levels", [&](TomlTable& table) { read_levels_tables(table, file, overrides); });
  read_command(top, file);
  apply_parameter_overrides(top, file, overrides);
  file.where.kind = overrides.executor.value_or(ExecutorKind::here);
  file.design.kind = overrides.design.value_or(DesignKind::full);
  top.table("design", [&](TomlTable& table) { read_design(table, file, overrides); });
  top.table("runs", [&](TomlTable& table) { read_runs(table, file.runs); });
  top.table("validity", [&](TomlTable& table) { read_validity(table, file.validity); });
  top.table("where", [&](TomlTable& table) { read_where(table, file.where, overrides); });
  check_factors_used(top, file);
  check_placeholders(top, file);
  if (file.design.kind == DesignKind::one_at_a_time && file.design.base.empty())
    top.complain(std::max(1, file.design.line), "one factor at a time needs a base point",
                 "write base = { FACTOR = LEVEL, ... } in [design], one level a factor");
}

}  // namespace

const char* to_word(DesignKind kind) { return design_words()[static_cast<std::size_t>(kind)].c_str(); }
const char* to_word(ExecutorKind kind) { return executor_words()[static_cast<std::size_t>(kind)].c_str(); }

std::optional<ExecutorKind> executor_kind_from(std::string_view word) {
  const auto found = std::ranges::find(executor_words(), word);
  if (found == executor_words().end()) return std::nullopt;
  return static_cast<ExecutorKind>(found - executor_words().begin());
}

std::optional<DesignKind> design_kind_from(std::string_view word) {
  const auto found = std::ranges::find(design_words(), word);
  if (found == design_words().end()) return std::nullopt;
  return static_cast<DesignKind>(found - design_words().begin());
}

Result<StudyFile> parse_study_file(std::string_view text, const std::string& source, const StudyOverrides& overrides) {
  const auto parsed = toml::parse(text, source);
  if (!parsed)
    return fail(ErrorCode::corrupt,
                fmt::format("{}:{}: {}", source, parsed.error().source().begin.line, parsed.error().description()),
                "a study file is TOML: see docs/studies.md");
  StudyFile file;
  std::optional<Error> first;
  TomlTable top(parsed.table(), source, "a study", first);
  read_top(top, file, overrides);
  if (first) return tl::unexpected(*first);
  return file;
}

const Factor* find_factor(const StudyFile& file, std::string_view name) {
  for (const auto& factor : file.factors)
    if (factor.name == name) return &factor;
  return nullptr;
}

}  // namespace ergometer
