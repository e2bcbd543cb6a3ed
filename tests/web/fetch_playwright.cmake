# Expects WEB, MODULES, OUTPUT, REGISTRY, CACHE. OUTPUT is written in any case; the tests see by the folder what is there.
cmake_minimum_required(VERSION 3.25)
include(${WEB}/fetch_packages.cmake)
fetch_package(playwright-core ${MODULES} error)
if(error)
  message(NOTICE "The report's tests in a browser will be skipped: ${error}")
endif()
file(WRITE ${OUTPUT} "${error}")
