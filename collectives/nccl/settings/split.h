// How NCCL cuts a collective: over channels, into chunks, into the slices that become messages.
// Derived from the source of NCCL 2.28.9 and 2.30.7; traced.h says what was recorded.
//
// All sizes but the last are multiples of 16 bytes, so they are whole elements of every NCCL type
// (1, 2, 4 or 8 bytes).
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

enum class NcclVersion : std::uint8_t { v2_28, v2_30 };  // 2.28.9 and 2.30.7

enum class NcclAlgorithm : std::uint8_t { ring, tree, pat, nvls_tree, nvls };

// Bytes of a connection's FIFO on the wire, flags included, and of the largest NVLSTree chunk (0:
// depends on the number of nodes).
struct NcclBuffers {
  std::uint64_t simple = 4 << 20, ll = 512 << 10, ll128 = 4800 << 10;
  std::uint64_t nvls_tree_chunk = 0;
  bool operator==(const NcclBuffers&) const = default;
};

// A connection's FIFO has 8 steps of nccl_step_bytes() bytes of data each. Half of LL's FIFO and
// one sixteenth of LL128's are flags.
inline constexpr std::uint64_t kNcclSteps = 8;
std::uint64_t nccl_step_bytes(Protocol protocol, const NcclBuffers& buffers = {});

// One collective call. NCCL plans all-gather and broadcast in bytes, the others in elements.
struct NcclTask {
  Func func = Func::all_reduce;
  int ranks = 1;
  std::uint64_t count = 0;  // as Collective::count
  std::uint32_t element_bytes = 4;
  Protocol protocol = Protocol::simple;
  int max_channels = 1;
  NcclBuffers buffers{};
};

// Bytes that a rank sends on a channel per byte of `count`.
std::uint64_t nccl_traffic_per_byte(Func func, int ranks);

// The elements of a task on its channels: channel `first` has the first `lo` elements, every
// following one `mid`, and the last one `hi`. With one channel there is only `lo`.
struct NcclSplit {
  int first = 0, channels = 0;
  std::uint64_t lo = 0, mid = 0, hi = 0;

  std::uint64_t count(int i) const { return i == 0 ? lo : i + 1 < channels ? mid : hi; }
  std::uint64_t offset(int i) const {
    return i == 0 ? 0 : lo + static_cast<std::uint64_t>(i - 1) * mid;
  }
  bool operator==(const NcclSplit&) const = default;
};

// Splits the tasks of one launch, in planning order, over a communicator's channels. Neighbouring
// tasks may share a channel. A task without elements gets no channel. Plan tasks of NVLS and
// NVLSTree after all others, in a call of their own, which starts again at the first channel.
std::vector<NcclSplit> nccl_split(std::span<const NcclTask> tasks, int channels,
                                  NcclVersion version);

// The order in which NCCL plans the calls of one group, as indices into `tasks`. `kind`
// distinguishes calls with different reductions or types. Calls that share one choice of algorithm,
// protocol and channels have the same `run`.
struct NcclGroupOrder {
  std::vector<std::size_t> order;  // indices, in planning order
  std::vector<int> run;            // by position in `order`
};
struct NcclGroupTask {
  NcclTask task;
  int kind = 0;
};
NcclGroupOrder nccl_group_order(std::span<const NcclGroupTask> tasks);

// What the chunk size depends on besides the amount of data.
struct NcclCommSize {
  int nodes = 1;
  int heads = 8;  // NVLSTree: GPUs of a node with a NIC of their own
};

// Bytes of a chunk on a channel that holds `elements` elements of the task.
std::uint64_t nccl_chunk_bytes(NcclAlgorithm algorithm, const NcclTask& task,
                               std::uint64_t elements, const NcclCommSize& comm);

// The messages of one primitive: their number, and the elements of each but the last.
struct NcclSlices {
  std::uint32_t count = 1;
  std::uint64_t elements = 0;  // 0: one message
};
NcclSlices nccl_slices(NcclAlgorithm algorithm, const NcclTask& task, std::uint64_t elements);

// Credits of a connection: messages sent and not yet consumed.
FlowControl nccl_flow_control(NcclAlgorithm algorithm, Func func, Protocol protocol);

}  // namespace ghostrank
