// The rows of the library "openmpi-4.1", with their closed-form costs. The first row of a function,
// "fixed", plays Open MPI's default choice (openmpi_choice). The communicator's channels, slices
// and credits do not apply, because the fixed rules never cut a message. A call without elements
// sends nothing.
//
// Several of Open MPI's names mean one algorithm if messages are not cut: the segmented ring is the
// ring, the chain is the pipeline. `two_proc` is what every algorithm does with two ranks, and
// `linear_sync` is `linear` if the number of requests is not limited. Three names are two
// collectives, one after the other: see two_calls().
//
// In the printed formulas, n is the number of ranks, S the bytes of `count` elements, m the
// largest power of two <= n, x = n - m, b(n) the set bits in 0 .. n-1, T the bytes of all `counts`.
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "collectives/common/powers.h"
#include "collectives/generic/generic.h"
#include "collectives/generic/trees.h"
#include "collectives/libraries.h"
#include "collectives/openmpi/costs.h"
#include "collectives/openmpi/openmpi.h"
#include "collectives/openmpi/sequence.h"

namespace ghostrank {
namespace {

using namespace openmpi_costs;  // NOLINT: this file is a table of them

// ---- What a name stands for

// The first part of the all-gather-v `default`; not a row of its own.
constexpr std::string_view kGatherV = "gather_v";

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
  if (name == "butterfly") return {&kOpenMpiButterfly, butterfly};
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

Played broadcast(const Collective& c, std::string_view name) {
  const Played linear{&kLinearBroadcast, one_by_one}, chain{&kChainBroadcast, one_by_one};
  if (name == "basic_linear") return linear;
  if (name == "chain" || name == "pipeline") return chain;
  if (name == "split_binary_tree")
    return c.count < 2 ? chain : Played{&kOpenMpiSplitBinary, split_binary};
  if (name == "scatter_allgather")
    return c.count < ranks(c) ? linear : Played{&kOpenMpiScatterAllGather, scatter_all_gather};
  if (name == "scatter_allgather_ring")
    return c.count < ranks(c) ? linear : Played{&kOpenMpiScatterRing, scatter_ring};
  if (name == "binary_tree") return {&kBinaryBroadcast, tree<binary_child>};
  if (name == "binomial") return {&kNearestFirstBroadcast, tree<nearest_first_child>};
  if (name == "knomial") return {&kFourNomialBroadcast, tree<four_nomial_child>};
  return {};
}

Played reduce(const Collective& c, std::string_view name) {
  const Played linear{&kOpenMpiLinearReduce, one_by_one};
  if (name == "linear") return linear;
  if (name == "chain" || name == "pipeline") return {&kChainReduce, one_by_one};
  if (name == "binary") return {&kBinaryReduce, binary_reduce};
  if (name == "binomial") return {&kBinomialReduce, binomial_reduce};
  if (name == "in-order_binary") return {&kOpenMpiInOrderReduce, in_order_reduce};
  if (name == "rabenseifner")
    return c.size < 2 || c.count < survivors(c)
               ? linear
               : Played{&kOpenMpiRabenseifnerReduce, rabenseifner_reduce};
  return {};
}

Played all_to_all(const Collective&, std::string_view name) {
  if (name == "linear" || name == "linear_sync") return {&kOpenMpiLinearAllToAll, one_block_a_step};
  if (name == "pairwise" || name == "two_proc") return {&kPairwiseAllToAll, one_block_a_step};
  if (name == "modified_bruck") return {&kBruckAllToAll, bruck_all_to_all};
  return {};
}

Played all_gather_v(const Collective& c, std::string_view name) {
  const Played ring{&kRingAllGatherV, gathered_one_a_step};
  if (name == "ring" || name == "two_proc") return ring;
  if (name == "neighbor")
    return c.size % 2 == 0 ? Played{&kOpenMpiNeighborExchange, gathered_by_neighbors} : ring;
  if (name == "bruck") return {&kBruckAllGather, gathered_log_steps};
  if (name == kGatherV) return {&kOpenMpiGatherV, gather_v};
  return {};
}

Played all_to_all_v(const Collective&, std::string_view name) {
  if (name == "linear") return {&kOpenMpiLinearAllToAllV, exchanged_by_rank};
  if (name == "pairwise") return {&kPairwiseAllToAllV, exchanged};
  return {};
}

Played barrier(const Collective&, std::string_view name) {
  if (name == "linear") return {&kOpenMpiLinearBarrier, linear_barrier};
  if (name == "recursive_doubling") return {&kOpenMpiDoublingBarrier, doubling_barrier};
  if (name == "bruck") return {&kDisseminationBarrier, dissemination_barrier};
  if (name == "tree") return {&kOpenMpiTreeBarrier, tree_barrier};
  return {};
}

Played gather(const Collective&, std::string_view name) {
  if (name == "linear") return {&kLinearGather, one_by_one};
  if (name == "linear_sync") return {&kOpenMpiSignalledGather, signalled_gather};
  if (name == "binomial") return {&kBinomialGather, binomial_blocks};
  return {};
}

Played scatter(const Collective&, std::string_view name) {
  if (name == "linear" || name == "linear_nb") return {&kLinearScatter, one_by_one};
  if (name == "binomial") return {&kBinomialScatter, binomial_blocks};
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
    case Func::reduce:
      return reduce(c, name);
    case Func::all_to_all:
      return all_to_all(c, name);
    case Func::all_gather_v:
      return all_gather_v(c, name);
    case Func::all_to_all_v:
      return all_to_all_v(c, name);
    case Func::barrier:
      return barrier(c, name);
    case Func::gather:
      return gather(c, name);
    case Func::scatter:
      return scatter(c, name);
    case Func::send_recv:
      return {&kSendRecv, one_message};
  }
  return {};
}

// ---- Rows

// The size of a call in bytes, as the decision rules count it.
std::uint64_t deciding_bytes(const Collective& c) {
  if (c.func == Func::all_gather_v) return all_counts(c) * c.element_bytes / ranks(c);
  return bytes(c) * (c.func == Func::reduce_scatter ? ranks(c) : 1);
}

std::string_view fixed_name(const Collective& c) {
  return openmpi_choice(c.func, c.size, deciding_bytes(c));
}

bool nothing_to_do(const Collective& c) {
  return c.count == 0 && c.func != Func::barrier && !is_ragged(c.func);
}

int no_rounds(const ChannelView&, int) { return 0; }
constexpr Form kNothing{.rounds = no_rounds};

// A collective that is composed of two.
struct TwoCalls {
  Collective first;
  std::string_view first_name;
  Collective second;
  std::string_view second_name;
};

std::optional<TwoCalls> two_calls(const Collective& c, std::string_view name) {
  const auto at_rank_0 = [&](Func func, std::uint64_t count) {
    return Collective{func, c.size, count, c.element_bytes, 0};
  };
  if (c.func == Func::all_gather_v && name == "default") {
    const Collective all = at_rank_0(Func::broadcast, all_counts(c));
    return TwoCalls{c, kGatherV, all, fixed_name(all)};
  }
  if (c.func == Func::all_reduce && name == "nonoverlapping") {
    const Collective up = at_rank_0(Func::reduce, c.count);
    const Collective down = at_rank_0(Func::broadcast, c.count);
    return TwoCalls{up, fixed_name(up), down, fixed_name(down)};
  }
  if (c.func == Func::reduce_scatter && name == "non-overlapping") {
    const Collective up = at_rank_0(Func::reduce, c.count * ranks(c));
    return TwoCalls{up, fixed_name(up), at_rank_0(Func::scatter, c.count), "linear"};
  }
  return std::nullopt;
}

std::unique_ptr<Schedule> play(const Collective& c, std::string_view name) {
  if (nothing_to_do(c)) return std::make_unique<Textbook>(kNothing, c, Communicator{});
  if (const auto two = two_calls(c, name))
    return std::make_unique<Sequence>(c, play(two->first, two->first_name),
                                      play(two->second, two->second_name));
  return std::make_unique<Textbook>(*played(c, name).form, c, Communicator{});
}

Cost cost_of(const Collective& c, std::string_view name) {
  if (nothing_to_do(c)) return {};
  if (const auto two = two_calls(c, name)) {
    const Cost first = cost_of(two->first, two->first_name),
               second = cost_of(two->second, two->second_name);
    return {first.steps + second.steps, first.bytes + second.bytes,
            first.messages + second.messages, true};
  }
  return played(c, name).cost(c);
}

std::unique_ptr<Schedule> make_fixed(const Collective& c, const Communicator& comm) {
  check_arguments(c, comm);
  const std::string_view name = fixed_name(c);
  std::unique_ptr<Schedule> schedule = play(c, name);
  schedule->set_played(std::string(name));
  return schedule;
}
Cost fixed_cost(const Collective& c) { return cost_of(c, fixed_name(c)); }

// A name as a template argument.
template <std::size_t N>
struct Name {
  char text[N]{};
  constexpr Name(const char (&name)[N]) {  // NOLINT: a literal is a name
    for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
  }
};

template <Name kName>
std::unique_ptr<Schedule> make(const Collective& c, const Communicator& comm) {
  check_arguments(c, comm);
  return play(c, kName.text);
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
    row<"nonoverlapping">(Func::all_reduce, "the reduce's and the broadcast's", "as both"),
    fixed(Func::reduce_scatter),
    row<"ring">(Func::reduce_scatter, "n-1", "n(n-1) S"),
    row<"butterfly">(Func::reduce_scatter, "log2 m + 1 (+2 if x>0)",
                     "(n(n-1) + x + m - 2^ceil(log2 m / 2)) S"),
    row<"non-overlapping">(Func::reduce_scatter, "the reduce's and n-1",
                           "the reduce's and (n-1) S"),
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
    row<"split_binary_tree">(Func::broadcast, "depth of the tree + 1", "(n-1) S"),
    row<"scatter_allgather">(Func::broadcast, "2 ceil(log2 n) (more if x>0)",
                             "(n-1) S + b(n)/n S at most"),
    row<"scatter_allgather_ring">(Func::broadcast, "ceil(log2 n) + n-1",
                                  "(n-1) S + b(n)/n S at most"),
    fixed(Func::reduce),
    row<"linear">(Func::reduce, "n-1", "(n-1) S"),
    row<"pipeline">(Func::reduce, "n-1", "(n-1) S"),
    row<"binary">(Func::reduce, "depth of the tree", "(n-1) S"),
    row<"binomial">(Func::reduce, "ceil(log2 n)", "(n-1) S"),
    row<"in-order_binary">(Func::reduce, "depth of the tree (+1 if the root is not the last rank)",
                           "(n-1) S (+S if the root is not the last rank)"),
    row<"rabenseifner">(Func::reduce, "2 log2 m (+3 if x>0)", "about (m-1 + 1.5x + log2(m)/2) S"),
    fixed(Func::all_to_all),
    row<"linear">(Func::all_to_all, "n-1", "n(n-1) S"),
    row<"pairwise">(Func::all_to_all, "n-1", "n(n-1) S"),
    row<"modified_bruck">(Func::all_to_all, "ceil(log2 n)", "n b(n) S"),
    fixed(Func::all_gather_v),
    row<"ring">(Func::all_gather_v, "n-1", "(n-1) T"),
    row<"bruck">(Func::all_gather_v, "ceil(log2 n)", "(n-1) T"),
    row<"neighbor">(Func::all_gather_v, "n/2, odd n: n-1", "(n-1) T"),
    row<"default">(Func::all_gather_v, "n-1 and the broadcast's", "n T - rank 0's block"),
    fixed(Func::all_to_all_v),
    row<"linear">(Func::all_to_all_v, "2n-3", "T - own"),
    row<"pairwise">(Func::all_to_all_v, "n-1", "T - own"),
    fixed(Func::barrier),
    row<"linear">(Func::barrier, "2(n-1)", "0"),
    row<"recursive_doubling">(Func::barrier, "log2 m (+2 if x>0)", "0"),
    row<"bruck">(Func::barrier, "ceil(log2 n)", "0"),
    row<"tree">(Func::barrier, "2 ceil(log2 n)", "0"),
    fixed(Func::gather),
    row<"linear">(Func::gather, "n-1", "(n-1) S"),
    row<"linear_sync">(Func::gather, "3(n-1)", "(n-1) S"),
    row<"binomial">(Func::gather, "ceil(log2 n)", "b(n) S"),
    fixed(Func::scatter),
    row<"linear">(Func::scatter, "n-1", "(n-1) S"),
    row<"binomial">(Func::scatter, "ceil(log2 n)", "b(n) S"),
    row<"direct">(Func::send_recv, "1", "S"),
};

}  // namespace

std::span<const Algorithm> openmpi_rows() { return kRows; }

}  // namespace ghostrank
