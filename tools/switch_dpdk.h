// The DPDK target: starts ghostrank-dpdk with a program and the table entries of a plan. Any other
// program runs with entries of its own.
//
// Threading: main thread.
#pragma once

#include <string>
#include <vector>

#include "switch/plan.h"

namespace ghostrank {

struct DpdkRun {
  std::string program;  // .spec; empty: ours for the plan's number of elements
  std::string entries;  // file of table entries; empty: those of the plan
  std::vector<std::string> ports;
};

// Runs until the files end or SIGINT or SIGTERM; returns the runner's counters (JSON). Throws
// Error: usage where the plan does not fit the program or the runner refuses, environment where
// ghostrank was built without DPDK.
std::string run_on_dpdk(const DpdkRun& run, const switchml::SwitchPlan* plan);

}  // namespace ghostrank
