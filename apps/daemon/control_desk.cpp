#include "daemon/control_desk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "daemon/worker.hpp"
#include "device/control_guard.hpp"
#include "device/control_recovery.hpp"
#include "device/remote/control_protocol.hpp"

namespace ergometer::daemon {
namespace {

// How journals of the daemon begin to name their owner: only those are the daemon's to restore.
constexpr std::string_view kOwner = "ergometerd for ";
constexpr std::size_t kLongestHolder = 120;
constexpr int kRecoveryTries = 6;

struct Lease {
  Caller caller;
  std::string holder;  // "ada (PID 4711), study demo"
  std::vector<std::shared_ptr<Control>> controls;
  std::vector<std::vector<ControlValue>> values;  // of each control: what may be set
  ControlGuard guard;
};

std::string holder_of(const Caller& caller, const std::string& said) {
  std::string what;
  for (const char c : said.substr(0, kLongestHolder)) what += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return what.empty() ? name_of(caller.peer) : fmt::format("{}, {}", name_of(caller.peer), what);
}

// What a request means on this machine.
struct Wanted {
  std::vector<std::shared_ptr<Control>> controls;
  std::vector<std::vector<ControlValue>> values;
  std::vector<ControlSetting> settings;
};

Result<Wanted> find_wanted(const remote::Request& request, const std::vector<std::shared_ptr<Control>>& found) {
  Wanted wanted;
  for (const auto& one : request.controls) {
    const auto control = control_of({one.name, one.backend, one.device_id, {}, {}, {}, false}, found);
    if (!control)
      return fail(ErrorCode::not_found, fmt::format("ergometerd finds no {} ({})", one.name, one.device_id),
                  "the daemon's unit must reach the device: docs/daemon.md, \"Controls\"");
    if (std::ranges::count(wanted.controls, control) > 0)
      return fail(ErrorCode::invalid_argument, fmt::format("{} is named twice", one.name), "name each control once");
    std::vector<ControlValue> values;
    for (const auto& text : one.values) {
      auto value = parse_value(text, control->describe().unit);
      if (!value)
        return fail(ErrorCode::invalid_argument, fmt::format("{} is no value for {}", text, one.name),
                    "see docs/controls.md");
      wanted.settings.push_back({control, *value, {}});
      values.push_back(std::move(*value));
    }
    if (values.empty())
      return fail(ErrorCode::invalid_argument, fmt::format("no value is named for {}", one.name),
                  "see docs/daemon-protocol.md");
    wanted.controls.push_back(control);
    wanted.values.push_back(std::move(values));
  }
  if (wanted.controls.empty())
    return fail(ErrorCode::invalid_argument, "the lease names no control", "see docs/daemon-protocol.md");
  return wanted;
}

std::vector<remote::AppliedSetting> answer_of(const std::vector<Applied>& all, const Lease& lease) {
  std::vector<remote::AppliedSetting> answer;
  for (const auto& one : all)
    for (std::size_t i = 0; i < lease.controls.size(); ++i)
      if (lease.controls[i]->describe().name == one.name)
        answer.push_back({static_cast<int>(i), to_text(one.requested),
                          one.effective ? std::optional(to_text(*one.effective)) : std::nullopt, one.in_effect});
  return answer;
}

std::vector<remote::RestoredControl> answer_of(std::vector<Restored> all, const Lease& lease) {
  std::vector<remote::RestoredControl> answer;
  for (auto& one : all) {
    const auto at = std::ranges::find_if(lease.controls, [&](const auto& c) { return c->describe().name == one.name; });
    const int number = at == lease.controls.end() ? -1 : static_cast<int>(at - lease.controls.begin());
    answer.push_back({number, std::move(one)});
  }
  return answer;
}

}  // namespace

struct ControlDesk::State {
  explicit State(ControlDeskOptions o) : options(std::move(o)) {
    places = control_places(options.host.root, {});
    discovery.nvml_path = options.nvml_path;
    discovery.use_daemon = false;
  }
  void recover();
  void answer(const Caller& caller, const remote::Request& request, const Answer& take);
  Result<std::string> answer_lease(const Caller& caller, const remote::Request& request);
  Result<std::string> answer_apply(const remote::Request& request);
  void end_lease(const std::string& why);
  void tell(const std::vector<Restored>& all) const;

