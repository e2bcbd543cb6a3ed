// Files of other measuring programs, a PyTorch profiler's trace, and a study's table. A table that was read is written and
// read again as the same.
#include "report/trace_events.hpp"
#include "store/import/import.hpp"
#include "store/study_table_json.hpp"
#include "target.hpp"

using namespace ergometer;

namespace {

void check_table(const StudyTable& table) {
  const auto text = study_table_to_json(table);
  const auto again = study_table_from_json(text, "again");
  // Names that are empty or there twice after bytes were replaced are refused, and nothing else.
  if (again) fuzz_check(study_table_to_json(*again) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz_text(data, size);
  for (const auto order : {foreign::DateOrder::unknown, foreign::DateOrder::month_first}) {
    const auto imported = foreign::import_text(text, "input", {order});
    if (!imported) continue;
    if (const auto* study = std::get_if<StudyTable>(&*imported)) {
      check_table(*study);
      check_table(foreign::join_studies({{"a", *study}, {"b", *study}}));
      continue;
    }
    for (const auto& log : std::get<std::vector<foreign::ImportedLog>>(*imported)) {
      fuzz_check(log.node.sensors.size() == log.traces.size());
      for (const auto& trace : log.traces) {
        fuzz_check(trace.columns.size() == trace.info.channels.size());
        for (std::size_t i = 1; i < trace.rows(); ++i) fuzz_check(trace.t_ns[i - 1] < trace.t_ns[i]);
      }
    }
  }
  if (const auto table = study_table_from_json(text, "input")) check_table(*table);
  if (const auto place = inspect_torch_trace(text, "input"))
    fuzz_check(place->insert_at <= size && text[place->insert_at - 1] == '[');
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {"timestamp, index, uuid, power.draw [W], utilization.gpu [%]\n"
          "2024/01/31 13:45:12.345, 0, GPU-a, 61.23 W, 50 %\n2024/01/31 13:45:12.445, 1, GPU-b, [N/A], 0 %\n",
          "power.draw [mW];timestamp\n61230,5;31.01.2024 13:45:12,345\n1;1/2/2024 1:45:12 PM\n",
          "timestamp,gpu_index,utilization_gpu_pct,memory_used_MiB,power_draw_W\n1612345678.5,0,99,32410,231.5\n",
          "Step,Node,Series,ElapsedTime,EpochTime,CPUFrequency,CPUUtilization,RSS\n-2,n1,Task_0,10,1612345678,2100000,950,8\n",
          "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\nd,n,32,adam,250,10,200\nd,n,8,a,100,1,2\n",
          "start_time,window_name,elapsed_time,gpu0_energy\n1706708712.0,epoch,10.0,2000\n",
          "timestamp,project_name,duration,emissions,energy_consumed,gpu_energy\n2024-01-31T13:45:12,x,3600,0.05,0.04,0\n",
          R"({"schema":"ergometer.study-table/1","name":"s","factors":[{"name":"f","unit":"W","levels":["1W"],"values":[1]}],
"metrics":[{"name":"m","title":"","unit":"J","lower_is_better":true}],"cells":[{"levels":[0]}],
"runs":[{"cell":0,"verdict":"valid","metrics":{"m":{"value":1.5,"uncertainty":null}}}]})",
          R"({"baseTimeNanoseconds": 5, "traceEvents": [{"ph": "X", "args": {"traceEvents": []}}]})"};
}
