#include "device/nvml/nvml.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "device/nvml/gpu_probe.hpp"
#include "device/nvml/identity.hpp"
#include "device/nvml/visibility.hpp"

namespace ergometer {
namespace nvml {
namespace {

// All of discovery in real time; below the registry's patience, so that what did answer is not lost with what did not.
constexpr auto kPatience = std::chrono::milliseconds(4500);

// Results of the threads that look at the GPUs. Outlives a thread that hangs.
struct Board {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::optional<GpuParts>> parts;
  std::size_t answered = 0;
};

std::vector<GpuParts> probe_all(const std::shared_ptr<Driver>& driver, unsigned count, const ProbeOptions& options,
                                std::chrono::steady_clock::time_point deadline) {
  const auto board = std::make_shared<Board>();
  board->parts.resize(count);
  for (unsigned i = 0; i < count; ++i)
    std::thread([board, own = driver, i, options]() mutable {
      auto parts = probe_gpu(own, static_cast<int>(i), options);
      own.reset();  // whoever waits for the answer may expect to be the last owner
      const std::lock_guard lock(board->mutex);
      board->parts[i] = std::move(parts);
      ++board->answered;
      board->changed.notify_all();
    }).detach();
  std::unique_lock lock(board->mutex);
  board->changed.wait_until(lock, deadline, [&] { return board->answered == count; });
  std::vector<GpuParts> all;
  for (unsigned i = 0; i < count; ++i)
    all.push_back(board->parts[i] ? std::move(*board->parts[i]) : silent_gpu(static_cast<int>(i)));
  return all;
}

void note_versions(const Api& api, Node& node) {
  char text[96] = {};
  if (api.driver_version && api.driver_version(text, sizeof text - 1) == Return::success)
    node.versions["nvidia-driver"] = text;
  if (api.nvml_version && api.nvml_version(text, sizeof text - 1) == Return::success) node.versions["nvml"] = text;
  int cuda = 0;
  if (api.cuda_version && api.cuda_version(&cuda) == Return::success && cuda > 0)
    node.versions["cuda"] = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
}

void mark_slice(GpuInfo& info, const MigInstance& visible) {
  for (auto& slice : info.slices) slice.visible |= slice.uuid == visible.uuid;
}

// The GPUs of one command's environment, added to those marked already. A GPU that has another number in another rank has
// none on the node.
void mark_visible_to(const Host& host, const Environment& environment, const std::vector<VisibleCandidate>& candidates,
                     const std::vector<MigInstance>& slices, std::vector<GpuParts>& gpus, Discovery& out) {
  std::optional<CudaDevices> cuda;
  if (needs_cuda_order(environment, candidates)) cuda = ask_cuda(host, environment);
  auto visibility = resolve_visibility(environment, candidates, slices, cuda);
  for (std::size_t ordinal = 0; ordinal < visibility.order.size(); ++ordinal) {
    const auto& entry = visibility.order[ordinal];
    GpuInfo& info = gpus[static_cast<std::size_t>(entry.index)].info;
    const auto number = static_cast<int>(ordinal);
    const bool agrees = visibility.ordinals_certain && (!info.visible || info.ordinal == number);
    info.visible = true;
    info.ordinal = agrees ? std::optional(number) : std::nullopt;
    for (const auto slice : entry.slices) mark_slice(info, slices[slice]);
    if (entry.mig_slice) info.note = "the command uses a MIG slice; energy is of the whole GPU, shared with others";
  }
  std::move(visibility.warnings.begin(), visibility.warnings.end(), std::back_inserter(out.warnings));
}

void mark_visible(const Host& host, const DiscoverOptions& options, std::vector<GpuParts>& gpus, Discovery& out) {
  std::vector<VisibleCandidate> candidates;
  std::vector<MigInstance> slices;
  for (auto& gpu : gpus) {
    candidates.push_back({gpu.info.index, gpu.info.uuid, gpu.info.name, gpu.info.pci_bus_id});
    slices.insert(slices.end(), gpu.slices.begin(), gpu.slices.end());
    gpu.info.visible = false;
  }
  mark_visible_to(host, options.environment, candidates, slices, gpus, out);
  for (const auto& environment : options.other_ranks) mark_visible_to(host, environment, candidates, slices, gpus, out);
}

void add_absence(Discovery& out, const Error& error) {
  out.node.absences.push_back({"nvml", "NVIDIA GPUs", error.message, error.hint});
}

}  // namespace
}  // namespace nvml

void discover_nvml(const Host& host, const DiscoverOptions& options, Discovery& out) {
  using namespace nvml;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  auto driver = Driver::open(host, options.nvml_path);
  if (!driver) return add_absence(out, driver.error());
  note_versions((*driver)->api(), out.node);
  unsigned count = 0;
  if (const Return code = (*driver)->api().count(&count); code != Return::success || count > kMaxGpus)
    return add_absence(out, {ErrorCode::unavailable, "NVML does not count its GPUs: " + to_text(code), ""});
  if (count == 0)
    return add_absence(out, {ErrorCode::not_found, "the NVIDIA driver lists no GPU",
                             "a container or job needs access to a GPU (--gpus, --gres=gpu:1)"});

  const ProbeOptions probe{options.interval, options.dense, view_processes(host.root, options.root_pid, options.more_roots)};
  auto gpus = probe_all(*driver, count, probe, deadline);
  mark_visible(host, options, gpus, out);
  for (auto& gpu : gpus) {
    if (!gpu.sensors.empty()) (*driver)->watch(gpu.gpu);
    std::move(gpu.sensors.begin(), gpu.sensors.end(), std::back_inserter(out.sensors));
    std::move(gpu.absences.begin(), gpu.absences.end(), std::back_inserter(out.node.absences));
    out.node.gpus.push_back(std::move(gpu.info));
  }
}

}  // namespace ergometer
