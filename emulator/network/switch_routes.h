// Shortest paths between the leaves of a SwitchGraph. All paths of equal length between two leaves
// are numbered, in the order of the cables that they take, so that a routing chooses one by number.
//
//   toward(leaf): for every switch, how many links away the leaf is and how many shortest paths
//   lead there. A path is found by walking: at each switch, take the cable whose paths hold the
//   number that is left. Leaves with the same neighbours (all those of a pod) share a table: what
//   holds for one holds for the other if they change places.
//
// Bounds: a path has at most Path::kMost links; a table of 9 bytes per switch for each set of
// neighbours of a leaf that is some message's target. Threading: all functions may be called from
// any thread; tables are made once, when first needed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "profiles/job/switches.h"
#include "profiles/units.h"

namespace ghostrank {

// The links between two NICs, in order. Link c of n cables leads up cable c, link n + c down.
struct Path {
  static constexpr int kMost = 15;
  std::array<std::uint32_t, kMost> link{};
  int links = 0;
};

// A path where SwitchRoutes keeps it: the number of links, then the links.
class KnownPath {
 public:
  explicit KnownPath(const std::uint32_t* words) : words_(words) {}
  int links() const { return static_cast<int>(*words_); }
  std::uint32_t link(std::uint32_t at) const { return words_[1 + at]; }
  void prefetch() const { __builtin_prefetch(words_); }

 private:
  const std::uint32_t* words_;
};

class SwitchRoutes {
 public:
  static constexpr std::uint32_t kMostIds = 1 << 24;  // see id()

  explicit SwitchRoutes(SwitchGraph graph);

  const SwitchGraph& graph() const { return graph_; }
  // The most links on a path between two leaves with NICs; at most Path::kMost, or the constructor
  // throws Error(usage).
  int longest() const { return longest_; }

  // Returns how many shortest paths lead from one leaf to another, at most 2^32 - 1, and how many
  // links each has. 0 paths: none, or it is the same leaf.
  std::uint32_t paths(std::uint32_t from, std::uint32_t to) const {
    return from == to ? 0 : toward(to).paths(from);
  }
  int hops(std::uint32_t from, std::uint32_t to) const {
    return from == to || paths(from, to) == 0 ? 0 : toward(to).hops(from);
  }
  Path path(std::uint32_t from, std::uint32_t to, std::uint32_t number) const;
  // Returns, by switch, what those links add up to on the shortest path from there to the leaf on
  // which they add up to most; 0 where no path leads there. `of_link`: by link.
  std::vector<Picoseconds> most_toward(std::uint32_t to,
                                       const std::vector<Picoseconds>& of_link) const;
  // Cables on which these paths begin, from one leaf to another; 0 where there are no paths.
  std::uint32_t first_hops(std::uint32_t from, std::uint32_t to) const {
    return toward(to).first_hops(from);
  }
  // Number of the NIC where those of the job are counted leaf by leaf.
  std::uint32_t place(Nic nic) const { return place_[nic]; }

  // Returns a number below kMostIds for a path, by which any thread finds it at once.
  std::uint32_t id(std::uint32_t from, std::uint32_t to, std::uint32_t number) const;
  KnownPath by_id(std::uint32_t id) const {
    const std::uint32_t* const chunk = chunks_[id / kChunk].load(std::memory_order_acquire);
    return KnownPath(chunk + id % kChunk * kUnit);
  }

 private:
  // A path takes 1, 2 or 4 units of 16 bytes, so that it lies in one cache line; its id is the
  // number of the first one.
  static constexpr std::uint32_t kUnit = 4, kChunk = 4096, kMostChunks = kMostIds / kChunk;
  struct Out {
    std::uint32_t to, link;
  };
  struct Table {
    std::vector<std::uint8_t> hops;
    std::vector<std::uint32_t> paths, first_hops;
  };
  // What a table says of `leaf`, although it was made for `like`.
  struct Toward {
    const Table& table;
    std::uint32_t leaf, like;
    int hops(std::uint32_t at) const { return table.hops[index_of(at)]; }
    std::uint32_t paths(std::uint32_t at) const { return table.paths[index_of(at)]; }
    std::uint32_t first_hops(std::uint32_t at) const { return table.first_hops[index_of(at)]; }

   private:
    std::uint32_t index_of(std::uint32_t at) const {
      return at == leaf ? like : at == like ? leaf : at;
    }
  };
  Toward toward(std::uint32_t leaf) const;
  Table search(std::uint32_t leaf) const;
  void find_alike();
  void find_places();
  int find_longest() const;

  SwitchGraph graph_;
  std::vector<std::uint32_t> first_;  // by switch: its first entry in out_; one more at the end
  std::vector<Out> out_;              // cables that work, by number
  std::vector<std::uint32_t> like_;   // by leaf: the first one with the same neighbours
  int longest_ = 0;
  mutable std::deque<std::once_flag> searched_;  // by leaf
  mutable std::vector<Table> tables_;            // by leaf
  struct Key {
    std::uint32_t from, to, number;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const {
      return ((k.from * 0x9e3779b97f4a7c15ULL) ^ k.to) * 0xc2b2ae3d27d4eb4fULL + k.number;
    }
  };
  mutable std::mutex mutex_;  // guards ids_, units_ and store_
  mutable std::unordered_map<Key, std::uint32_t, Hash> ids_;
  mutable std::uint32_t units_ = 0;  // taken
  struct alignas(64) Chunk {
    std::array<std::uint32_t, kChunk * kUnit> words;
  };
  mutable std::deque<std::unique_ptr<Chunk>> store_;
  mutable std::vector<std::atomic<const std::uint32_t*>> chunks_;
  VectorBy<Nic, std::uint32_t> place_;
};

}  // namespace ghostrank
