// Which build of ghostrank this is. Every build looks the commit up. Only version.cpp (made of
// version.cpp.in) contains it, so another commit recompiles one small file.
//
// Threading: pure.
#pragma once

#include "emulator/result/result.h"

namespace ghostrank {

BuildFacts build_facts();

}  // namespace ghostrank
