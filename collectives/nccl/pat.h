// NCCL's PAT (parallel aggregated trees) for all-gather and reduce-scatter: what one rank sends and
// receives for one chunk. Everything is relative to the rank, so that all ranks share one pattern.
//
//     reduce-scatter   sends to rank + 2^d, receives from rank - 2^d; the block of rank + s takes
//     the
//                      set bits of s, the lowest first: many blocks over short distances at first,
//                      then fewer and fewer over longer ones
//     all-gather       the way back: sends to rank - 2^d, receives from rank + 2^d, the longest
//                      distance first
//
// With little data up to half of all blocks share a message and there are log2 n messages; with
// much data every block is a message. Where the ranks are no power of two, a message of a
// reduce-scatter may have holes: places of blocks that do not exist, which travel nevertheless.
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
    std::vector<int> blocks;  // of the rank so far ahead of the sender; kHole: of nobody
  };
  // Receives a message, if any, then sends one, if any: indices into `messages`.
  struct Step {
    int recv = -1, send = -1;
  };
  std::vector<Message> messages;  // in the order in which every rank sends them
  std::vector<Step> steps;        // of one chunk
};

// `func` is all_gather or reduce_scatter; the bytes are those of one rank's block on a channel, and
// of a chunk.
NcclPatPattern nccl_pat_pattern(Func func, int ranks, std::uint64_t block_bytes,
                                std::uint64_t chunk_bytes);

}  // namespace ghostrank
