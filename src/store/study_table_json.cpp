#include "store/study_table_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.hpp"
#include "base/json_object.hpp"

namespace ergometer {
namespace {

using StudyJson = nlohmann::ordered_json;

constexpr const char* kTableSchema = "ergometer.study-table/1";
constexpr const char* kTableFile = "table.json";
constexpr std::size_t kLargestTable = 512U << 20U;  // far above 3,400 runs with 20 metrics each (6 MB)

std::string one_line(const StudyJson& json) { return json.dump(-1, ' ', false, StudyJson::error_handler_t::replace); }

StudyJson finite(std::optional<double> value) {
  return value && std::isfinite(*value) ? StudyJson(*value) : StudyJson(nullptr);
}

StudyJson factor_json(const StudyFactor& f) {
  StudyJson values = StudyJson::array();
  for (const auto& value : f.values) values.push_back(finite(value));
  return {{"name", f.name}, {"unit", f.unit}, {"levels", f.levels}, {"values", std::move(values)}};
}

StudyJson run_json(const StudyRun& run) {
  StudyJson metrics = StudyJson::object();
  for (const auto& [name, metric] : run.metrics) {
    if (!std::isfinite(metric.value)) continue;
    metrics[name] = {{"value", metric.value}, {"uncertainty", finite(metric.uncertainty)}};
  }
  StudyJson out{{"cell", run.cell}, {"repetition", run.repetition}, {"block", run.block}};
  out["order"] = run.order ? StudyJson(*run.order) : StudyJson(nullptr);
  out["folder"] = run.folder;
  out["verdict"] = to_word(run.verdict);
  out["reasons"] = run.reasons;
  out["metrics"] = std::move(metrics);
  return out;
}

// A list with an entry a line: thousands of runs stay readable and give small differences.
template <class List, class Function>
void append_list(std::string& out, const char* key, const List& list, Function to_json) {
  out += fmt::format(",\n  \"{}\": [", key);
  const char* separator = "\n    ";
  for (const auto& entry : list) {
    out += separator;
    out += one_line(to_json(entry));
    separator = ",\n    ";
  }
  out += list.empty() ? "]" : "\n  ]";
}

// An index, or the complaint that it points outside its list.
std::size_t checked_index(JsonObject& object, const char* key, int value, std::size_t size) {
  if (value >= 0 && static_cast<std::size_t>(value) < size) return static_cast<std::size_t>(value);
  object.complain(key, size == 0 ? "an index into a list that is empty"
                                 : fmt::format("an index from 0 to {}, not {}", size - 1, value));
  return 0;
}

void claim_name(JsonObject& object, std::set<std::string>& names, const std::string& name) {
  if (name.empty()) return object.complain("name", "there, and not empty");
  if (!names.insert(name).second) object.complain("name", "unlike every other (\"" + name + "\" is there twice)");
}

StudyFactor read_factor(JsonObject& o, std::set<std::string>& names) {
  StudyFactor f;
  o.read("name", f.name);
  claim_name(o, names, f.name);
  o.read("unit", f.unit);
  o.read("levels", f.levels);
  o.read("values", f.values);
  if (f.values.empty()) f.values.resize(f.levels.size());
  if (f.values.size() != f.levels.size()) o.complain("values", "as long as levels");
  return f;
}

StudyMetric read_metric(JsonObject& o, std::set<std::string>& names) {
  StudyMetric m;
  o.read("name", m.name);
  claim_name(o, names, m.name);
  o.read("title", m.title);
  if (m.title.empty()) m.title = m.name;
  o.read("unit", m.unit);
  o.read("lower_is_better", m.lower_is_better);
  return m;
}

StudyCell read_cell(JsonObject& o, const std::vector<StudyFactor>& factors) {
  std::vector<int> levels;
  o.read("levels", levels);
  StudyCell cell;
  if (levels.size() != factors.size()) {
    o.complain("levels", fmt::format("one index for each of the {} factors", factors.size()));
    return cell;
  }
  for (std::size_t i = 0; i < levels.size(); ++i)
    cell.levels.push_back(checked_index(o, "levels", levels[i], factors[i].levels.size()));
  return cell;
}

StudyRun read_run(JsonObject& o, std::size_t cells, const std::set<std::string>& metrics) {
  StudyRun run;
  int cell = -1;
  o.read("cell", cell);
  run.cell = checked_index(o, "cell", cell, cells);
  o.read("repetition", run.repetition);
  o.read("block", run.block);
  o.read("order", run.order);
  o.read("folder", run.folder);
  std::string word;
  o.read("verdict", word);
  if (const auto verdict = verdict_of(word))
    run.verdict = *verdict;
  else
    o.complain("verdict", "valid, invalid, failed or missing");
  o.read("reasons", run.reasons);
  o.read_members("metrics", [&](const std::string& name, JsonObject& metric) {
    if (!metrics.contains(name)) o.complain("metrics." + name, "one of the names in the table's metrics");
    std::optional<double> value;
    StudyValue out;
    metric.read("value", value);
    metric.read("uncertainty", out.uncertainty);
    if (!value) return;  // not known, which the table writes by leaving it out
    out.value = *value;
    run.metrics.emplace(name, out);
  });
  return run;
}

}  // namespace

std::string study_table_to_json(const StudyTable& table) {
  std::string out = fmt::format("{{\n  \"schema\": \"{}\",\n  \"name\": {},\n  \"description\": {}", kTableSchema,
                                one_line(table.name), one_line(table.description));
  append_list(out, "factors", table.factors, factor_json);
  append_list(out, "metrics", table.metrics, [](const StudyMetric& m) {
    return StudyJson{
        {"name", m.name}, {"title", m.title}, {"unit", m.unit}, {"lower_is_better", m.lower_is_better}};
  });
  append_list(out, "cells", table.cells, [](const StudyCell& c) { return StudyJson{{"levels", c.levels}}; });
  append_list(out, "runs", table.runs, run_json);
  append_list(out, "warnings", table.warnings, [](const Warning& w) {
    return StudyJson{{"code", w.code}, {"message", w.message}, {"remedy", w.remedy}};
  });
  return out + "\n}\n";
}

Result<StudyTable> study_table_from_json(std::string_view text, const std::string& source) {
  StudyTable table;
  const auto read = read_json(text, source, kTableSchema, [&](JsonObject& o) {
    o.read("name", table.name);
    o.read("description", table.description);
    std::set<std::string> factors, metrics;
    o.read_objects("factors", [&](JsonObject& f) { table.factors.push_back(read_factor(f, factors)); });
    o.read_objects("metrics", [&](JsonObject& m) { table.metrics.push_back(read_metric(m, metrics)); });
    o.read_objects("cells", [&](JsonObject& c) { table.cells.push_back(read_cell(c, table.factors)); });
    o.read_objects("runs", [&](JsonObject& r) { table.runs.push_back(read_run(r, table.cells.size(), metrics)); });
    o.read_objects("warnings", [&](JsonObject& w) {
      Warning warning;
      w.read("code", warning.code);
      w.read("message", warning.message);
      w.read("remedy", warning.remedy);
      table.warnings.push_back(std::move(warning));
    });
  });
  if (!read) return tl::unexpected(read.error());
  return table;
}

Result<void> write_study_table(const std::filesystem::path& study, const StudyTable& table) {
  return write_file_atomically(study / kTableFile, study_table_to_json(table));
}

Result<StudyTable> read_study_table(const std::filesystem::path& study) {
  std::error_code ec;
  const auto file = std::filesystem::is_directory(study, ec) ? study / kTableFile : study;
  const auto text = read_file(file, kLargestTable);
  if (!text) {
    Error error = text.error();
    if (error.code == ErrorCode::not_found)
      error.hint = "a study's folder holds table.json: `ergometer study run` and `ergometer import` write it";
    return tl::unexpected(error);
  }
  return study_table_from_json(*text, file.string());
}

bool is_study(const std::filesystem::path& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) return std::filesystem::is_regular_file(path / kTableFile, ec);
  return path.filename() == kTableFile && std::filesystem::is_regular_file(path, ec);
}

}  // namespace ergometer
