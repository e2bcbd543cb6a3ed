#include "study/design.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

namespace ergometer {
namespace {

constexpr std::size_t kMostCells = 1'000'000;

bool fits(const StudyCell& cell, const LevelChoice& choice) {
  return !choice.empty() && std::ranges::all_of(choice, [&](const auto& entry) {
    return std::ranges::find(entry.second, cell.levels[entry.first]) != entry.second.end();
  });
}

bool is_excluded(const StudyFile& file, const StudyCell& cell) {
  return std::ranges::any_of(file.design.exclude, [&](const auto& choice) { return fits(cell, choice); });
}

Result<std::size_t> full_count(const StudyFile& file, const std::string& source) {
  std::size_t count = 1;
  for (const auto& factor : file.factors) {
    count *= factor.levels.size();
    if (count > kMostCells)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}:{}: all combinations are more than {} cells", source, std::max(1, file.design.line),
                              kMostCells),
                  "write kind = \"one-at-a-time\" or kind = \"fraction\" in [design], or fewer levels");
  }
  return count;
}

void for_each_combination(const StudyFile& file, std::size_t count, const std::function<void(StudyCell)>& use) {
  StudyCell cell;
  cell.levels.assign(file.factors.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    use(cell);
    for (std::size_t f = file.factors.size(); f-- > 0;) {
      if (++cell.levels[f] < file.factors[f].levels.size()) break;
      cell.levels[f] = 0;
    }
  }
}

std::vector<StudyCell> one_at_a_time(const StudyFile& file) {
  std::vector<StudyCell> cells{{file.design.base}};
  for (std::size_t f = 0; f < file.factors.size(); ++f)
    for (std::size_t level = 0; level < file.factors[f].levels.size(); ++level) {
      if (level == file.design.base[f]) continue;
      cells.push_back({file.design.base});
      cells.back().levels[f] = level;
    }
  return cells;
}

// Factors that take part in the relation of a 1/n fraction.
Result<std::vector<std::size_t>> related_factors(const StudyFile& file, const std::string& source) {
  const auto n = static_cast<std::size_t>(file.design.fraction);
  std::vector<std::size_t> related;
  for (std::size_t f = 0; f < file.factors.size(); ++f)
    if (file.factors[f].levels.size() % n == 0) related.push_back(f);
  if (related.size() < 2)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}:{}: a fraction of 1/{} needs two factors with a multiple of {} levels each", source,
                            std::max(1, file.design.line), n, n),
                "write another fraction, or list the cells: kind = \"cells\"");
  return related;
}

std::vector<StudyCell> listed(const StudyFile& file) {
  std::vector<StudyCell> cells;
  for (const auto& choice : file.design.cells) {
    StudyCell cell;
    for (const auto& [factor, levels] : choice) cell.levels.push_back(levels.front());
    if (std::ranges::none_of(cells, [&](const auto& other) { return other.levels == cell.levels; }))
      cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace

Result<std::vector<StudyCell>> cells_of(const StudyFile& file, const std::string& source) {
  std::vector<StudyCell> cells;
  const auto add = [&](StudyCell cell) {
    if (!is_excluded(file, cell)) cells.push_back(std::move(cell));
  };
  if (file.design.kind == DesignKind::one_at_a_time) {
    for (auto& cell : one_at_a_time(file)) add(std::move(cell));
  } else if (file.design.kind == DesignKind::cells) {
    for (auto& cell : listed(file)) add(std::move(cell));
  } else {
    const auto count = full_count(file, source);
    if (!count) return tl::unexpected(count.error());
    std::vector<std::size_t> related;
    const auto n = static_cast<std::size_t>(file.design.fraction);
    if (file.design.kind == DesignKind::fraction) {
      auto found = related_factors(file, source);
      if (!found) return tl::unexpected(found.error());
      related = std::move(*found);
    }
    for_each_combination(file, *count, [&](StudyCell cell) {
      std::size_t sum = 0;
      for (const auto f : related) sum += cell.levels[f];
      if (related.empty() || sum % n == 0) add(std::move(cell));
    });
  }
  if (cells.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}:{}: the exclusions leave no cell", source, std::max(1, file.design.line)),
                "take one of the lines out of exclude in [design], or give a factor another level");
  return cells;
}

}  // namespace ergometer
