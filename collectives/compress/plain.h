// Gradients as they are, as a method: what runs without compression exchange, for code that treats
// all runs alike. Not in the table of methods, where its name means that nothing is inserted.
//
// Threading: constant data.
#pragma once

#include "collectives/compressor.h"

namespace ghostrank {

extern const Compressor kPlain;

}  // namespace ghostrank
