#include "emulator/assemble/binding.h"

#include <algorithm>

#include "emulator/host/hosts.h"
#include "emulator/host/network_namespace.h"

namespace ghostrank {

EndpointBinding binding_of_nic(const JobSpec& spec, const World& world, Node node, Nic nic) {
  const bool apart = node >= Node(0) && !spec.fabric.namespaces.empty();
  EndpointBinding binding{"", apart ? namespace_of_node(spec.fabric.namespaces, node) : ""};
  const InNamespace inside(binding.network_namespace);
  const HostEntry* entry = host_entry(spec, world.host(), world.size);
  const bool named = !spec.fabric.bind.empty() || (entry && !entry->nics.empty());
  const int rail = std::max(0, nic.value()) % spec.cluster.nics_per_node;
  binding.address = named || binding.network_namespace.empty()
                        ? data_address(spec, world.host(), world.size, world.master_address, rail)
                        : address_of_rail(rail, spec.cluster.nics_per_node);
  binding.dscp = spec.fabric.dscp;
  if (spec.max_nic_bps > 0)
    binding.cap = send_cap_of(binding.network_namespace, binding.address, spec.max_nic_bps);
  return binding;
}

}  // namespace ghostrank
