#include "device/remote/remote.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "device/remote/link.hpp"
#include "device/remote/protocol.hpp"

namespace ergometer {
namespace {
using namespace remote;

constexpr Nanos kPatience = std::chrono::milliseconds(500);
// Of a reading: the daemon itself answers at the latest after kLongestReading (apps/daemon/limits.hpp), 1.5 s.
constexpr Nanos kReadPatience = std::chrono::seconds(3);
constexpr Nanos kDefaultInterval = std::chrono::milliseconds(100);
constexpr int kMostBatches = 64;  // of one read, while the daemon has more
constexpr std::size_t kMostSensors = 256, kMostColumns = 1024;

using Families = std::set<std::string, std::less<>>;

// "rapl-perf" belongs to "rapl".
std::string family_of(std::string_view interface) { return std::string(interface.substr(0, interface.find('-'))); }

bool gives_energy(const Channel& c) { return c.quantity == Quantity::power || c.quantity == Quantity::energy; }

class RemoteSensor final : public Sensor {
 public:
  // `columns`: those of the daemon's sensor that stand in `info`; it has `all_columns`.
  RemoteSensor(SensorInfo info, std::string remote_name, std::vector<std::size_t> columns, std::size_t all_columns,
               std::filesystem::path socket, std::shared_ptr<Clock> clock)
      : Sensor(std::move(info)),
        remote_name_(std::move(remote_name)),
        columns_(std::move(columns)),
        all_columns_(all_columns),
        socket_(std::move(socket)),
        clock_(std::move(clock)) {}

  // Has the daemon read once, so that the first read() reaches back to now. A failure is the first read()'s to tell.
  void begin() {
    if (!connect()) return;
    if (const auto batch = next_batch(kPatience)) after_ = batch->cursor - (batch->rows.size() + batch->events.size());
  }

  Result<void> read(Readings& out) override {
    if (auto connected = connect(); !connected) return connected;
    for (int i = 0; i < kMostBatches; ++i) {
      auto batch = next_batch(kReadPatience);
      if (!batch) return tl::unexpected(batch.error());
      take(*batch, out);
      if (!batch->more) break;
    }
    return {};
  }

 private:
  Result<void> connect() {
    if (link_) return {};
    auto link = Link::open(socket_, *clock_, kPatience);
    if (!link) return tl::unexpected(Error{ErrorCode::lost, link.error().message, link.error().hint});
    link_ = std::move(*link);
    after_.reset();  // another daemon counts anew
    return {};
  }

  Result<Batch> next_batch(Nanos patience) {
    const auto line = link_->ask(request_line({Request::Kind::read, remote_name_, after_}), patience);
    if (!line) {
      link_.reset();
      return tl::unexpected(line.error());
    }
    return parse_batch(*line, all_columns_);
  }

  void take(Batch& batch, Readings& out) {
    if (batch.lost > 0) out.event("gap", fmt::format("{} readings of the daemon came too late for us", batch.lost));
    for (auto& event : batch.events) out.events.push_back(std::move(event));
    for (const auto& row : batch.rows) {
      std::vector<std::optional<double>> values;
      values.reserve(columns_.size());
      for (const auto c : columns_) values.push_back(row.values[c]);
      out.add_at(row.t, std::move(values));
    }
    after_ = batch.cursor;
  }

