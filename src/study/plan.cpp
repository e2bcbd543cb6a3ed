#include "study/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "study/design.hpp"

namespace ergometer {
namespace {

using PlanJson = nlohmann::ordered_json;
constexpr const char* kPlanSchema = "ergometer.study-plan/1";

// std::shuffle may differ between standard libraries; the plan must not.
void shuffle(std::vector<PlannedRun>::iterator begin, std::size_t count, std::mt19937_64& random) {
  for (std::size_t i = count; i > 1; --i) {
    const auto chosen = static_cast<std::ptrdiff_t>(random() % i);
    std::swap(begin[chosen], begin[static_cast<std::ptrdiff_t>(i - 1)]);
  }
}

PlanJson overrides_json(const StudyOverrides& overrides) {
  PlanJson out = PlanJson::object();
  if (!overrides.parameters.empty()) out["parameters"] = overrides.parameters;
  if (!overrides.levels.empty()) out["levels"] = overrides.levels;
  if (overrides.executor) out["executor"] = to_word(*overrides.executor);
  if (overrides.design) out["design"] = to_word(*overrides.design);
  return out;
}

StudyOverrides overrides_from(const PlanJson& json) {
  StudyOverrides overrides;
  if (json.contains("parameters")) overrides.parameters = json["parameters"].get<std::map<std::string, std::string>>();
  if (json.contains("levels"))
    overrides.levels = json["levels"].get<std::map<std::string, std::vector<std::string>>>();
  if (json.contains("executor")) overrides.executor = executor_kind_from(json["executor"].get<std::string>());
  if (json.contains("design")) overrides.design = design_kind_from(json["design"].get<std::string>());
  return overrides;
}

}  // namespace

std::uint64_t random_seed() {
  std::random_device device;
  return device();  // short enough to be written down
}

Result<Plan> make_plan(const StudyFile& file, const StudyOverrides& overrides, std::uint64_t seed,
                       const std::string& source) {
  auto cells = cells_of(file, source);
  if (!cells) return tl::unexpected(cells.error());
  Plan plan;
  plan.seed = file.runs.seed.value_or(seed);
  plan.overrides = overrides;
  plan.cells = std::move(*cells);
  const int repetitions = file.runs.until ? file.runs.until->at_most : file.runs.repetitions;
  const std::size_t count = plan.cells.size();
  plan.runs.reserve(count * static_cast<std::size_t>(repetitions));
  std::mt19937_64 random(plan.seed);
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (std::size_t cell = 0; cell < count; ++cell) plan.runs.push_back({cell, repetition});
    // Each block has an order of its own, so that what drifts with time is no cell's alone.
    if (file.runs.randomise) shuffle(plan.runs.end() - static_cast<std::ptrdiff_t>(count), count, random);
  }
  return plan;
}

std::string plan_to_json(const Plan& plan) {
  PlanJson out;
  out["schema"] = kPlanSchema;
  out["seed"] = plan.seed;
  out["overrides"] = overrides_json(plan.overrides);
  out["level_values"] = PlanJson::array();
  for (const auto& factor : plan.level_values) {
    PlanJson values = PlanJson::array();
    for (const auto& value : factor) values.push_back(value ? PlanJson(*value) : PlanJson(nullptr));
    out["level_values"].push_back(std::move(values));
  }
  // A cell and a run a line would be long; as plain lists they stay small and quick.
  std::string text = out.dump(1);
  text.resize(text.rfind('\n'));
  text += ",\n \"cells\": [";
  for (std::size_t i = 0; i < plan.cells.size(); ++i)
    text += fmt::format("{}[{}]", i ? "," : "", fmt::join(plan.cells[i].levels, ","));
  text += "],\n \"runs\": [";
  for (std::size_t i = 0; i < plan.runs.size(); ++i)
    text += fmt::format("{}[{},{}]", i ? "," : "", plan.runs[i].cell, plan.runs[i].repetition);
  return text + "]\n}\n";
}

Result<Plan> plan_from_json(std::string_view text, const std::string& source) {
  const auto damaged = [&](const std::string& what) {
    return fail(ErrorCode::corrupt, fmt::format("{}: {}", source, what),
                "it is written by `ergometer study run` and must not be changed; begin anew in another folder");
  };
  // A file that a person has changed may hold anything; the library's complaints become one error.
  try {
    const auto json = PlanJson::parse(text);
    if (json.at("schema") != kPlanSchema) return damaged("this is no plan that this version knows");
    Plan plan;
    plan.seed = json.at("seed").get<std::uint64_t>();
    plan.overrides = overrides_from(json.at("overrides"));
    for (const auto& factor : json.at("level_values")) {
      auto& values = plan.level_values.emplace_back();
      for (const auto& value : factor)
        values.push_back(value.is_null() ? std::nullopt : std::optional(value.get<double>()));
    }
    for (const auto& cell : json.at("cells")) plan.cells.push_back({cell.get<std::vector<std::size_t>>()});
    for (const auto& run : json.at("runs")) plan.runs.push_back({run.at(0).get<std::size_t>(), run.at(1).get<int>()});
    return plan;
  } catch (const PlanJson::exception& error) {
    return damaged(error.what());
  }
}

Result<void> check_plan(const Plan& plan, const StudyFile& file, const std::string& source) {
  const bool cells_fit = std::ranges::all_of(plan.cells, [&](const StudyCell& cell) {
    if (cell.levels.size() != file.factors.size()) return false;
    for (std::size_t f = 0; f < cell.levels.size(); ++f)
      if (cell.levels[f] >= file.factors[f].levels.size()) return false;
    return true;
  });
  const bool runs_fit =
      std::ranges::all_of(plan.runs, [&](const auto& run) { return run.cell < plan.cells.size() && run.repetition >= 0; });
  if (cells_fit && runs_fit && !plan.cells.empty()) return {};
  return fail(ErrorCode::corrupt, fmt::format("{} does not fit its study.toml", source),
              "one of them was changed; begin anew in another folder");
}

std::string run_folder_name(std::size_t run) { return fmt::format("runs/{:04}", run); }

}  // namespace ergometer
