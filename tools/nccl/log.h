// What NCCL says of itself in its log (NCCL_DEBUG=INFO,
// NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING,COLL): every communicator's ranks, rings, trees and
// channels, and what was chosen for each call. The forms are those of NCCL 2.28.9's source; lines
// of other forms are counted and left out.
//
//   NCCL version 2.28.9+cuda12.9
//   h:1:2 [0] NCCL INFO ncclCommInitRank comm 0xa rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 1b000
//                       commId 0x8ab5 - Init START                                     (one line)
//   h:1:2 [0] NCCL INFO Pattern 4, crossNic 2, nChannels 8, bw 48.000000/48.000000, type NVL/PIX,
//                       sameChannels 0
//   h:1:2 [0] NCCL INFO comm 0xa rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0
//   h:1:2 [0] NCCL INFO Channel 00/16 :  0  7  6  5  4  3  2  1  9 10 11 12 13 14 15  8
//   h:1:2 [0] NCCL INFO Ring 00 : 8 -> 0 -> 7
//   h:1:2 [0] NCCL INFO Trees [0] 1/8/-1->0->-1 [1] ...
//   h:1:2 [0] NCCL INFO 16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels,
//                       4 p2p channels per peer
//   h:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 4194304 datatype 7 op
//                       0 root 0 comm 0xa [nranks=16] stream 0x3
//   h:1:1 [0] NCCL INFO AllReduce: 16777216 Bytes -> Algo TREE proto LL128 channel{Lo..Hi}={0..15}
//
//   h:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring        (NCCL_DEBUG_SUBSYS=..,ENV)
//
// A line belongs to the communicator that its thread sets up, or that it names. Several may stand
// on one line (profiles/trace/readers/nccl/log_lines.h): one that another follows counts where its
// end shows that it is whole. Only rank 0 logs choices. The calls that a thread makes before NCCL
// logs a choice are one group.
//
// The input is not trusted: numbers are bounded, and malformed lines of these forms give
// Error(usage) with FILE:LINE. Threading: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

inline constexpr int kMostLogRanks = 1 << 17;
inline constexpr int kMostLogChannels = 64;

struct NcclLogComm {
  struct Member {
    std::string host;
    int gpu = -1;  // its number on the node, -1: unknown
  };
  struct Edges {
    int prev = -1, next = -1;
  };
  struct Tree {
    int up = -1;
    std::vector<int> down;  // ascending
  };
  struct Graph {
    int channels = 0;
    double inside_GBps = 0, between_GBps = 0;
  };
  using ChannelRank = std::pair<int, int>;  // channel, rank

  std::string name;
  int ranks = 0, nodes = 0, ranks_per_node = 0;                             // 0: not in the log
  int channels = -1, nvls_channels = -1, p2p_channels = -1, per_peer = -1;  // -1: not in the log
  std::map<int, Member> members;                                            // by rank
  std::map<ChannelRank, Edges> rings;
  std::map<ChannelRank, Tree> trees;
  std::map<int, Graph> graphs;  // by NCCL's number of the pattern: 1 to 3 trees, 4 ring, 5 NVLS
};

// What NCCL chose for a call.
struct NcclLogChoice {
  Func func = Func::all_reduce;
  std::uint64_t bytes = 0;
  std::string algorithm, protocol;
  int first_channel = 0, last_channel = 0;
  auto operator<=>(const NcclLogChoice&) const = default;
};

// A call as rank 0 made it.
struct NcclLogCall {
  std::size_t comm = 0;
  Func func = Func::all_reduce;
  std::uint64_t count = 0;
  int type = 0, op = 0, root = 0;  // NCCL's numbers
  auto operator<=>(const NcclLogCall&) const = default;
};

// Calls that were planned together, in the order of the calls and of the choices.
struct NcclLogGroup {
  std::vector<NcclLogCall> calls;
  std::vector<NcclLogChoice> choices;  // one each, if the log is whole
  auto operator<=>(const NcclLogGroup&) const = default;
};

struct NcclLog {
  std::string version;      // "2.28.9"; empty: not in the log
  Environment environment;  // variables that are followed (collectives/nccl/environment.h)
  std::vector<NcclLogComm> comms;
  std::map<NcclLogGroup, std::uint64_t> groups;   // how often each; most have one call
  std::map<std::string, std::uint64_t> left_out;  // lines, by why
};

// Adds the log of one file, of one process or of several. Throws Error(usage).
void read_nccl_log(std::string_view text, const std::string& file, NcclLog& log);

}  // namespace ghostrank
