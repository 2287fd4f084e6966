// The algorithms that Open MPI 4.1 chooses by default: the fixed decision rules of its component
// "tuned" for commutative reductions, as tables. Derived from its source
// (coll_tuned_decision_fixed.c). A rule applies to groups of fewer than `ranks` ranks and to sizes
// below `bytes`; the first rule that applies decides.
#include <array>
#include <limits>
#include <span>

#include "collectives/openmpi/openmpi.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kKi = 1 << 10, kMi = 1 << 20;
constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

struct Rule {
  std::uint64_t ranks, bytes;
  std::string_view algorithm;
};

constexpr Rule kAllReduce[] = {
    {4, 8, "ring"},
    {4, 4 * kKi, "recursive_doubling"},
    {4, 8 * kKi, "ring"},
    {4, 16 * kKi, "recursive_doubling"},
    {4, 64 * kKi, "ring"},
    {4, 256 * kKi, "segmented_ring"},
    {4, kAny, "rabenseifner"},
    {8, 16, "ring"},
    {8, 8 * kKi, "recursive_doubling"},
    {8, kAny, "rabenseifner"},
    {16, 8 * kKi, "recursive_doubling"},
    {16, kAny, "rabenseifner"},
    {32, 64, "segmented_ring"},
    {32, 4 * kKi, "recursive_doubling"},
    {32, kAny, "rabenseifner"},
    {64, 128, "segmented_ring"},
    {64, kAny, "rabenseifner"},
    {128, 256 * kKi, "recursive_doubling"},
    {128, kAny, "rabenseifner"},
    {256, 128 * kKi, "nonoverlapping"},
    {256, 256 * kKi, "recursive_doubling"},
    {256, kAny, "rabenseifner"},
    {512, 4 * kKi, "nonoverlapping"},
    {512, kAny, "rabenseifner"},
    {2048, 2 * kKi, "nonoverlapping"},
    {2048, 16 * kKi, "recursive_doubling"},
    {2048, kAny, "rabenseifner"},
    {4096, 2 * kKi, "nonoverlapping"},
    {4096, 4 * kKi, "segmented_ring"},
    {4096, 16 * kKi, "recursive_doubling"},
    {4096, kAny, "rabenseifner"},
    {kAny, 2 * kKi, "nonoverlapping"},
    {kAny, 16 * kKi, "segmented_ring"},
    {kAny, 32 * kKi, "recursive_doubling"},
    {kAny, kAny, "rabenseifner"},
};

constexpr Rule kReduceScatter[] = {
    {4, 64 * kKi, "ring"},
    {4, 128 * kKi, "butterfly"},
    {4, kAny, "ring"},
    {8, 8, "non-overlapping"},
    {8, 256 * kKi, "recursive_halving"},
    {8, kAny, "ring"},
    {32, 256 * kKi, "recursive_halving"},
    {32, kAny, "ring"},
    {64, 64, "non-overlapping"},
    {64, 2 * kKi, "recursive_halving"},
    {64, 512 * kKi, "butterfly"},
    {64, kAny, "ring"},
    {128, 256, "non-overlapping"},
    {128, 512, "recursive_halving"},
    {128, 2 * kKi, "butterfly"},
    {128, 4 * kKi, "recursive_halving"},
    {128, kAny, "butterfly"},
    {256, 256, "non-overlapping"},
    {256, 512, "recursive_halving"},
    {256, kAny, "butterfly"},
    {512, 256, "non-overlapping"},
    {512, 1 * kKi, "recursive_halving"},
    {512, kAny, "butterfly"},
    {1024, 512, "non-overlapping"},
    {1024, 2 * kKi, "recursive_halving"},
    {1024, 8 * kKi, "butterfly"},
    {1024, 16 * kKi, "recursive_halving"},
    {1024, kAny, "butterfly"},
    {2048, 512, "non-overlapping"},
    {2048, 4 * kKi, "recursive_halving"},
    {2048, 16 * kKi, "butterfly"},
    {2048, 32 * kKi, "recursive_halving"},
    {2048, kAny, "butterfly"},
    {4096, 512, "non-overlapping"},
    {4096, 4 * kKi, "recursive_halving"},
    {4096, kAny, "butterfly"},
    {kAny, 1 * kKi, "non-overlapping"},
    {kAny, 8 * kKi, "recursive_halving"},
    {kAny, kAny, "butterfly"},
};

