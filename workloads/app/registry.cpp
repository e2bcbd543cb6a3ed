#include "app/registry.hpp"

#include <fmt/format.h>

#include "core/text.hpp"
#include "language/workloads.hpp"
#include "load_lstm/load_lstm.hpp"
#include "molecules/workloads.hpp"
#include "vision/workloads.hpp"

namespace ergometer::workload {

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = {
      vision::kVgg16,     vision::kResnet50,   vision::kInceptionV3, language::kBertBase, language::kDistilbert,
      molecules::kSchnet, molecules::kDimenet, molecules::kPna,      vision::kXrayVgg19,  load_lstm::kWorkload,
  };
  return all;
}

Result<const Workload*> find_workload(std::string_view name) {
  std::vector<std::string> names;
  for (const Workload& workload : workloads()) {
    if (workload.name == name) return &workload;
    names.emplace_back(workload.name);
  }
  return Error{Fault::usage, fmt::format("no workload is named '{}'", name),
               fmt::format("did you mean '{}'? 'ergometer-workload list' shows all", nearest(name, names))};
}

}  // namespace ergometer::workload
