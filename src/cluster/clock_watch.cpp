#include "cluster/clock_watch.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <mutex>
#include <thread>

#include "base/file.hpp"
#include "cluster/clock_service.hpp"
#include "store/run_json.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Nanos kAskFor = 450ms;  // so that one under way and the last one end within a second
constexpr Nanos kAskEvery = 60s;
constexpr Nanos kLookForAddress = 200ms;  // for the reference's address, while the run is young
constexpr Nanos kYoung = 10s;
constexpr Nanos kUndisciplined = 16s;

}  // namespace

struct ClockWatch::State {
  Where place;
  std::shared_ptr<Clock> clock;
  std::function<void(const ClockLink&)> take;
  StopSignal stopping;
  std::thread thread;
  ClockLink link;  // the thread's until it has ended
  std::optional<Error> trouble;

  bool ask();
  void watch();
  Outcome outcome() const;
  Outcome by_wall_clocks() const;
};

// Whether there is nothing more to learn soon.
bool ClockWatch::State::ask() {
  const auto file = place.run / "clock.json";
  const auto text = read_file(file);
  auto address = text ? clock_address_from_json(*text, file.string()) : tl::unexpected(text.error());
  if (!address) {
    trouble = address.error();
    return false;
  }
  if (address->machine_clock == place.machine_clock) {
    link.method = ClockLink::Method::same;
    link.offsets.clear();
    take(link);
    return true;
  }
  const auto offset = ask_clock(*address, *clock, kAskFor);
  if (!offset) {
    trouble = offset.error();
    return true;
  }
  link.method = ClockLink::Method::exchange;
  link.offsets.push_back(*offset);
  take(link);
  return true;
}

void ClockWatch::State::watch() {
  const MonoTime begin = clock->now();
  for (bool going_on = true; going_on;) {
    const bool answered = ask();
    if (link.method == ClockLink::Method::same) return;
    const MonoTime now = clock->now();
    going_on = clock->sleep_until(now + (!answered && now - begin < kYoung ? kLookForAddress : kAskEvery), stopping);
  }
  ask();
}

ClockWatch::Outcome ClockWatch::State::outcome() const {
  if (link.method == ClockLink::Method::same || !link.offsets.empty()) return {link, {}};
  return by_wall_clocks();
}

// t_reference = t_own + (wall - mono here) - (wall - mono there)
ClockWatch::Outcome ClockWatch::State::by_wall_clocks() const {
  Outcome out;
  out.link.reference = place.reference;
  out.link.method = ClockLink::Method::wall;
  const auto why = trouble ? trouble->message : std::string("it was not asked");
  out.warnings.push_back(
      {"clock-exchange",
       fmt::format("the clock of node {} could not be asked ({}): this node is aligned by the wall clocks",
                   place.reference, why),
       "let the nodes of a run reach each other over TCP"});
  const auto file = place.run / "nodes" / place.reference / "part.json";
  const auto text = read_file(file, 64 << 20);
  const auto reference = text ? part_from_json(*text, file.string()) : tl::unexpected(text.error());
  if (!reference || reference->clocks.empty()) return out;
  const auto there = reference->clocks.back();
  const ClockPair here{clock->now(), clock->wall(), clock->wall_error()};
  const Nanos offset((to_ns(here.wall) - to_ns(here.mono)) - (to_ns(there.wall) - to_ns(there.mono)));
  if (!here.error || !there.error)
    out.warnings.push_back(
        {"clock-unsynchronised",
         fmt::format("the wall clock of {} is not synchronised: regions of this node may lie seconds off",
                     here.error ? "node " + place.reference : std::string("this node")),
         "let chrony or ntpd discipline the clocks of all nodes"});
  out.link.offsets.push_back(
      {here.mono, offset, here.error.value_or(kUndisciplined) + there.error.value_or(kUndisciplined)});
  return out;
}

ClockWatch::ClockWatch(Where place, std::shared_ptr<Clock> clock, std::function<void(const ClockLink&)> take)
    : state_(std::make_unique<State>()) {
  state_->link.reference = place.reference;
  state_->link.method = ClockLink::Method::wall;
  state_->place = std::move(place);
  state_->clock = std::move(clock);
  state_->take = std::move(take);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  state_->thread = std::thread([state = state_.get()] {
    pthread_setname_np(pthread_self(), "e:clocks");
    state->watch();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ClockWatch::~ClockWatch() {
  state_->stopping.request();
  if (state_->thread.joinable()) state_->thread.join();
}

ClockWatch::Outcome ClockWatch::stop() {
  state_->stopping.request();
  if (state_->thread.joinable()) state_->thread.join();
  return state_->outcome();
}

}  // namespace ergometer
