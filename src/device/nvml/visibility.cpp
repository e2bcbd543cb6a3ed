#include "device/nvml/visibility.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer::nvml {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
constexpr const char* kOrder = "CUDA_DEVICE_ORDER";

std::optional<std::string> variable(const Environment& environment, const char* name) {
  const auto it = environment.find(name);
  if (it == environment.end()) return std::nullopt;
  return it->second;
}

bool is_number(std::string_view entry) { return parse_int(entry).has_value(); }

bool same_models(const std::vector<VisibleCandidate>& gpus) {
  return std::all_of(gpus.begin(), gpus.end(), [&](const auto& gpu) { return gpu.name == gpus.front().name; });
}

// The driver takes any start of a UUID that fits one device only. Hex digits compare without case.
template <class Items>
const typename Items::value_type* by_uuid(const Items& items, std::string_view prefix) {
  const typename Items::value_type* found = nullptr;
  for (const auto& item : items) {
    if (!lower(item.uuid).starts_with(lower(prefix))) continue;
    if (found) return nullptr;
    found = &item;
  }
  return found;
}

struct Target {
  int index = 0;
  std::string key;  // what must not occur twice
  bool mig_slice = false;
  std::optional<std::size_t> slice;  // position of that slice, where it is listed
};

// "MIG-GPU-<uuid>/<gpu instance>/<compute instance>", the older form.
std::optional<Target> old_mig_target(std::string_view entry, const std::vector<VisibleCandidate>& gpus,
                                     const std::vector<MigInstance>& slices) {
  const auto parts = split(entry.substr(4), '/');
  if (parts.size() != 3) return std::nullopt;
  const auto gpu_instance = parse_uint(parts[1]), compute_instance = parse_uint(parts[2]);
  const auto* gpu = by_uuid(gpus, parts[0]);
  if (!gpu || !gpu_instance || !compute_instance) return std::nullopt;
  const auto listed = std::find_if(slices.begin(), slices.end(), [&](const MigInstance& slice) {
    return slice.parent == gpu->index && slice.gpu_instance == *gpu_instance &&
           slice.compute_instance == *compute_instance;
  });
  const bool any = std::any_of(slices.begin(), slices.end(), [&](const auto& s) { return s.parent == gpu->index; });
  if (any && listed == slices.end()) return std::nullopt;
  Target target{gpu->index, std::string(entry), true, std::nullopt};
  if (any) target.slice = static_cast<std::size_t>(listed - slices.begin());
  return target;
}

std::optional<Target> target_of(std::string_view entry, const std::vector<VisibleCandidate>& gpus,
                                const std::vector<MigInstance>& slices) {
  if (const auto number = parse_int(entry)) {
    if (*number < 0 || *number >= static_cast<std::int64_t>(gpus.size())) return std::nullopt;
    const auto& gpu = gpus[static_cast<std::size_t>(*number)];
    return Target{gpu.index, fmt::format("#{}", gpu.index), false, std::nullopt};
  }
  if (entry.starts_with("MIG-GPU-")) return old_mig_target(entry, gpus, slices);
  if (entry.starts_with("MIG-")) {
    const auto* slice = by_uuid(slices, entry);
    if (!slice) return std::nullopt;
    return Target{slice->parent, slice->uuid, true, static_cast<std::size_t>(slice - slices.data())};
  }
  if (!entry.starts_with("GPU-")) return std::nullopt;
  const auto* gpu = by_uuid(gpus, entry);
  if (!gpu) return std::nullopt;
  return Target{gpu->index, fmt::format("#{}", gpu->index), false, std::nullopt};
}

void warn(Visibility& out, std::string message, std::string remedy) {
  out.warnings.push_back({"cuda-visible-devices", std::move(message), std::move(remedy)});
}

void add(Visibility& out, int index, bool mig_slice, std::optional<std::size_t> slice = std::nullopt) {
  const auto same = [&](const Visibility::Entry& entry) { return entry.index == index; };
  auto entry = std::find_if(out.order.begin(), out.order.end(), same);
  if (entry == out.order.end()) entry = out.order.insert(entry, {index, mig_slice, {}});
  if (slice) entry->slices.push_back(*slice);
}

void take_cuda_answer(Visibility& out, const std::vector<VisibleCandidate>& gpus, const CudaDevices& cuda) {
  for (const auto& bus_id : cuda) {
    const auto it = std::find_if(gpus.begin(), gpus.end(), [&](const VisibleCandidate& gpu) {
      return canonical_bus_id(gpu.pci_bus_id) == canonical_bus_id(bus_id);
    });
    if (it != gpus.end())
      add(out, it->index, false);
    else
      warn(out, fmt::format("CUDA lists a device at {} that NVML does not list", bus_id), "");
  }
}

