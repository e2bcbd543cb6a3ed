#include <cstdlib>

#include "parallel/communicator.hpp"

// LibTorch may say that it has Gloo, yet not bring the headers; CMakeLists.txt looks for them.
#ifdef ERGOMETER_WITH_GLOO
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif

namespace ergometer::workload {

#ifdef ERGOMETER_WITH_GLOO

Result<CommunicatorPtr> connect_gloo(const StorePtr& store, const Rank& rank, bool one_machine) {
  using Gloo = c10d::ProcessGroupGloo;
  const auto options = Gloo::Options::create();
  // As in torch.distributed, this variable names the network interface.
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME")) {
    options->devices.push_back(Gloo::createDeviceForInterface(interface));
  } else if (one_machine) {
    options->devices.push_back(Gloo::createDeviceForHostname("127.0.0.1"));
  } else {
    options->devices.push_back(Gloo::createDefaultDevice());
  }
  return CommunicatorPtr(c10::make_intrusive<Gloo>(store, rank.rank, rank.size, options));
}

#else

Result<CommunicatorPtr> connect_gloo(const StorePtr& store, const Rank& rank, bool one_machine) {
  static_cast<void>(store);
  static_cast<void>(rank);
  static_cast<void>(one_machine);
  return Error{Fault::usage, "this build has no Gloo: several ranks cannot train on the CPU",
               "build with the headers of LibTorch's own Gloo (Debian: libgloo-dev), or give --device cuda"};
}

#endif

}  // namespace ergometer::workload
