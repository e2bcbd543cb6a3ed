// What ergometerd hears and what its clients hear: requests, greetings, lists, batches, answers about controls. What is understood can be said
// again and means the same.
#include "device/remote/control_protocol.hpp"
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
    fuzz_check(again->controls.size() == request->controls.size() && again->settings.size() == request->settings.size());
    using Kind = remote::Request::Kind;
    if (request->kind == Kind::job_begin || request->kind == Kind::job_end || request->kind == Kind::job)
      fuzz_check(remote::is_job_id(request->note.job) && again->note.job == request->note.job);
    if (request->kind == Kind::job_begin) fuzz_check(request->note.uid && again->note.uid == request->note.uid);
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
  if (const auto applied = remote::parse_applied(text)) {
    const auto again = remote::parse_applied(remote::applied_line(*applied));
    fuzz_check(again && again->size() == applied->size());
  }
  if (const auto restored = remote::parse_restored(text)) {
    const auto again = remote::parse_restored(remote::restored_line(*restored));
    fuzz_check(again && again->size() == restored->size());
  }
  (void)remote::parse_lease_answer(text);
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
          R"({"do":"lease","holder":"study x","controls":[{"name":"gpu/0/power","backend":"nvml","device_id":"GPU-1",)"
          R"("values":["200 W","250 W"]}]})",
          R"({"do":"apply","settings":[{"control":0,"value":"200 W"}]})",
          R"({"leased":2})",
          R"({"applied":[{"control":0,"requested":"200 W","effective":null,"in_effect":true}]})",
          R"({"restored":[{"control":0,"name":"gpu/0/power","outcome":"restored","text":"t","hint":""}]})",
          R"({"job_begin":{"job":"12_3","uid":1001,"user":"anna","exclusive":true}})",
          R"({"job_end":{"job":"12"}})",
          R"({"job":"12"})",
          R"({"sensors":[{"name":"rapl","interface":"rapl-perf","interval_ns":50000000,"own_time":false,"note":"",)"
          R"("channels":[{"column":"package_0_energy_j","quantity":"energy","unit":"J","behaviour":"counter",)"
          R"("domain":"package/0","scope":"package","method":"counter","range":262143.3}]}]})"};
}
