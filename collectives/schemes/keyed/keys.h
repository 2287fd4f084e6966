// Keys of parameter servers: into which pieces a tensor is cut, and which server sums which piece.
//
// Sources: BytePS (bytedance/byteps, common/global.cc and operations.cc) for partitions, keys and
// hashes; MXNet (kvstore_dist.h) for the plain parameter server; PHub (SoCC'18) for chunks and the
// assignment by size. Units: elements, bytes. Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

// A part of a tensor with a key of its own.
struct KeyPiece {
  std::uint64_t first = 0, elements = 0;
  std::uint32_t key = 0;  // tensor << 16 | part
  int helper = 0;         // that sums it: a number below the scheme's helpers
};
using KeyPieces = std::vector<KeyPiece>;

// Tensors count from 0 here; calls that name no tensor share the last one.
inline constexpr std::uint32_t kMostTensors = 1 << 16, kMostParts = 1 << 16;
inline constexpr std::uint32_t kUnnamedTensor = kMostTensors - 1;

// Lengths of the parts of `elements` elements: all `most` long but the last.
std::vector<std::uint64_t> equal_parts(std::uint64_t elements, std::uint64_t most);

// BYTEPS_PARTITION_BYTES as BytePS uses it: rounded up to whole pages for each local GPU.
std::uint64_t byteps_partition(std::uint64_t bytes, int local_ranks);

// The hash of a key, as BytePS's functions of that name compute it; `mixed` is none of them.
std::uint64_t hash_of_key(KeyHash hash, std::uint64_t key);
// The server of a key, of `servers` in all. mixed: the last `beside` of them share their machines
// with `beside` workers, the others do not; throws std::invalid_argument unless both kinds exist.
int server_of_key(KeyHash hash, std::uint64_t key, int servers, int beside);

// Shares of a tensor's bytes that each of `servers` servers sums. The last `beside` servers share
// machines with as many workers (n): the split that takes the least time (BytePS, OSDI'20). Sums up
// to 1.
//
//   k = servers - beside CPU machines:  2 (n - 1) / (n^2 + k n - 2 k) each; none beside: 1 / k
//   n GPU machines:                     (n - k) / (n^2 + k n - 2 k) each, 0 where k >= n
std::vector<double> best_split(int servers, int beside);
// How long the exchange takes with the best split, in units of a tensor's bytes over a NIC's rate.
double best_time(int servers, int beside, int workers);

// Deals out items one after the other so that the sums in the bins keep to `shares`, and the final
// sums are exact to one element: an item may be cut.
class ExactSplit {
 public:
  // `total`: the sum of all items.
  ExactSplit(std::span<const double> shares, std::uint64_t total);
  struct Part {
    int bin = 0;
    std::uint64_t elements = 0;
  };
  std::vector<Part> next(std::uint64_t elements);

 private:
  std::vector<double> shares_;
  std::vector<std::uint64_t> left_, given_;
  std::uint64_t dealt_ = 0;
};

// Bins of the items, longest first, each into the least loaded bin (LPT): the largest load is at
// most 4/3 of the least possible one. Ties: the lower item and bin.
std::vector<int> longest_first(std::span<const std::uint64_t> sizes, int bins);

}  // namespace ghostrank
