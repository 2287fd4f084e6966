// The queue pairs (QPs) of a connection between two NICs. RDMA libraries open several, so that
// switches, which hash the ports of packets, spread a connection over as many paths.
//
//   in turn   messages 0, N, 2N, … over pair 0, messages 1, N + 1, … over pair 1, …
//   split     every message in N parts, of which all but the last have one multiple of 128 bytes;
//             part i over pair i
//
// Both are NCCL's: NCCL_IB_QPS_PER_CONNECTION, with NCCL_IB_SPLIT_DATA_ON_QPS 0 and 1.
//
// Units: bytes. Threading: a value.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ghostrank {

struct QueuePairs {
  std::uint32_t count = 1;
  bool split = false;

  bool several() const { return count > 1; }
  // The parts of a message of so many bytes, at least one, each with a byte at least if there is
  // one.
  std::uint32_t parts(std::uint64_t bytes) const {
    if (!split || bytes == 0) return 1;
    return static_cast<std::uint32_t>((bytes - 1) / most(bytes) + 1);
  }
  std::uint64_t part(std::uint64_t bytes, std::uint32_t number) const {
    const std::uint64_t before = number * most(bytes);
    return split ? std::min(most(bytes), bytes - before) : bytes;
  }

 private:
  static constexpr std::uint64_t kAlign = 128;
  std::uint64_t most(std::uint64_t bytes) const {
    return ((bytes + count - 1) / count + kAlign - 1) / kAlign * kAlign;
  }
};

}  // namespace ghostrank
