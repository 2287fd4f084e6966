// ghostrank profile import: turns traces of real runs into profiles. Threading: main thread.
#pragma once

#include "tools/arguments.h"

namespace ghostrank {

int profile_import(const Argv& argv);

}  // namespace ghostrank
