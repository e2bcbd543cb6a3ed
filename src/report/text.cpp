#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/node_table.hpp"
#include "report/nodes_table.hpp"
#include "report/region_tables.hpp"
#include "report/sparkline.hpp"
#include "report/table.hpp"
#include "report/units.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kBarWidth = 10;
constexpr const char* kPlusMinus = "\xC2\xB1";

std::string styled(const std::string& text, const char* code, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::string command_line(const std::vector<std::string>& command) {
  std::string out;
  for (const auto& word : command) {
    if (!out.empty()) out += ' ';
    const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\$&|;<>()*?#`") == std::string::npos;
    out += plain ? word : "'" + word + "'";
  }
  // A script on several lines is shown on one.
  std::replace(out.begin(), out.end(), '\n', ' ');
  return printable(out);
}

std::string end_text(const Manifest& manifest, const Summary& summary) {
  if (manifest.state == "incomplete") return "incomplete, nodes are missing";
  if (manifest.state != "complete") return "not complete";
  if (manifest.signal) return fmt::format("ended by signal {}", *manifest.signal);
  if (summary.run.exit_code) return fmt::format("exit {}", *summary.run.exit_code);
  return "complete";
}

std::string total_line(const RunSummary& run) {
  if (!run.energy_j) return "not measured";
  std::string out = energy_text(*run.energy_j);
  if (run.uncertainty_j) out += fmt::format(" {} {}", kPlusMinus, with_unit(*run.uncertainty_j, "J", 2));
  if (run.duration_s && *run.duration_s > 0)
    out += fmt::format(", mean {}", with_unit(*run.energy_j / *run.duration_s, "W"));
  if (run.partial) out += ", partial";
  return out;
}

bool any_estimate(const Summary& summary) {
  for (const auto& node : summary.nodes)
    for (const auto& d : node.domains)
      if (!d.measured && d.energy_j) return true;
  return false;
}

std::string heading(const Manifest& manifest, const Summary& summary, const TextOptions& options) {
  const auto& run = summary.run;
  const auto width = static_cast<std::size_t>(std::max(40, options.width));
  const auto field = [&](const char* name, const std::string& value) {
    return shortened(fmt::format("  {:<10}{}", name, value), width) + "\n";
  };
  const std::string name = manifest.name.empty() ? "run" : printable(manifest.name);
  std::string out =
      styled(shortened(fmt::format("{}: {}", name, end_text(manifest, summary)), width), "1", options.colour) + "\n";
  if (!manifest.command.empty()) out += field("command", command_line(manifest.command));
  if (run.duration_s) out += field("duration", duration_text(*run.duration_s));
  if (const auto where = nodes_in_a_line(summary); !where.empty()) out += field("nodes", where);
  out += field("energy", total_line(run));
  if (run.net_energy_j) {
    double idle = 0;
    for (const auto& node : summary.nodes) idle += node.idle_power_w.value_or(0);
    std::string net = with_unit(*run.net_energy_j, "J");
    if (run.net_uncertainty_j) net += fmt::format(" {} {}", kPlusMinus, with_unit(*run.net_uncertainty_j, "J", 2));
    out += field("net", fmt::format("{} above idle ({})", net, with_unit(idle, "W")));
  }
  if (run.energy_j && *run.energy_j > 0) {
    const auto shortcut = [&](const char* words, const std::optional<double>& by) {
      return by ? fmt::format("{} {} ({})", words, with_unit(*by, "J"), error_text(*by, *run.energy_j)) : std::string();
    };
    const auto tdp = shortcut("time x TDP", run.shortcuts.tdp_j);
    const auto mean = shortcut("time x mean power", run.shortcuts.mean_power_j);
    if (!tdp.empty()) out += field("instead", tdp + (mean.empty() ? "" : ", " + mean));
  }
  if (run.modelled_j)
    out +=
        field("estimate", fmt::format("~{}, not measured and not in the energy", with_unit(*run.modelled_j, "J", 2)));
  if (few_nodes(summary))
    for (const auto& node : summary.nodes) {
      const std::string on = summary.nodes.size() > 1 ? " on " + printable(node.name) : "";
      if (node.machine_energy_j)
        out += field("machine", fmt::format("{} with the GPUs that the command could not use{}",
                                            with_unit(*node.machine_energy_j, "J"), on));
      if (node.account && node.account->idle_gpus > 0) {
        const auto& a = *node.account;
        out += field("idle GPUs", fmt::format("{} took {} {} {}{}{}", a.idle_gpus, with_unit(a.idle_gpu_j, "J"),
                                              kPlusMinus, with_unit(a.idle_gpu_uncertainty_j, "J", 2),
                                              a.idle_gpu_share ? fmt::format(", {} of the node's energy",
                                                                             percent_text(*a.idle_gpu_share))
                                                               : std::string(),
                                              on));
      }
    }
  if (summary.overhead_cpu_share)
    out += field("measuring", fmt::format("{:.2f} % of one core", 100 * *summary.overhead_cpu_share));
  return out;
}

std::string method_text(const DomainEnergy& d) {
  if (!d.energy_j) return kMissing;
  switch (d.method) {
    case Method::samples:
      return "driver samples";
    case Method::counter:
      return d.filled_j ? "counter, filled" : "counter";
    case Method::integral:
      return "integrated power";
    case Method::average:
      return "integrated average";
    case Method::model:
      return "estimate";
  }
  return kMissing;
}

// Parts that share their domain with the whole carry their scope as well: "gpu/0 memory".
std::string domain_label(const NodeSummary& node, const DomainEnergy& d, bool several) {
  std::string label = several ? node.name + " " + d.domain : d.domain;
  if (d.scope == Scope::memory) label += " memory";
  return printable(label);
}

// Which domains are not part of the total, and why.
std::string outside_lines(const Summary& summary, std::size_t width) {
  std::string list;
  const bool several = summary.nodes.size() > 1;
  for (const auto& node : summary.nodes)
    for (const auto& d : node.domains)
      if (!d.in_total && d.measured)
        list += fmt::format("{}{}{}", list.empty() ? "" : "; ", domain_label(node, d, several),
                            d.note.empty() ? "" : " (" + printable(d.note) + ")");
  return list.empty() ? list : wrapped("not in the total: " + list, width, 2);
}

// A picture is worth its place only where there is something to compare.
std::optional<double> share_of_total(const Summary& summary, const DomainEnergy& d) {
  std::size_t domains = 0;
  for (const auto& node : summary.nodes)
    for (const auto& other : node.domains) domains += other.in_total && other.measured && other.energy_j;
  if (domains < 2 || !d.in_total || !d.measured || !d.energy_j || !summary.run.energy_j || *summary.run.energy_j <= 0)
    return std::nullopt;
  return *d.energy_j / *summary.run.energy_j;
}

std::string domain_table(const Summary& summary, std::size_t width) {
  Table table;
  table.columns = {{"Domain", false, 0},   {"Device", false, 3}, {"Energy", true, 0},  {kPlusMinus, true, 1},
                   {"Mean", true, 1},      {"Max", true, 2},     {"Covered", true, 1}, {"Method", false, 2},
                   {"In total", false, 1}, {"Share", false, 4}};
  const bool several = summary.nodes.size() > 1;
  for (const auto& node : summary.nodes) {
    for (const auto& d : node.domains) {
      const std::string mark = d.measured ? "" : "~";
      const auto marked = [&](const std::optional<double>& v, const char* unit, int digits) {
        return v ? mark + with_unit(*v, unit, digits) : std::string(kMissing);
      };
      const int digits = d.measured ? 4 : 2;
      table.rows.push_back({domain_label(node, d, several), shortened(printable(d.device), 20),
                            marked(d.energy_j, "J", digits), marked(d.uncertainty_j, "J", 2),
                            marked(d.mean_power_w, "W", digits), marked(d.max_power_w, "W", digits),
                            d.energy_j ? percent_text(d.coverage) : kMissing, method_text(d),
                            d.in_total && d.energy_j ? "yes" : "no", bar(share_of_total(summary, d), kBarWidth)});
    }
  }
  if (table.rows.empty()) return {};
  return "\n" + render_table(table, width) + outside_lines(summary, width);
}

// The command's part of what it shares with others; nothing where it had everything for itself.
std::string sharing_lines(const Summary& summary, std::size_t width) {
  std::string out;
  for (const auto& node : summary.nodes)
    for (const auto& a : node.attributions) {
      if (a.sharing != Sharing::shared) continue;
      const std::string where = summary.nodes.size() > 1 ? node.name + " " + a.domain : a.domain;
      const std::string bounds = fmt::format("{} to {}", with_unit(a.lower_j, "J", 3), with_unit(a.upper_j, "J", 3));
      const std::string part =
          a.energy_j ? fmt::format("about {} ({})", with_unit(*a.energy_j, "J", 3), bounds) : bounds;
      out += wrapped(fmt::format("{} is shared: this command's part by {} is {}{}", printable(where),
                                 printable(a.method), part, a.note.empty() ? "" : "; " + printable(a.note)),
                     width, 2);
    }
  return out;
}

// Regions of which one alone says little.
std::string pooled_lines(const Summary& summary, std::size_t width) {
  std::string out;
  for (const auto& p : summary.pooled)
    out += wrapped(
        fmt::format("{}: {} {} {} each, mean of {} (one is shorter than the sensors resolve)", printable(p.path),
                    with_unit(p.mean_energy_j, "J"), kPlusMinus, with_unit(p.uncertainty_j, "J", 2), p.count),
        width, 2);
  return out.empty() ? out : "\n" + out;
}

// One line a domain; the scale of each is its own highest mean, which stands behind it.
std::string power_pictures(const std::vector<PowerLine>& lines) {
  std::string out;
  std::size_t widest = 0;
  for (const auto& line : lines) widest = std::max(widest, display_width(printable(line.domain)));
  for (const auto& line : lines) {
    double highest = 0;
    for (const auto& value : line.values_w) highest = std::max(highest, value.value_or(0));
    const auto picture = sparkline(line.values_w, highest);
    if (picture.empty()) continue;
    const std::string name = printable(line.domain);
    out += fmt::format("  {}{}  {}  highest {}\n", name, std::string(widest - display_width(name), ' '), picture,
                       with_unit(highest, "W"));
  }
  return out.empty() ? out : "\n  Power over time, 0 to the highest mean of a part\n" + out;
}

std::string missing_gpu_line(const Summary& summary) {
  for (const auto& node : summary.nodes)
    for (const auto& d : node.domains)
      if (d.scope == Scope::gpu || d.scope == Scope::module) return {};
  return "  no GPU data\n";
}

std::string warning_list(const Summary& summary, const TextOptions& options) {
  if (summary.warnings.empty()) return {};
  const auto width = static_cast<std::size_t>(std::max(40, options.width));
  std::string out = "\n" + styled(summary.warnings.size() == 1 ? "Warning" : "Warnings", "33", options.colour) + "\n";
  for (const auto& w : summary.warnings) {
    out += wrapped(printable(w.message), width, 2);
    if (!w.remedy.empty()) out += wrapped(printable(w.remedy), width, 4);
  }
  return out;
}

}  // namespace

std::string render_text(const Manifest& manifest, const Summary& summary, const TextOptions& options) {
  const auto width = static_cast<std::size_t>(std::max(40, options.width));
  std::string out = heading(manifest, summary, options);
  out += nodes_table(summary, width);
  if (few_nodes(summary)) out += domain_table(summary, width);
  out += power_pictures(options.power);
  if (few_nodes(summary)) out += node_tables(summary, options) + sharing_lines(summary, width);
  out += missing_gpu_line(summary);
  out += region_tables(summary, options);
  out += pooled_lines(summary, width);
  if (any_estimate(summary)) out += "\n  ~ marks an estimate: not measured, and never added to measured energy\n";
  out += warning_list(summary, options);
  return out;
}

}  // namespace ergometer
