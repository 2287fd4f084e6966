// Makes the flows of a job real: endpoints in their namespaces, addresses exchanged, every flow
// opened and heard of at both ends before the first iteration, so that no connection is set up
// while something is measured.
//
// Threading: the owner of `control`; afterwards each fabric belongs to its shard's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/fabric/open.h"
#include "emulator/host/counters.h"
#include "emulator/packets/packets.h"
#include "emulator/traffic/flows.h"
#include "profiles/job/job.h"

namespace ghostrank {

struct OpenedFlows {
  std::vector<std::unique_ptr<NetworkFabric>> fabrics;  // of this process, by shard
  std::vector<std::unique_ptr<Packets>> packets;        // likewise; none where no scheme sends any
  std::vector<CountedInterface> interfaces;             // that this process binds to, each once
  // By process of the job.
  std::vector<std::string> providers, transports;
};

// Every process of the job calls this at the same time. Throws Error(environment): what cannot be
// opened or reached, with the remedy, and a limit that the flows do not fit in.
OpenedFlows open_flows(const JobSpec& spec, const Flows& flows, Control& control,
                       std::uint64_t nonce);

}  // namespace ghostrank
