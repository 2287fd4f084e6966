#include "emulator/assemble/core_setup.h"

#include <algorithm>

#include "emulator/common/blob.h"
#include "emulator/control/meet.h"
#include "emulator/host/host_facts.h"
#include "emulator/host/hosts.h"
#include "emulator/host/interfaces.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"

namespace ghostrank {
namespace {

// The interfaces of the data path: the NICs of this host's entry, else the interface with the
// address that the fabric will bind to.
std::vector<std::string> devices_of(const JobSpec& spec, const HostEntry* entry,
                                    const World& world) {
  std::vector<std::string> devices;
  if (entry)
    for (const HostNic& nic : entry->nics) devices.push_back(nic.device);
  if (!devices.empty() || !is_network(spec.fabric.kind) || world.size == 1) return devices;
  const std::string towards =
      spec.fabric.bind.empty() ? local_address_towards(world.master_address) : spec.fabric.bind;
  for (const Interface& i : list_interfaces()) {
    const auto& all = i.addresses;
    if (i.name == towards || std::find(all.begin(), all.end(), towards) != all.end())
      devices.push_back(i.name);
  }
  return devices;
}

struct Neighbour {
  std::string boot_id;
  std::vector<int> usable;
};

bool share_some(const std::vector<int>& a, const std::vector<int>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](int cpu) { return std::binary_search(b.begin(), b.end(), cpu); });
}

// Engine threads of all processes with exactly the CPUs of `self`: those of processes before it,
// and all of them. {0, -1}: another process shares only a part of the CPUs.
std::pair<int, int> sharers(const std::vector<Neighbour>& all, std::size_t self, int threads) {
  int before = 0, together = 0;
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (all[p].boot_id != all[self].boot_id) continue;
    if (all[p].usable == all[self].usable) {
      before += p < self ? threads : 0;
      together += threads;
    } else if (share_some(all[p].usable, all[self].usable)) {
      return {0, -1};
    }
  }
  return {before, together};
}

}  // namespace

ProcessCores settle_cores(const JobSpec& spec, int threads, Control& control) {
  const World& world = control.world();
  const HostEntry* entry = host_entry(spec, world.host(), world.size);
  CoreWish wish{entry ? entry->cores : "", devices_of(spec, entry, world), threads};
  ProcessCores mine;
  if (spec.fabric.kind == FabricKind::virtual_time && wish.cores.empty()) {
    mine.usable = cpus_of_this_thread();  // no clock to keep up with
    return mine;
  }
  try {
    mine.usable = usable_cpus(wish.cores, spec.source_of("hosts") + ": host " +
                                              (entry ? entry->name : std::to_string(world.rank)));
  } catch (const Error& error) {
    control.fail(error.what());
    throw;
  }
  BlobWriter told;
  told.put(boot_id_of(world));
  told.put(mine.usable);
  std::vector<Neighbour> all;
  for (const std::string& blob : control.all_gather(told.bytes())) {
    Neighbour& neighbour = all.emplace_back();
    BlobReader r(blob);
    r.get(neighbour.boot_id), r.get(neighbour.usable);
  }
  if (all.empty()) return mine;  // stopped meanwhile; the next step reports it
  const auto [before, together] = sharers(all, static_cast<std::size_t>(world.rank), threads);
  mine.plan = plan_cores(wish, mine.usable, before, together);
  return mine;
}

void describe_cores(const ProcessCores& cores, HostReport& report) {
  std::vector<int> used;
  for (const auto& set : cores.plan.of_thread) used.insert(used.end(), set.begin(), set.end());
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  report.bound = !used.empty();
  report.cores = number_list_text(report.bound ? used : cores.usable);
  report.cores_note = cores.plan.note;
}

}  // namespace ghostrank
