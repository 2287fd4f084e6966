// See nccl/settings/split.h. The names lo, mid and hi and the order of the roundings are NCCL's:
// other roundings give sizes that differ by a cell.
#include "collectives/nccl/settings/split.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

namespace ghostrank {
namespace {

constexpr std::uint64_t kKiB = 1024;

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }
std::uint64_t round_up(std::uint64_t a, std::uint64_t to) { return ceil_div(a, to) * to; }

std::uint64_t min_traffic(NcclVersion version) {
  return version == NcclVersion::v2_28 ? 16 * kKiB : 32 * kKiB;
}

// Bytes of the unit in which NCCL plans the task.
std::uint32_t unit_bytes(const NcclTask& task) {
  const bool as_bytes = task.func == Func::all_gather || task.func == Func::broadcast;
  return as_bytes ? 1 : task.element_bytes;
}

bool in_slices(NcclAlgorithm algorithm, Func func, Protocol protocol) {
  return algorithm == NcclAlgorithm::ring && protocol == Protocol::simple &&
         (func == Func::all_reduce || func == Func::all_gather || func == Func::reduce_scatter);
}

// LL sends every byte twice; NCCL's planner counts its traffic four times.
std::uint64_t weighted_traffic(const NcclTask& task) {
  return nccl_traffic_per_byte(task.func, task.ranks) * (task.protocol == Protocol::ll ? 4 : 1);
}

std::uint64_t traffic_bytes(const NcclTask& task) {
  return task.count * task.element_bytes * weighted_traffic(task);
}

// The channel where the next task begins.
struct Cursor {
  int channel = 0;
  std::uint64_t used = 0;  // traffic already on that channel
};

// A distribution in cells; split_task() converts it to elements.
struct Cells {
  std::uint64_t lo = 0, mid = 0, hi = 0;  // `mid`: number of channels with per_channel cells
  std::uint64_t per_channel = 0;
};

Cells distribute(std::uint64_t cells, std::uint64_t traffic_per_cell,
                 std::uint64_t traffic_per_channel, int channels, Cursor& at) {
  Cells d;
  d.per_channel = std::min(cells, ceil_div(traffic_per_channel, traffic_per_cell));
  const bool last = at.channel + 1 == channels;
  d.lo = last ? cells : std::min(cells, ceil_div(traffic_per_channel - at.used, traffic_per_cell));
  const std::uint64_t rest = cells - d.lo;
  d.mid = rest / d.per_channel;
  d.hi = rest % d.per_channel;
  const std::uint64_t wanted = (d.lo > 0 ? 1U : 0U) + d.mid + (d.hi > 0 ? 1U : 0U);
  if (at.channel + wanted > static_cast<std::uint64_t>(channels)) {
    d.mid = channels - at.channel - 2;
    d.per_channel = rest / (d.mid + 1);
    d.hi = d.per_channel + rest % (d.mid + 1);
  }
  if (d.hi == 0 && d.mid > 0) {
    d.hi = d.per_channel;
    --d.mid;
  }
  if (d.lo == 0) {
    ++at.channel;
    if (d.mid == 0) {
      d.lo = d.hi;
      d.hi = 0;
    } else {
      d.lo = d.per_channel;
      --d.mid;
    }
  }
  return d;
}

NcclSplit split_task(const NcclTask& task, std::uint64_t traffic_per_channel, int channels,
                     NcclVersion version, Cursor& at) {
  if (task.count == 0) return {};
  const std::uint64_t unit = unit_bytes(task), traffic = weighted_traffic(task);
  const std::uint64_t bytes = task.count * task.element_bytes;
  const std::uint64_t cell = round_up(ceil_div(min_traffic(version), traffic), 16);
  const std::uint64_t cells = ceil_div(bytes, cell), units_per_cell = cell / unit;
  const Cells d = distribute(cells, cell * traffic, traffic_per_channel, channels, at);

  NcclSplit split;
  split.first = at.channel;
  split.channels = static_cast<int>((d.lo > 0 ? 1U : 0U) + d.mid + (d.hi > 0 ? 1U : 0U));
  split.lo = d.lo * units_per_cell;
  split.mid = d.mid > 0 ? d.per_channel * units_per_cell : 0;
  split.hi = d.hi * units_per_cell;
  (split.hi > 0 ? split.hi : split.lo) -= cells * units_per_cell - bytes / unit;

  // The planner counts a last cell that is not full as full.
  if (d.hi > 0) {
    at.channel += split.channels - 1;
    at.used = d.hi * cell * traffic;
  } else if (d.mid > 0) {
    at.channel += split.channels;
    at.used = 0;
  } else {
    at.used += d.lo * cell * traffic;
  }
  if (at.used >= traffic_per_channel && at.channel + 1 < channels) {
    ++at.channel;
    at.used = 0;
  }
  const std::uint64_t units_per_element = task.element_bytes / unit;
  split.lo /= units_per_element;
  split.mid /= units_per_element;
  split.hi /= units_per_element;
  return split;
}

// Size classes: four per power of two of KiB, up to 1 GiB.
std::uint64_t size_class(const NcclTask& task) {
  const std::uint64_t traffic =
      task.count * task.element_bytes * nccl_traffic_per_byte(task.func, task.ranks);
  const std::uint64_t x = std::min(traffic, kKiB * kKiB * kKiB) / kKiB;
  if (x < 4) return x;
  const auto log = static_cast<std::uint64_t>(std::bit_width(x)) - 1;
  return log * 4 + (x >> (log - 2)) % 4;
}

struct ChunkRule {
  std::uint64_t chunks, limit;
};

// Applies the rules in turn: with less data than `chunks` chunks per head, a chunk has at most
// `limit` bytes.
std::uint64_t fewer_bytes(std::uint64_t chunk, std::uint64_t bytes, int heads,
                          std::span<const ChunkRule> rules) {
  for (const ChunkRule& rule : rules)
    if (bytes < rule.chunks * heads * chunk && chunk > rule.limit) chunk = rule.limit;
  return chunk;
}

// NVLS inside a node.
std::uint64_t nvls_chunk(std::uint64_t bytes, const NcclCommSize& comm) {
  constexpr ChunkRule kRules[] = {{64, 64 * kKiB}, {8, 32 * kKiB}, {2, 16 * kKiB}};
  return fewer_bytes(128 * kKiB, bytes, comm.heads, kRules);
}

// NVLSTree on sm90: chunks small enough to keep several per head in flight on the channel.
std::uint64_t nvls_tree_chunk(std::uint64_t bytes, std::uint64_t most, const NcclCommSize& comm) {
  constexpr ChunkRule kRules[] = {
      {32, 256 * kKiB}, {16, 128 * kKiB}, {4, 64 * kKiB}, {1, 32 * kKiB}};
  const std::uint64_t own = comm.nodes >= 4 ? 64 * kKiB : 128 * kKiB;
  return fewer_bytes(most > 0 ? most : own, bytes, comm.heads, kRules);
}

std::uint64_t tree_ll128_chunk(std::uint64_t chunk, std::uint64_t bytes, int ranks, int nodes) {
  const double ranks_per_node = static_cast<double>(ranks) / nodes;  // on average, as NCCL has it
  const double steps = 1 + std::floor(std::log2(nodes)) + 0.1 * ranks_per_node;
  const auto enough = [&](double factor) {
    return static_cast<double>(bytes / chunk) >= steps * factor / ranks_per_node;
  };
  while (!enough(64) && chunk > 131072) chunk /= 2;
  while (!enough(16) && chunk > 32768) chunk /= 2;
  return chunk;
}

}  // namespace

