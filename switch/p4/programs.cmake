# The .spec files that p4c-dpdk makes of dpdk.p4, kept beside their source, with the hash of all
# sources in their first line.
#
#   cmake -P switch/p4/programs.cmake            check: fails where a .spec is not of these sources
#   cmake -DP4C=p4c-dpdk -P ...                  make them anew
cmake_minimum_required(VERSION 3.25)

set(here ${CMAKE_CURRENT_LIST_DIR})
file(GLOB sources ${here}/*.p4)
list(REMOVE_ITEM sources ${here}/bmv2.p4 ${here}/tofino.p4)
list(SORT sources)
set(all "")
foreach(source ${sources})
  file(READ ${source} text)
  string(APPEND all "${text}")
endforeach()
string(SHA256 hash "${all}")

foreach(elements 32 64 256)
  set(spec ${here}/generated/switchml_${elements}.spec)
  set(first "// p4c-dpdk, dpdk.p4, ELEMENTS=${elements}, sources sha256 ${hash}")
  if(P4C)
    execute_process(COMMAND ${P4C} --arch pna -DELEMENTS=${elements} ${here}/dpdk.p4 -o ${spec}.new
                    COMMAND_ERROR_IS_FATAL ANY)
    file(READ ${spec}.new text)
    file(REMOVE ${spec}.new)
    file(WRITE ${spec} "${first}\n${text}")
  else()
    file(STRINGS ${spec} lines LIMIT_COUNT 1)
    if(NOT lines STREQUAL first)
      message(FATAL_ERROR "${spec} is not of these P4 sources; with p4c on PATH: cmake -DP4C=p4c-dpdk -P switch/p4/programs.cmake")
    endif()
  endif()
endforeach()
