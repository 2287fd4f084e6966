// Makes the ways of a job's packets real: a socket on every address that the fabric binds to, in
// its namespace, and a way beside each flow of the fabric, with the flow's number. Then both ends
// of every way say hello with the largest packet that the job may send, so that a path that carries
// no UDP, or none so large, is named before the start.
//
//   round:  ends that are not heard yet send  ->  all listen  ->  all tell whom they have not heard
//
// A round that brings nothing new is tried kPatience times.
//
// Errors: Error(environment). Threading: the owner of `control`; afterwards each Packets belongs to
// its shard's thread.
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

// Every process of the job calls this at the same time. `bindings`: where those of
// Flows::endpoints() that this process owns are bound. Returns them by shard.
std::vector<std::unique_ptr<Packets>> open_packets(const JobSpec& spec, const Flows& flows,
                                                   Control& control, std::uint64_t nonce,
                                                   const std::vector<EndpointBinding>& bindings);

}  // namespace ghostrank
