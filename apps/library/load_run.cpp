#include "library/load_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>
#include <unordered_map>

#include "analysis/summarise.hpp"
#include "base/file.hpp"
#include "report/json.hpp"
#include "store/run_reader.hpp"

namespace ergometer {
namespace {

// One sample file to read and analyse.
struct Task {
  std::string node, sensor;
  std::vector<Warning> damage;
};

void run_task(const RunReader& reader, Summariser& summariser, const RunVisitor& visitor, Task& task) {
  try {
    const auto trace = reader.samples(task.node, task.sensor, &task.damage);
    if (trace) {
      summariser.add_trace(task.node, *trace);
      if (visitor.trace) visitor.trace(task.node, *trace);
      return;
    }
    task.damage.push_back({"samples-unreadable", trace.error().message, trace.error().hint});
  } catch (const std::bad_alloc&) {
    task.damage.push_back({"samples-unreadable", fmt::format("not enough memory for the samples of {}", task.sensor),
                           "look at the run on a larger machine"});
  }
}

// Tasks of one node follow one another; who does the last of them settles the node.
void run_tasks(const RunReader& reader, Summariser& summariser, const RunVisitor& visitor, std::vector<Task>& tasks) {
  std::atomic<std::size_t> next = 0;
  std::unordered_map<std::string, std::atomic<std::size_t>> left;
  for (const Task& task : tasks) ++left[task.node];
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      run_task(reader, summariser, visitor, tasks[i]);
      if (--left.at(tasks[i].node) == 0) summariser.finish_node(tasks[i].node);
    }
  };
  const std::size_t threads = std::min<std::size_t>(std::max(1u, std::thread::hardware_concurrency()), tasks.size());
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
}

// The part that a machine has in `only`, for who asks for a piece of a run.
Manifest part_within(Manifest part, const std::optional<Interval>& only) {
  if (!only) return part;
  part.begin = std::clamp(part.begin.value_or(only->begin), only->begin, only->end);
  part.end = std::clamp(part.end.value_or(only->end), *part.begin, only->end);
  return part;
}

}  // namespace

Result<LoadedRun> load_run(const std::filesystem::path& dir, const RunVisitor& visitor,
                           const std::optional<Interval>& only) {
  auto reader = RunReader::open(dir);
  if (!reader) return tl::unexpected(reader.error());
  Manifest manifest = reader->manifest();
  if (only) manifest.begin = only->begin, manifest.end = only->end;
  Summariser summariser(manifest);
  std::vector<Warning> damage;
  std::vector<Task> tasks;
  for (const auto& node : reader->nodes()) {
    auto regions = reader->regions(node.name);
    auto events = reader->events(node.name);
    if (!regions) damage.push_back({"regions-unreadable", regions.error().message, regions.error().hint});
    if (!events) damage.push_back({"events-unreadable", events.error().message, events.error().hint});
    if (!regions) regions = std::vector<Region>{};
    if (!events) events = std::vector<Event>{};
    if (visitor.node) visitor.node(node, *regions, *events);
    if (reader->has_parts())
      summariser.add_part(node, part_within(reader->part(node.name), only), reader->clock(node.name),
                          std::move(*regions), *events);
    else
      summariser.add_node(node, std::move(*regions), *events);
    for (auto& sensor : reader->sensors(node.name)) tasks.push_back({node.name, std::move(sensor), {}});
  }
  run_tasks(*reader, summariser, visitor, tasks);
  LoadedRun run{reader->manifest(), reader->nodes(), summariser.finish()};
  // Damage of the record comes first: it may explain everything that follows.
  damage.insert(damage.begin(), reader->warnings().begin(), reader->warnings().end());
  for (auto& task : tasks) std::move(task.damage.begin(), task.damage.end(), std::back_inserter(damage));
  run.summary.warnings.insert(run.summary.warnings.begin(), damage.begin(), damage.end());
  return run;
}

Result<void> write_summary(const std::filesystem::path& dir, const Summary& summary) {
  return write_file_atomically(dir / "summary.json", summary_json(summary));
}

}  // namespace ergometer
