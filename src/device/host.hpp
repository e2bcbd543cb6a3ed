// Host: the injected world of the sensors, a struct of three: filesystem root, library loader, clock.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/file.hpp"

namespace ergometer {

// A shared library opened with dlopen; closed with its last owner. Symbols are looked up one by one, so that an old library only lacks what it lacks.
class Library {
 public:
  static Result<std::shared_ptr<Library>> open(const std::string& name_or_path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  // Address of a symbol, or null.
  [[nodiscard]] void* symbol(const char* name) const;
  template <class Function>
  [[nodiscard]] Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
};

using LibraryLoader = std::function<Result<std::shared_ptr<Library>>(const std::string&)>;

struct Host {
  HostRoot root;
  LibraryLoader load;             // Library::open on the real machine
  std::shared_ptr<Clock> clock;

  // The machine itself, with its files below `root` ("" for the real ones).
  static Host real(std::filesystem::path root = {});
};

}  // namespace ergometer
