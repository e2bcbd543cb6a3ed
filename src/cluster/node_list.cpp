#include "cluster/node_list.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kMostNodes = 200'000;

tl::unexpected<Error> bad_list(std::string_view list, std::string_view why) {
  return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is no list of nodes: {}", list, why),
              "a list looks like n[1-3,07-09],login");
}

// Parts between the commas that stand outside brackets; nullopt if brackets do not pair.
std::optional<std::vector<std::string_view>> outer_parts(std::string_view list) {
  std::vector<std::string_view> parts;
  bool inside = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && !inside)) {
      parts.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    } else if (list[i] == '[' || list[i] == ']') {
      if (inside == (list[i] == '[')) return std::nullopt;
      inside = !inside;
    }
  }
  if (inside) return std::nullopt;
  return parts;
}

// "07" or "07-09" as texts of equal width.
bool add_range(std::string_view range, std::vector<std::string>& out) {
  const auto dash = range.find('-');
  const auto low_text = range.substr(0, dash), high_text = dash == range.npos ? low_text : range.substr(dash + 1);
  if (low_text.empty() || high_text.empty() || !is_digit(low_text[0]) || !is_digit(high_text[0])) return false;
  const auto low = parse_uint(low_text), high = parse_uint(high_text);
  if (!low || !high || *high < *low || *high - *low >= kMostNodes) return false;
  for (auto number = *low; number <= *high; ++number) out.push_back(fmt::format("{:0{}}", number, low_text.size()));
  return true;
}

// Every name that `pattern` stands for, its brackets from left to right.
Result<std::vector<std::string>> expand_name(std::string_view pattern, std::string_view list) {
  std::vector<std::string> names{""};
  while (!pattern.empty()) {
    const auto open = pattern.find('[');
    for (auto& name : names) name += pattern.substr(0, open);
    if (open == pattern.npos) break;
    const auto close = pattern.find(']', open);
    std::vector<std::string> numbers;
    for (const auto range : split(pattern.substr(open + 1, close - open - 1), ','))
      if (!add_range(range, numbers)) return bad_list(list, fmt::format("\"{}\" is no range", range));
    if (names.size() * numbers.size() > kMostNodes) return bad_list(list, "it stands for too many nodes");
    std::vector<std::string> longer;
    for (const auto& name : names)
      for (const auto& number : numbers) longer.push_back(name + number);
    names = std::move(longer);
    pattern.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

Result<std::vector<std::string>> expand_node_list(std::string_view list) {
  const auto parts = outer_parts(list);
  if (!parts) return bad_list(list, "a bracket lacks its other");
  std::vector<std::string> nodes;
  for (const auto part : *parts) {
    if (trim(part).empty()) return bad_list(list, "a name is empty");
    auto names = expand_name(trim(part), list);
    if (!names) return tl::unexpected(names.error());
    if (nodes.size() + names->size() > kMostNodes) return bad_list(list, "it stands for too many nodes");
    nodes.insert(nodes.end(), std::make_move_iterator(names->begin()), std::make_move_iterator(names->end()));
  }
  return nodes;
}

Result<std::vector<int>> expand_counts(std::string_view list) {
  const auto bad = [&] {
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is no list of counts", list),
                "a list looks like 2(x3),1");
  };
  std::vector<int> counts;
  for (auto part : split(list, ',')) {
    std::uint64_t times = 1;
    if (const auto open = part.find("(x"); open != part.npos) {
      if (!part.ends_with(')')) return bad();
      const auto number = parse_uint(part.substr(open + 2, part.size() - open - 3));
      if (!number || *number == 0 || *number > kMostNodes) return bad();
      times = *number;
      part = part.substr(0, open);
    }
    const auto count = parse_uint(part);
    if (!count || *count > INT32_MAX || counts.size() + times > kMostNodes) return bad();
    counts.insert(counts.end(), times, static_cast<int>(*count));
  }
  return counts;
}

}  // namespace ergometer
