#include "emulator/host/cores.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <sched.h>

#include "emulator/host/host_facts.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"

#ifdef GHOSTRANK_WITH_HWLOC
#include <hwloc.h>
#endif

namespace ghostrank {
namespace {

constexpr int kMaxCpus = 8192;  // the most that Linux supports

using Mask = std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)>;
const std::size_t kMaskBytes = CPU_ALLOC_SIZE(kMaxCpus);

Mask empty_mask() {
  Mask mask(CPU_ALLOC(kMaxCpus), [](cpu_set_t* m) { CPU_FREE(m); });
  CPU_ZERO_S(kMaskBytes, mask.get());
  return mask;
}

#ifdef GHOSTRANK_WITH_HWLOC

using Topology = std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)>;

Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {nullptr, &hwloc_topology_destroy};
  Topology topology(raw, &hwloc_topology_destroy);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // Leave out components that we need nothing from: those that ask GPU and display drivers are
  // slow, and libpciaccess, behind "pci", leaks. sysfs knows cores and NICs.
  for (const char* component : {"pci", "opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"})
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  if (hwloc_topology_load(raw) != 0) topology.reset();
  return topology;
}

// The CPUs next to the device; null: unknown, for instance for a virtual interface.
hwloc_const_bitmap_t cpus_near(hwloc_topology_t topology, const std::string& device) {
  for (hwloc_obj_t o = nullptr; (o = hwloc_get_next_osdev(topology, o)) != nullptr;) {
    if (!o->name || device != o->name) continue;
    const hwloc_obj_t holder = hwloc_get_non_io_ancestor_obj(topology, o);
    return holder ? holder->cpuset : nullptr;
  }
  return nullptr;
}

void ask_hwloc(std::vector<Cpu>& cpus, const std::vector<std::string>& devices) {
  const Topology topology = load_topology();
  if (!topology) return;
  std::vector<hwloc_const_bitmap_t> near_sets;
  for (const std::string& device : devices) near_sets.push_back(cpus_near(topology.get(), device));
  for (Cpu& cpu : cpus) {
    const hwloc_obj_t pu =
        hwloc_get_pu_obj_by_os_index(topology.get(), static_cast<unsigned>(cpu.number));
    if (!pu) continue;
    if (const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology.get(), HWLOC_OBJ_CORE, pu))
      cpu.core = core->logical_index;
    cpu.numa_node = hwloc_bitmap_first(pu->nodeset);
    for (std::size_t d = 0; d < near_sets.size(); ++d)
      cpu.near[d] = !near_sets[d] || hwloc_bitmap_isset(near_sets[d], pu->os_index);
  }
}

#else

void ask_hwloc(std::vector<Cpu>&, const std::vector<std::string>&) {}

#endif

std::vector<int> near_device(const std::vector<Cpu>& cpus, std::size_t device) {
  std::vector<int> numbers;
  for (const Cpu& cpu : cpus)
    if (cpu.near[device]) numbers.push_back(cpu.number);
  return numbers;
}

}  // namespace

std::string hwloc_version() {
#ifdef GHOSTRANK_WITH_HWLOC
  const unsigned version = hwloc_get_api_version();
  return "API " + std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 0xff);
#else
  return "";
#endif
}

std::vector<int> cpus_of_this_thread() {
  const Mask mask = empty_mask();
  std::vector<int> cpus;
  if (sched_getaffinity(0, kMaskBytes, mask.get()) != 0) return cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu)
    if (CPU_ISSET_S(static_cast<std::size_t>(cpu), kMaskBytes, mask.get())) cpus.push_back(cpu);
  return cpus;
}

std::vector<int> cpus_of_machine() {
  std::ifstream file("/sys/devices/system/cpu/online");
  std::string list;
  file >> list;
  return parse_number_list(list, kMaxCpus - 1).value_or(cpus_of_this_thread());
}

bool bind_this_thread(const std::vector<int>& cpus) {
  const Mask mask = empty_mask();
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), kMaskBytes, mask.get());
  return sched_setaffinity(0, kMaskBytes, mask.get()) == 0;
}

