// What a cell sets on this machine: which GPUs it uses, and the settings of controls. Checked against the devices' own
// ranges before anything starts. Used by the plan, which shows it, and by the engine, which applies it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/control_plan.hpp"
#include "model/study_table.hpp"
#include "study/study_file.hpp"

namespace ergometer {

struct StudyGpu {
  int index = 0;
  std::string uuid;
};

// This machine as far as a study's factors need it.
struct StudyMachine {
  ControlDiscovery controls;   // empty if the study sets nothing and counts no GPUs
  std::vector<StudyGpu> gpus;  // that the study may use, in order
};

// Whether cells of the file set controls or choose GPUs: only then a driver needs to be asked.
[[nodiscard]] bool needs_machine(const StudyFile& file);
[[nodiscard]] bool has_controls(const StudyFile& file);
[[nodiscard]] StudyMachine machine_of(const StudyFile& file, ControlDiscovery controls);

struct CellSetup {
  std::vector<ControlSetting> settings;
  std::map<std::string, std::string> environment;  // CUDA_VISIBLE_DEVICES where the study chooses GPUs
};
// Errors name the factor and the level: more GPUs than there are, a value out of a device's range, a control that is
// not there.
[[nodiscard]] Result<CellSetup> setup_of(const StudyFile& file, const std::vector<std::size_t>& levels,
                                         const StudyMachine& machine);

struct SettingsSurvey {
  std::vector<ControlSetting> settings;  // that some cell makes, each once
  std::vector<Error> lacking;            // what this machine lacks, without repeating itself
};
[[nodiscard]] SettingsSurvey survey_settings(const StudyFile& file, const std::vector<StudyCell>& cells,
                                             const StudyMachine& machine);
// Of each factor's levels, in its unit: what a percentage means here.
[[nodiscard]] std::vector<std::vector<std::optional<double>>> level_values_of(const StudyFile& file,
                                                                              const StudyMachine& machine);

}  // namespace ergometer
