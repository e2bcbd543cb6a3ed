// Control of the fake libnvidia-ml.so.1 from a test in the same process: look these up with dlsym, or use
// fake_nvml_control.hpp. The library is otherwise driven by ERGOMETER_FAKE_NVML alone. See README.md.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Plays the scenario in `path` from its second 0, now. Returns the number of lines that were not understood (they
// are printed to standard error). NULL or "": one GPU with the defaults.
int fake_nvml_load(const char* path);
// Forgets the scenario, the counters, the stepped time and that the library was initialised.
void fake_nvml_reset(void);
// From now on time is what this sets: monotonic and wall clock, nanoseconds.
void fake_nvml_set_time_ns(int64_t mono, int64_t wall);
// How often a function was called, by its name without _v2 or _v3.
uint64_t fake_nvml_calls(const char* function);

#ifdef __cplusplus
}
#endif
