// `ghostrank profile export`: a profile's programs in another project's form.
//
// Threading: main thread.
#pragma once

#include "tools/arguments.h"

namespace ghostrank {

int profile_export(const Argv& argv);

}  // namespace ghostrank
