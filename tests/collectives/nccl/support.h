// Communicators and the proof of a row, for the tests of NCCL's schedules.
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"
#include "collectives/nccl/found.h"
#include "collectives/nccl/nccl.h"
#include "collectives/schedule.h"
#include "tests/collectives/nodes.h"

namespace ghostrank::nccl_testing {

using testing::nodes_of;

inline constexpr Protocol kProtocols[] = {Protocol::simple, Protocol::ll, Protocol::ll128};
inline constexpr const char* kLibraries[] = {"nccl-2.28", "nccl-2.30"};

inline Communicator communicator(int channels, Protocol protocol = Protocol::simple) {
  Communicator comm;
  comm.channels = comm.max_channels = channels;
  comm.protocol = protocol;
  return comm;
}

// The searched node of a communicator with these ranks on each of `nodes` nodes of template `name`.
inline const NcclNode& nccl_node(const std::string& name, int ranks_per_node, int nodes = 4) {
  static std::map<std::tuple<std::string, int, int>, std::shared_ptr<const NcclGraphs>> found;
  auto& graphs = found[{name, ranks_per_node, nodes}];
  if (!graphs) {
    const int size = nodes * ranks_per_node;
    Communicator comm;
    comm.node = name;
    NcclSearchOptions options;
    options.between = nodes > 1;
    graphs = nccl_graphs_of(comm, NcclNodes(size, nodes_of(size, ranks_per_node)), options);
  }
  return graphs->node;
}

inline std::string describe(const Schedule& s, const Communicator& comm) {
  const Collective& c = s.collective();
  return std::string(name_of(c.func)) + ", size " + std::to_string(c.size) + ", count " +
         std::to_string(c.count) + " x " + std::to_string(c.element_bytes) + ", root " +
         std::to_string(c.root) + ", channels " + std::to_string(comm.channels) + ", " +
         std::string(name_of(s.protocol())) + ", node " + comm.node;
}

// Proves the row right; its bytes equal the closed form with Simple, and are no fewer otherwise.
inline CheckReport prove(const char* library, const char* name, const Collective& c,
                         const Communicator& comm, bool pairs = false) {
  const Algorithm* row = find_algorithm(library, c.func, name);
  if (row == nullptr) throw std::invalid_argument(name);
  const auto schedule = row->make(c, comm);
  const CheckReport report = check(*schedule, {.pairs = pairs});
  EXPECT_TRUE(report.ok) << library << ' ' << name << ' ' << describe(*schedule, comm) << ": "
                         << report.error;
  // NVLSTree, which has no closed form, sends as many bytes as a ring.
  const Algorithm* formula = row->cost ? row : find_algorithm(library, c.func, "ring");
  const std::uint64_t bytes = formula->cost(c).bytes;
  if (schedule->protocol() == Protocol::simple) {
    EXPECT_EQ(report.bytes, bytes) << name << ' ' << describe(*schedule, comm);
  } else {
    EXPECT_GE(report.bytes, bytes) << name << ' ' << describe(*schedule, comm);
  }
  return report;
}

// Number of elements of 8 bytes that occupy 16 channels with LL, the protocol that needs the least
// data for that.
inline std::uint64_t enough_for_16_channels(Func func, int size) {
  const bool by_rank = func == Func::reduce_scatter || func == Func::all_gather;
  if (by_rank) return 16384 / size;
  return func == Func::all_reduce ? 8192 : 16384;
}

inline const std::vector<Func> kRingFuncs{Func::all_reduce, Func::reduce_scatter, Func::all_gather,
                                          Func::broadcast, Func::reduce};

}  // namespace ghostrank::nccl_testing
