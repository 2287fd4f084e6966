// A plan as table entries of our PNA program (p4/pna_dpdk.p4), in the text that DPDK reads and
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

// Lines "TABLE match ... action ..." and "register NAME INDEX VALUE": losses and forwarding. Throws
// std::invalid_argument where the plan has more than kMostPorts.
std::vector<std::string> entries_of_plan(const switchml::SwitchPlan& plan);

// Lines of one job.
std::vector<std::string> entries_of_job(const switchml::SwitchPlan& plan,
                                        const switchml::Tables& job);

// Slots in the registers of the program for so many elements (SLOTS in p4/headers.p4).
int register_slots(int elements);

}  // namespace ghostrank::dpdk