void parse_list(Visibility& out, const std::string& list, const std::vector<VisibleCandidate>& gpus,
                const std::vector<MigInstance>& slices) {
  std::set<std::string> seen;
  const auto entries = split(list, ',');
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto entry = trim(entries[i]);
    if (entry.empty() && i + 1 == entries.size()) return;
    const auto target = target_of(entry, gpus, slices);
    if (!target) {
      // "-1" is the common way to say "none"; nothing is wrong then.
      if (entry != "-1")
        warn(out,
             fmt::format("{}={}: entry '{}' names no GPU here; CUDA ends its list before it", kVisible, list, entry),
             "use the numbers or UUIDs that `ergometer sensors` lists");
      return;
    }
    if (!seen.insert(target->key).second) {
      out.order.clear();
      warn(out, fmt::format("{}={}: '{}' names a device twice; CUDA then offers none", kVisible, list, entry),
           "name each GPU once");
      return;
    }
    add(out, target->index, target->mig_slice, target->slice);
  }
}

}  // namespace

std::string canonical_bus_id(std::string_view bus_id) {
  const std::string text = lower(trim(bus_id));
  const auto colon = split(text, ':');
  if (colon.size() != 3) return text;
  const auto dot = split(colon[2], '.');
  if (dot.size() != 2) return text;
  const auto bare = [](std::string_view digits) {
    const auto first = digits.find_first_not_of('0');
    return std::string(first == std::string_view::npos ? "0" : digits.substr(first));
  };
  return fmt::format("{}:{}:{}.{}", bare(colon[0]), bare(colon[1]), bare(dot[0]), bare(dot[1]));
}

bool needs_cuda_order(const Environment& environment, const std::vector<VisibleCandidate>& gpus) {
  const auto list = variable(environment, kVisible);
  if (!list || gpus.empty() || same_models(gpus) || variable(environment, kOrder) == "PCI_BUS_ID") return false;
  const auto entries = split(*list, ',');
  return std::any_of(entries.begin(), entries.end(), [](auto entry) { return is_number(trim(entry)); });
}

Visibility resolve_visibility(const Environment& environment, const std::vector<VisibleCandidate>& gpus,
                              const std::vector<MigInstance>& slices, const std::optional<CudaDevices>& cuda) {
  Visibility out;
  const auto list = variable(environment, kVisible);
  const bool own_order = needs_cuda_order(environment, gpus);
  if (own_order && cuda) {
    take_cuda_answer(out, gpus, *cuda);
    return out;
  }
  if (!list) {
    for (const auto& gpu : gpus) out.order.push_back({gpu.index, false, {}});
    out.ordinals_certain = gpus.empty() || same_models(gpus) || variable(environment, kOrder) == "PCI_BUS_ID";
    return out;
  }
  parse_list(out, *list, gpus, slices);
  if (own_order) {
    out.ordinals_certain = false;
    out.warnings.push_back(
        {"cuda-order-uncertain",
         fmt::format("{}={} counts in CUDA's own order (fastest first) on different GPU models, and libcuda could not "
                     "be asked: the GPUs that the command uses may be others than those counted",
                     kVisible, *list),
         "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the GPUs by UUID"});
  }
  for (const auto& entry : out.order)
    if (entry.mig_slice)
      out.warnings.push_back({"mig-shared",
                              fmt::format("the command uses a MIG slice of GPU {}; energy is measured for the whole "
                                          "GPU, shared with its other slices",
                                          entry.index),
                              ""});
  return out;
}

std::optional<CudaDevices> ask_cuda(const Host& host, const Environment& environment) {
  for (const char* name : {kVisible, kOrder}) {
    const char* ours = std::getenv(name);
    if ((ours ? std::optional<std::string>(ours) : std::nullopt) != variable(environment, name)) return std::nullopt;
  }
  const auto library = host.load("libcuda.so.1");
  if (!library) return std::nullopt;
  const auto init = (*library)->function<int(unsigned)>("cuInit");
  const auto get_count = (*library)->function<int(int*)>("cuDeviceGetCount");
  const auto get_device = (*library)->function<int(int*, int)>("cuDeviceGet");
  const auto get_bus_id = (*library)->function<int(char*, int, int)>("cuDeviceGetPCIBusId");
  int count = 0;
  if (!init || !get_count || !get_device || !get_bus_id || init(0) != 0 || get_count(&count) != 0) return std::nullopt;
  CudaDevices devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    char bus_id[32] = {};
    if (get_device(&device, ordinal) != 0 || get_bus_id(bus_id, sizeof bus_id, device) != 0) return std::nullopt;
    devices.emplace_back(bus_id);
  }
  return devices;
}

}  // namespace ergometer::nvml
