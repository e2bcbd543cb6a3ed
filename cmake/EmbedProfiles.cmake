# Writes the files of profiles/ as one header of string literals, so that the program needs no data files.
file(GLOB profiles CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/profiles/*.toml)
set(entries "")
foreach(file ${profiles})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  get_filename_component(name ${file} NAME)
  string(APPEND entries "    {\"${name}\", R\"TOML(${text})TOML\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/device/built_in_profiles.hpp @ONLY CONTENT
"// Generated from profiles/*.toml.
#pragma once

#include <string_view>

namespace ergometer {
struct BuiltInProfile {
  std::string_view name, text;
};
inline constexpr BuiltInProfile kBuiltInProfiles[] = {
@entries@};
}  // namespace ergometer
")