  std::string remote_name_;
  std::vector<std::size_t> columns_;
  std::size_t all_columns_;
  std::filesystem::path socket_;
  std::shared_ptr<Clock> clock_;
  std::optional<Link> link_;
  std::optional<std::uint64_t> after_;
};

Result<std::vector<SensorInfo>> offered(const std::filesystem::path& socket, Clock& clock) {
  auto link = Link::open(socket, clock, kPatience);
  if (!link) return tl::unexpected(link.error());
  const auto line = link->ask(request_line({}), kPatience);
  if (!line) return tl::unexpected(line.error());
  auto sensors = parse_sensors(*line);
  if (!sensors) return sensors;
  std::erase_if(*sensors, [](const SensorInfo& s) {
    return s.name.empty() || s.channels.empty() || s.channels.size() > kMostColumns;
  });
  if (sensors->size() > kMostSensors) sensors->resize(kMostSensors);
  return sensors;
}

std::set<std::string> measured_domains(const Discovery& found) {
  std::set<std::string> domains;
  for (const auto& sensor : found.sensors)
    for (const auto& c : sensor->info().channels)
      if (c.measured && gives_energy(c)) domains.insert(c.domain);
  return domains;
}

// Columns of an offered sensor that nobody else measures; none if only what is no energy is left.
std::vector<std::size_t> wanted_columns(const SensorInfo& offer, const std::set<std::string>& measured) {
  std::vector<std::size_t> columns;
  bool any = false;
  for (std::size_t i = 0; i < offer.channels.size(); ++i) {
    const auto& c = offer.channels[i];
    if (gives_energy(c) && measured.contains(c.domain)) continue;
    any = any || gives_energy(c);
    columns.push_back(i);
  }
  return any ? columns : std::vector<std::size_t>{};
}

Families forbidden_families(const Discovery& found, std::size_t first) {
  Families families;
  for (std::size_t i = first; i < found.node.absences.size(); ++i)
    if (found.node.absences[i].forbidden) families.insert(family_of(found.node.absences[i].interface));
  return families;
}

// What is read now is not absent. A warning belongs to an absence if both name the same remedy.
void take_back(const Families& resolved, std::size_t first, Discovery& found) {
  auto& absences = found.node.absences;
  const auto begin = absences.begin() + static_cast<std::ptrdiff_t>(first);
  const auto is_resolved = [&](const Absence& a) { return a.forbidden && resolved.contains(family_of(a.interface)); };
  for (auto a = begin; a != absences.end(); ++a)
    if (is_resolved(*a)) std::erase_if(found.warnings, [&](const Warning& w) { return w.remedy == a->remedy; });
  absences.erase(std::remove_if(begin, absences.end(), is_resolved), absences.end());
}

std::shared_ptr<Sensor> make_sensor(const SensorInfo& offer, std::vector<std::size_t> columns,
                                    const std::filesystem::path& socket, const Host& host,
                                    const DiscoverOptions& options) {
  SensorInfo info = offer;
  info.name = offer.name + "-remote";
  info.own_time = true;  // rows carry the time of the daemon's reading, on the same clock
  info.interval = std::max(offer.interval, options.interval.value_or(kDefaultInterval));
  info.note = fmt::format("read by ergometerd at {}{}{}", socket.string(), offer.note.empty() ? "" : "; ", offer.note);
  info.channels.clear();
  for (const auto c : columns) info.channels.push_back(offer.channels[c]);
  auto sensor = std::make_shared<RemoteSensor>(std::move(info), offer.name, std::move(columns), offer.channels.size(),
                                               socket, host.clock);
  // The command does not wait for a sensor with its own time. What is slow to read is coarse anyway.
  if (offer.interval <= kDefaultInterval) sensor->begin();
  return sensor;
}

}  // namespace

void add_remote(const Host& host, const DiscoverOptions& options, std::size_t first_absence, Discovery& found) {
  const bool named = std::ranges::count(options.only, "remote") > 0;
  const auto forbidden = forbidden_families(found, first_absence);
  if (!options.use_daemon || (!named && forbidden.empty())) return;
  const auto already = [](const Absence& a) { return a.interface == "remote"; };
  if (std::ranges::any_of(found.node.absences, already)) return;  // it did not answer a moment ago
  const auto socket = host.root.path(kSocket);
  const auto offers = offered(socket, *host.clock);
  if (!offers) {
    const auto& error = offers.error();
    if (error.code == ErrorCode::not_found && !named) return;  // no daemon here; the absence has named it as a remedy
    const bool none = error.code == ErrorCode::not_found;
    const auto remedy = none ? "install ergometerd and start it: docs/daemon.md" : error.hint;
    found.node.absences.push_back({"remote", "sensors of ergometerd", error.message, remedy});
    found.warnings.push_back({"daemon-unusable", "nothing is read through ergometerd: " + error.message, remedy});
    return;
  }
  const auto measured = measured_domains(found);
  Families resolved;
  for (const auto& offer : *offers) {
    const auto family = family_of(offer.interface);
    if (!named && !forbidden.contains(family)) continue;
    auto columns = wanted_columns(offer, measured);
    if (columns.empty()) continue;
    resolved.insert(family);
    found.sensors.push_back(make_sensor(offer, std::move(columns), socket, host, options));
  }
  take_back(resolved, first_absence, found);
}

}  // namespace ergometer
