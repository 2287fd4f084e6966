// The rows of the library "openmpi-4.1", with their closed-form costs. The first row of a function,
// "fixed", decides as Open MPI does when nobody tells it (openmpi_choice). Channels, slices and
// credits of the communicator do not apply: the fixed rules never cut a message. Nothing is sent
// for no elements.
//
// Several of Open MPI's names are one algorithm when nothing is cut: a segmented ring is the ring,
// a chain the pipeline; `two_proc` is what two ranks do anyway, and `linear_sync` is `linear` while
// the number of requests is not limited. Algorithms that are not here are refused.
//
// In the formulas for people n is the number of ranks, S the bytes of `count` elements, m the
// largest power of two in n, x = n - m, b(n) the bits set in 0 .. n-1.
#include <array>
#include <bit>
#include <stdexcept>
#include <string>

#include "collectives/generic.h"
#include "collectives/libraries.h"
#include "collectives/openmpi.h"
#include "collectives/trees.h"

namespace ghostrank {
namespace {

std::uint64_t ranks(const Collective& c) { return static_cast<std::uint64_t>(c.size); }
std::uint64_t bytes(const Collective& c) { return c.count * c.element_bytes; }
int floor_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; }
int ceil_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }
bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }
std::uint64_t survivors(const Collective& c) { return std::bit_floor(ranks(c)); }

// ---- Costs of the forms

Cost ring_all_reduce(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {2 * (c.size - 1), 2 * (n - 1) * bytes(c), 2 * (n - 1) * n};
}

Cost doubling_all_reduce(const Collective& c) {
  const int levels = floor_log2(c.size);
  const std::uint64_t m = survivors(c), extra = ranks(c) - m;
  const std::uint64_t messages = m * static_cast<std::uint64_t>(levels) + 2 * extra;
  return {levels + (extra > 0 ? 2 : 0), messages * bytes(c), messages};
}

Cost linear_all_reduce(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {2 * (c.size - 1), 2 * (n - 1) * bytes(c), 2 * (n - 1)};
}

Cost rabenseifner(const Collective& c) {
  const int levels = floor_log2(c.size);
  const std::uint64_t m = survivors(c), extra = ranks(c) - m;
  const std::uint64_t upper_half = (c.count - c.count / 2) * c.element_bytes;
  return {2 * levels + (extra > 0 ? 3 : 0),
          2 * (m - 1) * bytes(c) + extra * (2 * bytes(c) + upper_half),
          2 * m * static_cast<std::uint64_t>(levels) + 4 * extra};
}

Cost all_blocks(const Collective& c, int steps, std::uint64_t messages) {
  return {steps, ranks(c) * (ranks(c) - 1) * bytes(c), messages};
}

Cost one_block_a_step(const Collective& c) {
  return all_blocks(c, c.size - 1, ranks(c) * (ranks(c) - 1));
}

Cost log_steps(const Collective& c) {
  const int steps = ceil_log2(c.size);
  return all_blocks(c, steps, ranks(c) * static_cast<std::uint64_t>(steps));
}

Cost neighbor_exchange(const Collective& c) {
  return all_blocks(c, c.size / 2, ranks(c) * (ranks(c) / 2));
}

Cost halving(const Collective& c) {
  const int levels = floor_log2(c.size);
  const std::uint64_t m = survivors(c), extra = ranks(c) - m;
  return {levels + (extra > 0 ? 2 : 0), (ranks(c) * (ranks(c) - 1) + extra) * bytes(c),
          m * static_cast<std::uint64_t>(levels) + 2 * extra};
}

Cost bruck_all_to_all(const Collective& c) {
  Cost cost = log_steps(c);
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < static_cast<unsigned>(c.size); ++i)
    bits += static_cast<std::uint64_t>(std::popcount(i));
  cost.bytes = ranks(c) * bits * bytes(c);
  return cost;
}

Cost one_by_one(const Collective& c) {
  return {c.size - 1, (ranks(c) - 1) * bytes(c), ranks(c) - 1};
}

template <TreeChild kChild>
Cost tree(const Collective& c) {
  return {tree_steps(kChild, c.size), (ranks(c) - 1) * bytes(c), ranks(c) - 1};
}

// ---- What a name stands for

struct Played {
  const Form* form;
  Cost (*cost)(const Collective&);
};

Played all_reduce(const Collective& c, std::string_view name) {
  const Played doubling{&kRecursiveDoublingAllReduce, doubling_all_reduce};
  const Played linear{&kOpenMpiLinearAllReduce, linear_all_reduce};
  if (name == "recursive_doubling") return doubling;
  if (name == "basic_linear") return linear;
  if (name == "ring" || name == "segmented_ring")
    return c.count < ranks(c) ? doubling : Played{&kOpenMpiRingAllReduce, ring_all_reduce};
  if (name == "rabenseifner")
    return c.count < survivors(c) ? linear : Played{&kOpenMpiRabenseifner, rabenseifner};
  return {};
}

Played reduce_scatter(const Collective&, std::string_view name) {
  if (name == "ring") return {&kRingReduceScatter, one_block_a_step};
  if (name == "recursive_halving") return {&kRecursiveHalvingReduceScatter, halving};
  return {};
}

Played all_gather(const Collective& c, std::string_view name) {
  const Played ring{&kRingAllGather, one_block_a_step};
  if (name == "ring" || name == "two_proc") return ring;
  if (name == "neighbor")
    return c.size % 2 == 0 ? Played{&kOpenMpiNeighborExchange, neighbor_exchange} : ring;
  if (name == "recursive_doubling" && is_power_of_two(c.size))
    return {&kRecursiveDoublingAllGather, log_steps};
  if (name == "recursive_doubling" || name == "bruck") return {&kBruckAllGather, log_steps};
  return {};
}

