// A Redfish service over true TLS on this machine, with a certificate made for the test: sessions that expire,
// documents that a test sets, and faults. Used by redfish_test.cpp.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "support/temp_dir.hpp"

namespace ergometer::test {

// KEY and CERT of 127.0.0.1, signed by itself; `name` is the certificate's subject.
inline void make_certificate(const TempDir& dir, const std::string& name, const std::string& address) {
  const auto command = fmt::format(
      "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={1} -addext subjectAltName=IP:{2} "
      "-keyout {0}/{1}.key -out {0}/{1}.pem 2>/dev/null",
      dir.path().string(), name, address);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

class FakeRedfish {
 public:
  explicit FakeRedfish(const std::string& address = "127.0.0.1") {
    make_certificate(dir_, "bmc", address);
    server_ = std::make_unique<httplib::SSLServer>((dir_ / "bmc.pem").c_str(), (dir_ / "bmc.key").c_str());
    server_->Post("/redfish/v1/SessionService/Sessions",
                  [this](const auto& request, auto& reply) { log_in(request, reply); });
    server_->Delete(R"(/redfish/v1/SessionService/Sessions/(\d+))", [this](const auto&, auto& reply) {
      ++logouts;
      reply.status = 204;
    });
    server_->Get(".*", [this](const auto& request, auto& reply) { answer(request, reply); });
    server_->set_keep_alive_timeout(1);
    port_ = server_->bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::yield();
  }
  ~FakeRedfish() {
    ending_ = true;
    server_->stop();
    thread_.join();
  }
  [[nodiscard]] std::string host() const { return fmt::format("127.0.0.1:{}", port_); }
  [[nodiscard]] std::string certificate() const { return (dir_ / "bmc.pem").string(); }
  void set(const std::string& path, const std::string& body) {
    std::lock_guard lock(mutex_);
    documents_[path] = body;
  }
  void remove(const std::string& path) {
    std::lock_guard lock(mutex_);
    documents_.erase(path);
  }
  // Ends all sessions.
  void expire() {
    std::lock_guard lock(mutex_);
    token_ = "none";
  }
  // A chassis with links to those of the documents that are there.
  void chassis(const std::string& id, const std::string& type, bool system, const std::string& more = "") {
    const auto path = "/redfish/v1/Chassis/" + id;
    set(path, fmt::format(R"({{"Id":"{}","ChassisType":"{}","Links":{{"ComputerSystems":[{}]}}{}}})", id, type,
                          system ? R"({"@odata.id":"/redfish/v1/Systems/1"})" : "", more));
    members_ += fmt::format(R"({}{{"@odata.id":"{}"}})", members_.empty() ? "" : ",", path);
    set("/redfish/v1/Chassis", R"({"Members":[)" + members_ + "]}");
  }
  static std::string link(const std::string& key, const std::string& path) {
    return fmt::format(R"(,"{}":{{"@odata.id":"{}"}})", key, path);
  }

  std::atomic<int> status = 200;   // of every document
  std::atomic<int> refusal = 401;  // of a wrong account
  std::atomic<int> delay_s = 0;    // before every document
  std::atomic<int> logins = 0, logouts = 0, reads = 0;

 private:
  void log_in(const httplib::Request& request, httplib::Response& reply) {
    if (request.body.find(R"("Password":"s3cret")") == std::string::npos) {
      reply.status = refusal;
      return;
    }
    std::lock_guard lock(mutex_);
    token_ = fmt::format("token{}", ++logins);
    reply.set_header("X-Auth-Token", token_);
    reply.set_header("Location",
                     fmt::format("https://{}/redfish/v1/SessionService/Sessions/{}", host(), logins.load()));
    reply.status = 201;
  }
  void answer(const httplib::Request& request, httplib::Response& reply) {
    ++reads;
    for (int i = 0; i < delay_s * 100 && !ending_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::lock_guard lock(mutex_);
    if (request.get_header_value("X-Auth-Token") != token_) {
      reply.status = 401;
      return;
    }
    const auto it = documents_.find(request.path);
    reply.status = it == documents_.end() ? 404 : status.load();
    if (it != documents_.end()) reply.set_content(it->second, "application/json");
  }

  TempDir dir_;
  std::mutex mutex_;
  std::string token_ = "none", members_;
  std::map<std::string, std::string> documents_;
  std::unique_ptr<httplib::SSLServer> server_;
  std::thread thread_;
  std::atomic<bool> ending_ = false;
  int port_ = 0;
};

}  // namespace ergometer::test
