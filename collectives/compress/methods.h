// The methods in this folder, one file each; see collectives/compressor.h.
//
// Threading: constant data.
#pragma once

#include "collectives/compressor.h"

namespace ghostrank {

extern const Compressor kFp16, kTopK;

}  // namespace ghostrank
