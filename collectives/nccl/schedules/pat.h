// NCCL's PAT (parallel aggregated trees) for all-gather and reduce-scatter: the messages that one
// rank sends and receives for one chunk. All offsets are relative to the rank, so that all ranks
// share one pattern.
//
// clang-format off
//   reduce-scatter   sends to rank + 2^d, receives from rank - 2^d. The block of rank + s travels
//                    by the set bits of s, the lowest first: many blocks over short distances at
//                    first, then fewer and fewer over longer ones.
//   all-gather       the way back: sends to rank - 2^d, receives from rank + 2^d, the longest
//                    distance first.
// clang-format on
//
// With little data, up to half of all blocks share a message, and there are log2 n messages; with
// much data, every block is a message. If the number of ranks is no power of two, a message of a
// reduce-scatter may have holes: positions of blocks that do not exist, which are sent
// nevertheless.
//
// Threading: pure functions; a pattern is immutable once made.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

struct NcclPatPattern {
  static constexpr int kHole = -1;
  struct Message {
    int dimension = 0;        // the distance is 2^dimension
    std::vector<int> blocks;  // offsets of the blocks' owners from the sender; kHole: no block
  };
  // Receives a message, if any, then sends one, if any; indices into `messages`.
  struct Step {
    int recv = -1, send = -1;
  };
  std::vector<Message> messages;  // in the order in which every rank sends them
  std::vector<Step> steps;        // for one chunk
};

// `func` is all_gather or reduce_scatter. `block_bytes`: bytes of one rank's block on a channel;
// `chunk_bytes`: of a chunk. Empty for fewer than 2 ranks or no bytes.
NcclPatPattern nccl_pat_pattern(Func func, int ranks, std::uint64_t block_bytes,
                                std::uint64_t chunk_bytes);

}  // namespace ghostrank
