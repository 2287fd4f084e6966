// Opens the packet flows of a job: a socket on every address that the fabric binds to, in that
// address's namespace, and beside each flow of the fabric a packet flow with its number. Then both
// ends of every packet flow exchange hellos of the largest packet that the job may send, so that a
// path that carries no UDP, or no packets so large, is reported before the start.
//
//   round:  ends not heard yet send  ->  all listen  ->  all report the ends still unheard
//
// It gives up after kPatience successive rounds in which no further end was heard.
//
// Errors: Error(environment). Threading: the owner of `control` calls it; afterwards each Packets
// belongs to its shard's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/fabric/open.h"
#include "emulator/packets/packets.h"
#include "emulator/traffic/flows.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Every process of the job calls this at the same time. `bindings`: where this process bound its
// Flows::endpoints(). Returns one Packets per shard.
std::vector<std::unique_ptr<Packets>> open_packets(const JobSpec& spec, const Flows& flows,
                                                   Control& control, std::uint64_t nonce,
                                                   const std::vector<EndpointBinding>& bindings);

}  // namespace ghostrank
