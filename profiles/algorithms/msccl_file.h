// Reads, checks and proves MSCCL's XML files before anything else may use them.
// collectives/exchange/msccl.h explains what they mean.
//
// Files are not trusted: their size, depth, ranks, threadblocks, steps and chunks are bounded.
// Unknown attributes are ignored, because generators add their own; unknown elements are errors.
// Errors are "FILE:LINE: what; what to do".
//
// Threading: keeps no state.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collectives/exchange/msccl.h"

namespace ghostrank {

// Parses and checks the file's text, but does not prove it. `file` is for messages. Throws
// Error(usage).
MscclAlgorithm parse_msccl(std::string_view text, const std::string& file);

// Plays the algorithm through the symbolic checker, once with one element per chunk and once with
// padding. Throws Error(usage) with the line of the fault.
struct MscclProof {
  int rounds = 0;  // communication steps on the longest chain
};
MscclProof prove_msccl(const std::shared_ptr<const MscclAlgorithm>& algorithm,
                       const std::string& file);

}  // namespace ghostrank
