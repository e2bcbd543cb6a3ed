#include "device/ipmi/link.hpp"

#include <fmt/format.h>

#include <array>

#include "base/text.hpp"

namespace ergometer::ipmi {
namespace {

// From freeipmi/api/ipmi-api.h and spec/ipmi-privilege-level-spec.h of FreeIPMI 1.6; the ABI of libfreeipmi.so.17.
constexpr int kOpenIpmi = 7;            // enum ipmi_driver_type
constexpr std::uint8_t kUserLevel = 2;  // enough to read power
constexpr unsigned kSessionMs = 4000, kRetransmitMs = 500;
constexpr std::uint8_t kManagementEngine = 0x2C;
// Newest first: RAKP-HMAC-SHA256 with AES, RAKP-HMAC-SHA1 with AES.
constexpr std::array<std::uint8_t, 2> kCipherSuites{17, 3};

}  // namespace

struct IpmiLink::Api {
  std::shared_ptr<Library> library;
  void* (*create)();
  void (*destroy)(void*);
  char* (*message)(void*);
  int (*open_inband)(void*, int driver, int no_probe, std::uint16_t address, std::uint8_t spacing, const char* device,
                     unsigned workarounds, unsigned flags);
  int (*open_lan)(void*, const char* host, const char* user, const char* password, const unsigned char* k_g,
                  unsigned k_g_length, std::uint8_t privilege, std::uint8_t cipher_suite, unsigned session_ms,
                  unsigned retransmit_ms, unsigned workarounds, unsigned flags);
  int (*raw)(void*, std::uint8_t lun, std::uint8_t netfn, const void* request, unsigned request_length, void* response,
             unsigned response_length);
  int (*raw_ipmb)(void*, std::uint8_t channel, std::uint8_t address, std::uint8_t lun, std::uint8_t netfn,
                  const void* request, unsigned request_length, void* response, unsigned response_length);
};

Result<std::shared_ptr<IpmiLink>> IpmiLink::create(const Host& host, Target target) {
  auto library = host.load("libfreeipmi.so.17");
  if (!library) library = host.load("libfreeipmi.so");
  const char* remedy = "install it (Debian: apt install libfreeipmi17)";
  if (!library) return fail(ErrorCode::not_found, "libfreeipmi is not there: " + library.error().message, remedy);
  auto api = std::make_shared<Api>();
  api->library = *library;
  const auto find = [&](auto& function, const char* name) {
    function = (*library)->function<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(name);
    return function != nullptr;
  };
  const bool all = find(api->create, "ipmi_ctx_create") && find(api->destroy, "ipmi_ctx_destroy") &&
                   find(api->message, "ipmi_ctx_errormsg") && find(api->open_inband, "ipmi_ctx_open_inband") &&
                   find(api->open_lan, "ipmi_ctx_open_outofband_2_0") && find(api->raw, "ipmi_cmd_raw") &&
                   find(api->raw_ipmb, "ipmi_cmd_raw_ipmb");
  if (!all) return fail(ErrorCode::unsupported, "libfreeipmi lacks the raw commands", "install FreeIPMI 1.6 or newer");
  return std::shared_ptr<IpmiLink>(new IpmiLink(std::move(api), std::move(target)));
}

IpmiLink::IpmiLink(std::shared_ptr<Api> api, Target target) : api_(std::move(api)), target_(std::move(target)) {}
IpmiLink::~IpmiLink() { close(); }

void IpmiLink::close() {
  if (context_) api_->destroy(context_);
  context_ = nullptr;
}

tl::unexpected<Error> IpmiLink::failure(const char* what) {
  const char* reason = context_ ? api_->message(context_) : "out of memory";
  const std::string text = lower(reason ? reason : "");
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  auto code = ErrorCode::unavailable;
  std::string hint;
  if (has("permission") || has("username") || has("password") || has("privilege")) {
    code = ErrorCode::permission_denied;
    hint = target_.host.empty() ? "let your group read and write the device file (docs/node-meters.md)"
                                : "check [ipmi] user and password in ergometer.toml; the account needs level USER";
  } else if (has("timeout")) {
    code = ErrorCode::timeout;
  }
  Error error{code, fmt::format("{} {}: {}", what, target_.host.empty() ? target_.device : target_.host, text),
              std::move(hint)};
  close();
  return tl::unexpected(std::move(error));
}

Result<void> IpmiLink::open() {
  if (context_) return {};
  const auto begin = [&] { return (context_ = api_->create()) != nullptr; };
  if (!begin()) return failure("cannot open");
  if (target_.host.empty()) {
    if (api_->open_inband(context_, kOpenIpmi, 1, 0, 0, target_.device.c_str(), 0, 0) < 0)
      return failure("cannot open");
    return {};
  }
  for (const auto suite : kCipherSuites) {
    if (!context_ && !begin()) return failure("cannot open");
    if (api_->open_lan(context_, target_.host.c_str(), target_.user.c_str(), target_.password.c_str(), nullptr, 0,
                       kUserLevel, suite, kSessionMs, kRetransmitMs, 0, 0) >= 0)
      return {};
    auto failed = failure("cannot log in to");
    // An older controller refuses the newer suite at once; for anything else a second try would only take longer.
    const bool suite_refused = failed.value().message.find("cipher suite") != std::string::npos;
    if (!suite_refused || suite == kCipherSuites.back()) return failed;
  }
  return {};
}

Result<Bytes> IpmiLink::exchange(const Command& command, const std::uint8_t* channel) {
  std::lock_guard lock(mutex_);
  if (auto opened = open(); !opened) return tl::unexpected(opened.error());
  Bytes response(256);
  const auto length = static_cast<unsigned>(command.bytes.size()), room = static_cast<unsigned>(response.size());
  const int got = channel ? api_->raw_ipmb(context_, *channel, kManagementEngine, 0, command.netfn,
                                           command.bytes.data(), length, response.data(), room)
                          : api_->raw(context_, 0, command.netfn, command.bytes.data(), length, response.data(), room);
  if (got < 0) return failure("no answer from");
  response.resize(std::min<std::size_t>(static_cast<std::size_t>(got), response.size()));
  return response;
}

Result<Bytes> IpmiLink::send(const Command& command) { return exchange(command, nullptr); }
Result<Bytes> IpmiLink::send_bridged(const Command& command, std::uint8_t channel) {
  return exchange(command, &channel);
}

}  // namespace ergometer::ipmi