std::chrono::nanoseconds awake_before_sleep(int threads) {
  return usable_cores() >= threads ? std::chrono::microseconds(20) : std::chrono::microseconds(0);
}

std::vector<Cpu> look_at_cpus(const std::vector<int>& numbers,
                              const std::vector<std::string>& devices) {
  std::vector<Cpu> cpus;
  for (const int number : numbers)
    cpus.push_back({number, number, 0, -1, std::vector<bool>(devices.size(), true)});
  ask_hwloc(cpus, devices);
  std::map<int, int> seen;
  for (Cpu& cpu : cpus) cpu.sibling = seen[cpu.core]++;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    // No usable CPU is near the device, so distance decides nothing.
    if (!near_device(cpus, d).empty()) continue;
    for (Cpu& cpu : cpus) cpu.near[d] = true;
  }
  return cpus;
}

std::vector<int> choose_cpus(const std::vector<Cpu>& cpus, int threads, int devices) {
  std::vector<int> chosen;
  if (std::ssize(cpus) < threads) return chosen;
  std::vector<bool> taken(cpus.size());
  for (int t = 0; t < threads; ++t) {
    const std::size_t device = devices > 0 ? t % devices : 0;
    // Prefer a core of its own to a near one: hyper-threads slow each other down more than a hop
    // does.
    const auto rank = [&](const Cpu& cpu) {
      return 2 * cpu.sibling + (devices > 0 && !cpu.near[device] ? 1 : 0);
    };
    std::size_t best = cpus.size();
    for (std::size_t i = 0; i < cpus.size(); ++i)
      if (!taken[i] && (best == cpus.size() || rank(cpus[i]) < rank(cpus[best]))) best = i;
    taken[best] = true;
    chosen.push_back(cpus[best].number);
  }
  return chosen;
}

std::vector<int> usable_cpus(const std::string& cores, const std::string& where) {
  const std::vector<int> inherited = cpus_of_this_thread();
  if (cores.empty()) return inherited;
  const std::vector<int> wanted = parse_number_list(cores, kMaxCpus - 1).value_or(inherited);
  if (std::includes(inherited.begin(), inherited.end(), wanted.begin(), wanted.end()))
    return wanted;
  throw Error(
      where + ": cores is " + cores + ", but the process may only run on " +
          number_list_text(inherited) + " of this machine's " +
          number_list_text(cpus_of_machine()) +
          "; start it on more (mpirun --bind-to none, srun --cpu-bind=none), or name others",
      ErrorKind::environment);
}

CorePlan plan_cores(const CoreWish& wish, const std::vector<int>& usable, int first, int all) {
  CorePlan plan;
  const bool meant = !wish.cores.empty() || usable != cpus_of_machine();
  if (all < 0) {
    if (meant) plan.note = "other processes of the job may run on some of the same cores";
    return plan;
  }
  if (!meant && wish.devices.empty() && all == 1) return plan;
  const std::vector<Cpu> cpus = look_at_cpus(usable, wish.devices);
  const auto devices = static_cast<int>(wish.devices.size());
  const std::size_t threads = wish.threads;
  const auto cores =
      std::count_if(cpus.begin(), cpus.end(), [](const Cpu& cpu) { return cpu.sibling == 0; });
  const bool fills = all > 1 && all >= cores && static_cast<std::size_t>(all) <= cpus.size();
  if (!meant && !fills) {
    if (wish.devices.empty()) return plan;
    std::vector<std::vector<int>> near(threads);
    for (std::size_t t = 0; t < threads; ++t) near[t] = near_device(cpus, t % wish.devices.size());
    const auto too_few = [&](const auto& set) {
      return std::ssize(set) < all || set.size() == usable.size();
    };
    if (std::none_of(near.begin(), near.end(), too_few)) plan.of_thread = near;
    return plan;
  }
  const std::vector<int> chosen = choose_cpus(cpus, all, devices);
  if (chosen.empty()) {
    plan.note = std::to_string(all) + " engine threads share " + std::to_string(usable.size()) +
                (usable.size() == 1 ? " core" : " cores");
    return plan;
  }
  for (std::size_t t = 0; t < threads; ++t) plan.of_thread.push_back({chosen[first + t]});
  return plan;
}

}  // namespace ghostrank
