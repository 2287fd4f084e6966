// PowerSGD as PyTorch's powerSGD_hook has it: a bucket's tensors are compressed one by one, but
// exchanged together, in three all-reduces.
//
//   round 0   the tensors that are not worth it, one after the other, as they are
//   round 1   the P of all others      round 2   their Q
//
// A tensor of n x m is worth it if 2 r (n + m) < n m, where r = min(rank, n, m), as in PyTorch with
// its standard min_compression_rate. Looks at CompressionOptions::parts, without which it is
// PowerSGD of one matrix with the same three rounds.
//
// Threading: constant data.
#pragma once

#include "collectives/compressor.h"

namespace ghostrank {

extern const Compressor kPowerSgdOfParts;

}  // namespace ghostrank
