// What is present on this machine, found by looking: each finding says what it is, whether it is
// weak, and the exact command that would make it better.
//
// Threading: the functions look at /proc, /sys and libfabric and measure a little; call them from
// one thread.
#pragma once

#include <string>
#include <vector>

namespace ghostrank {

struct Finding {
  std::string area, name, value;
  bool weak = false;
  std::string remedy;   // a command or a short sentence; only where weak
  bool chosen = false;  // what a run would pick by itself
};
using Findings = std::vector<Finding>;

Findings look_at_fabric();    // libfabric providers, and which one `auto` picks
Findings look_at_timing();    // load, clock, how late this machine wakes up
Findings look_at_cores();     // CPUs that may be used, what is near to which interface
Findings look_at_network();   // interfaces, congestion control
Findings look_at_limits();    // open files, locked memory, huge pages, scheduler statistics
Findings look_at_programs();  // GPU tools, launchers, PMIx

// How TCP behaves: `control` is the kernel's congestion control, `available` those it has, both as
// /proc/sys/net/ipv4 says them.
Finding congestion_control_finding(const std::string& control, const std::string& available);

// The first line of a small file; empty when it cannot be read.
std::string first_line(const std::string& path);

std::string findings_json(const Findings& findings);  // schema ghostrank/doctor/1

}  // namespace ghostrank
