// Exports that need a run's readings, not its summary; one sensor in memory at a time where that is enough.
#pragma once

#include <string>

#include "output_file.hpp"

namespace ergometer::cli {

// Every reading in long form: t_ns,node,sensor,domain,column,value.
[[nodiscard]] Result<void> export_samples(const std::string& run, OutputFile& out);
// Trace events (report/trace_events.hpp). With `torch_trace`, a file of the PyTorch profiler, the run's events are put into
// a copy of it, on its clock; "" for none.
[[nodiscard]] Result<void> export_perfetto(const std::string& run, const std::string& torch_trace, OutputFile& out);
// GPUs in the Supercloud form. Error (not_found): the run has no GPU with power or utilisation.
[[nodiscard]] Result<void> export_supercloud(const std::string& run, OutputFile& out);

}  // namespace ergometer::cli
