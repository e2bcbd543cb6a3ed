#include "report/csv.hpp"

#include <fmt/format.h>

#include "base/csv.hpp"
#include "base/number.hpp"

namespace ergometer {
namespace {

std::string text(const std::optional<double>& value) { return value ? format_double(*value) : std::string(); }
const char* yes_no(bool value) { return value ? "true" : "false"; }

// The columns that tell the interval, shared by all its domains.
using Fields = std::vector<std::string>;

void append_rows(std::string& out, const Fields& interval, const std::vector<DomainEnergy>& domains, int rank = -1) {
  const std::string rank_text = rank >= 0 ? fmt::format("{}", rank) : "";
  for (const auto& d : domains) {
    Fields fields = interval;
    for (std::string field : {d.domain, d.device, std::string(to_word(d.scope)), std::string(to_word(d.method)),
                              std::string(yes_no(d.measured)), std::string(yes_no(d.in_total)), text(d.energy_j),
                              text(d.uncertainty_j), text(d.mean_power_w), text(d.max_power_w),
                              format_double(d.coverage), text(d.filled_j), text(d.gap_j), d.note, rank_text})
      fields.push_back(std::move(field));
    out += csv_line(fields);
  }
  if (domains.empty()) {  // the interval itself is still a row
    Fields fields = interval;
    fields.resize(interval.size() + 14);
    fields.push_back(rank_text);
    out += csv_line(fields);
  }
}

}  // namespace

std::string summary_csv(const Summary& summary) {
  std::string out =
      "level,node,path,name,index,count,t_begin_s,duration_s,cut,domain,device,scope,method,measured,in_total,energy_j,"
      "uncertainty_j,mean_power_w,max_power_w,coverage,filled_j,gap_j,note,rank\n";
  for (const auto& node : summary.nodes)
    append_rows(out,
                {"run", node.name, "", "", "", "1", "0",
                 text(node.duration_s ? node.duration_s : summary.run.duration_s), "false"},
                node.domains);
  for (const auto* regions : {&summary.regions, &summary.rank_regions})
    for (const auto& r : *regions) {
      std::string index;
      if (r.index) append_int(index, *r.index);
      append_rows(out,
                  {regions == &summary.regions ? "region" : "rank", r.node, r.path, r.name, index,
                   fmt::format("{}", r.count), format_double(r.t_begin_s), format_double(r.duration_s), yes_no(r.cut)},
                  r.domains, r.rank);
    }
  return out;
}

}  // namespace ergometer