constexpr Rule kAllGather[] = {
    {3, kAny, "two_proc"},
    {32, kAny, "recursive_doubling"},
    {64, 1 * kKi, "recursive_doubling"},
    {64, 64 * kKi, "neighbor"},
    {64, kAny, "ring"},
    {128, 512, "recursive_doubling"},
    {128, 64 * kKi, "neighbor"},
    {128, kAny, "ring"},
    {256, 512, "recursive_doubling"},
    {256, 128 * kKi, "neighbor"},
    {256, 512 * kKi, "ring"},
    {256, 1 * kMi, "neighbor"},
    {256, kAny, "ring"},
    {512, 32, "recursive_doubling"},
    {512, 128, "bruck"},
    {512, 1 * kKi, "recursive_doubling"},
    {512, 128 * kKi, "neighbor"},
    {512, 512 * kKi, "ring"},
    {512, 1 * kMi, "neighbor"},
    {512, kAny, "ring"},
    {1024, 64, "recursive_doubling"},
    {1024, 256, "bruck"},
    {1024, 2 * kKi, "recursive_doubling"},
    {1024, kAny, "neighbor"},
    {2048, 4, "recursive_doubling"},
    {2048, 8, "bruck"},
    {2048, 16, "recursive_doubling"},
    {2048, 32, "bruck"},
    {2048, 256, "recursive_doubling"},
    {2048, 512, "bruck"},
    {2048, 4 * kKi, "recursive_doubling"},
    {2048, kAny, "neighbor"},
    {4096, 32, "bruck"},
    {4096, 128, "recursive_doubling"},
    {4096, 512, "bruck"},
    {4096, 4 * kKi, "recursive_doubling"},
    {4096, kAny, "neighbor"},
    {kAny, 2, "recursive_doubling"},
    {kAny, 8, "bruck"},
    {kAny, 16, "recursive_doubling"},
    {kAny, 512, "bruck"},
    {kAny, 4 * kKi, "recursive_doubling"},
    {kAny, kAny, "neighbor"},
};

constexpr Rule kBroadcast[] = {
    {4, 32, "pipeline"},
    {4, 256, "binary_tree"},
    {4, 512, "pipeline"},
    {4, 1 * kKi, "knomial"},
    {4, 32 * kKi, "basic_linear"},
    {4, 128 * kKi, "binary_tree"},
    {4, 256 * kKi, "chain"},
    {4, 512 * kKi, "basic_linear"},
    {4, 1 * kMi, "binomial"},
    {4, kAny, "binary_tree"},
    {8, 64, "binary_tree"},
    {8, 128, "binomial"},
    {8, 2 * kKi, "binary_tree"},
    {8, 8 * kKi, "binomial"},
    {8, 1 * kMi, "basic_linear"},
    {8, kAny, "chain"},
    {16, 8, "knomial"},
    {16, 64, "binary_tree"},
    {16, 4 * kKi, "knomial"},
    {16, 16 * kKi, "binary_tree"},
    {16, 32 * kKi, "binomial"},
    {16, kAny, "basic_linear"},
    {32, 4 * kKi, "knomial"},
    {32, 1 * kMi, "binomial"},
    {32, kAny, "scatter_allgather"},
    {64, 2 * kKi, "binomial"},
    {64, kAny, "knomial"},
    {128, kAny, "knomial"},
    {256, 2, "binomial"},
    {256, 16 * kKi, "binary_tree"},
    {256, 32 * kKi, "basic_linear"},
    {256, 64 * kKi, "binary_tree"},
    {256, kAny, "knomial"},
    {1024, 16 * kKi, "knomial"},
    {1024, 32 * kKi, "split_binary_tree"},
    {1024, kAny, "knomial"},
    {2048, 512 * kKi, "knomial"},
    {2048, kAny, "scatter_allgather"},
    {4096, 256 * kKi, "knomial"},
    {4096, kAny, "scatter_allgather"},
    {kAny, 8 * kKi, "knomial"},
    {kAny, 16 * kKi, "binary_tree"},
    {kAny, 256 * kKi, "knomial"},
    {kAny, kAny, "scatter_allgather"},
};

