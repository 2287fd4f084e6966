// The load of links, for a result or a plan: by tier, and of the busiest links.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "emulator/network/link_times.h"
#include "emulator/network/links.h"
#include "emulator/network/topology.h"
#include "emulator/result/result.h"

namespace ghostrank {

// `counts`: by link, summed over `iterations`, which take `seconds` in all. `planned`: the counts
// come from a plan and have no waiting times. Empty if no links are modelled.
std::optional<NetworkReport> network_report(const Topology& topology,
                                            const std::vector<LinkCount>& counts, double iterations,
                                            double seconds, bool planned = false);

// The busiest links over `seconds`. Empty if no links were watched.
std::optional<LinkHistory> link_history(const Topology& topology, const LinkTimes& times,
                                        double seconds);

// Turns the report of a run into that of one whose calls travelled as flows, `fluids` of them
// collectives. Which of these waited longest is not known.
void describe_flows(std::uint64_t fluids, NetworkReport& report);

// The report of a run whose network was played packet by packet. `counts`: of the links, then of
// the NICs (tier "nic-switch"), then of the switches' ports to NICs ("switch-nic"). Bytes are
// payload, each time that it is sent; messages are counted by their last packets.
NetworkReport packet_report(const Topology& topology, const std::vector<LinkCount>& counts,
                            double iterations, double seconds);

}  // namespace ghostrank
