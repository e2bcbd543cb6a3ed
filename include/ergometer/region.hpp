// Ergometer markers, C++ interface: a region that lasts as long as an object. See region.h for what a marker costs.
//
//   ergometer::ScopedRegion epoch("epoch", 3);
//   epoch.set("loss", 0.25);
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "ergometer/region.h"

namespace ergometer {

// Begins a region now and ends it when destroyed, or at end(). Movable, not copyable. See region.h for names.
class [[nodiscard]] ScopedRegion {
 public:
  explicit ScopedRegion(const char* name) : id_(ergometer_begin(name)) {}
  ScopedRegion(const char* name, std::int64_t index) : id_(ergometer_begin_indexed(name, index)) {}
  ScopedRegion(ScopedRegion&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
  ScopedRegion& operator=(ScopedRegion&& other) noexcept {
    if (this != &other) {
      end();
      id_ = std::exchange(other.id_, 0);
    }
    return *this;
  }
  ~ScopedRegion() { end(); }

  void set(const char* key, double value) { ergometer_number(id_, key, value); }
  void set(const char* key, const std::string& value) { ergometer_text(id_, key, value.c_str()); }
  // Ends the region before the object's own end; a second call does nothing.
  void end() {
    ergometer_end(id_);
    id_ = 0;
  }

 private:
  ergometer_region id_;
};

}  // namespace ergometer
