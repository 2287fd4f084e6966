// What NCCL's topology search knows of a node: its GPUs, NICs, PCIe switches and CPUs, and the
// links between them. A described node comes from a template (nccl/machine/templates.h) or from the
// topology XML of a real node (profiles/load/files/nccl_topology.h).
//
// Units: 10^9 bytes per second, one direction; microseconds. Threading: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ghostrank {

enum class NcclCpu : std::uint8_t { intel, amd, other };

struct NcclMachine {
  // The PCIe link of a device to the switch or CPU above it.
  struct Uplink {
    int bridge = -1;  // -1: directly to the CPU
    int cpu = 0;      // used if `bridge` is -1
    double GBps = 48;
    bool operator==(const Uplink&) const = default;
  };
  struct Cpu {
    double GBps = 22;  // to each other CPU
    bool operator==(const Cpu&) const = default;
  };
  struct Gpu {
    Uplink up;
    int switch_links = 0;  // NVLinks to the NVLink switch
    // NVLinks straight to another GPU: its number, and how many.
    std::vector<std::pair<int, int>> peer_links{};
    bool rdma = true;  // NICs can read and write its memory
    bool operator==(const Gpu&) const = default;
  };
  struct Nic {
    Uplink up;
    double GBps = 50;
    double latency_us = 0;
    std::uint64_t asic = 0;  // NICs of one asic and port share a rate and are one rail
    int port = 0;
    bool rdma = true;
    bool operator==(const Nic&) const = default;
  };

  std::string name;
  NcclCpu vendor = NcclCpu::intel;
  int compute_capability = 90;  // 10 times the GPUs' CUDA compute capability
  std::vector<Cpu> cpus{1};
  std::vector<Uplink> bridges{};  // PCIe switches; a switch's `bridge` has a lower number
  std::vector<Gpu> gpus{};
  std::vector<Nic> nics{};

  bool operator==(const NcclMachine&) const = default;
  int gpu_count() const { return static_cast<int>(gpus.size()); }
  int nic_count() const { return static_cast<int>(nics.size()); }
};

}  // namespace ghostrank
