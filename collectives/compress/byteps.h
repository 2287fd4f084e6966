// The payloads of BytePS, where they are not those of the methods of the same name in this folder,
// which are GRACE's.
//
// Threading: constant data.
#pragma once

#include "collectives/compressor.h"

namespace ghostrank {

// The form in which BytePS sends the payloads of a method of compressors(): a row of the same name
// and cost, or `method` itself if BytePS has no form of its own. Lives as long as the program.
const Compressor& byteps_form(const Compressor& method);

}  // namespace ghostrank