std::uint64_t nccl_step_bytes(Protocol protocol, const NcclBuffers& buffers) {
  switch (protocol) {
    case Protocol::simple:
      return buffers.simple / kNcclSteps;
    case Protocol::ll:
      return buffers.ll / kNcclSteps / 2;
    case Protocol::ll128:
      return buffers.ll128 / kNcclSteps / 16 * 15;
  }
  return 0;
}

std::uint64_t nccl_traffic_per_byte(Func func, int ranks) {
  if (func == Func::all_reduce) return 2;
  if (func == Func::all_gather || func == Func::reduce_scatter) return ranks;
  return 1;
}

std::vector<NcclSplit> nccl_split(std::span<const NcclTask> tasks, int channels,
                                  NcclVersion version) {
  std::uint64_t total = 0, wanted = 0;
  for (const NcclTask& task : tasks) {
    if (task.count == 0) continue;
    total += std::max(min_traffic(version), traffic_bytes(task));
    wanted += task.max_channels;
  }
  std::vector<NcclSplit> splits;
  if (wanted == 0) return std::vector<NcclSplit>(tasks.size());
  const std::uint64_t share = total / std::min(wanted, static_cast<std::uint64_t>(channels));
  const std::uint64_t per_channel =
      version == NcclVersion::v2_28 ? std::max(min_traffic(version), share) : round_up(share, 16);
  Cursor at;
  for (const NcclTask& task : tasks)
    splits.push_back(split_task(task, per_channel, channels, version, at));
  return splits;
}

