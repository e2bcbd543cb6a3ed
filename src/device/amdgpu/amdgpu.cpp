#include "device/amdgpu/amdgpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/amdgpu/card_sensor.hpp"
#include "device/amdgpu/visibility.hpp"
#include "device/drm_card.hpp"

namespace ergometer {
namespace amdgpu {
namespace {
namespace fs = std::filesystem;

// One card on its way through discovery.
struct Card {
  DrmCard place;
  fs::path hwmon;  // "" if there is none
  GpuInfo info;
  std::string label;  // names it in events and absences
  bool apu = false;   // graphics inside a processor
  std::optional<GpuMetrics> metrics;
};

Channel power_channel(const Card& card, std::string column, Method method) {
  Channel c = card_channel(card.info, std::move(column), Quantity::power, "W");
  c.method = method;
  c.resolution = 1e-6;
  c.max_power_w = card.info.max_power_limit_w ? card.info.max_power_limit_w : card.info.power_limit_w;
  if (card.apu) {
    c.in_total = false;
    c.note = "graphics of a processor: its power includes the cores; shown apart";
  }
  return c;
}

Card look_at(const DrmCard& place, int index, Discovery& out) {
  Card card;
  card.place = place;
  card.label = "AMD GPU " + place.pci_bus_id;
  auto& info = card.info;
  info.index = index;
  info.pci_bus_id = place.pci_bus_id;
  const auto unique = short_text(place.device / "unique_id");
  const bool told = !unique.empty() && unique.find_first_not_of('0') != std::string::npos;
  info.uuid = told ? "GPU-" + lower(unique) : "PCI-" + lower(place.pci_bus_id);
  info.name = short_text(place.device / "product_name");
  if (info.name.empty()) info.name = fmt::format("AMD GPU ({})", lower(place.pci_id));
  if (const auto total = parse_uint(short_text(place.device / "mem_info_vram_total")))
    info.memory_bytes = static_cast<double>(*total);
  for (const auto& folder : hwmon_folders(place.device))
    if (short_text(folder / "name") == "amdgpu") card.hwmon = folder;
  if (!card.hwmon.empty()) {
    info.power_limit_w = positive_micro(card.hwmon / "power1_cap");
    info.max_power_limit_w = positive_micro(card.hwmon / "power1_cap_max");
    info.min_power_limit_w = positive_micro(card.hwmon / "power1_cap_min");
    info.default_power_limit_w = positive_micro(card.hwmon / "power1_cap_default");
    card.apu = short_text(card.hwmon / "power1_label") == "slowPPT";
  }
  const auto bytes = read_file(place.device / "gpu_metrics", 1 << 16);
  if (!bytes) {
    const bool denied = bytes.error().code == ErrorCode::permission_denied;
    out.node.absences.push_back({"amdgpu", card.label + " energy counter", bytes.error().message,
                                 denied ? "sudo chmod a+r " + (place.device / "gpu_metrics").string()
                                        : "a kernel of 5.10 or newer has gpu_metrics for most cards"});
    return card;
  }
  auto metrics = parse_gpu_metrics(*bytes);
  if (!metrics) {
    out.node.absences.push_back({"amdgpu", card.label + " energy counter", metrics.error().message,
                                 "power is integrated instead; a newer Ergometer may know it"});
    return card;
  }
  if (metrics->apu) {
    card.apu = true;
    out.node.absences.push_back({"amdgpu", card.label + " energy counter",
                                 fmt::format("gpu_metrics revision {}.{} is of a processor with graphics and has none",
                                             metrics->format, metrics->content),
                                 ""});
    return card;
  }
  card.metrics = std::move(*metrics);
  return card;
}

std::vector<NumberColumn> power_files(const Card& card, Discovery& out) {
  if (card.hwmon.empty()) return {};
  std::vector<NumberColumn> columns;
  columns.push_back({card.hwmon / "power1_average", 1e-6, 0, power_channel(card, "power_average_w", Method::average)});
  columns.push_back({card.hwmon / "power1_input", 1e-6, 0, power_channel(card, "power_input_w", Method::integral)});
  return readable(std::move(columns), "amdgpu", card.label, out);
}

// The second die of a card with two shares the meter of the first: its own figures are always zero.
bool has_no_meter(const Card& card, const std::vector<NumberColumn>& powers) {
  if (!card.metrics) return powers.empty();
  if (card.metrics->energy_ticks.value_or(0) > 0 || card.metrics->socket_w.value_or(0) > 0) return false;
  return std::ranges::none_of(powers, [](const NumberColumn& p) { return positive_micro(p.file).has_value(); });
}

void add_card_sensor(const Host& host, const DiscoverOptions& options, const Card& card,
                     const std::vector<NumberColumn>& powers, Discovery& out) {
  SensorInfo info;
  info.name = fmt::format("gpu{}", card.info.index);
  info.interface = "amdgpu";
  info.interval = options.interval.value_or(std::chrono::milliseconds(100));
  info.note = card.place.pci_bus_id;
  for (const auto& power : powers) info.channels.push_back(power.channel);
  MetricsColumns columns;
  if (card.metrics) {
    const auto& m = *card.metrics;
    const auto revision = fmt::format("gpu_metrics {}.{}", m.format, m.content);
    columns = {m.energy_ticks.value_or(0) > 0, m.socket_w && powers.empty(), m.gfx_active.has_value(),
               m.memory_active.has_value()};
    if (columns.energy) {
      Channel c = power_channel(card, "energy_j", Method::counter);
      c.quantity = Quantity::energy;
      c.unit = "J";
      c.behaviour = Behaviour::counter;
      c.resolution = kJoulesPerTick;
      if (m.energy_bits == 32) c.range = 65536.0;
      info.channels.push_back(std::move(c));
    }
    if (columns.socket_power) {
      Channel c = power_channel(card, "socket_power_w", m.momentary ? Method::integral : Method::average);
      c.resolution = 1;
      info.channels.push_back(std::move(c));
    }
    for (const auto& [on, column] :
         {std::pair{columns.gfx, "gpu_active_ratio"}, {columns.memory, "memory_active_ratio"}}) {
      if (!on) continue;
      Channel c = card_channel(card.info, column, Quantity::ratio, "1");
      c.note = revision;
      info.channels.push_back(std::move(c));
    }
  }
  if (info.channels.empty()) return;
  out.sensors.push_back(std::make_shared<CardSensor>(std::move(info), powers, card.place.device / "gpu_metrics",
                                                     columns, card.label, host.clock));
}

void add_slow_sensor(const Card& card, Discovery& out) {
  const auto& device = card.place.device;
  std::vector<NumberColumn> columns;
  const auto add = [&](const fs::path& file, double scale, double limit, const char* column, Quantity quantity,
                       const char* unit) {
    columns.push_back({file, scale, limit, card_channel(card.info, column, quantity, unit)});
  };
  if (!card.metrics || !card.metrics->gfx_active)
    add(device / "gpu_busy_percent", 0.01, 1, "gpu_active_ratio", Quantity::ratio, "1");
  if (!card.metrics || !card.metrics->memory_active)
    add(device / "mem_busy_percent", 0.01, 1, "memory_active_ratio", Quantity::ratio, "1");
  add(device / "mem_info_vram_used", 1, 0, "memory_used_bytes", Quantity::bytes, "B");
  if (!card.hwmon.empty()) {
    add(card.hwmon / "freq1_input", 1, 0, "gpu_clock_hz", Quantity::frequency, "Hz");
    add(card.hwmon / "freq2_input", 1, 0, "memory_clock_hz", Quantity::frequency, "Hz");
    add(card.hwmon / "temp1_input", 1e-3, 200, "temperature_celsius", Quantity::temperature, "Cel");
    add(card.hwmon / "temp2_input", 1e-3, 200, "junction_temperature_celsius", Quantity::temperature, "Cel");
    add(card.hwmon / "temp3_input", 1e-3, 200, "memory_temperature_celsius", Quantity::temperature, "Cel");
    add(card.hwmon / "power1_cap", 1e-6, 0, "power_limit_w", Quantity::power, "W");
    columns.back().channel.in_total = false;
    columns.back().channel.note = "a limit and not a reading";
  }
  columns = readable(std::move(columns), "amdgpu", card.label, out);
  if (columns.empty()) return;
  SensorInfo info;
  info.name = fmt::format("gpu{}-slow", card.info.index);
  info.interface = "amdgpu";
  info.interval = std::chrono::seconds(1);
  info.note = card.place.pci_bus_id;
  out.sensors.push_back(std::make_shared<NumberSensor>(std::move(info), columns, card.label));
}

// PCI bus ids of the GPUs in the order of the ROCm runtime: nodes of the KFD topology that have SIMD units.
std::vector<std::string> runtime_order(const HostRoot& root) {
  std::map<std::uint64_t, std::string> by_node;
  const auto top = root.path("/sys/class/kfd/kfd/topology/nodes");
  for (const auto& entry : list_dir(top)) {
    const auto node = parse_uint(entry);
    const auto text = read_file(top / entry / "properties", 1 << 16);
    if (!node || !text) continue;
    std::uint64_t simds = 0, location = 0, domain = 0;
    for (const auto line : split(*text, '\n')) {
      const auto blank = line.find(' ');
      const auto value = blank == std::string_view::npos ? std::nullopt : parse_uint(line.substr(blank + 1));
      if (!value) continue;
      const auto key = line.substr(0, blank);
      if (key == "simd_count") simds = *value;
      if (key == "location_id") location = *value;
      if (key == "domain") domain = *value;
    }
    if (simds > 0)
      by_node[*node] =
          fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, location >> 8 & 0xff, location >> 3 & 0x1f, location & 7);
  }
  std::vector<std::string> order;
  for (auto& [node, bus_id] : by_node) order.push_back(std::move(bus_id));
  return order;
}

void mark_visible(const Host& host, const DiscoverOptions& options, std::vector<Card>& cards, Discovery& out) {
  const auto order = runtime_order(host.root);
  std::vector<Card*> runtime;
  for (const auto& bus_id : order)
    for (auto& card : cards)
      if (lower(card.place.pci_bus_id) == bus_id) runtime.push_back(&card);
  const bool order_known = !cards.empty() && runtime.size() == order.size() && runtime.size() == cards.size();
  if (!order_known) {
    runtime.clear();
    for (auto& card : cards) runtime.push_back(&card);
  }
  std::vector<std::string> uuids;
  for (const auto* card : runtime) uuids.push_back(card->info.uuid);
  for (auto& card : cards) card.info.visible = false;
  std::vector<Environment> ranks{options.environment};
  ranks.insert(ranks.end(), options.other_ranks.begin(), options.other_ranks.end());
  for (auto& environment : ranks) {
    // Beside NVIDIA GPUs that variable is theirs.
    if (nvidia_driver_loaded(host.root)) environment.erase("CUDA_VISIBLE_DEVICES");
    auto visibility = resolve_visibility(environment, uuids, order_known);
    for (std::size_t ordinal = 0; ordinal < visibility.order.size(); ++ordinal) {
      auto& info = runtime[visibility.order[ordinal]]->info;
      const auto number = static_cast<int>(ordinal);
      const bool certain = !visibility.unknown && (order_known || cards.size() == 1);
      // A card that has another number in another rank has none on the node.
      info.ordinal = certain && (!info.visible || info.ordinal == number) ? std::optional(number) : std::nullopt;
      info.visible = true;
      if (visibility.unknown) info.note = "whether the command can use it is not known";
    }
    if (visibility.unknown) out.warnings.push_back(std::move(*visibility.unknown));
  }
}

}  // namespace
}  // namespace amdgpu

