#include "device/rapl/domain.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer::rapl {
namespace {

struct KindInfo {
  Kind kind;
  const char* word;
  Scope scope;
  bool in_total;
  const char* note;
};
constexpr std::array<KindInfo, 6> kKinds{{
    {Kind::package, "package", Scope::package, true, ""},
    {Kind::core, "core", Scope::core, false, "inside its package"},
    {Kind::uncore, "uncore", Scope::uncore, false, "inside its package"},
    {Kind::dram, "dram", Scope::dram, true, "beside its package, not inside"},
    {Kind::psys, "psys", Scope::psys, false, "whole platform: contains the packages, shown apart"},
    {Kind::unknown, "rail", Scope::rail, false, "unknown zone name: recorded, never added"},
}};

const KindInfo& info_of(Kind kind) {
  for (const auto& info : kKinds)
    if (info.kind == kind) return info;
  return kKinds.back();
}

// The number after `prefix`, advancing `text` past both; nullopt if it does not start so.
std::optional<int> take_number(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  const auto rest = text.substr(prefix.size());
  const auto digits = rest.substr(0, rest.find_first_not_of("0123456789"));
  const auto value = parse_uint(digits);
  if (!value || *value > 1 << 20) return std::nullopt;
  text = rest.substr(digits.size());
  return static_cast<int>(*value);
}

// "package/0" with '/' as separator, "package_0" with '_'.
std::string joined(const Domain& d, char separator) {
  std::string out = info_of(d.kind).word;
  out += separator;
  if (d.kind == Kind::unknown) return out + lower(file_name_of(d.other));
  append_int(out, d.package);
  if (d.die) {
    out += fmt::format("{}die{}", separator, separator);
    append_int(out, *d.die);
  }
  return out;
}

}  // namespace

Domain parse_zone_name(std::string_view name, const Domain* parent) {
  Domain out;
  auto rest = name;
  if (const auto package = take_number(rest, "package-")) {
    out.package = *package;
    if (!rest.empty()) out.die = take_number(rest, "-die-");
    if (rest.empty()) out.kind = Kind::package;
  } else if (const auto platform = take_number(rest, "psys-"); platform && rest.empty()) {
    out.kind = Kind::psys;
    out.package = *platform;
  } else {
    for (const auto kind : {Kind::core, Kind::uncore, Kind::dram, Kind::psys})
      if (name == info_of(kind).word) out.kind = kind;
    if (parent) {
      out.package = parent->package;
      out.die = parent->die;
    }
  }
  if (out.kind == Kind::unknown) out = Domain{Kind::unknown, 0, std::nullopt, std::string(name)};
  return out;
}

std::string domain_name(const Domain& domain) { return joined(domain, '/'); }

Channel energy_channel(const Domain& domain) {
  const auto& info = info_of(domain.kind);
  Channel c;
  c.column = joined(domain, '_') + "_energy_j";
  c.quantity = Quantity::energy;
  c.unit = "J";
  c.behaviour = Behaviour::counter;
  c.domain = domain_name(domain);
  c.scope = info.scope;
  c.method = Method::counter;
  c.in_total = info.in_total;
  c.period = std::chrono::milliseconds(1);
  c.note = info.note;
  return c;
}

}  // namespace ergometer::rapl
