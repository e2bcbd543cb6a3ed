// FileControl: a control that is one file of /sys, read and written as a whole number or a word. Used by rapl, cpufreq
// and amdgpu.
#pragma once

#include <filesystem>
#include <functional>

#include "device/control.hpp"

namespace ergometer {

struct FileFormat {
  double per_unit = 1;  // number in the file = value times this, for watts and hertz
  bool on_off = false;  // a word "on" or "off" is 1 or 0 in the file
};

class FileControl : public Control {
 public:
  using Effective = std::function<Result<ControlValue>()>;
  // `effective` may be empty: then what is set is what holds. Fills in info.writers and info.writable.
  FileControl(ControlInfo info, std::filesystem::path file, FileFormat format, Effective effective = {});
  Result<ControlValue> get() override;
  Result<void> set(const ControlValue& value) override;
  Result<ControlValue> effective() override { return effective_ ? effective_() : get(); }

 private:
  std::filesystem::path file_;
  FileFormat format_;
  Effective effective_;
};

// A positive or zero whole number of a sysfs file times 1/per_unit; unset if there is none.
[[nodiscard]] std::optional<double> file_number(const std::filesystem::path& file, double per_unit);

}  // namespace ergometer
