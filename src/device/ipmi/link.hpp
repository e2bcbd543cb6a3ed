// IpmiLink: the way to one management controller through FreeIPMI, which is loaded only when it is wanted. Used by the
// ipmi sensors alone; everything else sees bytes.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "device/host.hpp"
#include "device/ipmi/messages.hpp"

namespace ergometer::ipmi {

// In band: the kernel's device file. Over LAN (driver LAN_2_0): host, optionally with ":PORT", and an account.
struct Target {
  std::string device;
  std::string host, user, password;
};

// Several sensors share one; commands go one after the other, as the controller takes them anyway.
class IpmiLink {
 public:
  // Loads libfreeipmi; the session is opened by the first command and anew after any failure.
  // Errors: not_found, with the package to install.
  static Result<std::shared_ptr<IpmiLink>> create(const Host& host, Target target);
  ~IpmiLink();
  IpmiLink(const IpmiLink&) = delete;
  IpmiLink& operator=(const IpmiLink&) = delete;

  // Over LAN a command ends after 4 s at the latest; in band FreeIPMI waits as long as the kernel does.
  // Errors: permission_denied (account, device file), timeout, unavailable.
  [[nodiscard]] Result<Bytes> send(const Command& command);
  // To Intel's management engine behind the controller: channel 0 or 6, address 0x2C.
  [[nodiscard]] Result<Bytes> send_bridged(const Command& command, std::uint8_t channel);

 private:
  struct Api;
  IpmiLink(std::shared_ptr<Api> api, Target target);
  Result<Bytes> exchange(const Command& command, const std::uint8_t* channel);
  Result<void> open();
  void close();
  tl::unexpected<Error> failure(const char* what);

  std::shared_ptr<Api> api_;
  Target target_;
  std::mutex mutex_;
  void* context_ = nullptr;
};

}  // namespace ergometer::ipmi
