// The counters of a switch, as tables for people and as JSON for programs.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "switch/compiled/counters.h"
#include "switch/plan.h"

namespace ghostrank {

// {"ports": [{"port", "received", ...}], "jobs": [{"job", "received", ...}]}
std::string switch_json(const switchml::SwitchCounters& counters);

struct SwitchTime {
  double seconds = 0;            // of wall time
  double processor_seconds = 0;  // of all its threads; 0: not known
};

// Tables of ports and jobs, and packets per second of processor time where that is known.
std::string switch_report(const std::string& title, const switchml::SwitchPlan& plan,
                          const switchml::SwitchCounters& counters, const SwitchTime& time);

}  // namespace ghostrank
