// `ghostrank profile capture`: runs a training script with hooks and writes what it did as a
// profile. `ghostrank profile check`: plays such a profile and compares it with the steps that it
// left out.
//
// Threading: main thread.
#pragma once

#include "tools/arguments.h"

namespace ghostrank {

int profile_capture(const Argv& argv);
int profile_check(const Argv& argv);

}  // namespace ghostrank
