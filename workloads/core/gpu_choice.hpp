// Which of the visible GPUs a process takes. Used by runtime; free of LibTorch, so that a test needs no GPU.
#pragma once

#include "core/result.hpp"

namespace ergometer::workload {

// `local_rank` is the process's number on its machine, `visible` how many GPUs it sees. A launcher may show each
// process one GPU only; that one is number 0 then, whatever the process's number. Otherwise a process a GPU: an error
// where there are fewer, since two training processes on one GPU are hardly meant.
[[nodiscard]] Result<int> gpu_of(int local_rank, int visible);

}  // namespace ergometer::workload
