#include "device/redfish/controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

namespace ergometer::redfish {
namespace {

using namespace std::chrono_literals;

constexpr const char* kSessions = "/redfish/v1/SessionService/Sessions";
constexpr const char* kChassis = "/redfish/v1/Chassis";
constexpr Nanos kFarewell = 1s;
constexpr const char* kAccountHint = "check [redfish] user and password in ergometer.toml; the role ReadOnly is enough";

tl::unexpected<Error> refused(long status, const std::string& path) {
  const auto message = fmt::format("the controller answers {} to {}", status, path);
  if (status == 401 || status == 403) return fail(ErrorCode::permission_denied, message, kAccountHint);
  if (status == 404) return fail(ErrorCode::not_found, message);
  return fail(ErrorCode::unavailable, message);
}

// A session's path from a Location header, which may be a whole address.
std::string path_of(const std::string& location) {
  const auto scheme = location.find("://");
  const auto slash = location.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  return slash == std::string::npos ? std::string() : location.substr(slash);
}

// Chassis in the order in which they are to be tried: those that hold a system first, enclosures last, and of two that
// lie in one another the outer one.
int rank(const Chassis& c, const std::string& wanted) {
  if (!wanted.empty()) return c.id == wanted ? 0 : -1;
  return (c.has_system ? 0 : 4) + (c.type == "Enclosure" ? 2 : 0) + (c.contained_by.empty() ? 0 : 1);
}

}  // namespace

Controller::~Controller() {
  if (!session_.empty()) (void)https_->request("DELETE", session_, "", {"X-Auth-Token: " + token_}, kFarewell);
}

Result<void> Controller::log_in(Nanos limit) {
  token_.clear();
  session_.clear();
  const nlohmann::json account{{"UserName", account_.user}, {"Password", account_.password}};
  const auto body = account.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto reply = https_->request("POST", kSessions, body, {"Content-Type: application/json"}, limit);
  if (!reply) return tl::unexpected(reply.error());
  // 400 as well: some controllers answer a wrong account so.
  if (reply->status == 400) return refused(401, kSessions);
  if (reply->status < 200 || reply->status > 299) return refused(reply->status, kSessions);
  const auto token = reply->headers.find("x-auth-token");
  if (token == reply->headers.end()) return fail(ErrorCode::corrupt, "the controller opens a session without a token");
  token_ = token->second;
  if (const auto location = reply->headers.find("location"); location != reply->headers.end())
    session_ = path_of(location->second);
  return {};
}

Result<std::string> Controller::get(const std::string& path, Nanos limit) {
  for (const bool again : {true, false}) {
    if (token_.empty())
      if (auto done = log_in(limit); !done) return tl::unexpected(done.error());
    auto reply = https_->request("GET", path, "", {"X-Auth-Token: " + token_, "Accept: application/json"}, limit);
    if (!reply) return tl::unexpected(reply.error());
    if (reply->status == 200) return std::move(reply->body);
    if (reply->status != 401 || !again) return refused(reply->status, path);
    token_.clear();  // the session has expired
  }
  return fail(ErrorCode::internal, "unreachable");
}

Result<void> Controller::prepare(Nanos patience, Nanos limit) {
  if (source_ != Source::none) return {};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const auto left = [&] { return std::min<Nanos>(limit, deadline - std::chrono::steady_clock::now()); };
  const auto get_in_time = [&](const std::string& path) -> Result<std::string> {
    if (left() <= 0ns) return fail(ErrorCode::timeout, "the controller is slow");
    return get(path, left());
  };
  const auto collection = get_in_time(kChassis);
  if (!collection) return tl::unexpected(collection.error());
  const auto members = parse_members(*collection);
  if (!members) return tl::unexpected(members.error());
  std::vector<Chassis> all;
  for (const auto& path : *members) {
    const auto body = get_in_time(path);
    if (!body) return tl::unexpected(body.error());
    if (auto chassis = parse_chassis(*body)) all.push_back(std::move(*chassis));
  }
  return choose(all, std::max<Nanos>(left(), 1ms));
}

Result<void> Controller::choose(const std::vector<Chassis>& all, Nanos limit) {
  std::vector<const Chassis*> order;
  for (const auto& c : all)
    if (rank(c, account_.chassis) >= 0) order.push_back(&c);
  std::ranges::stable_sort(order, {}, [&](const Chassis* c) { return rank(*c, account_.chassis); });
  for (const auto* c : order) {
    const auto found = try_chassis(*c, limit);
    if (!found) return tl::unexpected(found.error());
    if (!*found) continue;
    chassis_ = c->id;
    return {};
  }
  return fail(ErrorCode::not_found,
              account_.chassis.empty() ? fmt::format("none of {} chassis tells its power", all.size())
                                       : fmt::format("chassis \"{}\" is not there or tells no power", account_.chassis),
              "see what the controller has below /redfish/v1/Chassis; name one with [redfish] chassis");
}

// Input power where the controller has it in one document, else of the supplies, else the older form.
Result<bool> Controller::try_chassis(const Chassis& chassis, Nanos limit) {
  const auto attempt = [&](Source source, std::vector<std::string> paths) -> Result<bool> {
    if (paths.empty()) return false;
    source_ = source;
    paths_ = std::move(paths);
    const auto reading = read(limit);
    if (reading && (reading->power_w || reading->energy_j)) return true;
    source_ = Source::none;
    // A document that is not there or makes no sense leaves the others; a controller that does not answer does not.
    if (!reading &&
        (reading.error().code == ErrorCode::timeout || reading.error().code == ErrorCode::permission_denied))
      return tl::unexpected(reading.error());
    return false;
  };
  const auto one = [](const std::string& path) {
    return path.empty() ? std::vector<std::string>{} : std::vector<std::string>{path};
  };
  if (auto found = attempt(Source::environment, one(chassis.environment)); !found || *found) return found;
  if (!chassis.subsystem.empty()) {
    auto metrics = supply_metrics(chassis.subsystem, limit);
    if (!metrics && metrics.error().code == ErrorCode::timeout) return tl::unexpected(metrics.error());
    if (metrics)
      if (auto found = attempt(Source::supplies, std::move(*metrics)); !found || *found) return found;
  }
  return attempt(Source::power, one(chassis.power));
}

Result<std::vector<std::string>> Controller::supply_metrics(const std::string& subsystem, Nanos limit) {
  std::vector<std::string> paths;
  const auto follow = [&](const std::string& path, const char* key) -> Result<std::string> {
    const auto body = get(path, limit);
    if (!body) return tl::unexpected(body.error());
    return parse_link(*body, key);
  };
  const auto collection = follow(subsystem, "PowerSupplies");
  if (!collection) return tl::unexpected(collection.error());
  if (collection->empty()) return paths;
  const auto body = get(*collection, limit);
  if (!body) return tl::unexpected(body.error());
  const auto members = parse_members(*body);
  if (!members) return tl::unexpected(members.error());
  for (const auto& member : *members) {
    const auto metrics = follow(member, "Metrics");
    if (!metrics) return tl::unexpected(metrics.error());
    if (!metrics->empty()) paths.push_back(*metrics);
  }
  return paths;
}

Result<Reading> Controller::read(Nanos limit) {
  Reading sum{0.0, 0.0};
  for (const auto& path : paths_) {
    const auto body = get(path, limit);
    if (!body) return tl::unexpected(body.error());
    const auto reading = source_ == Source::environment ? parse_environment(*body)
                         : source_ == Source::supplies  ? parse_supply_metrics(*body)
                                                        : parse_power(*body);
    if (!reading) return reading;
    const auto add = [](std::optional<double>& total, const std::optional<double>& part) {
      total = total && part ? std::optional(*total + *part) : std::nullopt;
    };
    add(sum.power_w, reading->power_w);
    add(sum.energy_j, reading->energy_j);
  }
  return sum;
}

}  // namespace ergometer::redfish
