#include "device/remote/remote_control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/remote/control_protocol.hpp"
#include "device/remote/link.hpp"
#include "device/remote/protocol.hpp"

namespace ergometer {
namespace {
using namespace remote;

constexpr Nanos kGreetingPatience = std::chrono::milliseconds(500);
// The daemon starts a guardian and a driver first (kStartMs of guardian.cpp), and restoring is tried for seconds.
constexpr Nanos kControlPatience = std::chrono::seconds(60);

class RemoteControls final : public ControlSession {
 public:
  RemoteControls(Link link, std::vector<std::shared_ptr<Control>> controls)
      : link_(std::move(link)), controls_(std::move(controls)) {}
  // Waits until the daemon has restored, so that whoever comes next finds the node as it was.
  ~RemoteControls() override { RemoteControls::restore(); }

  Result<std::vector<Applied>> apply(std::vector<ControlSetting> settings) override {
    Request request{Request::Kind::apply, {}, {}};
    for (const auto& setting : settings) {
      const auto at = std::ranges::find(controls_, setting.control);
      if (at == controls_.end())
        return fail(ErrorCode::internal, setting.control->describe().name + " was not acquired and is not touched");
      request.settings.push_back({static_cast<int>(at - controls_.begin()), to_text(setting.value)});
    }
    return ask_applied(request);
  }

  std::vector<Applied> observe() override {
    auto seen = ask_applied({Request::Kind::observe, {}, {}});
    return seen ? std::move(*seen) : std::vector<Applied>{};
  }

  std::vector<Restored> restore() override {
    if (ended_) return {};
    ended_ = true;
    const auto line = ask({Request::Kind::restore, {}, {}});
    link_.reset();
    auto answer = line ? parse_restored(*line) : tl::unexpected(line.error());
    if (!answer)
      return {{"controls", RestoreOutcome::failed,
               fmt::format("whether all is restored is not known: {}", answer.error().message),
               "the daemon or its guardian restores; see: ergometer control show"}};
    std::vector<Restored> all;
    for (auto& one : *answer) {
      if (const auto* control = control_at(one.control)) one.what.name = control->describe().name;
      all.push_back(std::move(one.what));
    }
    return all;
  }

  Result<void> keep() override {
    return fail(ErrorCode::unsupported, "ergometerd sets controls for the time of a command only",
                "give the command after two dashes, or let root set what shall stay");
  }

 private:
  [[nodiscard]] const Control* control_at(int number) const {
    const auto index = static_cast<std::size_t>(number);
    return number >= 0 && index < controls_.size() ? controls_[index].get() : nullptr;
  }

  // After a failure every question gets the same answer.
  Result<std::string> ask(const Request& request) {
    if (failed_) return tl::unexpected(*failed_);
    auto line = link_->ask(request_line(request), kControlPatience);
    if (line) return line;
    failed_ = line.error();
    link_.reset();
    return line;
  }

  Result<std::vector<Applied>> ask_applied(const Request& request) {
    const auto line = ask(request);
    if (!line) return tl::unexpected(line.error());
    const auto answer = parse_applied(*line);
    if (!answer) return tl::unexpected(answer.error());
    std::vector<Applied> all;
    for (const auto& one : *answer) {
      const auto* control = control_at(one.control);
      if (!control) continue;
      const auto& info = control->describe();
      const auto requested = parse_value(one.requested, info.unit);
      if (!requested)
        return fail(ErrorCode::corrupt, fmt::format("the daemon's answer about {} cannot be understood", info.name));
      all.push_back({info.name, *requested, one.effective ? parse_value(*one.effective, info.unit) : std::nullopt,
                     one.in_effect});
    }
    return all;
  }

  std::optional<Link> link_;  // until it has failed or ended
  std::optional<Error> failed_;
  bool ended_ = false;
  std::vector<std::shared_ptr<Control>> controls_;  // in the order of the lease
};

Request lease_request(const std::vector<ControlSetting>& settings, const std::string& holder,
                      std::vector<std::shared_ptr<Control>>& controls) {
  Request request{Request::Kind::lease, {}, {}, holder};
  for (const auto& setting : settings) {
    auto at = std::ranges::find(controls, setting.control);
    if (at == controls.end()) {
      const auto& info = setting.control->describe();
      request.controls.push_back({info.name, info.backend, info.device_id, {}});
      controls.push_back(setting.control);
      at = controls.end() - 1;
    }
    auto& values = request.controls[static_cast<std::size_t>(at - controls.begin())].values;
    if (auto text = to_text(setting.value); std::ranges::count(values, text) == 0) values.push_back(std::move(text));
  }
  return request;
}

Result<std::unique_ptr<ControlSession>> lease(const Host& host, const std::vector<ControlSetting>& settings,
                                              const std::string& holder) {
  std::vector<std::shared_ptr<Control>> controls;
  const auto line = request_line(lease_request(settings, holder, controls));
  if (line.size() > kMostControlBytes)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} controls are more than ergometerd takes at once", controls.size()),
                "name fewer devices");
  auto link = Link::open(host.root.path(kSocket), *host.clock, kGreetingPatience);
  if (!link) return tl::unexpected(link.error());
  const auto answer = link->ask(line, kControlPatience);
  if (!answer) return tl::unexpected(answer.error());
  const auto leased = parse_lease_answer(*answer);
  if (!leased) return tl::unexpected(leased.error());
  if (*leased != static_cast<int>(controls.size()))
    return fail(ErrorCode::corrupt, "the daemon's answer cannot be understood",
                "ergometer and ergometerd should be of the same version");
  return std::make_unique<RemoteControls>(std::move(*link), std::move(controls));
}

}  // namespace

AskForControls controls_through_daemon(const Host& host) {
  return [host](const std::vector<ControlSetting>& settings, const std::string& holder) {
    return lease(host, settings, holder);
  };
}

bool daemon_may_control(const Host& host) {
  return Link::open(host.root.path(kSocket), *host.clock, kGreetingPatience).has_value();
}

}  // namespace ergometer
