// Which collectives have a root: one member that gives or takes the data of all.
//
// Threading: pure functions.
#pragma once

#include "collectives/schedule.h"

namespace ghostrank {

inline bool has_root(Func func) {
  return func == Func::broadcast || func == Func::reduce || func == Func::gather ||
         func == Func::scatter;
}

}  // namespace ghostrank
