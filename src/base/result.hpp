// Result and Error: how every fallible function of the project answers. Used by all layers.
// We throw nothing; an exception of a foreign library is caught where it enters and becomes an Error.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace ergometer {

enum class ErrorCode {
  invalid_argument,   // the caller or the user asked for something that cannot be
  not_found,          // a file, device, name or symbol is not there
  permission_denied,  // it is there and we may not use it
  unsupported,        // the device or library answers that it cannot do this
  unavailable,        // it exists and has no answer now: try again later
  lost,               // a device that answered before is gone
  timeout,            // no answer in the time allowed
  corrupt,            // bytes that do not parse or fail their checksum
  io,                 // the operating system refused a read or write
  exists,             // would overwrite something that is not ours to overwrite
  internal,           // a defect of ours
};

// What went wrong and what to do about it. `message` names the thing (path, device, option); `hint` names the
// remedy and may be empty.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string hint;
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(hint)});
}

}  // namespace ergometer
