// See nccl/machine/topology.h.
#include "collectives/nccl/machine/topology.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "collectives/common/powers.h"

namespace ghostrank {
namespace {

constexpr NcclRate kLocal = 5'000'000;  // inside one device
constexpr int kMostChannels = 64;
// Limits of a node: the search recurses over channels and GPUs, and the table of paths grows with
// the square of the devices.
constexpr int kMostGpus = 72, kMostNics = 128;

using Type = NcclPathType;

double nvlink_GBps(int compute_capability) { return compute_capability >= 90 ? 20.6 : 20.0; }

int reversed_bits(int value, int range) {
  int reversed = 0;
  for (int bit = 1; bit < range; bit *= 2, value /= 2) reversed = reversed * 2 + value % 2;
  return reversed;
}

}  // namespace

NcclRate nccl_rate(double GBps) { return std::llround(GBps * 1000); }

NcclTopology::NcclTopology(const NcclMachine& machine, std::span<const int> gpus, bool between,
                           bool relays)
    : machine_(machine), gpus_(gpus.begin(), gpus.end()), between_(between) {
  if (machine.compute_capability < 80 || machine.compute_capability >= 100)
    throw std::invalid_argument(
        "NCCL's search is modelled for GPUs of compute capability 8.0 to 9.9, not " +
        std::to_string(machine.compute_capability / 10) + '.' +
        std::to_string(machine.compute_capability % 10));
  if (this->gpus() > kMostGpus || nics() > kMostNics)
    throw std::invalid_argument("NCCL's search is modelled for nodes of at most " +
                                std::to_string(kMostGpus) + " GPUs and " +
                                std::to_string(kMostNics) + " NICs");
  for (int i = 0; i < this->gpus(); ++i) add(Kind::gpu, i);
  for (int n = 0; n < nics(); ++n) add(Kind::nic, n);
  first_cpu_ = static_cast<int>(vertices_.size());
  for (std::size_t c = 0; c < machine.cpus.size(); ++c) add(Kind::cpu, static_cast<int>(c));
  const double lane = nvlink_GBps(machine.compute_capability);
  for (int i = 0; i < this->gpus(); ++i) {
    const NcclMachine::Gpu& gpu = machine.gpus[at(gpus_[at(i)])];
    if (gpu.switch_links > 0) {
      if (switch_ < 0) switch_ = add(Kind::nvlink_switch, 0);
      connect(i, switch_, Wire::nvlink, nccl_rate(gpu.switch_links * lane));
    }
    for (const auto& [peer, count] : gpu.peer_links) {
      const auto there = std::find(gpus_.begin(), gpus_.end(), peer);
      const auto j = static_cast<int>(there - gpus_.begin());
      if (there != gpus_.end() && j > i) connect(i, j, Wire::nvlink, nccl_rate(count * lane));
    }
  }
  first_bridge_ = static_cast<int>(vertices_.size());
  for (std::size_t b = 0; b < machine.bridges.size(); ++b) {
    add(Kind::bridge, static_cast<int>(b));
    connect_up(first_bridge_ + static_cast<int>(b), machine.bridges[b]);
  }
  for (int i = 0; i < this->gpus(); ++i) connect_up(i, machine.gpus[at(gpus_[at(i)])].up);
  for (int n = 0; n < nics(); ++n) {
    const NcclMachine::Nic& nic = machine.nics[at(n)];
    const int port = add(Kind::port, n);
    connect(port, this->nic(n), Wire::nic, nccl_rate(nic.GBps));
    connect_up(port, nic.up);
  }
  for (std::size_t a = 0; a < machine.cpus.size(); ++a)
    for (std::size_t b = a + 1; b < machine.cpus.size(); ++b)
      connect(first_cpu_ + static_cast<int>(a), first_cpu_ + static_cast<int>(b), Wire::cpus,
              nccl_rate(machine.cpus[a].GBps));
  order_links();

  paths_.resize(vertices_.size());
  for (int v = 0; v < static_cast<int>(vertices_.size()); ++v)
    if (kind(v) != Kind::bridge && kind(v) != Kind::port) find_paths_to(v);
  avoid_slow_peers();
  gpu_of_nic_.resize(at(nics()));
  route_nics(relays);
}

int NcclTopology::add(Kind kind, int index) {
  vertices_.push_back({kind, index});
  return static_cast<int>(vertices_.size()) - 1;
}

void NcclTopology::connect(int a, int b, Wire wire, NcclRate rate) {
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
    vertices_[at(from)].links.push_back(static_cast<int>(links_.size()));
    links_.push_back({to, wire, rate});
  }
}