constexpr Rule kReduce[] = {
    {4, 8, "rabenseifner"},
    {4, 16, "binary"},
    {4, 32, "pipeline"},
    {4, 256 * kKi, "linear"},
    {4, 512 * kKi, "pipeline"},
    {4, 1 * kMi, "chain"},
    {4, kAny, "pipeline"},
    {8, 4 * kKi, "binary"},
    {8, 64 * kKi, "chain"},
    {8, 256 * kKi, "binomial"},
    {8, 512 * kKi, "linear"},
    {8, 1 * kMi, "binomial"},
    {8, kAny, "linear"},
    {16, 8 * kKi, "binary"},
    {16, kAny, "binomial"},
    {32, 4 * kKi, "binary"},
    {256, kAny, "binomial"},
    {512, 8 * kKi, "binomial"},
    {512, 16 * kKi, "in-order_binary"},
    {2048, kAny, "binomial"},
    {4096, 512, "binomial"},
    {4096, 1 * kKi, "in-order_binary"},
    {4096, 8 * kKi, "binomial"},
    {4096, 16 * kKi, "in-order_binary"},
    {4096, kAny, "binomial"},
    {kAny, 16, "binomial"},
    {kAny, 32, "in-order_binary"},
    {kAny, 1 * kKi, "binomial"},
    {kAny, 2 * kKi, "in-order_binary"},
    {kAny, 8 * kKi, "binomial"},
    {kAny, 16 * kKi, "in-order_binary"},
    {kAny, kAny, "binomial"},
};

constexpr Rule kAllToAll[] = {
    {3, 2, "pairwise"},
    {3, 4, "two_proc"},
    {3, 16, "pairwise"},
    {3, 64, "two_proc"},
    {3, 256, "pairwise"},
    {3, 4 * kKi, "two_proc"},
    {3, 32 * kKi, "pairwise"},
    {3, 256 * kKi, "linear_sync"},
    {3, 1 * kMi, "two_proc"},
    {3, kAny, "pairwise"},
    {8, 8 * kKi, "linear_sync"},
    {8, 16 * kKi, "linear"},
    {8, 64 * kKi, "linear_sync"},
    {8, 512 * kKi, "linear"},
    {8, 1 * kMi, "pairwise"},
    {8, kAny, "linear"},
    {16, 256 * kKi, "linear_sync"},
    {16, kAny, "linear"},
    {32, 4, "linear_sync"},
    {32, 512, "modified_bruck"},
    {32, 8 * kKi, "linear_sync"},
    {32, 32 * kKi, "linear"},
    {32, 256 * kKi, "linear_sync"},
    {32, 512 * kKi, "linear"},
    {32, kAny, "linear_sync"},
    {64, 512, "modified_bruck"},
    {64, 512 * kKi, "linear"},
    {64, kAny, "linear_sync"},
    {128, 1 * kKi, "modified_bruck"},
    {128, 2 * kKi, "linear"},
    {128, 4 * kKi, "linear_sync"},
    {128, 256 * kKi, "linear"},
    {128, kAny, "pairwise"},
    {256, 1 * kKi, "modified_bruck"},
    {256, 2 * kKi, "linear_sync"},
    {256, 256 * kKi, "linear"},
    {256, kAny, "pairwise"},
    {512, 1 * kKi, "modified_bruck"},
    {512, 8 * kKi, "linear_sync"},
    {512, 32 * kKi, "linear"},
    {512, kAny, "pairwise"},
    {1024, 512, "modified_bruck"},
    {1024, 8 * kKi, "linear_sync"},
    {1024, 16 * kKi, "linear"},
    {1024, 128 * kKi, "linear_sync"},
    {1024, 256 * kKi, "linear"},
    {1024, kAny, "pairwise"},
    {2048, 512, "modified_bruck"},
    {2048, 1 * kKi, "linear_sync"},
    {2048, 2 * kKi, "linear"},
    {2048, 16 * kKi, "linear_sync"},
    {2048, 256 * kKi, "linear"},
    {2048, kAny, "linear_sync"},
    {4096, 1 * kKi, "modified_bruck"},
    {4096, 4 * kKi, "linear_sync"},
    {4096, 8 * kKi, "linear"},
    {4096, 128 * kKi, "linear_sync"},
    {4096, kAny, "linear"},
    {kAny, 2 * kKi, "modified_bruck"},
    {kAny, 8 * kKi, "linear_sync"},
    {kAny, 16 * kKi, "linear"},
    {kAny, 32 * kKi, "linear_sync"},
    {kAny, 64 * kKi, "linear"},
    {kAny, kAny, "linear_sync"},
};

