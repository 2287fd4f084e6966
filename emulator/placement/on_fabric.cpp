#include "emulator/placement/on_fabric.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "emulator/common/random.h"
#include "emulator/network/topology.h"
#include "profiles/job/switches.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kPlacesSeed = 0x9c1ace;
constexpr int kPlaceStarts = 6, kPlaceKicks = 6, kFewPlaceStarts = 1, kFewPlaceKicks = 1,
              kManyPlaces = 300;
constexpr double kAlikePlaces = 1e-12;

std::size_t nth(int i) { return static_cast<std::size_t>(i); }

// The same fabric with a node at every place, in their order.
JobSpec with_all_places(const JobSpec& spec) {
  JobSpec all = spec;
  all.jobs.clear();
  ClusterSpec& cluster = all.cluster;
  const int places = switches_of(cluster).places;
  cluster.topology.places = cluster.nodes = places;
  cluster.topology.placement = TopologySpec::Placement::packed;
  cluster.topology.place_of_node.clear();
  cluster.storage_nodes = 0;
  cluster.servers = {};
  cluster.node_of_block.clear();
  cluster.nic_rates.reset();
  return all;
}

class Search {
 public:
  Search(std::span<const NicStream> streams, const PlaceDistances& distances, int nodes)
      : streams_(streams), distances_(distances), of_(nth(nodes)) {
    for (std::size_t s = 0; s < streams.size(); ++s) {
      of_[nth(streams[s].from)].push_back(s);
      if (streams[s].to != streams[s].from) of_[nth(streams[s].to)].push_back(s);
    }
  }

  // Exchanges what two places hold until no exchange gains anything.
  void improve(Places& places) const {
    std::vector<int> node_at(nth(distances_.places()), kEmpty);
    for (std::size_t n = 0; n < places.size(); ++n) node_at[nth(places[n])] = static_cast<int>(n);
    for (bool gained = true; gained;) {
      gained = false;
      for (int node = 0; node < std::ssize(places); ++node)
        for (int place = 0; place < distances_.places(); ++place) {
          const int other = node_at[nth(place)];
          if (place == places[nth(node)] || (other != kEmpty && other < node)) continue;
          const double before = around(node, other, places);
          exchange(node, place, places, node_at);
          if (around(node, other, places) < before * (1 - kAlikePlaces)) {
            gained = true;
            continue;
          }
          exchange(node, node_place_before_, places, node_at);
        }
    }
  }

 private:
  static constexpr int kEmpty = -1;

  // What crosses links from and to either node.
  double around(int node, int other, const Places& places) const {
    double sum = 0;
    for (const std::size_t s : of_[nth(node)]) sum += of(streams_[s], places);
    if (other == kEmpty) return sum;
    for (const std::size_t s : of_[nth(other)])
      if (streams_[s].from != node && streams_[s].to != node) sum += of(streams_[s], places);
    return sum;
  }
  double of(const NicStream& s, const Places& places) const {
    return s.bytes * distances_.links(places[nth(s.from)], s.from_nic, places[nth(s.to)], s.to_nic);
  }
  void exchange(int node, int place, Places& places, std::vector<int>& node_at) const {
    const int before = places[nth(node)], other = node_at[nth(place)];
    if (other != kEmpty) places[nth(other)] = before;
    node_at[nth(before)] = other;
    places[nth(node)] = place;
    node_at[nth(place)] = node;
    node_place_before_ = before;
  }

  const std::span<const NicStream> streams_;
  const PlaceDistances& distances_;
  std::vector<std::vector<std::size_t>> of_;  // streams from and to each node
  mutable int node_place_before_ = 0;
};

Places shuffled_places(int nodes, int places, RandomBits& random) {
  Places all(nth(places));
  std::iota(all.begin(), all.end(), 0);
  for (std::size_t n = all.size(); n > 1; --n) std::swap(all[n - 1], all[random.next() % n]);
  all.resize(nth(nodes));
  return all;
}

}  // namespace

PlaceDistances::PlaceDistances(const JobSpec& spec) {
  const JobSpec all = with_all_places(spec);
  const Topology topology(all);
  places_ = all.cluster.nodes;
  nics_ = all.cluster.nics_per_node;
  std::vector<Nic> first;  // of every leaf
  for (int nic = 0; nic < places_ * nics_; ++nic) {
    const std::uint32_t leaf = topology.leaf_of(Nic(nic));
    leaf_of_.push_back(leaf);
    if (leaf >= first.size()) first.resize(leaf + 1, Nic(-1));
    if (first[leaf] == Nic(-1)) first[leaf] = Nic(nic);
  }
  leaves_ = first.size();
  links_.resize(leaves_ * leaves_);
  for (std::size_t a = 0; a < leaves_; ++a)
    for (std::size_t b = 0; b < leaves_; ++b)
      if (a != b && first[a] != Nic(-1) && first[b] != Nic(-1))
        links_[a * leaves_ + b] = topology.hops(first[a], first[b]);
}

double crossed(std::span<const NicStream> streams, const PlaceDistances& distances,
               const Places& places) {
  double sum = 0;
  for (const NicStream& s : streams)
    sum += s.bytes * distances.links(places[nth(s.from)], s.from_nic, places[nth(s.to)], s.to_nic);
  return sum;
}

Places least_crossed(std::span<const NicStream> streams, const PlaceDistances& distances,
                     std::vector<Places> starts) {
  const int nodes = static_cast<int>(starts.front().size()), all = distances.places();
  const bool many = all > kManyPlaces;
  RandomBits random{kPlacesSeed, static_cast<std::uint64_t>(nodes),
                    static_cast<std::uint64_t>(all)};
  for (int i = 0; i < (many ? kFewPlaceStarts : kPlaceStarts); ++i)
    starts.push_back(shuffled_places(nodes, all, random));
  const Search search(streams, distances, nodes);
  Places best;
  double least = 0;
  const auto take = [&](Places places) {
    search.improve(places);
    const double sum = crossed(streams, distances, places);
    if (!best.empty() && sum >= least * (1 - kAlikePlaces)) return;
    best = std::move(places);
    least = sum;
  };
  for (Places& start : starts) take(std::move(start));
  for (int kick = 0; kick < (many ? kFewPlaceKicks : kPlaceKicks) && nodes > 1; ++kick) {
    Places places = best;
    for (int i = 0; i < 2 + nodes / 8; ++i)
      std::swap(places[random.next() % places.size()], places[random.next() % places.size()]);
    take(std::move(places));
  }
  return best;
}

}  // namespace ghostrank
