// A group of NCCL's point-to-point operations as a schedule needs it: their rounds, the channels of
// their parts, and how a part travels. Shared by nccl/schedules/p2p.cpp, where all operations are
// alike, and nccl/schedules/p2p_group.cpp, where they are not.
//
// Units: elements, unless the name says bytes. Threading: immutable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/nccl/machine/graphs.h"
#include "collectives/nccl/nccl.h"
#include "collectives/nccl/schedules/p2p_split.h"

namespace ghostrank {

inline constexpr int kNcclBatchOps = 8;  // operations per batch

struct NcclOperations {
  NcclRounds rounds;
  NcclP2pChannels channels;
  NcclNodes nodes;
  const NcclNode& node;
  std::shared_ptr<const NcclGraphs> graphs;  // keeps `node` alive
  bool by_rail;                      // messages leave through the NIC of the receiver's rail
  std::vector<std::int32_t> gpu_of;  // as Communicator::gpu_of

  NcclOperations(NcclVersion version, const NcclPlan& plan, const Communicator& comm)
      : rounds(plan.nodes, plan.settings.p2p_group),
        channels(nccl_p2p_channels(version, *plan.node, plan.nodes, plan.channels, plan.settings)),
        nodes(plan.nodes),
        node(*plan.node),
        graphs(plan.graphs),
        by_rail(plan.settings.p2p_pxn || plan.settings.cross_nic == 0),
        gpu_of(comm.gpu_of) {}

  NcclP2pSplit split(std::uint64_t bytes, bool over_network) const {
    return nccl_p2p_split(bytes, channels, nodes.nodes() == 1, over_network);
  }
  bool over_network(GroupRank a, GroupRank b) const { return nodes.node_of(a) != nodes.node_of(b); }
  // The rank whose NIC a message takes out of its sender's node. With `by_rail`, that of the GPU
  // with the receiver's number (the receiver's rail), over NVLink (PXN) or, if NICs may not be
  // crossed, over PCIe; the sender itself without, or if no rank of the node has that GPU.
  GroupRank leaves_beside(GroupRank from, GroupRank to) const {
    if (!by_rail) return from;
    const int node_index = nodes.node_of(from), ranks = nodes.ranks_of(node_index);
    int local = nodes.local_of(to);
    if (!gpu_of.empty())
      for (local = 0; local < ranks; ++local)
        if (gpu_of[nodes.rank_at(node_index, local)] == gpu_of[to]) break;
    return local < ranks ? nodes.rank_at(node_index, local) : from;
  }
  // A message enters the receiver's node through the receiver's own NIC. A GPU with several NICs
  // uses them in turn by channel.
  int nic(GroupRank from, GroupRank to, int channel, Way way) const {
    const GroupRank own = way == Way::send ? from : to;
    const GroupRank beside = way == Way::send ? leaves_beside(from, to) : to;
    const int node_index = nodes.node_of(beside);
    const int turn = nic_in_turn(nodes.ranks_of(node_index), nodes.local_of(beside), channel);
    if (turn == -1) return beside == own ? Schedule::kOwnNic : Schedule::nic_of(beside);
    return is_nic_beside(turn) ? Schedule::nic_of(nodes.rank_at(node_index, local_beside(turn)))
                               : turn;
  }
  // The NIC, as a channel names it (nccl/machine/graphs.h), of a local rank of a node with `ranks`
  // ranks; -1: its GPU has one NIC only.
  int nic_in_turn(int ranks, int local, int channel) const {
    const auto smaller = graphs->smaller.find(ranks);
    const NcclGraphs& here = smaller == graphs->smaller.end() ? *graphs : *smaller->second;
    if (here.own_nics.empty()) return -1;
    const std::vector<int>& own = here.own_nics[static_cast<std::size_t>(local)];
    return own.empty() ? -1 : own[static_cast<std::size_t>(channel) % own.size()];
  }
  // Index of the part of a round's operation that a channel carries.
  int part_of(int round, int channel) const {
    const int distance = channel - rounds.base(round, channels.channels);
    return distance < 0 ? distance + channels.channels : distance;
  }
};

// Part p of an operation: its part of the block, cut into messages. Sets `recv` and `send` alike.
inline Step nccl_part(const Block& block, const NcclP2pSplit& split, std::uint32_t element_bytes,
                      int p) {
  const std::uint64_t begin = static_cast<std::uint64_t>(p) * split.part_bytes / element_bytes;
  const std::uint64_t from = std::min(block.count, begin);
  Step step;
  step.send = {block.offset + from, std::min(split.part_bytes / element_bytes, block.count - from),
               block.buffer};
  step.recv = step.send;
  step.slice_elements = split.message_bytes / element_bytes;
  const std::uint64_t messages = (step.send.count + step.slice_elements - 1) / step.slice_elements;
  step.slices = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, messages));
  return step;
}

// Operations that differ from pair to pair: all-to-all-v, gather, scatter.
std::unique_ptr<Schedule> nccl_p2p_group(NcclVersion version, const Collective& c,
                                         const NcclPlan& plan, const Communicator& comm);

}  // namespace ghostrank
