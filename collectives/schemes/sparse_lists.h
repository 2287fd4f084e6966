// Sparse all-reduces without aggregators: ranks exchange lists of their nonzero values, each with
// its index.
//
//   sparse_all_gather   every rank's list passes round the ring, and every rank adds up all lists
//                       every rank sends (n-1) d S (1 + 4/e) for elements of e bytes
//   sparcml             SparCML's split all-gather (SC'19): rank j adds up the j-th part of all
//                       lists, which come to it directly; then the sums pass round the ring, as
//                       lists or, where these would be longer, without indices
//                       every rank sends (n-1)/n (d + u) S (1 + 4/e), or (n-1)/n S for the sums
//
//   sparcml, phase 1    0 > 1 > 2 > 0 the part of the next rank, then that of the one behind it
//   phase 2             0 > 1 > 2 > 0 the sums of one's part, then those that have just come
//
// A list travels in pieces of kPieceValues values, the last one with the rest. A piece has 4 bytes
// for every index: Note::words are the runs of neighbouring indices, 8 bytes each, and the rest is
// padding; or, where runs would be longer, the indices themselves. A piece without indices has one
// run. A list without values is one empty piece. Calls of a communicator run one after the other.
//
// Source: the bounds and the phases of SparCML's paper; the cut into pieces is ours. Threading:
// immutable.
#pragma once

#include <cstdint>
#include <memory>

#include "collectives/agent.h"

namespace ghostrank {

enum class SparseLists : std::uint8_t { all_gather, split_all_gather };

inline constexpr std::uint64_t kPieceValues = 8192;

std::unique_ptr<Ends> sparse_list_ends(int ranks, SparseLists form);

}  // namespace ghostrank
