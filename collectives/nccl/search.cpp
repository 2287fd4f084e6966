// See nccl/search.h. The order in which candidates are tried decides the result, so it is NCCL's
// everywhere.
#include "collectives/nccl/search.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "collectives/nccl/topology.h"

namespace ghostrank {
namespace {

using Type = NcclPathType;
using Kind = NcclTopology::Kind;

enum class Pattern : std::uint8_t { balanced_tree, tree, ring, nvls };

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
// channels, and of the first try in the order of the PCIe bus.
constexpr std::int64_t kAllVisits = 1 << 19;
constexpr int kVisits = 1 << 14, kVisitsOfEqual = 1 << 8, kVisitsInBusOrder = 1 << 10;

constexpr int kMostRings = 32, kMostHeads = 32;
constexpr NcclRate kWhole = 1000;         // a NIC's rate is spent in whole GB/s
constexpr NcclRate kFallback = 100;       // of the order that is used if the search finds none
constexpr NcclRate kSplitFrom = 25000;    // a channel of this rate is split in two
constexpr NcclRate kSplitAlways = 50000;  // on Hopper, with more than four channels
constexpr int kStop = -1;                 // visits left once no better result is possible

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

class Search {
 public:
  Search(NcclTopology topology, const NcclSearchOptions& options)
      : topology_(std::move(topology)), options_(options), used_(size(topology_.gpus())) {
    for (const NcclMachine::Nic& nic : topology_.machine().nics)
      nic_rate_.push_back(nccl_rate(nic.GBps));
    const bool hopper = topology_.machine().compute_capability >= 90;
    if (topology_.between())
      rates_ = hopper ? std::span<const NcclRate>(kHopperBetween) : kAmpereBetween;
    else
      rates_ = hopper ? std::span<const NcclRate>(kHopperInside) : kAmpereInside;
  }

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
  std::vector<NcclRate> nic_rate_;   // what is left
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

// Takes, or with a negative `times` gives back, a channel's rate on every link of a path.
bool Search::follow(int from, int to, int times, NcclRate between) {
  const NcclTopology::Path& path = topology_.path(from, to);
  const auto on_nvlink = [&](int v) {
    return topology_.kind(v) == Kind::gpu || topology_.kind(v) == Kind::nvlink_switch;
  };
  const bool inside = on_nvlink(from) && on_nvlink(to);
  const Type farthest = inside ? now_.type_inside : now_.type_between;
  if (path.type >= Type::none) return false;
  if (times == 1) {
    const bool tree = now_.pattern == Pattern::balanced_tree || now_.pattern == Pattern::tree;
    if (path.type > farthest || (tree && topology_.path(to, from).type > farthest)) return false;
  }
  const NcclRate rate = times * (inside ? now_.inside : between);
  // Intel's CPUs cut what GPUs send to each other into small packets.
  const bool small_packets = path.type == Type::host && topology_.kind(from) == Kind::gpu &&
                             topology_.machine().vendor == NcclCpu::intel &&
                             topology_.crosses_cpu(path);
  const NcclRate pci_rate = small_packets ? rate * 6 / 5 : rate;
  for (std::size_t i = 0; i < path.links.size(); ++i) {
    NcclTopology::Link& link = topology_.link(path.links[i]);
    const NcclRate taken = link.wire == NcclTopology::Wire::pci ? pci_rate : rate;
    if (link.rate >= taken) {
      link.rate -= taken;
      continue;
    }
    while (i > 0) {
      NcclTopology::Link& before = topology_.link(path.links[--i]);
      before.rate += before.wire == NcclTopology::Wire::pci ? pci_rate : rate;
    }
    return false;
  }
  now_.hops += times * path.hops();
  return true;
}

bool Search::better() const {
  if (now_.channels < now_.least) return false;
  if (now_.pattern == Pattern::nvls)
    return (now_.channels > best_.channels && now_.channels <= gpus()) ||
           now_.total_between() > best_.total_between();
  if (now_.total_inside() != best_.total_inside())
    return now_.total_inside() > best_.total_inside();
  return now_.pattern == best_.pattern && now_.cross_nic == best_.cross_nic &&
         now_.hops < best_.hops;
}

void Search::end_channel() {
  ++now_.channels;
  if (better()) {
    best_ = now_;
    if (now_.channels == now_.most) *left_ = kStop;
  }
  if (now_.channels < now_.most) next_channel();
  --now_.channels;
}

void Search::next_channel() {
  if (topology_.between())
    start_at_nics();
  else
    start_inside();
}

void Search::start_inside() {
  const Ends ends{-1, now_.pattern == Pattern::ring ? gpus() - 1 : -1};
  if (now_.pattern == Pattern::nvls) return try_gpu(-1, now_.channels, 0, ends, Order::free);
  if (now_.channels == 0)
    try_gpu(-1, 0, 0, ends, Order::bus);
  else
    try_gpu(-1, channel_before().order.front(), 0, ends, Order::replay);
  if (now_.equal && now_.channels > 0) return;
  for (int g = 0; g < gpus(); ++g) try_gpu(-1, g, 0, ends, Order::free);
}

void Search::spend(int nic, NcclRate rate) {
  const std::vector<NcclMachine::Nic>& nics = topology_.machine().nics;
  const NcclMachine::Nic& chosen = nics[size(nic)];
  for (std::size_t i = 0; i < nics.size(); ++i)
    if (nics[i].asic == chosen.asic && nics[i].port == chosen.port) nic_rate_[i] -= rate;
}

void Search::start_at_nics() {
  const NcclRate rate = now_.between / kWhole * kWhole;
  const bool ring = now_.pattern == Pattern::ring, nvls = now_.pattern == Pattern::nvls;
  const Ends ends{ring ? gpus() - 1 : 0, -1};
  const std::vector<int>& nics = nics_to_try(now_.type_between, -1);
  const auto count = static_cast<int>(nics.size());
  for (int i = 0; i < count; ++i) {
    const int n = nics[size((now_.channels + i) % count)], vertex = topology_.nic(n);
    if (nic_rate_[size(n)] < rate) continue;
    // With cross-NIC, an odd channel is its neighbour's way back.
    const bool odd = ring && now_.cross_nic == 2 && now_.channels % 2 == 1;
    if (odd && n != channel_before().last_nic) continue;
    channel().first_nic = n;
    now_.latency_us = topology_.machine().nics[size(n)].latency_us;
    spend(n, rate);
    const int local = topology_.gpu_of(n);
    const auto start = [&](int gpu, Order order) { try_gpu(vertex, gpu, 0, ends, order); };
    if (nvls) {
      const auto taken = [&](const Channel& c) { return c.order.front() == local; };
      const auto end = now_.channel.begin() + now_.channels;
      if (now_.channels < count && local >= 0 && std::none_of(now_.channel.begin(), end, taken)) {
        start(local, Order::free);
        spend(n, -rate);
        return;  // one NIC per head
      }
    } else if (now_.channels > 0 && now_.equal) {
      start(channel_before().order.front(), Order::replay);
    } else {
      if (now_.channels == 0 && !topology_.has_switch()) {
        int visits = kVisitsInBusOrder;
        int* const own = std::exchange(left_, &visits);
        start(0, Order::bus);
        left_ = own;
        if (visits == kStop) *left_ = kStop;
      }
      if (local >= 0) start(local, Order::free);
      for (const int gpu : topology_.nearest(vertex, Kind::gpu))
        if (gpu != local) start(gpu, Order::free);
    }
    spend(n, -rate);
  }
}

void Search::try_gpu(int from, int gpu, int position, Ends ends, Order order) {
  if (from >= 0 && !follow(from, gpu, 1)) return;
  const std::uint64_t bit = std::uint64_t{1} << now_.channels;
  used_[size(gpu)] ^= bit;
  visit(gpu, position, ends, order);
  used_[size(gpu)] ^= bit;
  if (from >= 0) follow(from, gpu, -1);
}

void Search::visit(int gpu, int position, Ends ends, Order order) {
  if (*left_ <= 0) return;
  --*left_;
  if (position == gpus()) return end_channel();
  channel().order[size(position)] = gpu;
  if (position == ends.leave) return leave(gpu, position, ends, order);
  if (now_.pattern == Pattern::nvls) return try_nvls(gpu);
  go_on(gpu, position, ends, order);
}

// To the NIC through which the channel leaves the node.
void Search::leave(int gpu, int position, Ends ends, Order order) {
  const bool balanced = now_.pattern == Pattern::balanced_tree;
  // The first two GPUs of a balanced tree share the traffic.
  const NcclRate rate = balanced ? now_.between / 2 : now_.between;
  const Ends rest{balanced && position == 0 ? 1 : -1, ends.close};
  for (const int n : nics_to_try(now_.type_between, gpu)) {
    if (!may_leave(n, position) || !follow(gpu, topology_.nic(n), 1, rate)) continue;
    channel().last_nic = n;
    visit(gpu, position, rest, order);
    follow(gpu, topology_.nic(n), -1, rate);
  }
}

bool Search::may_leave(int nic, int position) {
  const std::vector<NcclMachine::Nic>& nics = topology_.machine().nics;
  const int first = channel().first_nic;
  if (now_.pattern == Pattern::tree && nic != first) return false;
  if (now_.pattern == Pattern::ring && now_.cross_nic == 2) {
    if (now_.channels % 2 == 1 && nic != channel_before().first_nic) return false;
  } else if (now_.cross_nic == 0) {
    const NcclMachine::Nic &a = nics[size(nic)], &b = nics[size(first)];
    if (a.asic != b.asic || a.port != b.port) return false;
  }
  return now_.pattern != Pattern::balanced_tree || position == 0 || nic == channel().last_nic;
}

void Search::go_on(int gpu, int position, Ends ends, Order order) {
  if (position < gpus() - 1) {
    std::vector<int> next;
    if (order == Order::bus)
      next = {position + 1};
    else if (order == Order::replay)
      next = {channel_before().order[size(position) + 1]};
    else
      next = gpus_to_try(gpu, ends.leave == -1 ? 0 : ends.leave == position + 1 ? 1 : -1);
    for (const int g : next) try_gpu(gpu, g, position + 1, ends, order);
  } else if (position == ends.close) {
    const int first = channel().order.front();
    if (!follow(gpu, first, 1)) return;
    visit(first, position + 1, {ends.leave, -1}, order);
    follow(gpu, first, -1);
  } else {
    visit(gpu, gpus(), {}, order);
  }
}

// Every GPU sends to the switch and receives from it; the head does so twice.
void Search::try_nvls(int head) {
  const int nvs = topology_.nvlink_switch();
  const auto times = [&](int g) { return g == head ? 2 : 1; };
  int down = 0, up = 0;
  while (down < gpus() && follow(nvs, down, times(down))) ++down;
  if (down == gpus()) {
    while (up < gpus() && follow(up, nvs, times(up))) ++up;
    if (up == gpus()) visit(head, gpus(), {}, Order::free);
  }
  while (up-- > 0) follow(up, nvs, -times(up));
  while (down-- > 0) follow(nvs, down, -times(down));
}

const std::vector<int>& Search::nics_to_try(Type farthest, int gpu) {
  const auto [at, is_new] = nics_to_try_.try_emplace({farthest, gpu});
  if (is_new) at->second = nics_in_order(farthest, gpu);
  return at->second;
}

// The NICs of the GPUs (of one GPU, or with -1 of all), then others by distance.
std::vector<int> Search::nics_in_order(Type farthest, int gpu) const {
  std::vector<int> nics;
  const auto add = [&](int n) {
    if (n >= 0 && std::find(nics.begin(), nics.end(), n) == nics.end()) nics.push_back(n);
  };
  const int first = gpu < 0 ? 0 : gpu, end = gpu < 0 ? gpus() : gpu + 1;
  for (int g = first; g < end; ++g) {
    const int own = topology_.nic_of(g, 0);
    add(own);
    for (int c = 1; c < 64; ++c) {
      const int n = topology_.nic_of(g, c);
      if (n == own) break;
      add(n);
    }
  }
  for (int type = 0; type <= static_cast<int>(farthest); ++type)
    for (int g = first; g < end; ++g)
      for (int n = 0; n < topology_.nics(); ++n)
        if (static_cast<int>(topology_.path(g, topology_.nic(n)).type) == type) add(n);
  return nics;
}

// The GPUs that may follow, best first. `wants_nic`: 1: the next GPU is to be near the NIC; -1:
// a later one is; 0: none.
std::vector<int> Search::gpus_to_try(int gpu, int wants_nic) const {
  if (!topology_.has_switch()) return gpus_by_score(gpu, wants_nic);
  // Behind a switch all GPUs are alike: only the neighbours are tried.
  const int up = (gpu + 1) % gpus(), down = (gpu + gpus() - 1) % gpus();
  std::vector<int> neighbours{up};
  if (up != down && now_.pattern == Pattern::ring) neighbours = {down, up};
  if (up != down && now_.pattern == Pattern::balanced_tree) neighbours = {up, down};
  std::erase_if(neighbours, [&](int g) { return !may_follow(gpu, g); });
  return neighbours;
}

std::vector<int> Search::gpus_by_score(int gpu, int wants_nic) const {
  const int nic = wants_nic != 0 ? topology_.nic(now_.channel[size(now_.channels)].first_nic) : -1;
  // Rates in whole GB/s; greater first, so they are negative.
  struct Score {
    NcclRate nic_rate = 0, pci_rate = 0;
    int nic_hops = 0;
    NcclRate rate = 0;
    int hops = 0, distance = 0, gpu = 0;
    auto key() const { return std::tie(nic_rate, pci_rate, nic_hops, rate, hops, distance); }
  };
  std::vector<Score> scores;
  for (int i = 1; i < gpus(); ++i) {
    const int g = (gpu + i) % gpus();
    if (!may_follow(gpu, g)) continue;
    const NcclTopology::Path& path = topology_.path(gpu, g);
    Score score{0, 0, 0, -(path.rate / kWhole), path.hops(), i, g};
    if (nic >= 0) {
      const NcclTopology::Path& from_nic = topology_.path(nic, g);
      score.nic_rate = -(from_nic.rate / kWhole);
      score.pci_rate = -(topology_.pci_rate(g) / kWhole);
      score.nic_hops = from_nic.hops();
    }
    scores.push_back(score);
  }
  std::sort(scores.begin(), scores.end(),
            [](const Score& a, const Score& b) { return a.key() < b.key(); });
  const bool alike = std::all_of(scores.begin(), scores.end(), [&](const Score& s) {
    return s.rate == scores.front().rate && s.hops == scores.front().hops;
  });
  if (wants_nic == -1 && alike) std::reverse(scores.begin(), scores.end());
  std::vector<int> next;
  for (const Score& s : scores) next.push_back(s.gpu);
  return next;
}

std::size_t Search::first_rate(NcclRate least_total) const {
  std::size_t i = 0;
  while (i + 1 < rates_.size() &&
         (rates_[i] > fastest_ ||
          static_cast<double>(rates_[i]) * static_cast<double>(least_total) > total_))
    ++i;
  return i;
}

void Search::prepare(Pattern pattern, int least, int most) {
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
  // Only a ring returns to its first GPU: the others have more of NVLink for each GPU.
  if (gpus() > 1 && pattern != Pattern::ring) total_ *= static_cast<double>(gpus()) / (gpus() - 1);
  set_rate(first_rate(best_.least));
  visits_of_all_ = kAllVisits;
}

void Search::attempt() {
  visits_ = now_.equal ? kVisitsOfEqual : kVisits;
  now_.channels = 0;
  visits_of_all_ -= visits_;
  next_channel();
}

bool Search::optimal() const {
  return visits_ == kStop || best_.total_between() >= topology_.gpu_links();
}

// Changes one thing for the next attempt; false: nothing is left to change.
bool Search::relax() {
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
  // Half of the rate that was found is not worth a try.
  if (rate_ + 1 < rates_.size() && (none || rates_[rate_ + 1] * 100 > 49 * best_.between)) {
    set_rate(rate_ + 1);
    return true;
  }
  return false;
}

void Search::split() {
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

// A higher rate for the channels found: a ring's; a tree's inside the node; NVLS's between nodes.
bool Search::raise() {
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

void Search::fall_back() {
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

Graph Search::find(Pattern pattern, int least, int most) {
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

double GBps(NcclRate rate) { return static_cast<double>(rate) / 1000; }

NcclGraph to_graph(const Graph& found, bool hopper) {
  NcclGraph graph;
  NcclLinks& links = graph.links;
  links.channels = found.channels;
  links.inside_GBps = GBps(found.inside);
  links.between_GBps = GBps(found.between);
  links.latency_us = found.latency_us;
  links.nvlink = found.type_inside == Type::nvlink;
  links.ll128 = found.type_inside <= Type::nvlink_by_gpu &&
                found.type_between <= (hopper ? Type::relay : Type::bridges);
  links.same_channels = found.equal;
  for (const Channel& c : found.channel)
    graph.channels.push_back({c.order, {}, c.first_nic, c.last_nic});
  return graph;
}

}  // namespace

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
  const NcclTopology topology(machine, gpus, options.between, options.pxn);
  const bool hopper = machine.compute_capability >= 90;
  const Graph ring = Search(topology, options).find(Pattern::ring, 1, kMostRings);
  const Graph tree =
      Search(topology, options).find(Pattern::balanced_tree, ring.channels, ring.channels);
  Graph nvls;
  nvls.channels = 0;
  if (hopper && topology.has_switch() && topology.gpus() > 1) {
    const int heads = std::min(kMostHeads, topology.gpus());
    nvls = Search(topology, options).find(Pattern::nvls, options.between ? 1 : heads, heads);
  }

  NcclGraphs graphs;
  graphs.ring = to_graph(ring, hopper);
  graphs.tree = to_graph(tree, hopper);
  graphs.nvls = to_graph(nvls, hopper).links;
  for (const Channel& c : nvls.channel) graphs.heads.push_back({c.order.front(), c.first_nic});
  NcclNode& node = graphs.node;
  node.nics = machine.nic_count();
  node.gpu = hopper ? NcclGpu::hopper : NcclGpu::ampere;
  node.cpu = machine.vendor;
  node.swap_odd_nodes = ring.cross_nic == 2;
  node.tree =
      tree.pattern == Pattern::balanced_tree ? NcclNode::Tree::balanced : NcclNode::Tree::plain;
  const NcclMachine::Gpu& gpu = machine.gpus[static_cast<std::size_t>(gpus.front())];
  node.nvlinks = gpu.switch_links;
  for (const auto& [peer, count] : gpu.peer_links) node.nvlinks = std::max(node.nvlinks, count);
  if (!machine.nics.empty()) {
    node.nic_GBps = machine.nics.front().GBps;
    node.nics_per_gpu = std::max(1, machine.nic_count() / machine.gpu_count());
  }
  return nccl_graphs(std::move(graphs));
}

}  // namespace ghostrank
