// ergometer list [STORE]: the runs below a folder, damaged ones with their reason.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.hpp"
#include "command.hpp"
#include "library/load_run.hpp"
#include "report/table.hpp"
#include "report/units.hpp"
#include "store/run_reader.hpp"

namespace ergometer::cli {
namespace {

namespace fs = std::filesystem;
constexpr int kDeepest = 4;  // folders below STORE that may lie between it and a run
constexpr std::size_t kMaxSummary = 256 << 20;

struct Line {
  std::string path, name, when, duration, energy, exit, state;
  std::int64_t started_ns = 0;  // for the order
};

std::string local_time(WallTime t) {
  const std::time_t s = to_ns(t) / 1'000'000'000;
  std::tm parts{};
  if (!::localtime_r(&s, &parts)) return kMissing;
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", parts);
}

// The energy that summary.json states; derived anew for a run without one (cut, written by hand, or removed).
std::string energy_of_run(const fs::path& dir) {
  const auto text = read_file(dir / "summary.json", kMaxSummary);
  const auto json = nlohmann::json::parse(text ? *text : "", nullptr, false);
  if (json.is_object() && json.contains("run") && json["run"].is_object()) {
    const auto energy = json["run"].find("energy_j");
    return energy != json["run"].end() && energy->is_number() ? with_unit(energy->get<double>(), "J") : kMissing;
  }
  const auto run = load_run(dir);
  return run ? with_unit(run->summary.run.energy_j, "J") : kMissing;
}

Line line_of(const fs::path& dir, const std::string& shown_path) {
  Line line;
  line.path = shown_path;
  const auto reader = RunReader::open(dir);
  if (!reader) {
    line.state = "damaged: " + reader.error().message;
    return line;
  }
  const Manifest& m = reader->manifest();
  line.name = m.name;
  line.state = m.state;
  if (!m.clocks.empty()) {
    line.started_ns = to_ns(m.clocks.front().wall);
    line.when = local_time(m.clocks.front().wall);
  }
  if (m.begin && m.end) line.duration = duration_text(seconds(*m.end - *m.begin));
  if (m.exit_code) line.exit = fmt::format("{}", *m.exit_code);
  line.energy = energy_of_run(dir);
  return line;
}

// A folder with a run.json is a run; what lies inside it is not searched. Links to folders are not followed.
void find_runs(const fs::path& dir, const fs::path& relative, int depth, std::vector<Line>& out) {
  std::error_code ec;
  if (fs::exists(dir / "run.json", ec)) {
    out.push_back(line_of(dir, relative.empty() ? dir.string() : relative.string()));
    return;
  }
  if (depth == kDeepest) return;
  for (const auto& name : list_dir(dir))
    if (fs::is_directory(fs::symlink_status(dir / name, ec))) find_runs(dir / name, relative / name, depth + 1, out);
}

int list_runs(const std::string& store) {
  std::error_code ec;
  if (!fs::is_directory(store, ec))
    return report_error(
        {ErrorCode::not_found, fmt::format("there is no folder {}", store), "name a folder that holds runs"});
  std::vector<Line> lines;
  find_runs(store, {}, 0, lines);
  if (lines.empty()) {
    fmt::print("no runs in {}\n", store);
    return 0;
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.started_ns < b.started_ns; });
  Table table;
  table.columns = {{"Run", false, 0},   {"Name", false, 1}, {"Started", false, 0}, {"Duration", true, 0},
                   {"Energy", true, 0}, {"Exit", true, 0},  {"State", false, 0}};
  for (const auto& l : lines)
    table.rows.push_back(
        {printable(l.path), printable(l.name), l.when, l.duration, l.energy, l.exit, printable(l.state)});
  // Damage has long reasons; they are worth a long line.
  fmt::print("{}", render_table(table, 1000, 0));
  return 0;
}

}  // namespace

void add_list(CLI::App& app, Context& context) {
  const auto store = std::make_shared<std::string>(".");
  auto* command = app.add_subcommand("list", "List the runs below a folder");
  command->add_option("STORE", *store, "folder of runs")->capture_default_str();
  command->callback([store, &context] { context.exit_code = list_runs(*store); });
}

}  // namespace ergometer::cli
