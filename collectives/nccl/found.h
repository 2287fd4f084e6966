// The graphs that NCCL's search finds for a communicator, given its nodes, its GPUs on each, and
// the described node. The process keeps the results of up to 256 distinct searches.
//
// Where nodes have different numbers of ranks, each size has its own graphs, with the fewest
// channels and the lowest speed of any size; two nodes with the same number of ranks are taken to
// use the same GPUs.
//
// Threading: any thread; the table of results is shared.
#pragma once

#include <memory>
#include <span>

#include "collectives/nccl/machine/graphs.h"
#include "collectives/nccl/machine/node.h"
#include "collectives/nccl/machine/search.h"

namespace ghostrank {

struct NcclSettings;  // nccl/environment.h

// With a graph dump, for a communicator that fills its nodes: the dump. Throws
// std::invalid_argument for an unknown template, or for more ranks per node than the node has GPUs.
std::shared_ptr<const NcclGraphs> nccl_graphs_of(const Communicator& comm, const NcclNodes& nodes,
                                                 const NcclSearchOptions& options);

NcclSearchOptions nccl_search_options(const NcclSettings& settings, NcclVersion version,
                                      bool between);

// Whether the search finds the same for these GPUs as for the machine's first ones, apart from NICs
// that are named by the GPUs beside them. `gpus` is ascending.
bool nccl_like_first_gpus(const NcclMachine& machine, std::span<const int> gpus,
                          const NcclSearchOptions& options);

// The NIC nearest to a GPU of a machine, as jobs assign NICs to ranks.
constexpr int nccl_own_nic(int gpu, int nics, int gpus) { return gpu * nics / gpus; }

}  // namespace ghostrank
