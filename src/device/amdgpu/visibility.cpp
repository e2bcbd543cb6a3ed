#include "device/amdgpu/visibility.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer::amdgpu {
namespace {

using Positions = std::vector<std::size_t>;

// The entries of `list` picked from `from`, or nullopt if an entry cannot be told.
std::optional<Positions> pick(const std::string& list, const Positions& from, const std::vector<std::string>& uuids,
                              bool order_known, bool may_be_uuid) {
  Positions out;
  for (const auto part : split(list, ',')) {
    const auto entry = trim(part);
    std::optional<std::size_t> found;
    if (const auto number = parse_uint(entry)) {
      if (*number < from.size() && (order_known || uuids.size() == 1)) found = from[*number];
    } else if (may_be_uuid && entry.starts_with("GPU-")) {
      for (const auto position : from)
        if (lower(uuids[position]) == lower(entry)) found = position;
    }
    if (!found || std::ranges::find(out, *found) != out.end()) return std::nullopt;
    out.push_back(*found);
  }
  return out;
}

}  // namespace

Visibility resolve_visibility(const Environment& environment, const std::vector<std::string>& uuids, bool order_known) {
  Visibility out;
  for (std::size_t i = 0; i < uuids.size(); ++i) out.order.push_back(i);
  const Positions all = out.order;
  const auto apply = [&](const char* name) {
    const auto variable = environment.find(name);
    if (variable == environment.end()) return false;
    if (out.unknown) return true;
    const bool rocr = std::string_view(name).starts_with("ROCR");
    if (auto picked = pick(variable->second, out.order, uuids, order_known, rocr)) {
      out.order = std::move(*picked);
      return true;
    }
    out.unknown = Warning{"gpu-visibility-unknown",
                          fmt::format("{}={}: which AMD GPUs the command can use is not known; all of them are counted",
                                      name, variable->second),
                          "name existing GPUs, each once, by the numbers or UUIDs of rocminfo"};
    return true;
  };
  apply("ROCR_VISIBLE_DEVICES");
  for (const char* name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"})
    if (apply(name)) break;
  if (out.unknown) out.order = all;
  return out;
}

}  // namespace ergometer::amdgpu