void NcclTopology::connect_up(int vertex, const NcclMachine::Uplink& up) {
  const int above = up.bridge >= 0 ? first_bridge_ + up.bridge : first_cpu_ + up.cpu;
  connect(vertex, above, Wire::pci, nccl_rate(up.GBps));
}

// NVLinks come first: of several paths with one length, the search takes the first.
void NcclTopology::order_links() {
  for (Vertex& vertex : vertices_)
    std::stable_sort(vertex.links.begin(), vertex.links.end(),
                     [&](int a, int b) { return link(a).wire < link(b).wire; });
}

// Breadth first from the target. A path may pass one GPU, over NVLink only.
void NcclTopology::find_paths_to(int target) {
  std::vector<Path>& paths = paths_[at(target)];
  paths.resize(vertices_.size());
  paths[at(target)] = {{}, kLocal, Type::same};
  std::vector<int> reached{target};
  while (!reached.empty()) {
    std::vector<int> next;
    for (const int v : reached) {
      const Path& here = paths[at(v)];
      for (const int l : vertices_[at(v)].links) {
        const Link& taken = link(l);
        const bool to_gpu = kind(taken.to) == Kind::gpu;
        if (v != target && kind(v) == Kind::gpu &&
            (taken.wire != Wire::nvlink || !to_gpu || here.hops() > 1))
          continue;
        Path& there = paths[at(taken.to)];
        const NcclRate rate = std::min(here.rate, taken.rate);
        const bool shorter = there.type == Type::none || there.hops() > here.hops();
        if (!shorter || there.rate >= rate) continue;
        Type type = taken.wire == Wire::nvlink ? Type::nvlink
                    : taken.wire == Wire::pci  ? Type::bridge
                    : taken.wire == Wire::cpus ? Type::system
                                               : Type::same;
        if (kind(v) == Kind::bridge && kind(taken.to) == Kind::bridge) type = Type::bridges;
        if (taken.wire == Wire::pci && (kind(v) == Kind::cpu || kind(taken.to) == Kind::cpu))
          type = Type::host;
        if (kind(v) == Kind::gpu && here.type == Type::nvlink && type == Type::nvlink &&
            here.hops() > 0)
          type = Type::nvlink_by_gpu;
        there.links = {l ^ 1};  // links are stored in pairs: the way back
        there.links.insert(there.links.end(), here.links.begin(), here.links.end());
        there.rate = rate;
        there.type = std::max(here.type, type);
        if (std::find(next.begin(), next.end(), taken.to) == next.end()) next.push_back(taken.to);
      }
    }
    reached = std::move(next);
  }
}

bool NcclTopology::crosses_cpu(const Path& path) const {
  return std::any_of(path.links.begin(), path.links.end(),
                     [&](int l) { return kind(link(l).to) == Kind::cpu; });
}

std::vector<int> NcclTopology::nearest(int vertex, Kind kind) const {
  std::vector<int> found;
  NcclRate rate = 0;
  Type type = Type::none;
  for (int v = 0; v < static_cast<int>(vertices_.size()); ++v) {
    if (this->kind(v) != kind) continue;
    const Path& to = path(vertex, v);
    if (to.rate > rate || (to.rate == rate && to.type < type)) {
      rate = to.rate;
      type = to.type;
      found.clear();
    }
    if (to.rate == rate && to.type == type) found.push_back(vertices_[at(v)].index);
  }
  return found;
}

int NcclTopology::nic_of(int gpu, int channel) const {
  const std::vector<int> near = nearest(gpu, Kind::nic);
  if (near.empty()) return -1;
  const auto nics = static_cast<int>(near.size());
  const auto sharing = static_cast<int>(nearest(nic(near.front()), Kind::gpu).size());
  const int per_gpu = sharing > 0 ? (nics + sharing - 1) / sharing : 1;
  int start = gpus_[at(gpu)];
  if (is_power_of_two(nics)) start = reversed_bits(start, nics);
  return near[at((start + channel % per_gpu) % nics)];
}

int NcclTopology::find_gpu_of(int nic) const {
  const std::vector<int> near = nearest(this->nic(nic), Kind::gpu);
  for (int channel = 0; channel < kMostChannels; ++channel)
    for (const int gpu : near)
      if (nic_of(gpu, channel) == nic) return gpu;
  return -1;
}

// The path goes to `middle` and on from there.
void NcclTopology::join(int from, int middle, int to, bool relay) {
  const Path &first = path(from, middle), &second = path(middle, to);
  Path joined = first;
  joined.links.insert(joined.links.end(), second.links.begin(), second.links.end());
  joined.rate = std::min(first.rate, second.rate);
  joined.type = relay ? Type::relay : std::max(first.type, second.type);
  paths_[at(to)][at(from)] = std::move(joined);
}

