// See nccl/tuner.h. Tables are indexed by protocol (LL, LL128, Simple) or by number of nodes (one,
// two, more).
#include "collectives/nccl/tuner.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace ghostrank {
namespace {

constexpr std::array kProtocols{Protocol::ll, Protocol::ll128, Protocol::simple};

std::size_t column(Protocol protocol) {
  return protocol == Protocol::ll ? 0 : protocol == Protocol::ll128 ? 1 : 2;
}

using Row = std::array<double, 3>;

// Latency in microseconds: the base, and one hop over NVLink, PCIe and the network.
constexpr Row kTreeBase{6.8, 14, 8.4}, kRingBase{6.6, 14, 8.4};
constexpr double kPatBase = 8;
constexpr Row kTreeNvlink{.6, 1.25, 4}, kRingNvlink{.6, 1.9, 3.4};
constexpr Row kTreePci{1, 1.9, 4}, kRingPci{1, 2.5, 5.7};
constexpr Row kTreeNet{5, 8.5, 14}, kRingNet{2.7, 4, 14};
constexpr double kNvlsNvlink = 25, kNvlsTreeNet = 20.9, kPatNet = 14;
constexpr double kNetOverhead = 1, kNetOverheadOfAmd = 2;  // us per ring step between nodes; times
                                                           // 3 with Simple

// NCCL keeps sums of 8-bit floats out of rings of more ranks, if anything else can do them.
constexpr int kMostRanksOfFp8Rings = 8;
constexpr double kFp8RingPenalty = 1024;

// Calls of a group that a channel plays at once, in any algorithm but the ring.
constexpr int kCallsOfBatch = 10;

// Upper bounds of a channel's bandwidth, and of LL's over all channels, in GB/s, per GPU
// generation.
struct Generation {
  Row ll_max, tree, tree_ll128, nvls_tree;
  double ring_ll128, nvls_efficiency;
};
constexpr Generation kAmpere{
    {87.7, 22.5, 19}, {24, 23.6, 17.8}, {20, 20, 20}, {24, 23.6, 17.8}, 20, 0};
constexpr Generation kHopper{
    {141, 45, 35}, {38.7, 41.4, 36}, {36.7, 36.7, 29}, {0, 57.7, 45.5}, 36.7, 0.85};
constexpr Row kLlMaxOfIntel{39, 39, 20.4}, kLlMaxOfAmd{87.7, 22.5, 19};  // between nodes

// Share of a tree's bandwidth that an all-reduce of 64 << i bytes reaches. NCCL's table also has an
// entry for 512 MiB, which its code never reads.
constexpr int kCorrectedSizes = 23;
constexpr std::array<std::array<double, kCorrectedSizes>, 3> kTreeCorrection{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

int floor_log2(std::uint64_t n) { return static_cast<int>(std::bit_width(n)) - 1; }

const Generation& generation(const NcclNode& node) {
  return node.gpu == NcclGpu::hopper ? kHopper : kAmpere;
}

// Steps of a ring.
int steps(const NcclTunerInput& in) {
  if (in.func == Func::all_reduce) return 2 * (in.ranks - 1);
  if (in.func == Func::all_gather || in.func == Func::reduce_scatter) return in.ranks - 1;
  return in.ranks;
}

bool possible(const NcclTunerInput& in, NcclAlgorithm algorithm, Protocol protocol) {
  const bool by_blocks = in.func == Func::all_gather || in.func == Func::reduce_scatter;
  switch (algorithm) {
    case NcclAlgorithm::ring:
      return true;
    case NcclAlgorithm::tree:
      return in.func == Func::all_reduce;
    case NcclAlgorithm::pat:
      return in.pat && by_blocks && in.ranks == in.nodes && protocol == Protocol::simple;
    case NcclAlgorithm::nvls:
      return in.nvls && in.func == Func::all_reduce && in.nodes == 1 &&
             nccl_links(*in.node, algorithm).channels > 1 && protocol == Protocol::simple;
    case NcclAlgorithm::nvls_tree:
      return in.nvls && in.func == Func::all_reduce && in.nodes > 1 && in.ranks > in.nodes &&
             nccl_links(*in.node, algorithm).channels > 1 && protocol == Protocol::simple;
  }
  return false;
}

// Bandwidth in 10^9 bytes of the call per second, before the corrections for size.
double bandwidth_GBps(const NcclTunerInput& in, NcclAlgorithm algorithm, Protocol protocol) {
  const NcclNode& node = *in.node;
  const Generation& gpu = generation(node);
  const NcclLinks links = nccl_links(node, algorithm);
  const std::size_t scale = in.nodes <= 2 ? static_cast<std::size_t>(in.nodes) - 1 : 2;
  const double channels = links.channels;
  const double bus = channels * (in.nodes <= 2 ? links.inside_GBps : links.between_GBps);
  const Row& between_nodes = node.cpu == NcclCpu::amd ? kLlMaxOfAmd : kLlMaxOfIntel;
  const double ll_max = in.nodes == 1 ? gpu.ll_max[scale] : between_nodes[scale];
  const double by_steps = static_cast<double>(in.ranks) / steps(in);
  switch (algorithm) {
    case NcclAlgorithm::ring:
      if (protocol == Protocol::ll) return std::min(ll_max, bus * .5) * by_steps;
      if (protocol == Protocol::ll128)
        return std::min(bus * .92, channels * gpu.ring_ll128) * by_steps;
      return bus * by_steps;
    case NcclAlgorithm::tree: {
      double tree = std::min(bus * .92, channels * gpu.tree[scale]);
      if (protocol == Protocol::ll) tree = std::min(tree / 3.8, ll_max);
      if (protocol == Protocol::ll128)
        tree = std::min(tree * (in.nodes == 1 ? 7. / 9 : 120. / 128),
                        channels * gpu.tree_ll128[scale]);
      return tree * (node.tree == NcclNode::Tree::plain ? .85 : 1) * .5;
    }
    case NcclAlgorithm::pat:
      return bus * .75;
    case NcclAlgorithm::nvls:
    case NcclAlgorithm::nvls_tree: {
      const bool tree = algorithm == NcclAlgorithm::nvls_tree;
      const double inside = 2 * links.inside_GBps * gpu.nvls_efficiency * (channels - 1) / channels;
      const double between = links.between_GBps * (tree && in.nodes == 2 ? 2 : 1);
      const double least = std::min(inside, between);
      return channels * (tree ? std::min(least, gpu.nvls_tree[scale]) : least) * by_steps;
    }
  }
  return 0;
}

double latency_us(const NcclTunerInput& in, NcclAlgorithm algorithm, Protocol protocol) {
  const std::size_t p = column(protocol);
  const bool single_gpus = in.ranks == in.nodes;
  const NcclLinks links = nccl_links(*in.node, algorithm);
  const auto hop = [&](const Row& nvlink, const Row& pci) {
    return (single_gpus || !links.nvlink ? pci : nvlink)[p];
  };
  // With one GPU per node nothing hides the network's latency. With Simple a NIC's latency counts
  // twice because of the flush.
  const double nic_us = links.latency_us * (protocol == Protocol::simple ? 2 : 1);
  const auto net = [&](double own) { return (single_gpus ? kTreeNet[p] : own) + nic_us; };
  const int log_nodes = floor_log2(static_cast<std::uint64_t>(in.nodes));
  switch (algorithm) {
    case NcclAlgorithm::ring: {
      double inner = hop(kRingNvlink, kRingPci);
      if (in.func == Func::broadcast || in.func == Func::reduce) {
        if (links.same_channels) return kRingBase[p] + (in.nodes > 1 ? kRingNet[p] : inner);
        const Row& chunk = protocol != Protocol::simple ? kRingNet : kTreeNet;
        const double inside = protocol != Protocol::simple ? inner : hop(kTreeNvlink, kTreePci);
        return kRingBase[p] + steps(in) * (in.nodes > 1 ? chunk[p] : inside);
      }
      const bool simple = protocol == Protocol::simple;
      const double overhead = in.node->cpu == NcclCpu::amd ? kNetOverheadOfAmd : kNetOverhead;
      if (in.nodes > 1) inner = std::max(inner, overhead * (simple ? 3 : 1));
      const int between = (in.func == Func::all_reduce ? 2 : 1) * (in.nodes - 1);
      return kRingBase[p] + (steps(in) - between) * inner + between * net(kRingNet[p]);
    }
    case NcclAlgorithm::tree:
      return kTreeBase[p] + 2 * ((in.ranks / in.nodes - 1) * hop(kTreeNvlink, kTreePci) +
                                 log_nodes * net(kTreeNet[p]));
    case NcclAlgorithm::pat:
      return kPatBase + log_nodes * net(kPatNet) / 3.5 + 2.8 * in.ranks;
    case NcclAlgorithm::nvls:
      return links.nvlink ? kNvlsNvlink : 0;
    case NcclAlgorithm::nvls_tree:
      return (links.nvlink ? kNvlsNvlink : 0) + 2 * log_nodes * net(kNvlsTreeNet);
  }
  return 0;
}

// NCCL uses LL128 only where paths are near enough (NcclLinks::ll128), or where the user names it.
bool enabled(const NcclTunerInput& in, NcclAlgorithm algorithm, Protocol protocol) {
  if (nccl_says(in.overrides, in.func, algorithm) == NcclSay::no) return false;
  const NcclSay say = nccl_says(in.overrides, in.func, protocol);
  if (say != NcclSay::unsaid) return say == NcclSay::yes;
  return protocol != Protocol::ll128 || nccl_links(*in.node, algorithm).ll128;
}

}  // namespace

double nccl_time_us(const NcclTunerInput& in, NcclAlgorithm algorithm, Protocol protocol) {
  if (!possible(in, algorithm, protocol) || !enabled(in, algorithm, protocol)) return -1;
  double bandwidth = bandwidth_GBps(in, algorithm, protocol);
  double latency = latency_us(in, algorithm, protocol);
  const int log_size = floor_log2(in.bytes / 64);
  if (algorithm == NcclAlgorithm::tree && log_size >= 0 && log_size < kCorrectedSizes)
    bandwidth *= kTreeCorrection[column(protocol)][log_size];
  const auto shares = static_cast<std::uint64_t>(in.channels) * in.ranks;
  if (algorithm == NcclAlgorithm::ring && protocol == Protocol::simple &&
      in.func == Func::all_reduce && in.nodes > 1 && in.bytes / shares >= 64)
    latency *= 1.4;
  latency *= algorithm == NcclAlgorithm::ring
                 ? in.calls_per_channel
                 : (in.calls_per_channel + kCallsOfBatch - 1) / kCallsOfBatch;
  const bool lossy = in.fp8 && algorithm == NcclAlgorithm::ring && in.ranks > kMostRanksOfFp8Rings;
  return (latency + static_cast<double>(in.bytes) / (1000 * bandwidth)) *
         (lossy ? kFp8RingPenalty : 1);
}

int nccl_max_channels(const NcclTunerInput& in, NcclAlgorithm algorithm, Protocol protocol) {
  if (algorithm == NcclAlgorithm::nvls || algorithm == NcclAlgorithm::nvls_tree) return in.channels;
  if (algorithm == NcclAlgorithm::pat) return in.channels;  // PAT has no threshold of its own
  const NcclLinks links = nccl_links(*in.node, algorithm);
  const bool slow_ring = algorithm == NcclAlgorithm::ring && protocol == Protocol::simple &&
                         links.inside_GBps * links.channels <= 12;
  const int given = protocol == Protocol::ll128 ? in.overrides.ll128_threads : in.overrides.threads;
  const int own = protocol == Protocol::ll128 ? 640 : slow_ring ? 256 : 512;
  const std::uint64_t threads = given > 0 ? given : own;
  std::uint64_t bytes_per_thread = protocol == Protocol::simple ? 64 : 8;
  if (algorithm == NcclAlgorithm::ring && protocol == Protocol::ll) bytes_per_thread *= in.ranks;
  int channels = in.channels;
  while (channels >= 2 && in.bytes < channels * threads * bytes_per_thread) --channels;
  return channels;
}

std::uint64_t nccl_tuner_bytes(const Collective& c) {
  const bool by_blocks = c.func == Func::all_gather || c.func == Func::reduce_scatter;
  return c.count * c.element_bytes * (by_blocks ? static_cast<std::uint64_t>(c.size) : 1);
}

NcclChoice nccl_choose(const NcclTunerInput& in) {
  NcclChoice best;
  best.microseconds = -1;
  for (const NcclAlgorithm algorithm : kNcclAlgorithms)
    for (const Protocol protocol : kProtocols) {
      const double time = nccl_time_us(in, algorithm, protocol);
      if (time < 0 || (best.microseconds >= 0 && time >= best.microseconds)) continue;
      best = {algorithm, protocol, 0, time};
    }
  if (best.microseconds < 0)
    throw std::invalid_argument("no algorithm and protocol that is allowed can do " +
                                std::string(name_of(in.func)) + " here" +
                                (in.overrides.algorithms.empty()
                                     ? ""
                                     : "; NCCL_ALGO is " + in.overrides.algorithms +
                                           ": name algorithms by function, as in allreduce:tree") +
                                (in.overrides.protocols.empty()
                                     ? ""
                                     : "; the protocol is to be " + in.overrides.protocols));
  best.max_channels = nccl_max_channels(in, best.algorithm, best.protocol);
  return best;
}

}  // namespace ghostrank
