// NCCL's topology file: XML to a node whose links lead to bridges, CPUs and GPUs that exist.
#include "profiles/load/files/nccl_topology.h"

#include <string>

#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  try {
    const auto machine = parse_nccl_topology(fuzz::text_of(data, size), "topo.xml");
    const auto bridges = static_cast<int>(machine->bridges.size());
    const auto cpus = static_cast<int>(machine->cpus.size());
    const auto leads_up = [&](const NcclMachine::Uplink& up, int below) {
      return up.bridge < below && up.cpu >= 0 && up.cpu < cpus;
    };
    for (int b = 0; b < bridges; ++b)
      fuzz::require(leads_up(machine->bridges[static_cast<std::size_t>(b)], b));
    for (const NcclMachine::Nic& nic : machine->nics) fuzz::require(leads_up(nic.up, bridges));
    for (const NcclMachine::Gpu& gpu : machine->gpus) {
      fuzz::require(leads_up(gpu.up, bridges));
      for (const auto& [peer, count] : gpu.peer_links)
        fuzz::require(peer < machine->gpu_count() && count > 0);
    }
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
