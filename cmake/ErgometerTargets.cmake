# The project's kinds of targets: a library a folder, a test program an area. Warnings, sanitizers and the language
# level are set here once.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

find_program(ERGOMETER_CCACHE ccache)
if(ERGOMETER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ERGOMETER_CCACHE})
endif()

add_library(ergometer_options INTERFACE)
target_compile_options(ergometer_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wcast-align
                                                   -Woverloaded-virtual -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms of GCC 12 on std::string::operator=(const char*), GCC bug 105651.
  target_compile_options(ergometer_options INTERFACE -Wno-restrict)
endif()
if(ERGOMETER_WERROR)
  target_compile_options(ergometer_options INTERFACE -Werror)
endif()
# Headers of libraries cost more than our code, so a folder is compiled as one file: a third of the time.
function(compile_as_one target)
  if(ERGOMETER_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    # To GCC an anonymous namespace of an included file looks like one of a header.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
if(ERGOMETER_SANITIZE)
  add_compile_options(-fsanitize=${ERGOMETER_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ERGOMETER_SANITIZE})
endif()

# ergometer_library(NAME SOURCES ... LINK ...): the library ergometer_NAME of this folder. LINK names exactly the
# layers that the design's table allows; tools/check_layers.py holds the includes to it.
function(ergometer_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(ARG_SOURCES)
    add_library(ergometer_${name} STATIC ${ARG_SOURCES})
    target_include_directories(ergometer_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(ergometer_${name} PUBLIC ${ARG_LINK} PRIVATE ergometer_options)
    compile_as_one(ergometer_${name})
  else()
    add_library(ergometer_${name} INTERFACE)
    target_include_directories(ergometer_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(ergometer_${name} INTERFACE ${ARG_LINK})
  endif()
endfunction()

# ergometer_backend(NAME SOURCES ... LINK ...): the library ergometer_device_NAME of a backend. They are many and small, so
# that they are compiled as one file together; the name of each stays, and holds it to its own links otherwise.
function(ergometer_backend name)
  if(NOT ERGOMETER_UNITY)
    ergometer_library(device_${name} ${ARGN})
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(NOT TARGET ergometer_backends)
    ergometer_library(backends SOURCES ${ARG_SOURCES} LINK ${ARG_LINK})
  else()
    target_sources(ergometer_backends PRIVATE ${ARG_SOURCES})
    target_link_libraries(ergometer_backends PUBLIC ${ARG_LINK})
  endif()
  add_library(ergometer_device_${name} ALIAS ergometer_backends)
endfunction()

# ergometer_test(NAME SOURCES ... LINK ... [ENVIRONMENT ...] [LABELS ...]): one GoogleTest program, its cases
# registered with ctest under "NAME.".
function(ergometer_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;ENVIRONMENT;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} ergometer_test_support GTest::gtest GTest::gmock
                                        GTest::gtest_main ergometer_options)
  # An empty value would take the next word for itself, so only what is given is passed on.
  set(properties TIMEOUT 120)
  foreach(property ENVIRONMENT LABELS)
    if(ARG_${property})
      list(APPEND properties ${property} "${ARG_${property}}")
    endif()
  endforeach()
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
endfunction()
