// Which build of ghostrank this is. The commit is looked up whenever something is built, and stands
// in version.cpp (made of version.cpp.in) alone, so that another commit compiles one small file.
//
// Threading: pure.
#pragma once

#include "emulator/result/result.h"

namespace ghostrank {

BuildFacts build_facts();

}  // namespace ghostrank
