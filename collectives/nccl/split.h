// How NCCL cuts a collective: over channels, into chunks, into the slices that become messages.
// Derived from the source of NCCL 2.28.9 and 2.30.7, not yet compared with a trace.
//
// All sizes are multiples of 16 bytes, up to the end of the data, so that they are whole elements
// of any of NCCL's types (1, 2, 4 or 8 bytes).
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

enum class NcclVersion : std::uint8_t { v2_28, v2_30 };  // 2.28.9 and 2.30.7

enum class NcclAlgorithm : std::uint8_t { ring, tree, pat, nvls_tree };

// Bytes of a connection's FIFO on the wire, flags included, and of the largest chunk of an NVLSTree
// (0: by the number of nodes).
struct NcclBuffers {
  std::uint64_t simple = 4 << 20, ll = 512 << 10, ll128 = 4800 << 10;
  std::uint64_t nvls_tree_chunk = 0;
  bool operator==(const NcclBuffers&) const = default;
};

// A connection's FIFO has 8 steps of this many bytes of data: half of LL's are flags, and one in
// sixteen of LL128's.
inline constexpr std::uint64_t kNcclSteps = 8;
std::uint64_t nccl_step_bytes(Protocol protocol, const NcclBuffers& buffers = {});

// Data of one collective call, in the unit in which NCCL plans it: all-gather and broadcast are
// planned as bytes, whatever the type.
struct NcclTask {
  Func func = Func::all_reduce;
  int ranks = 1;
  std::uint64_t count = 0;  // as in Collective
  std::uint32_t element_bytes = 4;
  Protocol protocol = Protocol::simple;
  int max_channels = 1;
  NcclBuffers buffers{};
};

// Bytes that a rank sends over a channel for every byte of `count`.
std::uint64_t nccl_traffic_per_byte(Func func, int ranks);

// The elements of a task on its channels: `first` takes the first `lo` elements, then each one
// `mid`, and the last one `hi`. With one channel there is only `lo`.
struct NcclSplit {
  int first = 0, channels = 0;
  std::uint64_t lo = 0, mid = 0, hi = 0;

  std::uint64_t count(int i) const { return i == 0 ? lo : i + 1 < channels ? mid : hi; }
  std::uint64_t offset(int i) const {
    return i == 0 ? 0 : lo + static_cast<std::uint64_t>(i - 1) * mid;
  }
  bool operator==(const NcclSplit&) const = default;
};

// The tasks of one launch, in the order in which they are planned, over a communicator's channels.
// Neighbouring tasks may share a channel. A task without elements gets no channel. Tasks of
// NVLSTree are planned after all others, in a call of their own that starts again at the first
// channel.
std::vector<NcclSplit> nccl_split(std::span<const NcclTask> tasks, int channels,
                                  NcclVersion version);

// The order in which the calls of one group are planned, as indices into `tasks`; `kind` tells
// calls with different reductions or types apart. Calls that share one choice of algorithm,
// protocol and channels carry the same number in `run`.
struct NcclGroupOrder {
  std::vector<std::size_t> order;  // indices, first planned first
  std::vector<int> run;            // by position in `order`
};
struct NcclGroupTask {
  NcclTask task;
  int kind = 0;
};
NcclGroupOrder nccl_group_order(std::span<const NcclGroupTask> tasks);

// What the chunk size of an algorithm depends on besides the size of the data.
struct NcclShape {
  int nodes = 1;
  int ranks_per_node = 1;
  int heads = 8;  // NVLSTree: GPUs of a node with a NIC of their own
};

// Bytes of a chunk, for a channel that holds `elements` elements of the task.
std::uint64_t nccl_chunk_bytes(NcclAlgorithm algorithm, const NcclTask& task,
                               std::uint64_t elements, const NcclShape& shape);

// A primitive's messages: how many, and the elements of all but the last.
struct NcclSlices {
  std::uint32_t count = 1;
  std::uint64_t elements = 0;  // 0: one message with everything
};
NcclSlices nccl_slices(NcclAlgorithm algorithm, const NcclTask& task, std::uint64_t elements);

// Messages of a connection that may be on their way.
FlowControl nccl_flow(NcclAlgorithm algorithm, Func func, Protocol protocol);

}  // namespace ghostrank
