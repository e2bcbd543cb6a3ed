# Fetches ECharts and esbuild, bundles src/main.js and src/page.css, and writes OUTPUT: both as C++ string literals. What
# goes wrong is said in OUTPUT as well as on the terminal, and does not fail the build.
# Expects WEB, BUILD, OUTPUT, REGISTRY, CACHE, PROCESSOR.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/fetch_packages.cmake)

function(write_assets script style hash missing)
  file(WRITE ${OUTPUT}.new "// Generated from web/.
#include \"report/html_page.hpp\"

namespace ergometer {

const PageAssets& page_assets() {
  static const PageAssets assets{R\"ERGOMETER(")
  file(APPEND ${OUTPUT}.new "${script})ERGOMETER\", R\"ERGOMETER(${style})ERGOMETER\",
                                 \"${hash}\", R\"ERGOMETER(${missing})ERGOMETER\"};
  return assets;
}

}  // namespace ergometer
")
  file(RENAME ${OUTPUT}.new ${OUTPUT})
endfunction()

function(give_up reason)
  set(remedy "connect to the npm registry (or set -DERGOMETER_NPM_REGISTRY=URL), then configure and build again: cmake --preset PRESET && cmake --build --preset PRESET")
  message(NOTICE "The report's page is left out, so `ergometer report` will not work: ${reason}\n  Remedy: ${remedy}")
  file(WRITE ${BUILD}/missing "${reason}\n")
  write_assets("" "" "" "${reason}; ${remedy}")
endfunction()

set(modules ${BUILD}/node_modules)
set(architecture linux-x64)
if(PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(architecture linux-arm64)
elseif(PROCESSOR MATCHES "^(ppc64le|riscv64|loongarch64|s390x)$")
  string(REPLACE "ppc64le" "ppc64" architecture "linux-${PROCESSOR}")
endif()

set(esbuild "@esbuild/${architecture}")
foreach(package tslib zrender echarts ${esbuild})
  # Of thousands of files those that a bundle sees.
  set(only "")
  if(package STREQUAL zrender)
    set(only PATTERNS package/package.json "package/lib/*")
  elseif(package STREQUAL echarts)
    set(only PATTERNS package/package.json "package/lib/*" package/core.js package/charts.js package/components.js
                      package/renderers.js package/features.js)
  endif()
  fetch_package(${package} ${modules} error ${only})
  if(error)
    give_up("${error}")
    return()
  endif()
endforeach()

foreach(part main.js page.css)
  set(options --minify --charset=ascii)
  if(part STREQUAL "main.js")
    list(APPEND options --bundle --format=iife --target=es2020 --legal-comments=none)
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=${modules}
                          ${modules}/${esbuild}/bin/esbuild ${WEB}/src/${part} ${options} --outfile=${BUILD}/${part}
                  RESULT_VARIABLE code ERROR_VARIABLE text OUTPUT_QUIET)
  if(NOT code EQUAL 0)
    # Our own source is at fault: that must not pass unseen.
    message(FATAL_ERROR "esbuild: ${part}: ${code}\n${text}")
  endif()
endforeach()

# The page holds the text between its script tags, which is what a browser hashes.
file(SHA256 ${BUILD}/main.js hex)
base64_of_hex(${hex} hash)
file(READ ${BUILD}/main.js script)
file(READ ${BUILD}/page.css style)
file(REMOVE ${BUILD}/missing)
write_assets("${script}" "${style}" "sha256-${hash}" "")
