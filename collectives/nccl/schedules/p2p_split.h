// NCCL's point-to-point operations: which ranks meet in which round, how an operation is cut into
// parts for channels and into messages, and how many channels a peer gets. All-to-all, gather,
// scatter and grouped sends and receives consist of such operations. Derived from the source of
// NCCL 2.28.9 and 2.30.7; traced.h says what was recorded.
//
// Threading: pure functions; NcclRounds is immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/nccl/environment.h"
#include "collectives/nccl/machine/node.h"
#include "collectives/nccl/settings/split.h"

namespace ghostrank {

// The rounds of a communicator. The ranks form groups of neighbours on a node, gcd(`most`, ranks of
// each node) large; on a single node all ranks form one group. A block of rounds pairs every group
// with the group `d` further on (d = 0, 1, 3, 6, ... modulo the power of two above the number of
// groups), and inside it every rank with the rank `delta` further on. In every round each rank
// sends to one rank and receives from one rank; in round 0, to and from itself.
class NcclRounds {
 public:
  explicit NcclRounds(const NcclNodes& nodes, int most = 8);

  int group() const { return group_; }
  GroupRank send_to(GroupRank r, int round) const { return partner(r, round, 1); }
  GroupRank recv_from(GroupRank r, int round) const { return partner(r, round, -1); }
  // The round in which `source` sends to `target`.
  int round_of(GroupRank source, GroupRank target) const;
  // Consecutive rounds that share a base channel: one per rank of a group; 1 on a single node.
  int rounds_per_base() const { return single_node_ ? 1 : group_; }
  // The channel of a round's first part; `channels` is a power of two.
  int base(int round, int channels) const;

 private:
  GroupRank partner(GroupRank r, int round, int sign) const;

  NcclNodes nodes_;
  int group_ = 1, groups_ = 1;
  bool single_node_ = false;
  std::vector<std::int32_t> distance_, block_;  // d of each block of rounds, and its inverse
};

// Channels of a communicator for point-to-point operations, and how many of them one operation
// uses.
struct NcclP2pChannels {
  int channels = 1;
  int min_per_peer = 1, max_per_peer = 1;
  std::uint64_t chunk_bytes = 0;    // largest message; 0: NCCL's default
  std::uint64_t message_bytes = 0;  // of every message; 0: depends on the operation's bytes
};
// Throws std::invalid_argument if NCCL_CHUNK_SIZE exceeds the largest message.
NcclP2pChannels nccl_p2p_channels(NcclVersion version, const NcclNode& node, const NcclNodes& nodes,
                                  int channels, const NcclSettings& settings = {});

// The parts of one operation: part p holds bytes [p * part_bytes, ...) of it, cut at the end, and
// travels over channel base + p in messages of at most `message_bytes`. An operation without bytes
// is one empty message.
struct NcclP2pSplit {
  int parts = 1;
  std::uint64_t part_bytes = 0, message_bytes = 0;
  bool operator==(const NcclP2pSplit&) const = default;
};
NcclP2pSplit nccl_p2p_split(std::uint64_t bytes, const NcclP2pChannels& channels, bool single_node,
                            bool over_network);

}  // namespace ghostrank
