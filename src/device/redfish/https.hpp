// Https: requests to one host over TLS, by libcurl, which is loaded only when it is wanted. Used by the redfish
// backend.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/host.hpp"

namespace ergometer::redfish {

struct Reply {
  long status = 0;                             // 200
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

struct HttpsOptions {
  std::string host;     // name or address, optionally with ":PORT"
  std::string ca_file;  // PEM; "": the system's certificate authorities
  bool verify = true;   // of certificate and name
};

// Keeps one connection. Not thread-safe. Redirects are not followed, so that no token leaves the host.
class Https {
 public:
  // Errors: not_found without libcurl.
  static Result<std::unique_ptr<Https>> create(const Host& host, HttpsOptions options);
  ~Https();
  Https(const Https&) = delete;
  Https& operator=(const Https&) = delete;

  // `path` begins with "/"; `headers` are whole lines. An answer of any status is a Reply; at most 1 MiB of body.
  // Errors: timeout (after `limit` at the latest), permission_denied (the certificate does not verify; the hint says
  // what to do), unavailable, corrupt (too long).
  [[nodiscard]] Result<Reply> request(const char* method, const std::string& path, const std::string& body,
                                      const std::vector<std::string>& headers, Nanos limit);

 private:
  struct Api;
  Https(std::shared_ptr<Api> api, HttpsOptions options, void* handle);
  std::shared_ptr<Api> api_;
  HttpsOptions options_;
  void* handle_;
};

}  // namespace ergometer::redfish
