#include "emulator/network/switch_routes.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "profiles/job/key_error.h"
#include "switch/assert.h"

namespace ghostrank {
namespace {

constexpr std::uint8_t kFar = std::numeric_limits<std::uint8_t>::max();

std::uint32_t add_saturated(std::uint32_t a, std::uint32_t b) {
  return a > std::numeric_limits<std::uint32_t>::max() - b
             ? std::numeric_limits<std::uint32_t>::max()
             : a + b;
}

}  // namespace

SwitchRoutes::SwitchRoutes(SwitchGraph graph)
    : graph_(std::move(graph)),
      first_(graph_.switches.size() + 1),
      searched_(graph_.leaves),
      tables_(graph_.leaves),
      chunks_(kMostChunks) {
  const auto cables = static_cast<std::uint32_t>(graph_.cables.size());
  for (const SwitchGraph::Cable& c : graph_.cables) {
    if (c.failed) continue;
    ++first_[c.a + 1];
    ++first_[c.b + 1];
  }
  for (std::size_t s = 1; s < first_.size(); ++s) first_[s] += first_[s - 1];
  out_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (std::uint32_t c = 0; c < cables; ++c) {
    const SwitchGraph::Cable& cable = graph_.cables[c];
    if (cable.failed) continue;
    out_[next[cable.a]++] = {cable.b, c};
    out_[next[cable.b]++] = {cable.a, cables + c};
  }
  find_alike();
  find_places();
  longest_ = graph_.longest > 0 ? graph_.longest : find_longest();
  if (longest_ > Path::kMost)
    throw KeyError("cluster.topology.kind",
                   "cluster.topology: some NICs are " + std::to_string(longest_) +
                       " links apart; at most " + std::to_string(Path::kMost) + " are supported");
}

void SwitchRoutes::find_alike() {
  std::map<std::vector<std::uint32_t>, std::uint32_t> first;  // by neighbours, once per cable
  like_.resize(graph_.leaves);
  for (std::uint32_t leaf = 0; leaf < graph_.leaves; ++leaf) {
    std::vector<std::uint32_t> neighbours;
    for (std::uint32_t o = first_[leaf]; o < first_[leaf + 1]; ++o)
      neighbours.push_back(out_[o].to);
    std::sort(neighbours.begin(), neighbours.end());
    like_[leaf] = first.try_emplace(std::move(neighbours), leaf).first->second;
  }
}

void SwitchRoutes::find_places() {
  std::vector<std::uint32_t> next(graph_.switches.size() + 1);  // by leaf
  for (const std::uint32_t leaf : graph_.leaf_of) ++next[leaf + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  place_.resize(graph_.leaf_of.size());
  for (const Nic nic : place_.keys()) place_[nic] = next[graph_.leaf_of[nic]]++;
}

// Searches breadth first from the leaf.
SwitchRoutes::Table SwitchRoutes::search(std::uint32_t leaf) const {
  Table t;
  t.hops.assign(graph_.switches.size(), kFar);
  t.paths.assign(graph_.switches.size(), 0);
  t.first_hops.assign(graph_.switches.size(), 0);
  std::vector<std::uint32_t> queue{leaf};
  t.hops[leaf] = 0;
  t.paths[leaf] = 1;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::uint32_t at = queue[i];
    const int hops = t.hops[at] + 1;
    if (hops == kFar) continue;
    for (std::uint32_t o = first_[at]; o < first_[at + 1]; ++o) {
      const std::uint32_t to = out_[o].to;
      if (t.hops[to] == kFar) {
        t.hops[to] = static_cast<std::uint8_t>(hops);
        queue.push_back(to);
      }
      if (t.hops[to] != hops) continue;
      t.paths[to] = add_saturated(t.paths[to], t.paths[at]);
      ++t.first_hops[to];
    }
  }
  return t;
}

SwitchRoutes::Toward SwitchRoutes::toward(std::uint32_t leaf) const {
  const std::uint32_t like = like_[leaf];
  std::call_once(searched_[like], [&] { tables_[like] = search(like); });
  return {tables_[like], leaf, like};
}

int SwitchRoutes::find_longest() const {
  int longest = 0;
  for (std::uint32_t leaf = 0; leaf < graph_.leaves; ++leaf) {
    if (graph_.switches[leaf].nics == 0) continue;
    const Toward t = toward(leaf);
    for (std::uint32_t from = 0; from < graph_.leaves; ++from)
      if (graph_.switches[from].nics > 0 && t.hops(from) != kFar)
        longest = std::max(longest, t.hops(from));
  }
  return longest;
}

std::vector<Picoseconds> SwitchRoutes::most_toward(std::uint32_t to,
                                                   const std::vector<Picoseconds>& of_link) const {
  const Toward t = toward(to);
  std::vector<std::uint32_t> nearest(graph_.switches.size());
  std::iota(nearest.begin(), nearest.end(), 0U);
  std::sort(nearest.begin(), nearest.end(),
            [&](std::uint32_t a, std::uint32_t b) { return t.hops(a) < t.hops(b); });
  std::vector<Picoseconds> most(graph_.switches.size());
  for (const std::uint32_t at : nearest)
    for (std::uint32_t o = first_[at]; o < first_[at + 1]; ++o) {
      const Out& out = out_[o];
      if (t.hops(out.to) + 1 == t.hops(at))
        most[at] = std::max(most[at], of_link[out.link] + most[out.to]);
    }
  return most;
}

Path SwitchRoutes::path(std::uint32_t from, std::uint32_t to, std::uint32_t number) const {
  const Toward t = toward(to);
  GHOSTRANK_ASSERT(number < t.paths(from));
  Path path;
  for (std::uint32_t at = from; at != to;) {
    for (std::uint32_t o = first_[at]; o < first_[at + 1]; ++o) {
      const Out& out = out_[o];
      if (t.hops(out.to) + 1 != t.hops(at)) continue;
      if (number < t.paths(out.to)) {
        path.link[path.links++] = out.link;
        at = out.to;
        break;
      }
      number -= t.paths(out.to);
    }
  }
  return path;
}

std::uint32_t SwitchRoutes::id(std::uint32_t from, std::uint32_t to, std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  if (const auto known = ids_.find({from, to, number}); known != ids_.end()) return known->second;
  const Path found = path(from, to, number);
  const auto words = static_cast<std::uint32_t>(found.links + 1);
  const std::uint32_t units = std::bit_ceil((words + kUnit - 1) / kUnit);
  const std::uint32_t id = (units_ + units - 1) / units * units;
  if (id >= kMostIds)
    throw KeyError(
        "cluster.topology.routing",
        "cluster.topology: messages take more than " + std::to_string(ids_.size()) +
            " paths between switches, which are too many to keep; choose a routing that keeps "
            "a connection on one path (cluster.topology.routing: ecmp), or describe fewer "
            "switches or links");
  units_ = id + units;
  if (id / kChunk == store_.size()) {
    store_.push_back(std::make_unique<Chunk>());
    chunks_[id / kChunk].store(store_.back()->words.data(), std::memory_order_release);
  }
  std::uint32_t* const to_words = &store_.back()->words[id % kChunk * kUnit];
  *to_words = words - 1;
  std::copy_n(found.link.begin(), found.links, to_words + 1);
  ids_.emplace(Key{from, to, number}, id);
  return id;
}

}  // namespace ghostrank
