// The shape of a workload's samples. Used by its data sets.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "core/data_set.hpp"

namespace ergometer::workload::vision {

struct Form {
  std::string_view name;  // of the workload
  std::int64_t channels = 3;
  std::int64_t size = 224;  // pixels of a side
  std::int64_t least = 32;  // below, the network's last layers would have no pixel left
  std::int64_t classes = 1000;
};

// The side that the options ask for; a usage error if the network cannot take it.
[[nodiscard]] inline Result<std::int64_t> side_of(const Form& form, const DataOptions& options) {
  const std::int64_t side = options.image_size > 0 ? options.image_size : form.size;
  if (side < form.least) {
    return Error{Fault::usage, fmt::format("pictures of {0}x{0} are too small for {1}", side, form.name),
                 fmt::format("use an image size of {} or more ({} is the workload's)", form.least, form.size)};
  }
  return side;
}

}  // namespace ergometer::workload::vision
