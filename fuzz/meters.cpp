// What node meters say: IPMI responses, Redfish documents, lines of a power meter, texts of Slurm's tools. A power or
// an energy that is read is positive and finite.
#include <algorithm>
#include <cmath>

#include "device/ipmi/messages.hpp"
#include "device/meter/format.hpp"
#include "device/redfish/documents.hpp"
#include "device/slurm/output.hpp"
#include "target.hpp"

using namespace ergometer;

namespace {

void check(const std::optional<double>& value) { fuzz_check(!value || (std::isfinite(*value) && *value > 0)); }

void check_ipmi(ipmi::View bytes) {
  for (const auto& statistics : {ipmi::parse_dcmi(bytes), ipmi::parse_node_manager(bytes)})
    if (statistics) check(statistics->current_w);
  if (const auto energy = ipmi::parse_xcc_energy(bytes)) {
    fuzz_check(energy->energy_j.has_value() != energy->power_w.has_value());
    check(energy->energy_j);
    check(energy->power_w);
  }
  if (const auto power = ipmi::parse_xcc_power(bytes)) check(power->board_w);
  (void)ipmi::parse_manufacturer(bytes);
}

void check_redfish(std::string_view text) {
  for (const auto& reading :
       {redfish::parse_environment(text), redfish::parse_supply_metrics(text), redfish::parse_power(text)})
    if (reading) {
      check(reading->power_w);
      check(reading->energy_j);
    }
  if (const auto members = redfish::parse_members(text))
    for (const auto& path : *members) fuzz_check(path.starts_with('/'));
  (void)redfish::parse_chassis(text);
  (void)redfish::parse_link(text, "Metrics");
}

void check_meter(std::string_view text) {
  const auto end = std::min(text.find('\n'), text.size());
  for (const auto* unit : {"", "mW"})
    if (const auto format = meter::format_of(text.substr(0, end), {"", unit, ""}))
      if (const auto line = meter::parse_line(text.substr(std::min(end + 1, text.size())), *format)) {
        check(line->power_w);
        fuzz_check(line->stamp_ns.has_value() == (format->time != meter::Time::arrival));
      }
  check(meter::parse_watts(text, 1));
  (void)meter::parse_iso_time(text);
}

void check_slurm(std::string_view text) {
  check(slurm::parse_node(text).power_w);
  check(slurm::parse_node(text).energy_j);
  check(slurm::parse_step(text));
  (void)slurm::parse_config(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_ipmi({data, size});
  const auto text = fuzz_text(data, size);
  check_redfish(text);
  check_meter(text);
  check_slurm(text);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string statistics("\x68\x01\x5a\x00\xbc\x02\x2c\x01\xe8\x03\x00\x00\xe8\x03\x00\x00\x40", 17);
  return {
      std::string("\x02\x00\xdc", 3) + statistics,
      std::string("\xc8\x00\x57\x01\x00", 5) + statistics,
      std::string("\x32\x00\x05\x00\xe8\x03\x00\x00\xf4\x01\x88\x13\x00\x00\xfa\x00", 16),
      std::string("\x32\x00\x64\x00\xc8\xaf", 6) + std::string(34, '\1'),
      std::string("\x01\x00\x20\x01\x03\x10\x02\xbf\x57\x01\x00\x34\x12", 13),
      R"({"PowerWatts":{"Reading":412.5},"EnergykWh":{"Reading":2.5},"InputPowerWatts":{"Reading":1}})",
      R"({"PowerControl":[{"PowerConsumedWatts":333}],"Members":[{"@odata.id":"/a"}],"Metrics":{"@odata.id":"/m"}})",
      R"({"Id":"1","Links":{"ComputerSystems":[{}],"ContainedBy":{"@odata.id":"/c"}},"Power":{"@odata.id":"/p"}})",
      "time_s,power_w\n1769860800.25,300.5",
      "Date;Power [mW]\n2026-01-31T13:00:00.5+01:00;312500,5",
      "1769860800,312",
      "312.5 W",
      "NodeName=n7 CurrentWatts=312 ConsumedJoules=77000",
      "AcctGatherEnergyType = acct_gather_energy/ipmi\nAcctGatherNodeFreq = 20 sec\n"};
}
