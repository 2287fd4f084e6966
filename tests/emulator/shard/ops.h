// Ops for the tests of shards.
#pragma once

#include "profiles/workload/program.h"

namespace ghostrank::testing {

inline Op compute(Picoseconds duration) {
  Op op;
  op.duration = duration;
  return op;
}

}  // namespace ghostrank::testing
