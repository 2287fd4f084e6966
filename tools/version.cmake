# cmake -DSOURCE=... -DCOMPILER=... -DBUILD_TYPE=... -DFROM=version.cpp.in -DTO=version.cpp -P version.cmake
# Writes TO anew only where it would differ.
set(COMMIT "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
  set(ENV{GIT_OPTIONAL_LOCKS} 0)  # others may be at work in the repository
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --show-toplevel WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH "${SOURCE}" source)
  if(top STREQUAL source)  # not that of a repository in which a source archive was unpacked
    execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --tags --abbrev=12 WORKING_DIRECTORY ${SOURCE}
                    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(described)
      set(COMMIT ${described})
    endif()
    if(described MATCHES "-dirty$")  # builds of other changes are others; docs and tests are in none
      execute_process(COMMAND ${GIT_EXECUTABLE} diff HEAD --binary -- . ":(exclude)docs" ":(exclude)tests"
                      WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE changes ERROR_QUIET)
      if(changes)
        string(SHA1 hash "${changes}")
        string(SUBSTRING ${hash} 0 8 hash)
        string(APPEND COMMIT -${hash})
      endif()
    endif()
  endif()
endif()
configure_file(${FROM} ${TO} @ONLY)