NcclGroupOrder nccl_group_order(std::span<const NcclGroupTask> tasks) {
  struct Bucket {
    std::vector<std::size_t> tasks;
    std::uint64_t largest = 0;
    std::size_t largest_submitted = 0;
  };
  std::map<std::tuple<Func, int, std::uint32_t>, Bucket> by_kind;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const NcclTask& task = tasks[i].task;
    Bucket& bucket = by_kind[{task.func, tasks[i].kind, task.element_bytes}];
    bucket.tasks.push_back(i);
    if (size_class(task) < bucket.largest) continue;
    bucket.largest = size_class(task);
    bucket.largest_submitted = i;
  }
  std::vector<Bucket> buckets;
  for (auto& [kind, bucket] : by_kind) buckets.push_back(std::move(bucket));
  std::sort(buckets.begin(), buckets.end(), [](const Bucket& a, const Bucket& b) {
    return std::tie(a.largest, a.largest_submitted) > std::tie(b.largest, b.largest_submitted);
  });

  const auto traffic = [&](std::size_t i) {
    const NcclTask& task = tasks[i].task;
    return task.count * task.element_bytes * nccl_traffic_per_byte(task.func, task.ranks);
  };
  NcclGroupOrder result;
  int run = -1;
  for (Bucket& bucket : buckets) {
    std::stable_sort(bucket.tasks.begin(), bucket.tasks.end(), [&](std::size_t a, std::size_t b) {
      return size_class(tasks[a].task) < size_class(tasks[b].task);
    });
    std::uint64_t smallest = 0;
    for (std::size_t j = 0; j < bucket.tasks.size(); ++j) {
      const std::size_t i = bucket.tasks[j];
      if (j == 0 || traffic(i) >= 4 * smallest) {
        ++run;
        smallest = traffic(i);
      }
      result.order.push_back(i);
      result.run.push_back(run);
    }
  }
  return result;
}

std::uint64_t nccl_chunk_bytes(NcclAlgorithm algorithm, const NcclTask& task,
                               std::uint64_t elements, const NcclCommSize& comm) {
  const bool by_rank = task.func == Func::all_gather || task.func == Func::reduce_scatter;
  const std::uint64_t bytes =
      elements * task.element_bytes * (by_rank ? static_cast<std::uint64_t>(task.ranks) : 1);
  std::uint64_t chunk = nccl_step_bytes(task.protocol, task.buffers);
  if (in_slices(algorithm, task.func, task.protocol)) chunk *= 4;
  if (algorithm == NcclAlgorithm::tree && task.protocol == Protocol::ll128)
    chunk = tree_ll128_chunk(chunk, bytes, task.ranks, comm.nodes);
  if (algorithm == NcclAlgorithm::pat) {
    const std::uint64_t factor = task.func == Func::all_gather ? 32 : 16;
    while (chunk * factor > bytes && chunk > 64 * kKiB) chunk /= 2;
  }
  if (algorithm == NcclAlgorithm::nvls) chunk = std::min(chunk, nvls_chunk(bytes, comm));
  if (algorithm == NcclAlgorithm::nvls_tree)
    chunk = std::min(chunk, nvls_tree_chunk(bytes, task.buffers.nvls_tree_chunk, comm));
  const std::uint64_t grain = task.protocol == Protocol::simple ? 512
                              : task.protocol == Protocol::ll   ? 16
                                                                : 1920;
  return chunk / grain * grain;
}

NcclSlices nccl_slices(NcclAlgorithm algorithm, const NcclTask& task, std::uint64_t elements) {
  if (!in_slices(algorithm, task.func, task.protocol)) return {};
  const std::uint64_t unit = unit_bytes(task), units_per_element = task.element_bytes / unit;
  const std::uint64_t units = elements * units_per_element;
  const std::uint64_t least = nccl_step_bytes(task.protocol, task.buffers) / unit * 2 / 32;
  return {2, std::max(ceil_div(units, 32) * 16, least) / units_per_element};
}

FlowControl nccl_flow_control(NcclAlgorithm algorithm, Func func, Protocol protocol) {
  return {in_slices(algorithm, func, protocol) ? 4U : 8U};
}

}  // namespace ghostrank
