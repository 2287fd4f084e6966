# cmake -DSCRIPTS=tools -DWORK=... -P version_test.cmake
# Builds of one commit with other changes say so; files that no build has in it change nothing.
find_package(Git REQUIRED)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/tree)

function(git)
  execute_process(COMMAND ${GIT_EXECUTABLE} -c user.name=test -c user.email=test@localhost ${ARGN}
                  WORKING_DIRECTORY ${WORK}/tree OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# version(VARIABLE PATTERN): the commit that a build would say, which matches the pattern.
function(version variable pattern)
  execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${WORK}/tree -DCOMPILER=any -DBUILD_TYPE=any
                          -DFROM=${SCRIPTS}/version.cpp.in -DTO=${WORK}/version.cpp -P ${SCRIPTS}/version.cmake
                  COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${WORK}/version.cpp line REGEX "return {")
  string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*" "\\1" commit "${line}")
  if(NOT commit MATCHES "${pattern}")
    message(FATAL_ERROR "${commit} does not match ${pattern}")
  endif()
  set(${variable} ${commit} PARENT_SCOPE)
endfunction()

git(init -q)
file(WRITE ${WORK}/tree/a.cpp "int a = 1;\n")
file(WRITE ${WORK}/tree/docs/a.md "one\n")
git(add -A)
git(commit -q -m first)
version(clean "^[0-9a-f]+$")
file(WRITE ${WORK}/tree/docs/a.md "two\n")
version(documents "^[0-9a-f]+-dirty$")
file(WRITE ${WORK}/tree/a.cpp "int a = 2;\n")
version(second "^[0-9a-f]+-dirty-[0-9a-f]+$")
file(WRITE ${WORK}/tree/a.cpp "int a = 3;\n")
version(third "^[0-9a-f]+-dirty-[0-9a-f]+$")
file(WRITE ${WORK}/tree/docs/a.md "three\n")
file(WRITE ${WORK}/tree/a.cpp "int a = 2;\n")
version(again "^[0-9a-f]+-dirty-[0-9a-f]+$")
if(second STREQUAL third OR NOT second STREQUAL again)
  message(FATAL_ERROR "${second}, ${third} and ${again} are to differ, and the first and the last be alike")
endif()
