// Leads the search from one attempt to the next, and turns its result into graphs. See
// nccl/machine/search.h.
#include "collectives/nccl/machine/search.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "collectives/nccl/machine/channel_search.h"

namespace ghostrank {
namespace {

// Rates that a channel may have, in 10^6 bytes per second.
constexpr std::array<NcclRate, 13> kAmpereInside{40000, 30000, 20000, 18000, 15000, 12000, 10000,
                                                 9000,  7000,  6000,  5000,  4000,  3000};
constexpr std::array<NcclRate, 19> kAmpereBetween{48000, 30000, 28000, 24000, 20000, 18000, 15000,
                                                  12000, 10000, 9000,  7000,  6000,  5000,  4000,
                                                  3000,  2400,  1200,  240,   120};
constexpr std::array<NcclRate, 11> kHopperInside{60000, 50000, 40000, 30000, 24000, 20000,
                                                 15000, 12000, 11000, 6000,  3000};
constexpr std::array<NcclRate, 17> kHopperBetween{48000, 45000, 42000, 40000, 30000, 24000,
                                                  22000, 20000, 17500, 15000, 12000, 6000,
                                                  3000,  2400,  1200,  240,   120};

// Limits of a search, in visits: of all attempts together, of one attempt, of one with equal
// channels.
constexpr std::int64_t kAllVisits = 1 << 19;
constexpr int kVisits = 1 << 14, kVisitsOfEqual = 1 << 8;

constexpr NcclRate kFallback = 100;       // of fall_back(): GPUs by number, if no search succeeds
constexpr NcclRate kSplitFrom = 25000;    // a channel of this rate is split in two
constexpr NcclRate kSplitAlways = 50000;  // on Hopper, with more than four channels

double GBps(NcclRate rate) { return static_cast<double>(rate) / 1000; }

NcclGraph to_graph(const NcclChannelSearch::Graph& found, bool hopper) {
  NcclGraph graph;
  NcclLinks& links = graph.links;
  links.channels = found.channels;
  links.inside_GBps = GBps(found.inside);
  links.between_GBps = GBps(found.between);
  links.latency_us = found.latency_us;
  links.nvlink = found.type_inside == NcclPathType::nvlink;
  links.ll128 = found.type_inside <= NcclPathType::nvlink_by_gpu &&
                found.type_between <= (hopper ? NcclPathType::relay : NcclPathType::bridges);
  links.same_channels = found.equal;
  for (const NcclChannelSearch::Channel& c : found.channel)
    graph.channels.push_back({c.order, {}, c.first_nic, c.last_nic});
  return graph;
}

}  // namespace

NcclChannelSearch::NcclChannelSearch(NcclTopology topology, const NcclSearchOptions& options)
    : topology_(std::move(topology)), options_(options), used_(size(topology_.gpus())) {
  for (const NcclMachine::Nic& nic : topology_.machine().nics)
    nic_rate_.push_back(nccl_rate(nic.GBps));
  const bool hopper = topology_.machine().compute_capability >= 90;
  if (topology_.between())
    rates_ = hopper ? std::span<const NcclRate>(kHopperBetween) : kAmpereBetween;
  else
    rates_ = hopper ? std::span<const NcclRate>(kHopperInside) : kAmpereInside;
}

std::size_t NcclChannelSearch::first_rate(NcclRate least_total) const {
  std::size_t i = 0;
  while (i + 1 < rates_.size() &&
         (rates_[i] > fastest_ ||
          static_cast<double>(rates_[i]) * static_cast<double>(least_total) > total_))
    ++i;
  return i;
}

void NcclChannelSearch::prepare(Pattern pattern, int least, int most) {
  const bool trees = pattern == Pattern::balanced_tree || pattern == Pattern::tree;
  if (gpus() == 1 && pattern != Pattern::ring) pattern = Pattern::tree;
  best_ = {};
  best_.pattern = pattern;
  best_.least = least;
  best_.most = most;
  const bool several = topology_.nics() > 1 && pattern != Pattern::nvls;
  const bool had_cross = pattern == Pattern::ring || trees;
  cross_nic_ = several && had_cross ? options_.cross_nic : 0;
  best_.cross_nic = cross_nic_ == 1 ? 1 : 0;
  nearest_inside_ = Type::same;
  farthest_inside_ = farthest_between_ = Type::system;
  nearest_between_ = Type::bridge;
  if (gpus() > 1) {
    nearest_inside_ = topology_.least_type(Kind::gpu);
    farthest_inside_ = topology_.greatest_type(Kind::gpu);
  }
  if (topology_.between()) {
    nearest_between_ = topology_.least_type(Kind::nic);
    farthest_between_ = topology_.greatest_type(Kind::nic);
    farthest_inside_ = farthest_between_;
  }
  // A balanced tree on Ampere may have to return over the CPUs.
  if (options_.version == NcclVersion::v2_30 && !hopper()) farthest_between_ = Type::system;
  try_equal_ = pattern != Pattern::nvls;
  best_.equal = try_equal_;
  best_.type_inside = nearest_inside_;
  best_.type_between = nearest_between_;
  if (pattern == Pattern::ring && topology_.split_nvlink() && most >= 2 && least == 1)
    best_.least = 2;
  now_ = best_;
  now_.channel.assign(size(most), {std::vector<int>(size(gpus())), -1, -1});
  fastest_ = topology_.fastest_path();
  total_ = static_cast<double>(topology_.gpu_links());
  // Only a ring returns to its first GPU; other patterns leave each GPU a larger share of NVLink.
  if (gpus() > 1 && pattern != Pattern::ring) total_ *= static_cast<double>(gpus()) / (gpus() - 1);
  set_rate(first_rate(best_.least));
  visits_of_all_ = kAllVisits;
}

void NcclChannelSearch::attempt() {
  visits_ = now_.equal ? kVisitsOfEqual : kVisits;
  now_.channels = 0;
  visits_of_all_ -= visits_;
  next_channel();
}

bool NcclChannelSearch::optimal() const {
  return visits_ == kStop || best_.total_between() >= topology_.gpu_links();
}

// Changes one thing for the next attempt; false: nothing is left to change.
bool NcclChannelSearch::relax() {
  const bool over_system_of_amd =
      topology_.machine().vendor == NcclCpu::amd && now_.type_inside == Type::system;
  if (now_.equal && !over_system_of_amd) {
    now_.equal = false;
    return true;
  }
  now_.equal = try_equal_;
  visits_of_all_ += visits_;
  if (visits_of_all_ < 0 && best_.channels > 0) return false;
  if (hopper() && now_.pattern == Pattern::balanced_tree) {
    now_.pattern = Pattern::tree;
    return true;
  }
  now_.pattern = best_.pattern;

  const bool none = best_.channels == 0;
  const auto farther = [](Type type) { return static_cast<Type>(static_cast<int>(type) + 1); };
  const Type limit = topology_.between() ? now_.type_between : farthest_inside_;
  if (now_.type_inside < limit && (none || now_.type_inside < best_.type_inside)) {
    now_.type_inside = farther(now_.type_inside);
    return true;
  }
  now_.type_inside = nearest_inside_;
  if (topology_.between() && now_.type_between < farthest_between_ &&
      (none || now_.type_between < best_.type_between || now_.type_between < Type::relay)) {
    now_.type_between = farther(now_.type_between);
    return true;
  }
  now_.type_between = nearest_between_;
  const bool may_cross = best_.pattern == Pattern::ring || best_.pattern == Pattern::balanced_tree;
  if (cross_nic_ == 2 && now_.cross_nic == 0 && may_cross) {
    now_.cross_nic = 2;
    return true;
  }
  now_.cross_nic = cross_nic_ == 1 ? 1 : 0;
  // A rate of at most 49 % of the best one found is not worth a try.
  if (rate_ + 1 < rates_.size() && (none || rates_[rate_ + 1] * 100 > 49 * best_.between)) {
    set_rate(rate_ + 1);
    return true;
  }
  return false;
}

void NcclChannelSearch::split() {
  if (best_.channels == 0 || best_.pattern == Pattern::nvls || best_.inside < kSplitFrom) return;
  if (hopper() && best_.inside < kSplitAlways && best_.channels > 4) return;
  const int before = best_.channels, after = std::min(2 * before, best_.most);
  best_.channel.resize(size(std::max(after, best_.most)));
  for (int c = before; c < after; ++c) best_.channel[size(c)] = best_.channel[size(c - before)];
  const int parts = (after + before - 1) / before;
  best_.inside /= parts;
  best_.between /= parts;
  best_.channels = after;
}

// Raises the rate of the channels found: of a ring everywhere, of a tree inside the node, of NVLS
// between nodes; false: nothing is left to raise.
bool NcclChannelSearch::raise() {
  if (visits_ == 0 || rate_ == 0) return false;
  if (best_.pattern == Pattern::ring) {
    set_rate(rate_ - 1);
    return true;
  }
  if (best_.pattern == Pattern::nvls && now_.between == best_.between &&
      now_.between < 2 * now_.inside) {
    now_.least = now_.most = best_.channels;
    now_.between = rates_[--rate_];
    return true;
  }
  if (now_.inside == best_.inside && now_.inside < 2 * now_.between) {
    now_.inside = rates_[--rate_];
    return true;
  }
  return false;
}

void NcclChannelSearch::fall_back() {
  best_.channels = 1;
  best_.inside = best_.between = kFallback;
  best_.type_inside = best_.type_between = Type::system;
  Channel channel;
  for (int g = 0; g < gpus(); ++g) channel.order.push_back(g);
  if (topology_.nics() > 0) {
    channel.first_nic = topology_.nic_of(0, 0);
    channel.last_nic = topology_.nic_of(gpus() - 1, 0);
  }
  best_.channel = {channel};
}

NcclChannelSearch::Graph NcclChannelSearch::find(Pattern pattern, int least, int most) {
  prepare(pattern, least, most);
  do attempt();
  while (!optimal() && relax());

  split();
  visits_ = kStop;
  const int channels = best_.channels;
  now_ = best_;
  now_.channel.resize(size(std::max(most, channels)), {std::vector<int>(size(gpus())), -1, -1});
  rate_ = 0;
  while (rate_ + 1 < rates_.size() && rates_[rate_] > best_.between) ++rate_;
  set_rate(rate_);
  now_.least = channels;
  while (raise()) attempt();

  if (best_.channels == 0 && best_.pattern != Pattern::nvls) fall_back();
  best_.channel.resize(size(best_.channels));
  return best_;
}

std::shared_ptr<const NcclGraphs> nccl_search(const NcclMachine& machine, std::span<const int> gpus,
                                              const NcclSearchOptions& options) {
  if (gpus.empty()) throw std::invalid_argument("a communicator needs a GPU");
  for (const int gpu : gpus)
    if (gpu < 0 || gpu >= machine.gpu_count())
      throw std::invalid_argument("node '" + machine.name + "' has " +
                                  std::to_string(machine.gpu_count()) + " GPUs, none of number " +
                                  std::to_string(gpu));
  if (options.between && machine.nics.empty())
    throw std::invalid_argument("node '" + machine.name +
                                "' has no NICs: it is for communicators inside one node");
  using Graph = NcclChannelSearch::Graph;
  using Pattern = NcclChannelSearch::Pattern;
  const NcclTopology topology(machine, gpus, options.between, options.pxn);
  const bool hopper = machine.compute_capability >= 90;
  const Graph ring =
      NcclChannelSearch(topology, options).find(Pattern::ring, 1, NcclChannelSearch::kMostRings);
  const Graph tree = NcclChannelSearch(topology, options)
                         .find(Pattern::balanced_tree, ring.channels, ring.channels);
  Graph nvls;
  nvls.channels = 0;
  if (hopper && topology.has_switch() && topology.gpus() > 1) {
    const int heads = std::min(NcclChannelSearch::kMostHeads, topology.gpus());
    nvls = NcclChannelSearch(topology, options)
               .find(Pattern::nvls, options.between ? 1 : heads, heads);
  }

  NcclGraphs graphs;
  graphs.ring = to_graph(ring, hopper);
  graphs.tree = to_graph(tree, hopper);
  graphs.nvls = to_graph(nvls, hopper).links;
  for (const NcclChannelSearch::Channel& c : nvls.channel)
    graphs.heads.push_back({c.order.front(), c.first_nic});
  NcclNode& node = graphs.node;
  node.nics = machine.nic_count();
  node.gpu = hopper ? NcclGpu::hopper : NcclGpu::ampere;
  node.cpu = machine.vendor;
  node.swap_odd_nodes = ring.cross_nic == 2;
  node.tree =
      tree.pattern == Pattern::balanced_tree ? NcclNode::Tree::balanced : NcclNode::Tree::plain;
  const NcclMachine::Gpu& gpu = machine.gpus[gpus.front()];
  node.nvlinks = gpu.switch_links;
  for (const auto& [peer, count] : gpu.peer_links) node.nvlinks = std::max(node.nvlinks, count);
  for (int g = 0; g < topology.gpus() && options.between; ++g) {
    graphs.own_nics.emplace_back();
    std::vector<int>& own = graphs.own_nics.back();
    for (int c = 0, nic = topology.nic_of(g, 0); own.empty() || nic != own.front();
         nic = topology.nic_of(g, ++c))
      own.push_back(nic);
    if (own.size() == 1) own.clear();
  }
  if (!machine.nics.empty()) {
    node.nic_GBps = machine.nics.front().GBps;
    node.nics_per_gpu = std::max(1, machine.nic_count() / machine.gpu_count());
  }
  return nccl_graphs(std::move(graphs));
}

}  // namespace ghostrank
