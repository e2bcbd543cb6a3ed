#include "study/cell_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

// A value that names itself would never end.
constexpr int kDeepestParameter = 16;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '/';
}

// The end of the {NAME} that begins at `at`, or npos: other braces (JSON, a shell's) stand for themselves.
std::size_t placeholder_end(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && is_name_char(text[end])) ++end;
  return end < text.size() && text[end] == '}' && end > at + 1 ? end : std::string_view::npos;
}

void for_each_placeholder(std::string_view text, const std::function<void(const std::string&)>& use) {
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1))
    if (const auto end = placeholder_end(text, at); end != std::string_view::npos)
      use(std::string(text.substr(at + 1, end - at - 1)));
}

using Values = std::map<std::string, std::string>;

// Every text that NAME can stand for.
std::vector<std::string> texts_of(const StudyFile& file, const std::string& name) {
  std::vector<std::string> texts;
  if (const auto found = file.parameters.find(name); found != file.parameters.end()) texts.push_back(found->second);
  for (const auto& [factor, levels] : file.by_level)
    for (const auto& [level, values] : levels)
      if (const auto found = values.find(name); found != values.end()) texts.push_back(found->second);
  return texts;
}

Values values_of(const StudyFile& file, const std::vector<std::size_t>& levels) {
  Values values = file.parameters;
  values.try_emplace("ranks", "1");
  values.try_emplace("nodes", "1");
  for (std::size_t i = 0; i < file.factors.size(); ++i) {
    const auto& factor = file.factors[i];
    const auto& level = factor.levels[levels[i]];
    const auto table = file.by_level.find(factor.name);
    if (table == file.by_level.end()) continue;
    if (const auto found = table->second.find(level); found != table->second.end())
      for (const auto& [name, text] : found->second) values[name] = text;
  }
  for (std::size_t i = 0; i < file.factors.size(); ++i) {
    const auto& factor = file.factors[i];
    const auto& level = factor.levels[levels[i]];
    const auto number = level_number(factor, level);
    values[factor.name] = factor.kind == FactorKind::gpus && number ? format_double(*number) : level;
  }
  return values;
}

Result<std::string> expand(std::string_view text, const Values& values, std::set<std::string>& used, int depth = 0) {
  if (depth > kDeepestParameter)
    return fail(ErrorCode::invalid_argument, fmt::format("a parameter contains itself: \"{}\"", text),
                "look at the {NAMES} in [parameters]");
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const auto end = placeholder_end(text, at);
    if (end == std::string_view::npos) continue;
    const std::string name(text.substr(at + 1, end - at - 1));
    const auto value = values.find(name);
    if (value == values.end()) continue;
    used.insert(name);
    auto inner = expand(value->second, values, used, depth + 1);
    if (!inner) return inner;
    out += text.substr(from, at - from);
    out += *inner;
    from = end + 1;
    at = end;
  }
  out += text.substr(from);
  return out;
}

bool is_whole_placeholder(std::string_view word) {
  return word.starts_with('{') && placeholder_end(word, 0) == word.size() - 1;
}

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c == '\\' && quote == '"' && i + 1 < text.size() ? text[++i] : c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    } else {
      word += c == '\\' && i + 1 < text.size() ? text[++i] : c;
      inside = true;
    }
  }
  if (quote)
    return fail(ErrorCode::invalid_argument, fmt::format("a quote {} never closes in: {}", quote, text),
                "close it, or write the command as a list of words");
  if (inside) words.push_back(std::move(word));
  return words;
}

std::set<std::string> names_in_command(const StudyFile& file) {
  std::set<std::string> names;
  std::vector<std::string> open(file.command.begin(), file.command.end());
  open.push_back(file.where.constraint);
  for (const auto& [name, text] : file.environment) open.push_back(text);
  for (const auto& word : file.where.options) open.push_back(word);
  while (!open.empty()) {
    const auto text = std::move(open.back());
    open.pop_back();
    for_each_placeholder(text, [&](const std::string& name) {
      if (!names.insert(name).second) return;
      for (auto& inner : texts_of(file, name)) open.push_back(std::move(inner));
    });
  }
  return names;
}

std::optional<Error> unknown_placeholder(const StudyFile& file) {
  std::vector<std::string> known{"ranks", "nodes"};
  for (const auto& [name, text] : file.parameters) known.push_back(name);
  for (const auto& factor : file.factors) known.push_back(factor.name);
  // A parameter that only some levels give would be missing in the other cells.
  for (const auto& [factor, levels] : file.by_level) {
    std::map<std::string, std::size_t> given;
    for (const auto& [level, values] : levels)
      for (const auto& [name, text] : values) ++given[name];
    for (const auto& [name, count] : given)
      if (count == find_factor(file, factor)->levels.size()) known.push_back(name);
  }
  for (const auto& name : names_in_command(file)) {
    if (std::ranges::find(known, name) != known.end()) continue;
    for (const auto& [factor, levels] : file.by_level)
      for (const auto& [level, values] : levels)
        if (values.contains(name))
          return Error{ErrorCode::invalid_argument,
                       fmt::format("{{{}}} has a value at {} {} and not at every level", name, factor, level),
                       fmt::format("write {} = \"...\" in [parameters] for the others", name)};
    // A name that is no parameter's is left as it stands: it may be a brace of the command's own.
    const auto nearest = nearest_name(name, known);
    if (nearest.empty()) continue;
    return Error{ErrorCode::invalid_argument, fmt::format("{{{}}} in the command is neither a factor nor a parameter", name),
                 fmt::format("did you mean {{{}}}?", nearest)};
  }
  return std::nullopt;
}

Result<CellCommand> command_of(const StudyFile& file, const std::vector<std::size_t>& levels) {
  const auto values = values_of(file, levels);
  CellCommand cell;
  std::set<std::string> used;
  for (const auto& word : file.command) {
    auto text = expand(word, values, used);
    if (!text) return tl::unexpected(text.error());
    if (!file.words_split || !is_whole_placeholder(word)) {
      cell.words.push_back(std::move(*text));
      continue;
    }
    auto words = split_words(*text);
    if (!words) return tl::unexpected(words.error());
    std::ranges::move(*words, std::back_inserter(cell.words));
  }
  cell.ranks_named = used.contains("ranks");
  for (const auto& [name, text] : file.environment) {
    auto value = expand(text, values, used);
    if (!value) return tl::unexpected(value.error());
    cell.environment[name] = std::move(*value);
  }
  auto constraint = expand(file.where.constraint, values, used);
  if (!constraint) return tl::unexpected(constraint.error());
  cell.constraint = std::move(*constraint);
  cell.ranks = static_cast<int>(parse_int(values.at("ranks")).value_or(1));
  cell.nodes = static_cast<int>(parse_int(values.at("nodes")).value_or(1));
  for (std::size_t i = 0; i < file.factors.size(); ++i)
    if (file.factors[i].kind == FactorKind::environment)
      cell.environment[file.factors[i].variable] = file.factors[i].levels[levels[i]];
  return cell;
}

std::string cell_text(const StudyFile& file, const std::vector<std::size_t>& levels) {
  std::string text;
  for (std::size_t i = 0; i < file.factors.size(); ++i)
    text += fmt::format("{}{} {}", i ? ", " : "", file.factors[i].name, file.factors[i].levels[levels[i]]);
  return text.empty() ? "the one cell" : text;
}

}  // namespace ergometer
