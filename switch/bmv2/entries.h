// A plan as commands of simple_switch_CLI, for our v1model program (p4/v1model.p4) on bmv2.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "switch/compiled/counters.h"
#include "switch/plan.h"
#include "switch/tables.h"

namespace ghostrank::bmv2 {

// The commands that set up a switch that has just started: handles of its multicast nodes count
// from 0.
std::vector<std::string> commands_of(const switchml::SwitchPlan& plan,
                                     const std::vector<switchml::Tables>& jobs);

// The commands that read the counters, and the counters that their output gives. `received` and
// `sent` of ports are not among them.
std::vector<std::string> commands_to_count(const switchml::SwitchPlan& plan,
                                           const std::vector<switchml::Tables>& jobs);
switchml::SwitchCounters counters_of(const std::string& answers, const switchml::SwitchPlan& plan,
                                     const std::vector<switchml::Tables>& jobs);

}  // namespace ghostrank::bmv2
