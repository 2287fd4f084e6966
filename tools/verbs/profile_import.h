// ghostrank profile import: traces of real runs as profiles. Threading: main thread.
#pragma once

#include "tools/arguments.h"

namespace ghostrank {

int profile_import(const Argv& argv);

}  // namespace ghostrank