  ControlDeskOptions options;
  ControlPlaces places;
  DiscoverOptions discovery;
  std::optional<Lease> lease;
  Worker worker;  // last: its tasks use the rest
};

void ControlDesk::State::tell(const std::vector<Restored>& all) const {
  for (const auto& one : all)
    if (one.outcome != RestoreOutcome::untouched) options.note(one.text);
  if (any_failed(all)) options.note("not all is restored; as root: ergometer control restore");
}

void ControlDesk::State::recover() {
  if (!existing_journal(places)) return;
  const auto lock = ControlLock::take(places.lock, "ergometerd, which restores");
  if (!lock) return options.note(lock.error().message);  // its guardian is at work, or somebody else controls
  const auto left = existing_journal(places);
  if (!left) return;
  auto journal = JournalWriter::open(*left);
  if (!journal) return options.note(journal.error().message);
  const auto& content = journal->journal();
  if (content.changed()) options.note(left_over_text(content, boot_id(options.host.root)));
  if (content.kept || !content.owner.starts_with(kOwner)) return;
  const auto all = restore_with_found(options.host, discovery, *journal, kRecoveryTries);
  tell(all);
  if (any_failed(all)) return;
  if (auto removed = journal->remove(); !removed) options.note(removed.error().message);
}

void ControlDesk::State::end_lease(const std::string& why) {
  if (!lease) return;
  options.note(fmt::format("{}: {}", why, lease->holder));
  tell(lease->guard.restore());
  lease.reset();
}

Result<std::string> ControlDesk::State::answer_lease(const Caller& caller, const remote::Request& request) {
  if (auto may = options.may_control(caller.peer); !may) return tl::unexpected(may.error());
  if (lease)
    return fail(ErrorCode::exists,
                fmt::format("this node's devices are controlled by {}, through ergometerd", lease->holder),
                "wait until it has ended: only one program at a time may change limits and clocks");
  std::vector<std::string> backends;
  for (const auto& one : request.controls) backends.push_back(one.backend);
  const auto found = discover_controls(options.host, discovery, backends);
  auto wanted = find_wanted(request, found.controls);
  if (!wanted) return tl::unexpected(wanted.error());
  if (caller.peer.uid != 0)
    if (auto allowed = check_allowed(wanted->settings, options.allowed); !allowed)
      return tl::unexpected(allowed.error());
  auto holder = holder_of(caller, request.holder);
  auto guard =
      ControlGuard::acquire(options.host, wanted->settings,
                            {fmt::format("{}{}", kOwner, holder), places, options.guardian, options.nvml_path, {}});
  if (!guard) return tl::unexpected(guard.error());
  const auto count = static_cast<int>(wanted->controls.size());
  options.note(fmt::format("{} may set {} controls", holder, count));
  lease.emplace(
      Lease{caller, std::move(holder), std::move(wanted->controls), std::move(wanted->values), std::move(*guard)});
  return remote::lease_answer_line(count);
}

Result<std::string> ControlDesk::State::answer_apply(const remote::Request& request) {
  std::vector<ControlSetting> settings;
  for (const auto& one : request.settings) {
    const auto index = static_cast<std::size_t>(one.control);
    if (one.control < 0 || index >= lease->controls.size())
      return fail(ErrorCode::invalid_argument, fmt::format("the lease has no control {}", one.control),
                  "see docs/daemon-protocol.md");
    const auto& control = lease->controls[index];
    auto value = parse_value(one.value, control->describe().unit);
    if (!value || std::ranges::count(lease->values[index], *value) == 0)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} = {} was not named when the lease was taken", control->describe().name, one.value),
                  "see docs/daemon-protocol.md");
    settings.push_back({control, std::move(*value), {}});
  }
  auto applied = lease->guard.apply(std::move(settings));
  if (!applied) return tl::unexpected(applied.error());
  return remote::applied_line(answer_of(*applied, *lease));
}

void ControlDesk::State::answer(const Caller& caller, const remote::Request& request, const Answer& take) {
  const auto reply = [&]() -> Result<std::string> {
    if (request.kind == remote::Request::Kind::lease) return answer_lease(caller, request);
    if (!lease || lease->caller.connection != caller.connection)
      return fail(ErrorCode::lost, "this connection has no lease of controls",
                  "it has ended with its job, or was never given: begin again");
    if (request.kind == remote::Request::Kind::apply) return answer_apply(request);
    if (request.kind == remote::Request::Kind::observe)
      return remote::applied_line(answer_of(lease->guard.observe(), *lease));
    auto all = lease->guard.restore();
    tell(all);
    auto line = remote::restored_line(answer_of(std::move(all), *lease));
    lease.reset();
    return line;
  }();
  take(reply ? *reply : remote::error_line(reply.error()));
}

ControlDesk::ControlDesk(ControlDeskOptions options) : state_(std::make_unique<State>(std::move(options))) {
  state_->worker.add([s = state_.get()] { s->recover(); });
}

ControlDesk::~ControlDesk() {
  state_->worker.stop();
  state_->end_lease("the daemon ends");
}

void ControlDesk::ask(const Caller& caller, remote::Request request, Answer answer) {
  state_->worker.add([s = state_.get(), caller, request = std::move(request), answer = std::move(answer)] {
    s->answer(caller, request, answer);
  });
}

void ControlDesk::left(std::uint64_t connection) {
  state_->worker.add([s = state_.get(), connection] {
    if (s->lease && s->lease->caller.connection == connection) s->end_lease("the connection has ended");
  });
}

void ControlDesk::look_again() {
  state_->worker.add([s = state_.get()] {
    if (s->lease && !s->options.may_control(s->lease->caller.peer)) s->end_lease("may not control any more");
  });
}

}  // namespace ergometer::daemon
