// `ghostrank profile rescale` and `ghostrank profile anonymise`: profiles of real runs, changed.
//
// Threading: main thread.
#pragma once

#include "tools/arguments.h"

namespace ghostrank {

int profile_rescale(const Argv& argv);
int profile_anonymise(const Argv& argv);

}  // namespace ghostrank
