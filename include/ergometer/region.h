/* Ergometer markers, C interface: name the intervals of a program ("train", "epoch", "step") whose energy you want.
 *
 * A marker reads the monotonic clock and writes 64 bytes into a mapped file; it never touches a sensor and never
 * blocks. It works when the process runs under `ergometer run` (which sets ERGOMETER_RUN); otherwise every call is one
 * branch. All functions may be called from any thread; none fails or sets errno: if the file cannot be created or the
 * disk is full, markers turn themselves off. A fork()ed child writes its own file. Link with -lergometer_region. */
#ifndef ERGOMETER_REGION_H
#define ERGOMETER_REGION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A region that has begun; 0 is no region, and every function ignores it. Valid until its end. */
typedef uint64_t ergometer_region;

/* Not for use: the state and the bodies behind the inline functions. State: 0 not started, 1 active, -1 off; written
 * while other threads read it, therefore read by ergometer_is_off_ only. */
extern int ergometer_state_;
ergometer_region ergometer_begin_(const char* name, int64_t index);
void ergometer_end_(ergometer_region region);
void ergometer_number_(ergometer_region region, const char* key, double value);
void ergometer_text_(ergometer_region region, const char* key, const char* value);

static inline int ergometer_is_off_(void) { return __atomic_load_n(&ergometer_state_, __ATOMIC_RELAXED) < 0; }

/* Begins a region inside the calling thread's innermost open one. `name` is UTF-8, without '/', '[' or ']' (they become
 * '_'), up to 1,000 bytes, and is copied. */
static inline ergometer_region ergometer_begin(const char* name) {
  return ergometer_is_off_() ? 0 : ergometer_begin_(name, -1);
}
/* The same with an index of its own, shown as name[index]; index >= 0. */
static inline ergometer_region ergometer_begin_indexed(const char* name, int64_t index) {
  return ergometer_is_off_() ? 0 : ergometer_begin_(name, index);
}
/* Ends a region; any thread. */
static inline void ergometer_end(ergometer_region region) {
  if (region) ergometer_end_(region);
}
/* Attaches a number ("loss", 0.25; "samples", 64) or a text to an open region. `key` up to 24 bytes. A key set again
 * replaces the former value. The keys samples, tokens and molecules also give energy per piece of work. */
static inline void ergometer_number(ergometer_region region, const char* key, double value) {
  if (region) ergometer_number_(region, key, value);
}
static inline void ergometer_text(ergometer_region region, const char* key, const char* value) {
  if (region) ergometer_text_(region, key, value);
}

#ifdef __cplusplus
}
#endif
#endif