Played broadcast(const Collective&, std::string_view name) {
  if (name == "basic_linear") return {&kLinearBroadcast, one_by_one};
  if (name == "chain" || name == "pipeline") return {&kChainBroadcast, one_by_one};
  if (name == "binary_tree") return {&kBinaryBroadcast, tree<binary_child>};
  if (name == "binomial") return {&kNearestFirstBroadcast, tree<nearest_first_child>};
  if (name == "knomial") return {&kFourNomialBroadcast, tree<four_nomial_child>};
  return {};
}

Played all_to_all(const Collective&, std::string_view name) {
  if (name == "linear" || name == "linear_sync") return {&kOpenMpiLinearAllToAll, one_block_a_step};
  if (name == "pairwise" || name == "two_proc") return {&kPairwiseAllToAll, one_block_a_step};
  if (name == "modified_bruck") return {&kBruckAllToAll, bruck_all_to_all};
  return {};
}

Played played(const Collective& c, std::string_view name) {
  switch (c.func) {
    case Func::all_reduce:
      return all_reduce(c, name);
    case Func::reduce_scatter:
      return reduce_scatter(c, name);
    case Func::all_gather:
      return all_gather(c, name);
    case Func::broadcast:
      return broadcast(c, name);
    case Func::all_to_all:
      return all_to_all(c, name);
    default:
      return {};
  }
}

// ---- Rows

std::string_view fixed_name(const Collective& c) {
  const bool all_blocks_count = c.func == Func::reduce_scatter;
  return openmpi_choice(c.func, c.size, bytes(c) * (all_blocks_count ? ranks(c) : 1));
}

int no_rounds(const Shape&, int) { return 0; }
constexpr Form kNothing{.rounds = no_rounds};

std::unique_ptr<Schedule> play(const Collective& c, const Communicator& comm,
                               std::string_view name) {
  check_arguments(c, comm);
  if (c.count == 0) return std::make_unique<Textbook>(kNothing, c, Communicator{});
  const Form* form = played(c, name).form;
  if (form == nullptr)
    throw std::invalid_argument(
        "Open MPI would play " + std::string(name_of(c.func)) + " '" + std::string(name) +
        "' here, which is not available; name another " + "algorithm instead of 'fixed'");
  return std::make_unique<Textbook>(*form, c, Communicator{});
}

Cost cost_of(const Collective& c, std::string_view name) {
  const Played p = played(c, name);
  return c.count == 0 || p.cost == nullptr ? Cost{} : p.cost(c);
}

std::unique_ptr<Schedule> make_fixed(const Collective& c, const Communicator& comm) {
  return play(c, comm, fixed_name(c));
}
Cost fixed_cost(const Collective& c) { return cost_of(c, fixed_name(c)); }

// A name that can be a template's argument.
template <std::size_t N>
struct Name {
  char text[N]{};
  constexpr Name(const char (&name)[N]) {  // NOLINT: a literal is a name
    for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
  }
};

template <Name kName>
std::unique_ptr<Schedule> make(const Collective& c, const Communicator& comm) {
  return play(c, comm, kName.text);
}
template <Name kName>
Cost cost(const Collective& c) {
  return cost_of(c, kName.text);
}

constexpr std::string_view kLibrary = "openmpi-4.1";

Algorithm fixed(Func func) {
  return {kLibrary, func, "fixed", "as chosen", "as chosen", make_fixed, fixed_cost};
}

template <Name kName>
Algorithm row(Func func, std::string_view steps, std::string_view bytes_sent) {
  return {kLibrary, func, kName.text, steps, bytes_sent, make<kName>, cost<kName>};
}

const std::array kRows{
    fixed(Func::all_reduce),
    row<"ring">(Func::all_reduce, "2(n-1)", "2(n-1) S"),
    row<"recursive_doubling">(Func::all_reduce, "log2 m (+2 if x>0)", "(m log2 m + 2x) S"),
    row<"rabenseifner">(Func::all_reduce, "2 log2 m (+3 if x>0)", "(2(m-1) + 2.5x) S"),
    row<"basic_linear">(Func::all_reduce, "2(n-1)", "2(n-1) S"),
    fixed(Func::reduce_scatter),
    row<"ring">(Func::reduce_scatter, "n-1", "n(n-1) S"),
    row<"recursive_halving">(Func::reduce_scatter, "log2 m (+2 if x>0)", "(n(n-1) + x) S"),
    fixed(Func::all_gather),
    row<"ring">(Func::all_gather, "n-1", "n(n-1) S"),
    row<"recursive_doubling">(Func::all_gather, "ceil(log2 n)", "n(n-1) S"),
    row<"bruck">(Func::all_gather, "ceil(log2 n)", "n(n-1) S"),
    row<"neighbor">(Func::all_gather, "n/2, odd n: n-1", "n(n-1) S"),
    fixed(Func::broadcast),
    row<"basic_linear">(Func::broadcast, "n-1", "(n-1) S"),
    row<"pipeline">(Func::broadcast, "n-1", "(n-1) S"),
    row<"binary_tree">(Func::broadcast, "depth of the tree", "(n-1) S"),
    row<"binomial">(Func::broadcast, "ceil(log2 n)", "(n-1) S"),
    row<"knomial">(Func::broadcast, "depth of the tree", "(n-1) S"),
    fixed(Func::all_to_all),
    row<"linear">(Func::all_to_all, "n-1", "n(n-1) S"),
    row<"pairwise">(Func::all_to_all, "n-1", "n(n-1) S"),
    row<"modified_bruck">(Func::all_to_all, "ceil(log2 n)", "n b(n) S"),
};

}  // namespace

std::span<const Algorithm> openmpi_rows() { return kRows; }

}  // namespace ghostrank
