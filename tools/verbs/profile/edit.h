// `ghostrank profile rescale` and `ghostrank profile anonymise`: edit profiles of real runs.
//
// Threading: main thread.
#pragma once

#include "tools/arguments.h"

namespace ghostrank {

int profile_rescale(const Argv& argv);
int profile_anonymise(const Argv& argv);

}  // namespace ghostrank
