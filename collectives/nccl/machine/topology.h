// The links of a described node and the paths over them, for the GPUs of one communicator: the
// input of NCCL's topology search. Derived from NCCL's source (2.28.9, 2.30.7), not yet compared
// with a trace.
//
// Not modelled: GPUs older than Ampere, C2C links (Grace), Power CPUs, GPUs that share no memory
// with each other, several hosts in one NVLink domain.
//
// GPUs are numbered by their position in the communicator's list of GPUs, which is sorted. Units: a
// rate is in 10^6 bytes per second, so that sums are exact. Threading: a value.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/nccl/machine/machine.h"

namespace ghostrank {

using NcclRate = std::int64_t;
NcclRate nccl_rate(double GBps);

// What a path crosses, from near to far; the order is NCCL's.
enum class NcclPathType : std::uint8_t {
  same,           // the device itself (LOC)
  nvlink,         // NVL
  nvlink_by_gpu,  // through another GPU (NVB)
  chip_to_chip,   // C2C
  bridge,         // one PCIe switch (PIX)
  bridges,        // several PCIe switches (PXB)
  chip_and_pci,   // P2C
  relay,          // over NVLink to a GPU that is near the NIC (PXN)
  host,           // through a CPU (PHB)
  system,         // from one CPU to another (SYS)
  network,        // NET
  none,           // no path (DIS)
};

class NcclTopology {
 public:
  enum class Kind : std::uint8_t { gpu, nic, cpu, nvlink_switch, bridge, port };
  enum class Wire : std::uint8_t { nvlink, pci, cpus, nic };

  struct Link {
    int to = 0;  // vertex
    Wire wire = Wire::pci;
    NcclRate rate = 0;
  };
  struct Vertex {
    Kind kind = Kind::gpu;
    int index = 0;  // among the vertices of its kind
    std::vector<int> links{};
  };
  struct Path {
    std::vector<int> links;  // in order of travel
    NcclRate rate = 0;
    NcclPathType type = NcclPathType::none;
    int hops() const { return static_cast<int>(links.size()); }
  };

  // `gpus`: the communicator's GPUs, by number in the machine, ascending. `between`: it has ranks
  // on other nodes. `relays`: NCCL may reach a NIC through a GPU near it (PXN).
  NcclTopology(const NcclMachine& machine, std::span<const int> gpus, bool between, bool relays);

  const NcclMachine& machine() const { return machine_; }
  bool between() const { return between_; }
  int gpus() const { return static_cast<int>(gpus_.size()); }
  int nics() const { return machine_.nic_count(); }
  bool has_switch() const { return switch_ >= 0; }

  // Vertices; a GPU's is its number.
  int nic(int n) const { return gpus() + n; }
  int nvlink_switch() const { return switch_; }
  Kind kind(int vertex) const { return vertices_[at(vertex)].kind; }
  Link& link(int l) { return links_[at(l)]; }
  const Link& link(int l) const { return links_[at(l)]; }
  // From any vertex to a GPU, NIC, CPU or the NVLink switch.
  const Path& path(int from, int to) const { return paths_[at(to)][at(from)]; }
  bool crosses_cpu(const Path& path) const;

  // The nearest devices of a kind: those with the greatest rate, and of these the nearest type.
  std::vector<int> nearest(int vertex, Kind kind) const;
  // The NIC that a GPU uses on a channel.
  int nic_of(int gpu, int channel) const;
  // The first GPU that uses the NIC on some channel; -1: none does.
  int gpu_of(int nic) const { return gpu_of_nic_[at(nic)]; }
  // The least and greatest type of a path from a GPU to another device of a kind.
  NcclPathType least_type(Kind kind) const;
  NcclPathType greatest_type(Kind kind) const;
  // fastest_path(): rate of the fastest path that the search may use. gpu_links(): largest rate
  // of a GPU, of its NVLinks together or of its PCIe link.
  NcclRate fastest_path() const;
  NcclRate gpu_links() const;
  // The rate of a GPU's PCIe link.
  NcclRate pci_rate(int gpu) const;
  // Two groups of GPUs with NVLink inside each and none between them.
  bool split_nvlink() const;

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int add(Kind kind, int index);
  void connect(int a, int b, Wire wire, NcclRate rate);
  void connect_up(int vertex, const NcclMachine::Uplink& up);
  void order_links();
  void find_paths_to(int target);
  void join(int from, int middle, int to, bool relay);
  int near_cpu(int gpu) const;
  bool rdma(int gpu, int nic) const;
  void avoid_slow_peers();
  void route_nics(bool relays);
  int find_gpu_of(int nic) const;

  NcclMachine machine_;
  std::vector<int> gpus_;
  bool between_;
  int switch_ = -1, first_cpu_ = 0, first_bridge_ = 0;
  std::vector<Vertex> vertices_;
  std::vector<Link> links_;
  std::vector<std::vector<Path>> paths_;  // by target, then by source
  std::vector<int> gpu_of_nic_;
};

}  // namespace ghostrank