void discover_amdgpu(const Host& host, const DiscoverOptions& options, Discovery& out) {
  using namespace amdgpu;
  std::vector<Card> cards;
  for (const auto& place : drm_cards(host.root, "amdgpu"))
    cards.push_back(look_at(place, static_cast<int>(cards.size()), out));
  if (cards.empty()) {
    out.node.absences.push_back({"amdgpu", "AMD GPUs",
                                 "no card of the kernel driver amdgpu in " + host.root.path("/sys/class/drm").string(),
                                 ""});
    return;
  }
  mark_visible(host, options, cards, out);
  for (auto& card : cards) {
    const auto powers = power_files(card, out);
    if (has_no_meter(card, powers)) {
      card.info.state = card.apu || card.metrics ? "part" : "not measurable";
      const std::string why = card.apu       ? "inside the processor's package, without a meter of its own"
                              : card.metrics ? "no meter of its own: its power is inside that of the card's first die"
                                             : "neither power nor energy is reported by its driver";
      card.info.note = why;
      out.node.absences.push_back({"amdgpu", card.label + " power and energy", why, ""});
    } else {
      add_card_sensor(host, options, card, powers, out);
    }
    add_slow_sensor(card, out);
    out.node.gpus.push_back(std::move(card.info));
  }
}

}  // namespace ergometer
