// The rows of the libraries "nccl-2.28" and "nccl-2.30", with closed-form costs of their payload:
// for the protocol Simple, in one channel and one chunk. A call without elements sends nothing,
// except for the empty messages of point-to-point operations. If NCCL has a choice for a function,
// its first row, "tuned", makes NCCL's own choice.
#include <algorithm>
#include <bit>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "collectives/common/powers.h"
#include "collectives/cost_terms.h"
#include "collectives/libraries.h"
#include "collectives/nccl/group.h"
#include "collectives/nccl/nccl.h"
#include "collectives/nccl/settings/versions.h"

namespace ghostrank {
namespace {

using Make = std::unique_ptr<Schedule> (*)(NcclVersion, const Collective&, const Communicator&);

template <NcclVersion kVersion, Make kMake>
std::unique_ptr<Schedule> make(const Collective& c, const Communicator& comm) {
  return kMake(kVersion, c, comm);
}

bool nothing_to_do(const Collective& c) { return c.size < 2 || c.count == 0; }

// Of `nvls`, too: the ring around the node stands for the NVLink switch.
Cost ring_all_reduce(const Collective& c) {
  if (nothing_to_do(c)) return {};
  const std::uint64_t n = ranks(c);
  return {2 * (c.size - 1), 2 * (n - 1) * bytes(c), 2 * n * (n - 1)};
}

Cost ring_blocks(const Collective& c) {
  if (nothing_to_do(c)) return {};
  const std::uint64_t n = ranks(c);
  return {c.size - 1, n * (n - 1) * bytes(c), n * (n - 1)};
}

Cost ring_chain(const Collective& c) {
  if (nothing_to_do(c)) return {};
  return {c.size - 1, (ranks(c) - 1) * bytes(c), ranks(c) - 1};
}

// Once up and once down every edge of a tree of depth ceil(log2 n), for one rank per node; with
// more, the tree is over the nodes, and chains lead through them.
Cost tree_all_reduce(const Collective& c) {
  if (nothing_to_do(c)) return {};
  const int levels = ceil_log2(c.size);
  return {2 * levels, 2 * (ranks(c) - 1) * bytes(c), 2 * (ranks(c) - 1)};
}

// For little data and a power of two of ranks. Other sizes need more messages, and their
// reduce-scatter also sends holes.
Cost pat(const Collective& c) {
  if (nothing_to_do(c)) return {};
  const std::uint64_t n = ranks(c);
  const auto levels = static_cast<unsigned>(std::bit_width(n - 1));
  return {static_cast<int>(levels), n * (n - 1) * bytes(c), n * levels};
}

Cost p2p_all_to_all(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {c.size > 1 ? 1 : 0, n * (n - 1) * bytes(c), n * (n - 1)};
}

Cost p2p_all_to_all_v(const Collective& c) {
  const std::uint64_t n = ranks(c);
  std::uint64_t elements = 0;
  for (std::uint64_t i = 0; i < n; ++i)
    for (std::uint64_t j = 0; j < n; ++j) elements += i == j ? 0 : (*c.counts)[i * n + j];
  return {c.size > 1 ? 1 : 0, elements * c.element_bytes, n * (n - 1)};
}

// One chunk per block. Most steps: all broadcasts follow one another on one channel.
Cost broadcasts(const Collective& c) {
  if (c.size < 2) return {};
  std::uint64_t elements = 0, blocks = 0;
  for (const std::uint64_t count : *c.counts) {
    elements += count;
    blocks += count > 0 ? 1 : 0;
  }
  const std::uint64_t messages = blocks * (ranks(c) - 1);
  return {static_cast<int>(messages), (ranks(c) - 1) * elements * c.element_bytes, messages, true};
}

// To or from the root, which handles different batch slots and channels at the same time.
Cost p2p_root(const Collective& c) {
  if (nothing_to_do(c)) return {};
  return {1, (ranks(c) - 1) * bytes(c), ranks(c) - 1};
}

Cost p2p_send_recv(const Collective& c) {
  if (c.size < 2) return {};
  return {1, bytes(c), 1};
}

// The call as a part of its group's plan. `algorithm`: by the name of the row; empty: the tuner's
// choice.
std::unique_ptr<Schedule> of_group(NcclVersion version, std::optional<NcclAlgorithm> algorithm,
                                   const Collective& c, const Communicator& comm) {
  const std::vector<Collective>& calls = *comm.together;
  if (algorithm && std::any_of(calls.begin(), calls.end(),
                               [&](const Collective& call) { return call.func != c.func; }))
    throw std::invalid_argument(
        "calls of several functions in one group are planned together; choose their algorithms "
        "with the environment's NCCL_ALGO, not by name");
  NcclGroupPlan group = nccl_group_plan(version, calls, comm, algorithm);
  const auto turn = std::find(group.order.begin(), group.order.end(), comm.launch_index);
  std::unique_ptr<Schedule> schedule =
      nccl_schedule(c, std::move(group.plans[turn - group.order.begin()]));
  schedule->set_turn(static_cast<int>(turn - group.order.begin()));
  return schedule;
}

template <NcclAlgorithm kAlgorithm>
std::unique_ptr<Schedule> nccl_named(NcclVersion version, const Collective& c,
                                     const Communicator& comm) {
  if (comm.together) return of_group(version, kAlgorithm, c, comm);
  return nccl_schedule(c, nccl_plan(version, kAlgorithm, c, comm));
}

// Plays the algorithm that the tuner chooses for the size of the call.
std::unique_ptr<Schedule> nccl_tuned(NcclVersion version, const Collective& c,
                                     const Communicator& comm) {
  if (comm.together) return of_group(version, std::nullopt, c, comm);
  if (nothing_to_do(c)) return nccl_named<NcclAlgorithm::ring>(version, c, comm);
  const NcclPlan plan = nccl_undecided(version, c, comm);
  const NcclAlgorithm chosen = nccl_choose(nccl_tuner_input(plan, comm)).algorithm;
  return nccl_schedule(c, nccl_plan(version, chosen, c, comm));
}

template <NcclVersion kVersion>
std::vector<Algorithm> rows(std::string_view library) {
  // A row that plays the tuner's choice; its closed form is the ring's.
  const auto tuned = [&](Func func, std::string_view bytes_sent, Cost (*cost)(const Collective&)) {
    return Algorithm{
        library, func, "tuned", "as the tuner's choice", bytes_sent, make<kVersion, nccl_tuned>,
        cost};
  };
  const auto row = [&](Func func, std::string_view name, std::string_view steps,
                       std::string_view bytes_sent, auto* made, Cost (*cost)(const Collective&)) {
    return Algorithm{library, func, name, steps, bytes_sent, made, cost};
  };
  constexpr auto kRing = make<kVersion, nccl_named<NcclAlgorithm::ring>>;
  constexpr auto kPat = make<kVersion, nccl_named<NcclAlgorithm::pat>>;
  constexpr auto kP2p = make<kVersion, nccl_p2p>;
  return {
      tuned(Func::all_reduce, "2(n-1) S", ring_all_reduce),
      row(Func::all_reduce, "ring", "2(n-1)", "2(n-1) S", kRing, ring_all_reduce),
      row(Func::all_reduce, "tree", "2 ceil(log2 n) at least", "2(n-1) S",
          make<kVersion, nccl_named<NcclAlgorithm::tree>>, tree_all_reduce),
      row(Func::all_reduce, "nvlstree", "", "2(n-1) S",
          make<kVersion, nccl_named<NcclAlgorithm::nvls_tree>>, nullptr),  // depends on the nodes
      row(Func::all_reduce, "nvls", "2(n-1)", "2(n-1) S",
          make<kVersion, nccl_named<NcclAlgorithm::nvls>>, ring_all_reduce),
      tuned(Func::reduce_scatter, "n(n-1) S", ring_blocks),
      row(Func::reduce_scatter, "ring", "n-1", "n(n-1) S", kRing, ring_blocks),
      row(Func::reduce_scatter, "pat", "ceil(log2 n) at least", "n(n-1) S", kPat, pat),
      tuned(Func::all_gather, "n(n-1) S", ring_blocks),
      row(Func::all_gather, "ring", "n-1", "n(n-1) S", kRing, ring_blocks),
      row(Func::all_gather, "pat", "ceil(log2 n) at least", "n(n-1) S", kPat, pat),
      tuned(Func::broadcast, "(n-1) S", ring_chain),
      row(Func::broadcast, "ring", "n-1", "(n-1) S", kRing, ring_chain),
      tuned(Func::reduce, "(n-1) S", ring_chain),
      row(Func::reduce, "ring", "n-1", "(n-1) S", kRing, ring_chain),
      row(Func::all_to_all, "p2p", "1", "n(n-1) S", kP2p, p2p_all_to_all),
      row(Func::send_recv, "p2p", "1", "S", kP2p, p2p_send_recv),
      row(Func::all_to_all_v, "p2p", "1", "T - own", kP2p, p2p_all_to_all_v),
      row(Func::all_gather_v, "broadcasts", "n(n-1) at most", "(n-1) T",
          make<kVersion, nccl_broadcasts>, broadcasts),
      row(Func::gather, "p2p", "1", "(n-1) S", kP2p, p2p_root),
      row(Func::scatter, "p2p", "1", "(n-1) S", kP2p, p2p_root),
  };
}

std::vector<Algorithm> both_versions() {
  constexpr NcclLibrary kOlder = kNcclLibraries[0], kNewer = kNcclLibraries[1];
  std::vector<Algorithm> all = rows<kOlder.version>(kOlder.name);
  const std::vector<Algorithm> newer = rows<kNewer.version>(kNewer.name);
  all.insert(all.end(), newer.begin(), newer.end());
  return all;
}

}  // namespace

std::span<const Algorithm> nccl_rows() {
  static const std::vector<Algorithm> kRows = both_versions();
  return kRows;
}

}  // namespace ghostrank
