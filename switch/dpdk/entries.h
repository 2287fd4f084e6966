// A plan as the table entries of our PNA program (p4/pna_dpdk.p4), in the text that DPDK reads and
// ghostrank-dpdk takes.
//
// Threading: pure function.
#pragma once

#include <string>

#include "switch/plan.h"

namespace ghostrank::dpdk {

// Lines "TABLE match ... action ...". Throws std::invalid_argument where the program cannot hold
// the plan: see switchml::tables_of; at most 8 ports, which is what a flooded frame is copied to.
std::string entries_of(const switchml::SwitchPlan& plan, int elements);

// Slots in the registers of the program for so many elements (SLOTS in p4/headers.p4).
int register_slots(int elements);

}  // namespace ghostrank::dpdk
