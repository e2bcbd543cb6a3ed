# Writes the files of studies/ as one header of string literals, so that the program needs no data files.
file(GLOB studies CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/studies/*.toml)
set(entries "")
foreach(file ${studies})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  get_filename_component(name ${file} NAME_WLE)
  string(APPEND entries "    {\"${name}\", R\"TOML(${text})TOML\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/study/built_in_studies.hpp @ONLY CONTENT
"// Generated from studies/*.toml.
#pragma once

#include <string_view>

namespace ergometer {
struct BuiltInStudy {
  std::string_view name, text;
};
inline constexpr BuiltInStudy kBuiltInStudies[] = {
@entries@};
}  // namespace ergometer
")
