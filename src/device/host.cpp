#include "device/host.hpp"

#include <dlfcn.h>

namespace ergometer {

Result<std::shared_ptr<Library>> Library::open(const std::string& name_or_path) {
  void* handle = ::dlopen(name_or_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = ::dlerror();
    return fail(ErrorCode::not_found, reason ? reason : "cannot load " + name_or_path);
  }
  return std::shared_ptr<Library>(new Library(handle));
}

Library::~Library() { ::dlclose(handle_); }

void* Library::symbol(const char* name) const { return ::dlsym(handle_, name); }

Host Host::real(std::filesystem::path root) {
  return Host{HostRoot(std::move(root)), &Library::open, std::make_shared<SystemClock>()};
}

}  // namespace ergometer
