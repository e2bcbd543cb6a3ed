// What ergometerd hears and what its clients hear: requests, greetings, lists, batches. What is understood can be said
// again and means the same.
#include "device/remote/protocol.hpp"
#include "target.hpp"

using namespace ergometer;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz_text(data, size);
  if (const auto request = remote::parse_request(text)) {
    const auto again = remote::parse_request(remote::request_line(*request));
    fuzz_check(again && again->kind == request->kind);
    if (request->kind == remote::Request::Kind::read)
      fuzz_check(again->sensor == request->sensor && again->after == request->after && !request->sensor.empty());
  }
  for (const std::size_t columns : {0u, 1u, 3u})
    if (const auto batch = remote::parse_batch(text, columns)) {
      for (const auto& row : batch->rows) fuzz_check(row.values.size() == columns);
      const auto again = remote::parse_batch(remote::batch_line(*batch), columns);
      fuzz_check(again && again->cursor == batch->cursor && again->rows.size() == batch->rows.size() &&
                 again->events.size() == batch->events.size() && again->more == batch->more);
    }
  if (const auto sensors = remote::parse_sensors(text)) {
    const auto again = remote::parse_sensors(remote::sensors_line(*sensors));
    fuzz_check(again && again->size() == sensors->size());
  }
  (void)remote::parse_greeting(text);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {R"({"do":"list"})",
          R"({"do":"read","sensor":"rapl","after":null})",
          R"({"do":"read","sensor":"rapl","after":1234})",
          R"({"schema":"ergometer.daemon/1","version":"0.1.0","now_ns":123456789})",
          R"({"error":{"code":"permission_denied","message":"permission denied","hint":"sudo usermod"}})",
          R"({"cursor":7,"lost":1,"more":false,"rows":[[1000,12.5,null,3],[2000,1e-3,2,-4]],"events":[]})",
          R"({"cursor":1,"lost":0,"more":true,"rows":[[5,1]],"events":[{"kind":"lost","detail":"gone"}]})",
          R"({"sensors":[{"name":"rapl","interface":"rapl-perf","interval_ns":50000000,"own_time":false,"note":"",)"
          R"("channels":[{"column":"package_0_energy_j","quantity":"energy","unit":"J","behaviour":"counter",)"
          R"("domain":"package/0","scope":"package","method":"counter","range":262143.3}]}]})"};
}
