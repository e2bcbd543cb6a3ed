// The workloads schnet, dimenet and pna: graph networks that predict energies of QM9's molecules (protocol of Frey et
// al. 2022, arXiv:2201.12423). Used by the registry and by the tests.
#pragma once

#include "core/workload.hpp"

namespace ergometer::workload::molecules {

extern const Workload kSchnet;
extern const Workload kDimenet;
extern const Workload kPna;

}  // namespace ergometer::workload::molecules
