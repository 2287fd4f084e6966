// The rows of the libraries "nccl-2.28" and "nccl-2.30", with the closed forms of their payload:
// what the protocol Simple puts on the wire, in one channel and one chunk. A call without elements
// sends nothing, except for the empty messages of point-to-point operations.
#include <algorithm>
#include <bit>
#include <vector>

#include "collectives/libraries.h"
#include "collectives/nccl.h"
#include "collectives/nccl_tuner.h"

namespace ghostrank {
namespace {

using Make = std::unique_ptr<Schedule> (*)(NcclVersion, const Collective&, const Communicator&);

template <NcclVersion kVersion, Make kMake>
std::unique_ptr<Schedule> make(const Collective& c, const Communicator& comm) {
  return kMake(kVersion, c, comm);
}

std::uint64_t ranks(const Collective& c) { return static_cast<std::uint64_t>(c.size); }
std::uint64_t bytes(const Collective& c) { return c.count * c.element_bytes; }
bool nothing_to_do(const Collective& c) { return c.size < 2 || c.count == 0; }

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

// Up and down every edge of a tree that is ceil(log2 n) deep: one rank per node.
Cost tree_all_reduce(const Collective& c) {
  if (nothing_to_do(c)) return {};
  const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(c.size - 1)));
  return {2 * levels, 2 * (ranks(c) - 1) * bytes(c), 2 * (ranks(c) - 1)};
}

// Around nodes of 8 ranks, one tree for each of them, and around again.
Cost nvls_tree_all_reduce(const Collective& c) {
  if (nothing_to_do(c)) return {};
  const int per_node = std::min(c.size, 8), nodes = c.size / per_node;
  const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(nodes - 1)));
  const std::uint64_t n = ranks(c), heads = static_cast<std::uint64_t>(per_node);
  return {2 * (per_node - 1 + levels), 2 * (n - 1) * bytes(c),
          2 * n * (heads - 1) + 2 * heads * static_cast<std::uint64_t>(nodes - 1)};
}

// With little data and ranks that are a power of two. Others take more messages, and a
// reduce-scatter of theirs sends holes besides.
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

// To or from the root, which takes what is on different places and channels all at once.
Cost p2p_root(const Collective& c) {
  if (nothing_to_do(c)) return {};
  return {1, (ranks(c) - 1) * bytes(c), ranks(c) - 1};
}

Cost p2p_send_recv(const Collective& c) {
  if (c.size < 2) return {};
  return {1, bytes(c), 1};
}

// Whatever the tuner takes for the size of the call.
std::unique_ptr<Schedule> nccl_tuned(NcclVersion version, const Collective& c,
                                     const Communicator& comm) {
  if (nothing_to_do(c)) return nccl_ring(version, c, comm);
  const NcclPlan ring = nccl_plan(version, NcclAlgorithm::ring, c, comm);
  NcclTunerInput input{c.func,   nccl_tuner_bytes(c), c.size, ring.nodes.nodes(), ring.channels,
                       ring.node};
  if (comm.protocol) input.overrides.protocols = name_of(*comm.protocol);
  if (!ring.nodes.uniform()) input.overrides.algorithms = "^nvlstree";
  switch (nccl_choose(input).algorithm) {
    case NcclAlgorithm::tree:
      return nccl_tree(version, c, comm);
    case NcclAlgorithm::pat:
      return nccl_pat(version, c, comm);
    case NcclAlgorithm::nvls_tree:
      return nccl_nvls_tree(version, c, comm);
    case NcclAlgorithm::ring:
      break;
  }
  return nccl_ring(version, c, comm);
}

template <NcclVersion kVersion>
std::vector<Algorithm> rows(std::string_view library) {
  return {
      Algorithm{library, Func::all_reduce, "ring", "2(n-1)", "2(n-1) S", make<kVersion, nccl_ring>,
                ring_all_reduce},
      Algorithm{library, Func::all_reduce, "tree", "2 ceil(log2 n)", "2(n-1) S",
                make<kVersion, nccl_tree>, tree_all_reduce},
      Algorithm{library, Func::all_reduce, "nvlstree", "2 (7 + ceil(log2(n/8)))", "2(n-1) S",
                make<kVersion, nccl_nvls_tree>, nvls_tree_all_reduce},
      Algorithm{library, Func::all_reduce, "tuned", "as the tuner's choice", "2(n-1) S",
                make<kVersion, nccl_tuned>, ring_all_reduce},
      Algorithm{library, Func::reduce_scatter, "ring", "n-1", "n(n-1) S", make<kVersion, nccl_ring>,
                ring_blocks},
      Algorithm{library, Func::reduce_scatter, "pat", "ceil(log2 n) at least", "n(n-1) S",
                make<kVersion, nccl_pat>, pat},
      Algorithm{library, Func::reduce_scatter, "tuned", "as the tuner's choice", "n(n-1) S",
                make<kVersion, nccl_tuned>, ring_blocks},
      Algorithm{library, Func::all_gather, "ring", "n-1", "n(n-1) S", make<kVersion, nccl_ring>,
                ring_blocks},
      Algorithm{library, Func::all_gather, "pat", "ceil(log2 n) at least", "n(n-1) S",
                make<kVersion, nccl_pat>, pat},
      Algorithm{library, Func::all_gather, "tuned", "as the tuner's choice", "n(n-1) S",
                make<kVersion, nccl_tuned>, ring_blocks},
      Algorithm{library, Func::broadcast, "ring", "n-1", "(n-1) S", make<kVersion, nccl_ring>,
                ring_chain},
      Algorithm{library, Func::reduce, "ring", "n-1", "(n-1) S", make<kVersion, nccl_ring>,
                ring_chain},
      Algorithm{library, Func::all_to_all, "p2p", "1", "n(n-1) S", make<kVersion, nccl_p2p>,
                p2p_all_to_all},
      Algorithm{library, Func::send_recv, "p2p", "1", "S", make<kVersion, nccl_p2p>, p2p_send_recv},
      Algorithm{library, Func::all_to_all_v, "p2p", "1", "T - own", make<kVersion, nccl_p2p>,
                p2p_all_to_all_v},
      Algorithm{library, Func::gather, "p2p", "1", "(n-1) S", make<kVersion, nccl_p2p>, p2p_root},
      Algorithm{library, Func::scatter, "p2p", "1", "(n-1) S", make<kVersion, nccl_p2p>, p2p_root},
  };
}

std::vector<Algorithm> both_versions() {
  std::vector<Algorithm> all = rows<NcclVersion::v2_28>("nccl-2.28");
  const std::vector<Algorithm> newer = rows<NcclVersion::v2_30>("nccl-2.30");
  all.insert(all.end(), newer.begin(), newer.end());
  return all;
}

}  // namespace

std::span<const Algorithm> nccl_rows() {
  static const std::vector<Algorithm> kRows = both_versions();
  return kRows;
}

}  // namespace ghostrank
