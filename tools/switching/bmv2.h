// The bmv2 target: p4lang's simple_switch on pcap files, with our v1model program and the entries
// of a plan. Looks for simple_switch, its CLI and p4c-bm2-ss on PATH.
//
// Threading: main thread.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "switch/compiled/counters.h"
#include "switch/plan.h"
#include "switch/ports/frame_ports.h"

namespace ghostrank {

// Plays the files at the pace of their time stamps, and returns the switch's counters. If `program`
// is empty, compiles our sources. Throws Error(environment) when a program is missing or does not
// start, Error(usage) when the plan does not fit the program.
switchml::SwitchCounters run_on_bmv2(const std::string& program,
                                     const std::vector<switchml::PortName>& ports,
                                     const switchml::SwitchPlan& plan,
                                     const std::atomic<bool>& stop);

}  // namespace ghostrank
