// Gradients unchanged, as a method: for runs without compression, so that code treats all runs
// alike. It is not in the table of methods, where its name means that nothing is inserted.
//
// Threading: constant data.
#pragma once

#include "collectives/compressor.h"

namespace ghostrank {

extern const Compressor kPlain;

}  // namespace ghostrank
