#include "study_source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.hpp"
#include "base/text.hpp"
#include "device/control_recovery.hpp"
#include "discover_options.hpp"
#include "study/built_in_studies.hpp"

namespace ergometer::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMaxStudyText = 4 << 20;

// "NAME=VALUE" split at the first sign.
Result<std::pair<std::string, std::string>> assignment(const std::string& text, const char* option) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" sets nothing", text),
                fmt::format("write {}", option));
  return std::pair(std::string(trim(text.substr(0, equals))), text.substr(equals + 1));
}

std::vector<std::string> built_in_names() {
  std::vector<std::string> names;
  for (const auto& study : kBuiltInStudies) names.emplace_back(study.name);
  return names;
}

Error no_study(const std::string& name) {
  const auto names = built_in_names();
  const auto nearest = nearest_name(name, names);
  return {ErrorCode::not_found, fmt::format("there is no study \"{}\": no file, no folder and none that is built in", name),
          nearest.empty() ? fmt::format("built in are: {}", fmt::join(names, ", "))
                          : fmt::format("did you mean {}? Built in are: {}", nearest, fmt::join(names, ", "))};
}

// The name that a file gives itself, for its folder; the file is checked later.
std::string name_in(const std::string& text, const std::string& otherwise) {
  const auto file = parse_study_file(text, otherwise);
  return file ? file->name : otherwise;
}

}  // namespace

Result<StudyOverrides> overrides_of(const StudyOptions& options) {
  StudyOverrides overrides;
  for (const auto& text : options.set) {
    auto parts = assignment(text, "--set NAME=VALUE, as in --set data=/data");
    if (!parts) return tl::unexpected(parts.error());
    overrides.parameters[parts->first] = parts->second;
  }
  for (const auto& text : options.levels) {
    auto parts = assignment(text, "--levels FACTOR=LEVEL,LEVEL, as in --levels gpus=1,2");
    if (!parts) return tl::unexpected(parts.error());
    auto& levels = overrides.levels[parts->first];
    for (const auto level : split(parts->second, ','))
      if (!trim(level).empty()) levels.emplace_back(trim(level));
  }
  if (!options.design.empty()) overrides.design = design_kind_from(options.design);
  if (!options.executor.empty()) overrides.executor = executor_kind_from(options.executor);
  return overrides;
}

Result<StudyTarget> study_target(const StudyOptions& options) {
  std::error_code ec;
  StudyTarget target;
  if (is_study_folder(options.study)) {
    target.folder = options.study;
    target.exists = true;
    return target;
  }
  StudySource source;
  const auto overrides = overrides_of(options);
  if (!overrides) return tl::unexpected(overrides.error());
  source.overrides = *overrides;
  if (fs::is_regular_file(options.study, ec)) {
    auto text = read_file(options.study, kMaxStudyText);
    if (!text) return tl::unexpected(text.error());
    source.text = std::move(*text);
    source.name = options.study;
  } else {
    const auto built_in = std::ranges::find(kBuiltInStudies, options.study, &BuiltInStudy::name);
    if (built_in == std::end(kBuiltInStudies)) return tl::unexpected(no_study(options.study));
    source.text = std::string(built_in->text);
    source.name = "built-in " + options.study;
  }
  const auto stem = fs::path(options.study).stem().string();
  target.folder = options.output.empty() ? fs::path(options.store) / name_in(source.text, file_name_of(stem))
                                         : fs::path(options.output);
  target.exists = is_study_folder(target.folder);
  target.source = std::move(source);
  return target;
}

StudyMachine find_machine(const Context& context, const StudyFile& file, const std::string& site_command) {
  if (!needs_machine(file)) return {};
  return machine_of(file, find_controls(context.host(), default_discover_options(context), site_command));
}

Result<PlannedStudy> plan_study(const Context& context, const StudyOptions& options, const StudyTarget& target) {
  PlannedStudy planned;
  if (target.exists) {
    auto study = open_study(target.folder);
    if (!study) return tl::unexpected(study.error());
    if (target.source)
      if (auto same = check_unchanged(*study, *target.source); !same) return tl::unexpected(same.error());
    planned.file = std::move(study->file);
    planned.plan = std::move(study->plan);
    planned.machine = find_machine(context, planned.file, options.site_command);
    return planned;
  }
  auto file = parse_study_file(target.source->text, target.source->name, target.source->overrides);
  if (!file) return tl::unexpected(file.error());
  auto plan = make_plan(*file, target.source->overrides, random_seed(), target.source->name);
  if (!plan) return tl::unexpected(plan.error());
  planned.file = std::move(*file);
  planned.plan = std::move(*plan);
  planned.machine = find_machine(context, planned.file, options.site_command);
  planned.plan.level_values = level_values_of(planned.file, planned.machine);
  return planned;
}

}  // namespace ergometer::cli
