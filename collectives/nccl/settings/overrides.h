// The user's restrictions of NCCL's choice: NCCL_ALGO and NCCL_PROTO.
//
//   text    = [list] {";" function ":" list}     the first entry may lack its function
//   list    = ["^"] name {"," name}              only these; with ^, all but these
//
//   "ring"   "^tree"   "ring;allreduce:tree,ring"   "allreduce:nvlstree;broadcast:ring"
//
// Functions are allreduce, allgather, reducescatter, broadcast and reduce, in upper or lower case.
// A later entry for a function replaces an earlier one.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectives/nccl/settings/split.h"

namespace ghostrank {

struct NcclOverrides {
  std::string algorithms, protocols;   // NCCL_ALGO, NCCL_PROTO; empty: the tuner is free
  int threads = 0, ll128_threads = 0;  // NCCL_NTHREADS, NCCL_LL128_NTHREADS; 0: the tuner's default
};

std::string_view name_of(NcclAlgorithm algorithm);  // "ring", as in the registry

// Throws std::invalid_argument for a text that does not have the form above.
void check_overrides(const NcclOverrides& overrides);

// What a text says about a name; `unsaid` if no entry of it applies to the function.
enum class NcclSay : std::uint8_t { unsaid, yes, no };
NcclSay nccl_says(const NcclOverrides& overrides, Func func, NcclAlgorithm algorithm);
NcclSay nccl_says(const NcclOverrides& overrides, Func func, Protocol protocol);

}  // namespace ghostrank