int NcclTopology::near_cpu(int gpu) const {
  const std::vector<int> near = nearest(gpu, Kind::cpu);
  const auto hops = [&](int cpu) { return path(gpu, first_cpu_ + cpu).hops(); };
  return first_cpu_ + *std::min_element(near.begin(), near.end(),
                                        [&](int a, int b) { return hops(a) < hops(b); });
}

// GPUs that do not write to each other's memory exchange data through the CPU's.
void NcclTopology::avoid_slow_peers() {
  const bool any = machine_.vendor == NcclCpu::amd && gpus() <= 2;
  const Type limit = any ? Type::system : Type::bridges;
  for (int g = 0; g < gpus(); ++g)
    for (int p = 0; p < gpus(); ++p)
      if (path(p, g).type > limit) join(p, near_cpu(g), g, false);
}

// Whether the NIC can reach the GPU's memory (GPUDirect RDMA).
bool NcclTopology::rdma(int gpu, int nic) const {
  const NcclMachine::Gpu& own = machine_.gpus[at(gpus_[at(gpu)])];
  if (!machine_.nics[at(nic)].rdma || !own.rdma) return false;
  const Path* to = &path(gpu, this->nic(nic));
  if (to->type == Type::relay)
    for (const int l : to->links)
      if (kind(link(l).to) == Kind::gpu) {
        to = &path(link(l).to, this->nic(nic));
        break;
      }
  return to->type <= Type::bridges;
}

void NcclTopology::route_nics(bool relays) {
  for (int n = 0; n < nics(); ++n)
    for (int g = 0; g < gpus(); ++g) {
      if (relays) {
        const int near = find_gpu_of(n);
        if (near >= 0 && near != g) {
          const Path &direct = path(g, nic(n)), &by_near = path(near, nic(n));
          const bool better = by_near.rate > direct.rate || direct.type > Type::relay;
          if (by_near.type <= Type::chip_and_pci && path(near, g).type <= Type::nvlink && better)
            join(g, near, nic(n), true);
        }
      }
      if (path(g, nic(n)).type < Type::host && !rdma(g, n)) {
        join(nic(n), near_cpu(g), g, false);
        join(g, near_cpu(g), nic(n), false);
      }
    }
  for (int n = 0; n < nics(); ++n) gpu_of_nic_[at(n)] = find_gpu_of(n);
}

NcclPathType NcclTopology::least_type(Kind kind) const {
  Type least = Type::system;
  for (int g = 0; g < gpus(); ++g)
    for (int v = 0; v < static_cast<int>(vertices_.size()); ++v)
      if (this->kind(v) == kind && v != g) least = std::min(least, path(g, v).type);
  return least;
}

NcclPathType NcclTopology::greatest_type(Kind kind) const {
  Type greatest = Type::same;
  for (int g = 0; g < gpus(); ++g)
    for (int v = 0; v < static_cast<int>(vertices_.size()); ++v)
      if (this->kind(v) == kind && v != g) greatest = std::max(greatest, path(g, v).type);
  return greatest;
}

NcclRate NcclTopology::fastest_path() const {
  if (!between_ && gpus() == 1) return kLocal;
  const int first = between_ ? nic(0) : 0, end = between_ ? nic(nics()) : gpus();
  NcclRate most = 0;
  for (int g = 0; g < gpus(); ++g)
    for (int v = first; v < end; ++v)
      if (v != g) most = std::max(most, path(g, v).rate);
  return most;
}

NcclRate NcclTopology::gpu_links() const {
  if (!between_ && gpus() == 1) return kLocal;
  NcclRate most = 0;
  for (int g = 0; g < gpus(); ++g) {
    NcclRate nvlink = 0;
    for (const int l : vertices_[at(g)].links)
      if (link(l).wire == Wire::nvlink) nvlink += link(l).rate;
    most = std::max({most, nvlink, pci_rate(g)});
  }
  return most;
}

NcclRate NcclTopology::pci_rate(int gpu) const {
  for (const int l : vertices_[at(gpu)].links)
    if (link(l).wire == Wire::pci) return std::min(link(l).rate, link(l ^ 1).rate);
  return 0;
}

bool NcclTopology::split_nvlink() const {
  std::vector<int> group(at(gpus())), size(at(gpus()));
  for (int g = 0; g < gpus(); ++g) group[at(g)] = g;
  for (int g = 0; g < gpus(); ++g)
    for (int p = g + 1; p < gpus(); ++p)
      if (path(g, p).type == Type::nvlink) group[at(p)] = group[at(g)];
  for (const int g : group) ++size[at(g)];
  return std::count_if(size.begin(), size.end(), [](int n) { return n > 1; }) == 2;
}

}  // namespace ghostrank
