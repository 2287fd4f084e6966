// MSCCL's XML files: read, checked and proved before anything else may use them. What they mean is
// told in collectives/exchange/msccl.h.
//
// A file comes from somewhere else and is not trusted: its size, depth, ranks, threadblocks, steps
// and chunks are bounded. Attributes that nothing here knows are ignored (generators add their
// own), elements are not. Errors are "FILE:LINE: what; what to do".
//
// Threading: reads the file, keeps no state.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collectives/exchange/msccl.h"

namespace ghostrank {

// Well-formed, but not yet proved. `file` is for messages. Throws Error(usage).
MscclAlgorithm parse_msccl(std::string_view text, const std::string& file);

// Plays the algorithm through the symbolic checker, with one element per chunk and with padding.
// Throws Error(usage) with the line of what is wrong.
struct MscclProof {
  int rounds = 0;  // communication steps on the longest chain
};
MscclProof prove_msccl(const std::shared_ptr<const MscclAlgorithm>& algorithm,
                       const std::string& file);

}  // namespace ghostrank
