// The search for the channels of one pattern (ring, tree, NVLS) on a node: part of
// nccl/machine/search.h. An attempt (channel_search.cpp) looks for as many channels as possible at
// one rate and within limits of distance; search.cpp changes rate and limits from one attempt to
// the next.
//
// Units: 10^6 bytes per second (NcclRate). Threading: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "collectives/nccl/machine/search.h"
#include "collectives/nccl/machine/topology.h"

namespace ghostrank {

class NcclChannelSearch {
 public:
  using Type = NcclPathType;
  using Kind = NcclTopology::Kind;
  enum class Pattern : std::uint8_t { balanced_tree, tree, ring, nvls };
  static constexpr int kMostRings = 32, kMostHeads = 32;
  static constexpr int kStop = -1;          // visits left once no better result is possible
  static constexpr NcclRate kWhole = 1000;  // a NIC's rate is spent in whole GB/s

  struct Channel {
    std::vector<int> order;  // GPUs
    int first_nic = -1, last_nic = -1;
  };

  // A result, or one in the making.
  struct Graph {
    Pattern pattern = Pattern::ring;
    int cross_nic = 0;
    int channels = 0, least = 1, most = kMostRings;
    bool equal = true;  // all channels have one order
    NcclRate inside = 0, between = 0;
    Type type_inside = Type::same, type_between = Type::bridge;
    double latency_us = 0;
    int hops = 0;
    std::vector<Channel> channel;

    NcclRate total_inside() const { return channels * inside; }
    NcclRate total_between() const { return channels * between; }
  };

  NcclChannelSearch(NcclTopology topology, const NcclSearchOptions& options);

  Graph find(Pattern pattern, int least, int most);

 private:
  // Which GPU comes next: by score, by the bus, or as on the channel before.
  enum class Order : std::uint8_t { free, bus, replay };
  // The positions in a channel at which it leaves the node, and returns to its first GPU; -1: none.
  struct Ends {
    int leave = -1, close = -1;
  };

  static std::size_t size(int n) { return static_cast<std::size_t>(n); }
  int gpus() const { return topology_.gpus(); }
  bool hopper() const { return topology_.machine().compute_capability >= 90; }
  Channel& channel() { return now_.channel[size(now_.channels)]; }
  const Channel& channel_before() const { return now_.channel[size(now_.channels) - 1]; }

  void prepare(Pattern pattern, int least, int most);
  void attempt();
  bool optimal() const;
  bool relax();
  bool raise();
  void split();
  void fall_back();
  void set_rate(std::size_t index) { now_.inside = now_.between = rates_[rate_ = index]; }
  std::size_t first_rate(NcclRate least_total) const;

  void next_channel();
  void start_at_nics();
  void start_inside();
  void try_gpu(int from, int gpu, int position, Ends ends, Order order);
  void visit(int gpu, int position, Ends ends, Order order);
  void leave(int gpu, int position, Ends ends, Order order);
  void go_on(int gpu, int position, Ends ends, Order order);
  void try_nvls(int head);
  void end_channel();
  bool better() const;
  bool follow(int from, int to, int times, NcclRate between);
  bool follow(int from, int to, int times) { return follow(from, to, times, now_.between); }
  bool may_leave(int nic, int position);
  const std::vector<int>& nics_to_try(Type farthest, int gpu);
  std::vector<int> nics_in_order(Type farthest, int gpu) const;
  std::vector<int> gpus_to_try(int gpu, int wants_nic) const;
  std::vector<int> gpus_by_score(int gpu, int wants_nic) const;
  bool may_follow(int gpu, int next) const {
    const std::uint64_t bit = std::uint64_t{1} << now_.channels;
    return topology_.path(gpu, next).hops() > 0 && (used_[size(next)] & bit) == 0;
  }
  void spend(int nic, NcclRate rate);

  NcclTopology topology_;
  NcclSearchOptions options_;
  std::span<const NcclRate> rates_;
  Graph now_, best_;
  std::vector<NcclRate> nic_rate_;   // rate left, by NIC
  std::vector<std::uint64_t> used_;  // by GPU: a bit for each channel that has it
  std::map<std::pair<Type, int>, std::vector<int>> nics_to_try_;
  int visits_ = 0;
  int* left_ = &visits_;
  std::size_t rate_ = 0;
  // What relax() may change, and where it starts.
  Type nearest_inside_ = Type::same, farthest_inside_ = Type::system;
  Type nearest_between_ = Type::bridge, farthest_between_ = Type::system;
  bool try_equal_ = true;
  int cross_nic_ = 0;
  NcclRate fastest_ = 0;
  double total_ = 0;
  std::int64_t visits_of_all_ = 0;
};

}  // namespace ghostrank