constexpr Rule kAllGatherV[] = {
    {3, 2 * kKi, "ring"},       {3, 4 * kKi, "two_proc"},    {3, 8 * kKi, "ring"},
    {3, kAny, "two_proc"},      {8, 256, "default"},         {8, 4 * kKi, "neighbor"},
    {8, 8 * kKi, "ring"},       {8, 16 * kKi, "neighbor"},   {8, 256 * kKi, "bruck"},
    {8, kAny, "neighbor"},      {16, 1 * kKi, "default"},    {16, kAny, "bruck"},
    {32, 128, "default"},       {32, 256 * kKi, "bruck"},    {32, kAny, "ring"},
    {64, 256, "default"},       {64, 8 * kKi, "bruck"},      {64, kAny, "ring"},
    {128, 256, "default"},      {128, 4 * kKi, "bruck"},     {128, kAny, "ring"},
    {256, 1 * kKi, "bruck"},    {256, 64 * kKi, "neighbor"}, {256, kAny, "ring"},
    {512, 1 * kKi, "bruck"},    {512, kAny, "ring"},         {1024, 512, "bruck"},
    {1024, 1 * kKi, "default"}, {1024, 4 * kKi, "bruck"},    {1024, 1 * kMi, "neighbor"},
    {1024, kAny, "ring"},       {kAny, 4 * kKi, "bruck"},    {kAny, kAny, "neighbor"},
};

constexpr Rule kAllToAllV[] = {
    {4, kAny, "pairwise"}, {64, kAny, "linear"},     {128, kAny, "pairwise"},
    {256, kAny, "linear"}, {1024, kAny, "pairwise"}, {kAny, kAny, "linear"},
};

constexpr Rule kBarrier[] = {
    {4, kAny, "recursive_doubling"},
    {8, kAny, "linear"},
    {64, kAny, "recursive_doubling"},
    {256, kAny, "bruck"},
    {512, kAny, "tree"},
    {1024, kAny, "bruck"},
    {4096, kAny, "tree"},
    {kAny, kAny, "bruck"},
};

constexpr Rule kGather[] = {
    {4, 2, "linear_sync"},      {4, 4, "linear"},           {4, 32 * kKi, "binomial"},
    {4, 64 * kKi, "linear"},    {4, 128 * kKi, "binomial"}, {4, kAny, "linear_sync"},
    {8, 1 * kKi, "binomial"},   {8, 8 * kKi, "linear"},     {8, 32 * kKi, "binomial"},
    {8, 256 * kKi, "linear"},   {8, kAny, "linear_sync"},   {256, kAny, "binomial"},
    {512, 2 * kKi, "binomial"}, {512, 8 * kKi, "linear"},   {kAny, kAny, "binomial"},
};

constexpr Rule kScatter[] = {
    {4, 2, "linear_nb"},        {4, 128 * kKi, "linear"},   {4, 256 * kKi, "linear_nb"},
    {4, kAny, "linear"},        {8, 2 * kKi, "binomial"},   {8, 4 * kKi, "linear"},
    {8, 8 * kKi, "binomial"},   {8, 32 * kKi, "linear"},    {8, 1 * kMi, "linear_nb"},
    {8, kAny, "linear"},        {16, 16 * kKi, "binomial"}, {16, 1 * kMi, "linear_nb"},
    {16, kAny, "linear"},       {32, 16 * kKi, "binomial"}, {32, 32 * kKi, "linear"},
    {32, kAny, "linear_nb"},    {64, 512, "binomial"},      {64, 8 * kKi, "linear_nb"},
    {64, 16 * kKi, "binomial"}, {64, kAny, "linear_nb"},    {kAny, 512, "binomial"},
    {kAny, kAny, "linear_nb"},
};

std::span<const Rule> rules(Func func) {
  switch (func) {
    case Func::all_reduce:
      return kAllReduce;
    case Func::reduce_scatter:
      return kReduceScatter;
    case Func::all_gather:
      return kAllGather;
    case Func::broadcast:
      return kBroadcast;
    case Func::reduce:
      return kReduce;
    case Func::all_to_all:
      return kAllToAll;
    case Func::all_gather_v:
      return kAllGatherV;
    case Func::all_to_all_v:
      return kAllToAllV;
    case Func::barrier:
      return kBarrier;
    case Func::gather:
      return kGather;
    case Func::scatter:
      return kScatter;
    default:
      return {};
  }
}

}  // namespace

std::string_view openmpi_choice(Func func, int ranks, std::uint64_t bytes) {
  for (const Rule& rule : rules(func))
    if (static_cast<std::uint64_t>(ranks) < rule.ranks && bytes < rule.bytes) return rule.algorithm;
  return {};
}

}  // namespace ghostrank
