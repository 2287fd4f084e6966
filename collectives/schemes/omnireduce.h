// OmniReduce (SIGCOMM'21) as a scheme: an all-reduce of sparse tensors through aggregators. Ranks
// send their nonzero blocks only, and with each block the number of their next one. A block is
// complete when the least of these numbers lies behind it: ranks without the block need not speak.
//
//   rank 0   # . . # .   0 next 3 >.                  3 next end >.
//   aggregator                      > 0, next 1 > all              > 3, next end > all
//   rank 1   . # . # .   0 next 1 >'   1 next 3 >'    3 next end >'
//                                      (1, next 3 > all before 3)
//   up d S and the first block of every column, down u S, for densities d of a rank's blocks and u
//   of all ranks' together
//
// Two forms (omnireduce/block_columns.h has blocks, columns and slots):
//   reliable   Algorithm 1. A message of a slot has one block of each of its columns, as far as the
//              rank has them (block fusion); silent ranks send nothing.
//   packets    Algorithm 2, for packets that may be lost. One column per slot; every rank answers
//              every round, without a block if it has none, so that the aggregator counts. It keeps
//              the last sum of the slot for ranks that missed it. A packet has the number of its
//              round in the slot; older ones are ignored, so packets may overtake each other.
//
// In both a slot has two sets: one is summed while the other's sum is on its way. Blocks are
// padded to full size. Calls of a communicator run one after the other.
//
// The aggregators are helpers of kind `aggregator`, or one `network_switch` (packets only), which
// sends a sum to all ranks at once, has int32 adders only and at most kMostSwitchRanks ranks. The
// switch is a design of our own on OmniReduce's rules; a real one is ghostrank's compiled switch or
// its P4 program (switch/wire/sparse.h), never run on hardware. It may restart or stay away: see
// omnireduce/packets.cpp.
//
// Source: the behaviour of sands-lab/omnireduce, which has int32 and float32; other types and the
// guard against reordering are ours. Threading: immutable.
#pragma once

#include <memory>

#include "collectives/agent.h"

namespace ghostrank {

inline constexpr int kMostSwitchRanks = 32;

struct OmniReduceOptions {
  int aggregators = 1;
  bool in_switch = false;                // one switch in place of the aggregators
  bool packets = false;                  // Algorithm 2 over packets
  int block = 256;                       // elements
  int columns = 4;                       // blocks of a message; with packets 1
  int slots = 64;                        // of each aggregator
  int first_slot = 0;                    // number of the first one in packets
  Picoseconds timeout = 10'000'000'000;  // of packets; 10 ms
  // Once all ranks have heard nothing from the switch for this long, they sum without it, for good;
  // 0: never.
  Picoseconds fallback = 1'000'000'000'000;
  double packet_rate = 0;  // packets per second that the switch takes; 0: unlimited
};

// Throws std::invalid_argument for options out of range, and for a switch with too many ranks.
std::unique_ptr<Ends> omnireduce_ends(int ranks, const OmniReduceOptions& options);

}  // namespace ghostrank
