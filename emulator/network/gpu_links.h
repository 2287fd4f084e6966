// The links between the GPUs of every node, where the job describes them
// (cluster.intra_node.links): each direction of each link serialises its messages one after the
// other, at its own rate. Messages between GPUs without a link pass the two GPUs' ports (port.h),
// as where all are alike.
//
// Units: emulated picoseconds, bytes. Threading: one owner (a shard).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "collectives/node_links.h"
#include "emulator/network/port.h"

namespace ghostrank {

class GpuLinks {
 public:
  explicit GpuLinks(const ClusterSpec& cluster) : gpus_(cluster.gpus_per_node) {
    if (!cluster.links) return;
    for (const double bps : cluster.links->bps)
      speeds_.push_back(LinkSpeed::from_rate(bps, cluster.intra_node.latency));
    free_.resize(speeds_.size() * static_cast<std::size_t>(cluster.rank_nodes()));
  }

  void clear() { std::fill(free_.begin(), free_.end(), Moment{}); }

  // The link over which messages of one party of a node go to another; -1: there is none, as with
  // helpers.
  int between(WorldParty from, WorldParty to) const {
    const auto ranks = static_cast<int>(free_.size()) / gpus_;
    if (from.value() >= ranks || to.value() >= ranks) return -1;
    const int link = from.value() * gpus_ + to.value() % gpus_;
    return speed(link).limited() ? link : -1;
  }
  const LinkSpeed& speed(int link) const {
    return speeds_[static_cast<std::size_t>(link) % speeds_.size()];
  }
  // Takes the link for `duration`, no earlier than `at`. Returns when the turn begins.
  Moment take(int link, const Moment& at, Picoseconds duration) {
    Moment& free = free_[static_cast<std::size_t>(link)];
    const Moment start = later(at, free);
    free = {start.at + duration, start.slip};
    return start;
  }
  const Moment& free_from(int link) const { return free_[static_cast<std::size_t>(link)]; }

 private:
  int gpus_;
  std::vector<LinkSpeed> speeds_;  // by sender's and receiver's GPU; without a link: unlimited
  std::vector<Moment> free_;       // by sending rank and receiver's GPU
};

}  // namespace ghostrank
