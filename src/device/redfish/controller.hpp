// Controller: a session with one Redfish service and the documents that tell its node's power. Used by the redfish
// sensor.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/redfish/documents.hpp"
#include "device/redfish/https.hpp"

namespace ergometer::redfish {

enum class Source { none, environment, supplies, power };

struct Account {
  std::string user, password;
  std::string chassis;  // Id of the chassis to read; "": the one that holds a system and is no enclosure
};

// Not thread-safe. Every request ends within the limit that it is given.
class Controller {
 public:
  Controller(std::unique_ptr<Https> https, Account account) : https_(std::move(https)), account_(std::move(account)) {}
  // Ends the session.
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Logs in and chooses the chassis and its best document, where that is still to do. May take several requests, no
  // new one after `patience`. Errors: permission_denied (account, certificate), not_found (no chassis tells power),
  // timeout, others as of the requests.
  [[nodiscard]] Result<void> prepare(Nanos patience, Nanos limit);
  // One reading of what prepare() chose; the sum over power supplies where they tell it, unset unless all do.
  [[nodiscard]] Result<Reading> read(Nanos limit);

  [[nodiscard]] Source source() const { return source_; }
  [[nodiscard]] const std::string& chassis() const { return chassis_; }

 private:
  Result<void> log_in(Nanos limit);
  // A document; logs in again where the session has ended.
  Result<std::string> get(const std::string& path, Nanos limit);
  Result<void> choose(const std::vector<Chassis>& all, Nanos limit);
  Result<bool> try_chassis(const Chassis& chassis, Nanos limit);
  Result<std::vector<std::string>> supply_metrics(const std::string& subsystem, Nanos limit);

  std::unique_ptr<Https> https_;
  Account account_;
  std::string token_, session_;
  Source source_ = Source::none;
  std::string chassis_;
  std::vector<std::string> paths_;  // of the documents of `source_`
};

}  // namespace ergometer::redfish
