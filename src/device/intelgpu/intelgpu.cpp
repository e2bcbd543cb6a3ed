#include "device/intelgpu/intelgpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/drm_card.hpp"
#include "device/intelgpu/visibility.hpp"
#include "device/number_sensor.hpp"

namespace ergometer {
namespace intelgpu {
namespace {
namespace fs = std::filesystem;

// Graphics inside a processor always sits here; its energy is part of the processor's package.
constexpr const char* kInsideProcessor = "0000:00:02.0";

struct Card {
  DrmCard place;
  std::string driver;                           // "i915" or "xe"
  fs::path hwmon;                               // of the whole card; "" if there is none
  std::vector<std::pair<int, fs::path>> tiles;  // i915: hwmon folders "i915_gtN"
  GpuInfo info;
  std::string label;
};

Card look_at(DrmCard place, const std::string& driver) {
  Card card;
  card.driver = driver;
  card.label = "Intel GPU " + place.pci_bus_id;
  card.info.pci_bus_id = place.pci_bus_id;
  card.info.uuid = "PCI-" + lower(place.pci_bus_id);
  card.info.name = fmt::format("Intel GPU ({})", lower(place.pci_id));
  for (const auto& folder : hwmon_folders(place.device)) {
    const auto name = short_text(folder / "name");
    if (name == driver) card.hwmon = folder;
    if (!name.starts_with("i915_gt")) continue;
    if (const auto tile = parse_uint(std::string_view(name).substr(7)); tile && *tile < 64)
      card.tiles.emplace_back(static_cast<int>(*tile), folder);
  }
  if (!card.hwmon.empty()) {
    // A limit of 0 means that there is none.
    card.info.power_limit_w = positive_micro(card.hwmon / "power1_max");
    card.info.default_power_limit_w = positive_micro(card.hwmon / "power1_rated_max");
    if (!card.info.power_limit_w) card.info.power_limit_w = positive_micro(card.hwmon / "power2_max");
    if (!card.info.default_power_limit_w)
      card.info.default_power_limit_w = positive_micro(card.hwmon / "power2_rated_max");
  }
  card.place = std::move(place);
  return card;
}

NumberColumn energy_column(const Card& card, const fs::path& folder, int number, std::string column) {
  Channel c = card_channel(card.info, std::move(column), Quantity::energy, "J");
  c.behaviour = Behaviour::counter;
  c.method = Method::counter;
  c.resolution = 1e-6;
  c.max_power_w = card.info.default_power_limit_w;
  return {folder / fmt::format("energy{}_input", number), 1e-6, 0, std::move(c)};
}

// A part of the card: recorded beside the whole, never added to it.
NumberColumn part_column(const Card& card, const fs::path& folder, int number, const std::string& part) {
  auto column = energy_column(card, folder, number, part + "_energy_j");
  column.channel.domain += "/" + part;
  column.channel.scope = Scope::rail;
  column.channel.in_total = false;
  column.channel.note = "part of its card";
  return column;
}

// The counter of the card and those of its parts. The xe driver has energy1 for the card and energy2 for the package
// on it; some cards have the second alone.
std::vector<NumberColumn> energy_columns(const Card& card, Discovery& out) {
  std::vector<NumberColumn> columns;
  if (card.hwmon.empty()) return columns;
  columns = readable({energy_column(card, card.hwmon, 1, "energy_j")}, "intelgpu", card.label, out);
  if (columns.empty()) {
    columns = readable({energy_column(card, card.hwmon, 2, "package_energy_j")}, "intelgpu", card.label, out);
    for (auto& c : columns) c.channel.note = "the package alone: the rest of the card has no counter";
  } else {
    auto parts = readable({part_column(card, card.hwmon, 2, "package")}, "intelgpu", card.label, out);
    std::ranges::move(parts, std::back_inserter(columns));
  }
  for (const auto& [tile, folder] : card.tiles) {
    auto parts = readable({part_column(card, folder, 1, fmt::format("gt{}", tile))}, "intelgpu", card.label, out);
    std::ranges::move(parts, std::back_inserter(columns));
  }
  return columns;
}

std::vector<NumberColumn> slow_columns(const Card& card, Discovery& out) {
  std::vector<NumberColumn> columns;
  const auto add = [&](const fs::path& file, double scale, double limit, const char* column, Quantity quantity,
                       const char* unit) {
    columns.push_back({file, scale, limit, card_channel(card.info, column, quantity, unit)});
  };
  if (card.driver == "i915")
    add(card.place.folder / "gt/gt0/rps_act_freq_mhz", 1e6, 0, "gpu_clock_hz", Quantity::frequency, "Hz");
  else
    add(card.place.device / "tile0/gt0/freq0/act_freq", 1e6, 0, "gpu_clock_hz", Quantity::frequency, "Hz");
  if (!card.hwmon.empty()) {
    add(card.hwmon / "temp2_input", 1e-3, 200, "temperature_celsius", Quantity::temperature, "Cel");
    add(card.hwmon / "temp3_input", 1e-3, 200, "memory_temperature_celsius", Quantity::temperature, "Cel");
    add(card.hwmon / "power1_max", 1e-6, 0, "power_limit_w", Quantity::power, "W");
    columns.back().channel.in_total = false;
    columns.back().channel.note = "a limit and not a reading; 0: none";
  }
  return readable(std::move(columns), "intelgpu", card.label, out);
}

void add_sensor(const Card& card, std::string suffix, Nanos interval, const std::vector<NumberColumn>& columns,
                Discovery& out) {
  if (columns.empty()) return;
  SensorInfo info;
  info.name = fmt::format("gpu{}{}", card.info.index, suffix);
  info.interface = "intelgpu";
  info.interval = interval;
  info.note = card.place.pci_bus_id;
  out.sensors.push_back(std::make_shared<NumberSensor>(std::move(info), columns, card.label));
}

}  // namespace
}  // namespace intelgpu

void discover_intelgpu(const Host& host, const DiscoverOptions& options, Discovery& out) {
  using namespace intelgpu;
  std::vector<Card> cards;
  for (const std::string driver : {"i915", "xe"})
    for (auto& place : drm_cards(host.root, driver)) cards.push_back(look_at(std::move(place), driver));
  std::ranges::sort(cards, {}, [](const Card& card) { return card.place.pci_bus_id; });
  const bool tiles = std::ranges::any_of(cards, [](const Card& card) { return card.tiles.size() > 1; });
  auto visibility = resolve_visibility(options.environment, cards.size(), tiles);
  for (const auto& environment : options.other_ranks) {
    auto other = resolve_visibility(environment, cards.size(), tiles);
    for (std::size_t i = 0; i < cards.size(); ++i) visibility.visible[i] = visibility.visible[i] || other.visible[i];
    if (!visibility.unknown) visibility.unknown = std::move(other.unknown);
  }
  int index = 0;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    auto& card = cards[i];
    if (card.place.pci_bus_id == kInsideProcessor && card.hwmon.empty()) continue;
    card.info.index = index++;
    card.info.visible = visibility.visible[i];
    if (visibility.unknown) card.info.note = "whether the command can use it is not known";
    const auto energy = energy_columns(card, out);
    if (energy.empty()) {
      card.info.state = "not measurable";
      out.node.absences.push_back({"intelgpu", card.label + " energy", "its driver has no energy counter for this card",
                                   "i915 has one from Linux 6.2 on, xe from 6.5 on, for most cards"});
    }
    add_sensor(card, "", options.interval.value_or(std::chrono::milliseconds(100)), energy, out);
    add_sensor(card, "-slow", std::chrono::seconds(1), slow_columns(card, out), out);
    out.node.gpus.push_back(std::move(card.info));
  }
  if (index == 0)
    out.node.absences.push_back({"intelgpu", "Intel GPUs",
                                 "no card of the kernel drivers i915 and xe outside of a processor in " +
                                     host.root.path("/sys/class/drm").string(),
                                 ""});
  else if (visibility.unknown)
    out.warnings.push_back(std::move(*visibility.unknown));
}

}  // namespace ergometer
