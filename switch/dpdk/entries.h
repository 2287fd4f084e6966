// A plan as table entries of our PNA program (p4/dpdk.p4), in DPDK's text format, which
// ghostrank-dpdk takes.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "switch/plan.h"
#include "switch/tables.h"

namespace ghostrank::dpdk {

inline constexpr int kMostPorts = 32;

// Lines "TABLE match ... action ..." and "register NAME INDEX VALUE" for losses and forwarding.
// Throws std::invalid_argument if the plan has more than kMostPorts ports.
std::vector<std::string> entries_of_plan(const switchml::SwitchPlan& plan);

// The lines of one job.
std::vector<std::string> entries_of_job(const switchml::SwitchPlan& plan,
                                        const switchml::Tables& job);

// Slots in the registers of the program for `elements` elements (SLOTS in p4/headers.p4).
int register_slots(int elements);

}  // namespace ghostrank::dpdk
