#include "device/redfish/https.hpp"

#include <fmt/format.h>

#include <array>

#include "base/text.hpp"

namespace ergometer::redfish {
namespace {

// From curl/curl.h; the ABI of libcurl.so.4, the same since 2006.
enum Option : int {
  kPostFieldSize = 60,
  kVerifyPeer = 64,
  kVerifyHost = 81,
  kNoSignal = 99,
  kTimeoutMs = 155,
  kConnectTimeoutMs = 156,
  kWriteData = 10001,
  kUrl = 10002,
  kErrorBuffer = 10010,
  kPostFields = 10015,
  kHttpHeader = 10023,
  kHeaderData = 10029,
  kCustomRequest = 10036,
  kCaInfo = 10065,
  kWriteFunction = 20011,
  kHeaderFunction = 20079,
};
constexpr int kResponseCode = 0x200002;
constexpr int kTimedOut = 28, kWriteError = 23, kPeerFailed = 60, kBadCaFile = 77;
constexpr std::size_t kErrorSize = 256;
constexpr std::size_t kMostBytes = 1 << 20;
constexpr long kGlobalAll = 3;

std::size_t take_body(char* data, std::size_t size, std::size_t count, void* reply) {
  auto& body = static_cast<Reply*>(reply)->body;
  if (body.size() + size * count > kMostBytes) return 0;
  body.append(data, size * count);
  return size * count;
}

std::size_t take_header(char* data, std::size_t size, std::size_t count, void* reply) {
  const std::string_view line(data, size * count);
  auto& headers = static_cast<Reply*>(reply)->headers;
  const auto colon = line.find(':');
  if (colon != std::string_view::npos && headers.size() < 200)
    headers[lower(line.substr(0, colon))] = std::string(trim(line.substr(colon + 1)));
  return size * count;
}

}  // namespace

struct Https::Api {
  std::shared_ptr<Library> library;
  int (*global_init)(long);
  void* (*init)();
  void (*cleanup)(void*);
  void (*reset)(void*);
  int (*setopt)(void*, int, ...);
  int (*perform)(void*);
  int (*getinfo)(void*, int, ...);
  const char* (*strerror)(int);
  void* (*list_append)(void*, const char*);
  void (*list_free)(void*);
};

Result<std::unique_ptr<Https>> Https::create(const Host& host, HttpsOptions options) {
  auto library = host.load("libcurl.so.4");
  if (!library) library = host.load("libcurl-gnutls.so.4");
  if (!library)
    return fail(ErrorCode::not_found, "libcurl is not there: " + library.error().message,
                "install it (Debian: apt install libcurl4)");
  auto api = std::make_shared<Api>();
  api->library = *library;
  const auto find = [&](auto& function, const char* name) {
    function = (*library)->function<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(name);
    return function != nullptr;
  };
  const bool all = find(api->global_init, "curl_global_init") && find(api->init, "curl_easy_init") &&
                   find(api->cleanup, "curl_easy_cleanup") && find(api->reset, "curl_easy_reset") &&
                   find(api->setopt, "curl_easy_setopt") && find(api->perform, "curl_easy_perform") &&
                   find(api->getinfo, "curl_easy_getinfo") && find(api->strerror, "curl_easy_strerror") &&
                   find(api->list_append, "curl_slist_append") && find(api->list_free, "curl_slist_free_all");
  if (!all) return fail(ErrorCode::unsupported, "libcurl lacks what is needed", "install libcurl 7.20 or newer");
  // Before 7.84 two threads must not do this at once.
  static const int initialised = api->global_init(kGlobalAll);
  void* handle = initialised == 0 ? api->init() : nullptr;
  if (!handle) return fail(ErrorCode::unavailable, "libcurl does not start");
  return std::unique_ptr<Https>(new Https(std::move(api), std::move(options), handle));
}

Https::Https(std::shared_ptr<Api> api, HttpsOptions options, void* handle)
    : api_(std::move(api)), options_(std::move(options)), handle_(handle) {}
Https::~Https() { api_->cleanup(handle_); }

Result<Reply> Https::request(const char* method, const std::string& path, const std::string& body,
                             const std::vector<std::string>& headers, Nanos limit) {
  const auto set = [&](Option option, auto value) { api_->setopt(handle_, option, value); };
  Reply reply;
  std::array<char, kErrorSize> reason{};
  api_->reset(handle_);  // keeps the connection
  const std::string url = "https://" + options_.host + path;
  set(kUrl, url.c_str());
  set(kCustomRequest, method);
  set(kNoSignal, 1L);
  const long limit_ms = static_cast<long>(limit / std::chrono::milliseconds(1));
  set(kTimeoutMs, limit_ms);
  set(kConnectTimeoutMs, limit_ms);
  set(kVerifyPeer, options_.verify ? 1L : 0L);
  set(kVerifyHost, options_.verify ? 2L : 0L);
  if (!options_.ca_file.empty()) set(kCaInfo, options_.ca_file.c_str());
  if (!body.empty()) {
    set(kPostFieldSize, static_cast<long>(body.size()));
    set(kPostFields, body.c_str());
  }
  set(kWriteFunction, &take_body);
  set(kWriteData, static_cast<void*>(&reply));
  set(kHeaderFunction, &take_header);
  set(kHeaderData, static_cast<void*>(&reply));
  set(kErrorBuffer, reason.data());
  void* list = nullptr;
  for (const auto& header : headers) list = api_->list_append(list, header.c_str());
  set(kHttpHeader, list);
  const int code = api_->perform(handle_);
  api_->getinfo(handle_, kResponseCode, &reply.status);
  api_->reset(handle_);  // lets go of everything on this stack
  api_->list_free(list);
  if (code == 0) return reply;
  const std::string text = reason[0] ? reason.data() : api_->strerror(code);
  const auto message = fmt::format("{}: {}", options_.host, text);
  if (code == kTimedOut) return fail(ErrorCode::timeout, message);
  if (code == kWriteError) return fail(ErrorCode::corrupt, options_.host + ": an answer of more than 1 MiB");
  if (code == kPeerFailed || code == kBadCaFile)
    return fail(ErrorCode::permission_denied, "the certificate does not verify: " + message,
                "give the authority's certificate with [redfish] ca-file in ergometer.toml; to trust any certificate, "
                "set verify = false there");
  return fail(ErrorCode::unavailable, message);
}

}  // namespace ergometer::redfish
