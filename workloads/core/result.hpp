// Result and Error of the workloads, which stand apart from the rest of the project: a value, or what went wrong.
// We throw nothing; exceptions of LibTorch and CLI11 are caught where they enter.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace ergometer::workload {

enum class Fault {
  usage,  // the command line asks for something that cannot be: exit code 2
  data,   // files, data or the device do not allow it: exit code 1
};

// `message` names the thing, for data as FILE:LINE; `hint` names the remedy and may be empty.
struct Error {
  Fault fault = Fault::data;
  std::string message;
  std::string hint;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}
  Result(Error error) : held_(std::move(error)) {}

  explicit operator bool() const { return held_.index() == 0; }
  // Only if true.
  T& operator*() { return std::get<0>(held_); }
  const T& operator*() const { return std::get<0>(held_); }
  T* operator->() { return &std::get<0>(held_); }
  const T* operator->() const { return &std::get<0>(held_); }
  // Only if false.
  const Error& error() const { return std::get<1>(held_); }

 private:
  std::variant<T, Error> held_;
};

// The value of a function that only succeeds or fails.
struct Done {};

}  // namespace ergometer::workload
