// One attempt: which NIC and GPU come next. The order in which candidates are tried decides the
// result, so it is NCCL's everywhere. See nccl/machine/channel_search.h.
#include "collectives/nccl/machine/channel_search.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ghostrank {
namespace {

constexpr int kVisitsInBusOrder = 1 << 10;  // allowed to the first try, in PCIe bus order

}  // namespace

// Takes a channel's rate from every link of a path; negative `times` give it back. False: no room.
bool NcclChannelSearch::follow(int from, int to, int times, NcclRate between) {
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
  // Intel's CPUs split PCIe traffic between GPUs into small packets.
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

bool NcclChannelSearch::better() const {
  if (now_.channels < now_.least) return false;
  if (now_.pattern == Pattern::nvls)
    return (now_.channels > best_.channels && now_.channels <= gpus()) ||
           now_.total_between() > best_.total_between();
  if (now_.total_inside() != best_.total_inside())
    return now_.total_inside() > best_.total_inside();
  return now_.pattern == best_.pattern && now_.cross_nic == best_.cross_nic &&
         now_.hops < best_.hops;
}

void NcclChannelSearch::end_channel() {
  ++now_.channels;
  if (better()) {
    best_ = now_;
    if (now_.channels == now_.most) *left_ = kStop;
  }
  if (now_.channels < now_.most) next_channel();
  --now_.channels;
}

void NcclChannelSearch::next_channel() {
  if (topology_.between())
    start_at_nics();
  else
    start_inside();
}

void NcclChannelSearch::start_inside() {
  const Ends ends{-1, now_.pattern == Pattern::ring ? gpus() - 1 : -1};
  if (now_.pattern == Pattern::nvls) return try_gpu(-1, now_.channels, 0, ends, Order::free);
  if (now_.channels == 0)
    try_gpu(-1, 0, 0, ends, Order::bus);
  else
    try_gpu(-1, channel_before().order.front(), 0, ends, Order::replay);
  if (now_.equal && now_.channels > 0) return;
  for (int g = 0; g < gpus(); ++g) try_gpu(-1, g, 0, ends, Order::free);
}

void NcclChannelSearch::spend(int nic, NcclRate rate) {
  const std::vector<NcclMachine::Nic>& nics = topology_.machine().nics;
  const NcclMachine::Nic& chosen = nics[size(nic)];
  for (std::size_t i = 0; i < nics.size(); ++i)
    if (nics[i].asic == chosen.asic && nics[i].port == chosen.port) nic_rate_[i] -= rate;
}

void NcclChannelSearch::start_at_nics() {
  const NcclRate rate = now_.between / kWhole * kWhole;
  const bool ring = now_.pattern == Pattern::ring, nvls = now_.pattern == Pattern::nvls;
  const Ends ends{ring ? gpus() - 1 : 0, -1};
  const std::vector<int>& nics = nics_to_try(now_.type_between, -1);
  const auto count = static_cast<int>(nics.size());
  for (int i = 0; i < count; ++i) {
    const int n = nics[size((now_.channels + i) % count)], vertex = topology_.nic(n);
    if (nic_rate_[size(n)] < rate) continue;
    // With cross-NIC, an odd channel is the way back of the channel before.
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

void NcclChannelSearch::try_gpu(int from, int gpu, int position, Ends ends, Order order) {
  if (from >= 0 && !follow(from, gpu, 1)) return;
  const std::uint64_t bit = std::uint64_t{1} << now_.channels;
  used_[size(gpu)] ^= bit;
  visit(gpu, position, ends, order);
  used_[size(gpu)] ^= bit;
  if (from >= 0) follow(from, gpu, -1);
}

void NcclChannelSearch::visit(int gpu, int position, Ends ends, Order order) {
  if (*left_ <= 0) return;
  --*left_;
  if (position == gpus()) return end_channel();
  channel().order[size(position)] = gpu;
  if (position == ends.leave) return leave(gpu, position, ends, order);
  if (now_.pattern == Pattern::nvls) return try_nvls(gpu);
  go_on(gpu, position, ends, order);
}

// Tries the NICs through which the channel can leave the node.
void NcclChannelSearch::leave(int gpu, int position, Ends ends, Order order) {
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

bool NcclChannelSearch::may_leave(int nic, int position) {
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

void NcclChannelSearch::go_on(int gpu, int position, Ends ends, Order order) {
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
void NcclChannelSearch::try_nvls(int head) {
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

const std::vector<int>& NcclChannelSearch::nics_to_try(Type farthest, int gpu) {
  const auto [at, is_new] = nics_to_try_.try_emplace({farthest, gpu});
  if (is_new) at->second = nics_in_order(farthest, gpu);
  return at->second;
}

// The NICs of the GPUs (of one GPU, or with -1 of all), then others by distance.
std::vector<int> NcclChannelSearch::nics_in_order(Type farthest, int gpu) const {
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
std::vector<int> NcclChannelSearch::gpus_to_try(int gpu, int wants_nic) const {
  if (!topology_.has_switch()) return gpus_by_score(gpu, wants_nic);
  // Behind a switch all GPUs are alike: only the neighbours are tried.
  const int up = (gpu + 1) % gpus(), down = (gpu + gpus() - 1) % gpus();
  std::vector<int> neighbours{up};
  if (up != down && now_.pattern == Pattern::ring) neighbours = {down, up};
  if (up != down && now_.pattern == Pattern::balanced_tree) neighbours = {up, down};
  std::erase_if(neighbours, [&](int g) { return !may_follow(gpu, g); });
  return neighbours;
}

std::vector<int> NcclChannelSearch::gpus_by_score(int gpu, int wants_nic) const {
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

}  // namespace ghostrank
