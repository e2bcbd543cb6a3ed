// The vision workloads: VGG-16, ResNet-50 and Inception v3 on ImageNet (protocol of Frey et al. 2022, arXiv:2201.12423)
// and VGG-19 on chest X-rays (Caspart et al. 2022, arXiv:2212.01698). Used by the registry.
#pragma once

#include "core/workload.hpp"

namespace ergometer::workload::vision {

extern const Workload kVgg16;
extern const Workload kResnet50;
extern const Workload kInceptionV3;
extern const Workload kXrayVgg19;

}  // namespace ergometer::workload::vision
