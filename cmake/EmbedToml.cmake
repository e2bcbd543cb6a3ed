# embed_toml(FOLDER HEADER TYPE ARRAY NAME_MODE): writes FOLDER/*.toml as one generated header of string literals, so that
# the program needs no data files. NAME_MODE is NAME or NAME_WLE (without the ending).
function(embed_toml folder header type array name_mode)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.toml)
  set(entries "")
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    get_filename_component(name ${file} ${name_mode})
    string(APPEND entries "    {\"${name}\", R\"TOML(${text})TOML\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${header} @ONLY CONTENT
"// Generated from @folder@/*.toml.
#pragma once

#include <string_view>

namespace ergometer {
struct @type@ {
  std::string_view name, text;
};
inline constexpr @type@ @array@[] = {
@entries@};
}  // namespace ergometer
")
endfunction()
