#include "study/study_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

void read_until(TomlTable& table, RunRules& runs) {
  table.only({"metric", "interval", "at_most"});
  RepeatUntil until;
  until.at_most = std::max(10, runs.repetitions);
  table.read("metric", until.metric);
  table.read_share("interval", until.interval);
  table.read("at_most", until.at_most, 2);
  const int line = TomlTable::line_of(table.toml());
  if (until.metric.empty() || until.interval <= 0)
    table.complain(line, "\"until\" needs a metric and an interval",
                   "write until = { metric = \"energy_j\", interval = \"2%\", at_most = 10 }");
  if (until.at_most < runs.repetitions)
    table.complain(line, fmt::format("at_most = {} is below repetitions = {}", until.at_most, runs.repetitions),
                   "repetitions is the least number, at_most the largest");
  runs.until = until;
}

void read_cool_down(TomlTable& runs, CoolDown& cool) {
  const auto* node = runs.toml().get("cool_down");
  if (!node) return;
  if (!node->is_table()) return runs.read("cool_down", cool.time);
  runs.table("cool_down", [&](TomlTable& table) {
    table.only({"time", "below", "at_most"});
    table.read("time", cool.time);
    table.read("below", cool.below_celsius);
    table.read("at_most", cool.at_most);
  });
}

}  // namespace

void read_runs(TomlTable& table, RunRules& runs) {
  table.only({"repetitions", "until", "warm_up", "cool_down", "order", "seed", "time_out", "on_failure", "time_budget",
              "energy_budget", "measure"});
  table.read("repetitions", runs.repetitions, 1);
  table.table("until", [&](TomlTable& until) { read_until(until, runs); });
  table.read("warm_up", runs.warm_up, 0);
  read_cool_down(table, runs.cool_down);
  runs.randomise = read_choice(table, "order", {"random", "as-listed"}, 0) == 0;
  if (const auto* node = table.toml().get("seed")) {
    const auto seed = node->value_exact<std::int64_t>();
    if (seed && *seed >= 0)
      runs.seed = static_cast<std::uint64_t>(*seed);
    else
      table.complain(TomlTable::line_of(*node), "\"seed\" is a whole number from 0", "write seed = 1");
  }
  table.read("time_out", runs.time_out);
  if (runs.time_out && *runs.time_out == Nanos{0})
    table.complain(TomlTable::line_of(*table.toml().get("time_out")), "time_out is 0", "write time_out = \"1h\"");
  runs.on_failure = static_cast<OnFailure>(read_choice(table, "on_failure", {"go-on", "retry", "stop"}, 0));
  table.read("time_budget", runs.time_budget);
  if (const auto* node = table.toml().get("energy_budget")) {
    const auto text = node->value_exact<std::string>().value_or("");
    const auto unit = text.find_first_not_of("0123456789.eE+ ");
    const auto number = parse_double(std::string_view(text).substr(0, unit));
    const auto word = unit == std::string::npos ? std::string_view() : trim(std::string_view(text).substr(unit));
    const double factor = word == "J" ? 1 : word == "kJ" ? 1e3 : word == "MJ" ? 1e6 : word == "Wh" ? 3600 : word == "kWh" ? 3.6e6 : 0;
    if (number && *number > 0 && factor > 0)
      runs.energy_budget_j = *number * factor;
    else
      table.complain(TomlTable::line_of(*node), "\"energy_budget\" is an energy with its unit",
                     "write energy_budget = \"5MJ\", \"20kJ\" or \"2kWh\"");
  }
  table.read("measure", runs.measure);
}

void read_validity(TomlTable& table, ValidityRules& rules) {
  table.only({"coverage", "readings", "throttle", "foreign_processes", "start_temperature", "start_spread"});
  table.read_share("coverage", rules.coverage);
  table.read("readings", rules.readings, 0);
  table.read_share("throttle", rules.throttle);
  table.read("foreign_processes", rules.foreign_processes);
  table.read("start_spread", rules.start_spread_celsius);
  const auto* node = table.toml().get("start_temperature");
  if (!node) return;
  const auto* range = node->as_array();
  if (range && range->size() == 2) {
    rules.lowest_start_celsius = (*range)[0].value<double>();
    rules.highest_start_celsius = (*range)[1].value<double>();
  }
  if (!rules.lowest_start_celsius || !rules.highest_start_celsius ||
      *rules.lowest_start_celsius >= *rules.highest_start_celsius)
    table.complain(TomlTable::line_of(*node), "\"start_temperature\" is a range in degrees Celsius",
                   "write start_temperature = [30, 50]");
}

}  // namespace ergometer
