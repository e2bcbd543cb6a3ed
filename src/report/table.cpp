#include "report/table.hpp"

#include <algorithm>
#include <numeric>

namespace ergometer {
namespace {

constexpr std::size_t kSpace = 2, kLeastFirst = 8;

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

void append_cell(std::string& line, std::string_view cell, std::size_t width, bool right) {
  const std::size_t used = display_width(cell);
  const std::string pad(width > used ? width - used : 0, ' ');
  line += right ? pad + std::string(cell) : std::string(cell) + pad;
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line;
  out += '\n';
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto c = static_cast<unsigned char>(out[i]);
    // C1 controls are two bytes in UTF-8: C2 80 to C2 9F.
    const bool c1 = c == 0xC2 && i + 1 < out.size() && static_cast<unsigned char>(out[i + 1]) < 0xA0;
    if (c1) out[i + 1] = '?';
    if (c < 0x20 || c == 0x7F || c1) out[i] = '?';
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  std::size_t end = 0, seen = 0;
  const std::size_t keep = width > 2 ? width - 2 : 0;
  while (end < text.size() && (seen < keep || continues(text[end]))) {
    if (!continues(text[end])) ++seen;
    ++end;
  }
  return std::string(text.substr(0, end)) + "..";
}

std::string render_table(const Table& table, std::size_t width, std::size_t indent) {
  std::vector<std::size_t> widths(table.columns.size()), shown;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    bool any = c == 0;
    widths[c] = display_width(table.columns[c].title);
    for (const auto& row : table.rows) {
      widths[c] = std::max(widths[c], display_width(row[c]));
      any |= !row[c].empty();
    }
    if (any) shown.push_back(c);
  }
  const auto total = [&] {
    return std::accumulate(shown.begin(), shown.end(), indent + kSpace * (shown.size() - 1),
                           [&](std::size_t sum, std::size_t c) { return sum + widths[c]; });
  };
  while (total() > width) {
    auto last = shown.begin();  // of equal ranks the rightmost leaves first
    for (auto it = shown.begin(); it != shown.end(); ++it)
      if (table.columns[*it].rank >= table.columns[*last].rank) last = it;
    if (table.columns[*last].rank == 0) break;
    shown.erase(last);
  }
  if (const std::size_t over = total() > width ? total() - width : 0; over > 0)
    widths[0] = std::max(kLeastFirst, widths[0] > over ? widths[0] - over : 0);

  std::string out;
  const auto add_line = [&](auto cell) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (i) line.append(kSpace, ' ');
      append_cell(line, shortened(cell(shown[i]), widths[shown[i]]), widths[shown[i]], table.columns[shown[i]].right);
    }
    append_line(out, std::move(line));
  };
  add_line([&](std::size_t c) { return std::string_view(table.columns[c].title); });
  for (const auto& row : table.rows) add_line([&](std::size_t c) { return std::string_view(row[c]); });
  return out;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out, line(indent, ' ');
  bool empty = true;
  while (!text.empty()) {
    const auto space = text.find(' ');
    const auto word = text.substr(0, space);
    if (!empty && display_width(line) + 1 + display_width(word) > width) {
      append_line(out, line);
      line.assign(indent, ' ');
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
    if (space == std::string_view::npos) break;
    text.remove_prefix(space + 1);
  }
  append_line(out, line);
  return out;
}

}  // namespace ergometer
