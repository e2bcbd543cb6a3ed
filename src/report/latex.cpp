#include "report/latex.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ergometer {

std::string latex_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\textbackslash{}"; break;
      case '~': out += "\\textasciitilde{}"; break;
      case '^': out += "\\textasciicircum{}"; break;
      case '<': out += "\\textless{}"; break;
      case '>': out += "\\textgreater{}"; break;
      case '&': case '%': case '$': case '#': case '_': case '{': case '}':
        out += '\\';
        out += c;
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) out += c;
    }
  }
  return out;
}

std::string latex_number(const std::optional<double>& value, const std::optional<double>& uncertainty) {
  if (!value || !std::isfinite(*value)) return "--";
  const bool known = uncertainty && std::isfinite(*uncertainty) && *uncertainty > 0;
  // Without an uncertainty four digits that count, as elsewhere in texts.
  const double scale = known ? *uncertainty : std::abs(*value) * 1e-2;
  const int decimals = scale > 0 ? std::clamp(1 - static_cast<int>(std::floor(std::log10(scale))), 0, 12) : 0;
  if (!known) return fmt::format("${:.{}f}$", *value, decimals);
  return fmt::format("${:.{}f} \\pm {:.{}f}$", *value, decimals, *uncertainty, decimals);
}

std::string latex_table(const LatexTable& table) {
  std::string out = "% needs \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n";
  out += fmt::format("  \\caption{{{}}}\n  \\label{{{}}}\n", table.caption, table.label);
  out += fmt::format("  \\begin{{tabular}}{{l{}}}\n    \\toprule\n", std::string(table.header.size() - 1, 'r'));
  const auto line = [](const std::vector<std::string>& cells) {
    return fmt::format("    {} \\\\\n", fmt::join(cells, " & "));
  };
  out += line(table.header) + "    \\midrule\n";
  for (const auto& row : table.rows) out += line(row);
  return out + "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n";
}

std::string summary_latex(const Manifest& manifest, const Summary& summary) {
  LatexTable table;
  const std::string name = manifest.name.empty() ? "run" : manifest.name;
  table.caption = fmt::format("Energy of {} by region. $\\pm$ is the half-width of a 95\\,\\% interval.", latex_text(name));
  table.label = "tab:ergometer";
  table.header = {"Region", "Time (s)", "Energy (J)", "Mean power (W)"};
  const auto add = [&](const std::string& label, std::optional<double> duration, std::optional<double> energy,
                       std::optional<double> uncertainty) {
    std::optional<double> power;
    if (energy && duration && *duration > 0) power = *energy / *duration;
    table.rows.push_back({label, latex_number(duration, std::nullopt), latex_number(energy, uncertainty),
                          latex_number(power, std::nullopt)});
  };
  add("whole run", summary.run.duration_s, summary.run.energy_j, summary.run.uncertainty_j);
  for (const auto& r : summary.regions) {
    std::string label = latex_text(r.path);
    if (r.count > 1) label += fmt::format(" ({} regions)", r.count);
    if (r.cut) label += " (cut)";
    add(label, r.duration_s, r.energy_j, r.uncertainty_j);
  }
  return latex_table(table);
}

}  // namespace ergometer
