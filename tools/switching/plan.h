// Reads a switch's plan from YAML (schema ghostrank/switch/1), and one job of it as the control
// socket gets it: as JSON, which is YAML. docs/switch.md describes the form.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "switch/plan.h"

namespace ghostrank {

// Throw Error(usage) "FILE:LINE:COL: what; what to do". Jobs are checked against each other when
// the switch admits them.
switchml::SwitchPlan read_switch_plan(const std::string& path, int ports);
switchml::JobPlan read_switch_job(std::string_view text, const std::string& name);

}  // namespace ghostrank
