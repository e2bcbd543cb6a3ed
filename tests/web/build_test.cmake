# Building the page where the packages cannot be had, or are not those of the lock: the build goes on and says why.
# Expects WEB, WORK.
cmake_minimum_required(VERSION 3.25)

function(build name)
  execute_process(COMMAND ${CMAKE_COMMAND} -DWEB=${WEB} -DBUILD=${WORK}/${name} -DOUTPUT=${WORK}/${name}/page_assets.cpp
                          -DREGISTRY=file:///nowhere -DCACHE=${WORK}/${name}/packages -DPROCESSOR=x86_64 -P ${WEB}/build_page.cmake
                  RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${name}: a missing package must not fail the build: ${code}\n${out}${err}")
  endif()
  file(READ ${WORK}/${name}/page_assets.cpp text)
  set(said "${out}${err}" PARENT_SCOPE)
  set(text "${text}" PARENT_SCOPE)
endfunction()

function(expect what text)
  string(FIND "${text}" "${what}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "expected \"${what}\" in:\n${text}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/absent/packages ${WORK}/forged/packages)

build(absent)
expect("cannot fetch file:///nowhere/tslib" "${said}")
expect("Remedy: connect to the npm registry" "${said}")
expect("cannot fetch file:///nowhere/tslib" "${text}")

# An archive of another content under the right name.
file(READ ${WEB}/package-lock.json lock)
string(JSON version GET "${lock}" packages "node_modules/tslib" version)
file(WRITE ${WORK}/forged/packages/tslib-${version}.tgz "forged")
build(forged)
expect("is not the file that package-lock.json pins" "${text}")
