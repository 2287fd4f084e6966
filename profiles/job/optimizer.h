// How much an optimizer keeps of every parameter. Threading: pure.
#pragma once

#include "profiles/job/job.h"

namespace ghostrank {

// fp32 moments per parameter: Adam has two, SGD with momentum one.
inline int moments_of(const Precision& precision) { return precision.optimizer == "sgd" ? 1 : 2; }

}  // namespace ghostrank
