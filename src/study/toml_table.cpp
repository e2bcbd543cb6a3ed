#include "study/toml_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {

std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto whole = node.value_exact<std::int64_t>()) return fmt::to_string(*whole);
  if (const auto number = node.value_exact<double>()) return format_double(*number);
  return std::nullopt;
}

void TomlTable::complain(int line, const std::string& what, const std::string& remedy) {
  if (!first_) first_ = Error{ErrorCode::invalid_argument, fmt::format("{}:{}: {}", source_, line, what), remedy};
}

void TomlTable::only(const std::vector<std::string>& known) {
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto nearest = nearest_name(name, known);
    complain(static_cast<int>(key.source().begin.line), fmt::format("unknown key \"{}\" of {}", name, name_),
             nearest.empty() ? fmt::format("known are: {}", fmt::join(known, ", "))
                             : fmt::format("did you mean \"{}\"?", nearest));
  }
}

void TomlTable::read(const char* key, std::string& out) {
  const auto* node = table_.get(key);
  if (!node) return;
  if (auto text = node->value_exact<std::string>())
    out = std::move(*text);
  else
    complain(line_of(*node), fmt::format("\"{}\" is a text", key), fmt::format("write {} = \"...\"", key));
}

void TomlTable::read(const char* key, bool& out) {
  const auto* node = table_.get(key);
  if (!node) return;
  if (const auto flag = node->value_exact<bool>())
    out = *flag;
  else
    complain(line_of(*node), fmt::format("\"{}\" is a yes or no", key), fmt::format("write {} = true, or false", key));
}

void TomlTable::read(const char* key, int& out, int least) {
  const auto* node = table_.get(key);
  if (!node) return;
  const auto number = node->value_exact<std::int64_t>();
  if (number && *number >= least && *number <= 1'000'000)
    out = static_cast<int>(*number);
  else
    complain(line_of(*node), fmt::format("\"{}\" is a whole number from {}", key, least),
             fmt::format("write {} = {}", key, std::max(least, 3)));
}

void TomlTable::read(const char* key, std::optional<double>& out) {
  const auto* node = table_.get(key);
  if (!node) return;
  if (const auto number = node->value<double>())
    out = *number;
  else
    complain(line_of(*node), fmt::format("\"{}\" is a number", key), fmt::format("write {} = 50", key));
}

void TomlTable::read(const char* key, double& out, double low, double high) {
  const auto* node = table_.get(key);
  if (!node) return;
  const auto number = node->value<double>();
  if (number && *number >= low && *number <= high)
    out = *number;
  else
    complain(line_of(*node), fmt::format("\"{}\" is a number from {:g} to {:g}", key, low, high),
             fmt::format("write {} = {:g}", key, out));
}

void TomlTable::read(const char* key, std::optional<Nanos>& out) {
  const auto* node = table_.get(key);
  if (!node) return;
  const auto text = node->value_exact<std::string>();
  if (const auto time = text ? parse_duration(*text) : std::nullopt)
    out = *time;
  else
    complain(line_of(*node), fmt::format("\"{}\" is a time with its unit", key),
             fmt::format("write {} = \"90s\", \"10min\" or \"2h\"", key));
}

void TomlTable::read(const char* key, Nanos& out) {
  std::optional<Nanos> time;
  read(key, time);
  if (time) out = *time;
}

void TomlTable::read_share(const char* key, double& out) {
  const auto* node = table_.get(key);
  if (!node) return;
  std::optional<double> share = node->value<double>();
  if (const auto text = node->value_exact<std::string>(); text && text->ends_with('%')) {
    share = parse_double(std::string_view(*text).substr(0, text->size() - 1));
    if (share) *share /= 100;
  }
  if (share && *share > 0 && *share <= 1)
    out = *share;
  else
    complain(line_of(*node), fmt::format("\"{}\" is a share", key), fmt::format("write {} = \"2%\"", key));
}

void TomlTable::read(const char* key, std::vector<std::string>& out) {
  const auto* node = table_.get(key);
  if (!node) return;
  const auto* list = node->as_array();
  bool good = list != nullptr;
  std::vector<std::string> words;
  if (list)
    for (const auto& item : *list) {
      const auto text = text_of(item);
      good &= text.has_value();
      if (text) words.push_back(*text);
    }
  if (good)
    out = std::move(words);
  else
    complain(line_of(*node), fmt::format("\"{}\" is a list of words", key), fmt::format("write {} = [\"...\", \"...\"]", key));
}

void TomlTable::table(const char* key, const std::function<void(TomlTable&)>& use) {
  const auto* node = table_.get(key);
  if (!node) return;
  if (const auto* inner = node->as_table()) {
    TomlTable reader(*inner, source_, fmt::format("[{}]", key), first_);
    use(reader);
  } else {
    complain(line_of(*node), fmt::format("\"{}\" is a table", key), fmt::format("write [{}] and its keys below it", key));
  }
}

std::size_t read_choice(TomlTable& table, const char* key, const std::vector<std::string>& words,
                        std::size_t otherwise) {
  std::string word = words[otherwise];
  table.read(key, word);
  const auto found = std::ranges::find(words, word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  const auto nearest = nearest_name(word, words);
  table.complain(TomlTable::line_of(*table.toml().get(key)), fmt::format("\"{}\" is no {}", word, key),
                 nearest.empty() ? fmt::format("write one of: {}", fmt::join(words, ", "))
                                 : fmt::format("did you mean \"{}\"? There are: {}", nearest, fmt::join(words, ", ")));
  return otherwise;
}

}  // namespace ergometer
