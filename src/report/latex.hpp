// Tables for papers: a run's regions, or a study's cells, as LaTeX (booktabs). Used by export --format latex.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/manifest.hpp"
#include "model/summary.hpp"

namespace ergometer {

// Text with what LaTeX takes for commands escaped; control characters are left out.
[[nodiscard]] std::string latex_text(std::string_view text);
// "$1250 \pm 12$"; "--" for a missing value; the uncertainty has two digits that count and the value ends where it does.
[[nodiscard]] std::string latex_number(const std::optional<double>& value, const std::optional<double>& uncertainty);

struct LatexTable {
  std::string caption, label;
  std::vector<std::string> header;             // already LaTeX
  std::vector<std::vector<std::string>> rows;  // already LaTeX; the first column is text, the others numbers
};
// A table environment with its comment on the package that it needs.
[[nodiscard]] std::string latex_table(const LatexTable& table);
// The run as a whole and each region that is not pooled below another: time in s, energy in J, mean power in W.
[[nodiscard]] std::string summary_latex(const Manifest& manifest, const Summary& summary);

}  // namespace ergometer
