// The findings of `doctor` on this machine. Each has a value, says whether it is weak, and if so
// gives the exact command that improves it.
//
// Threading: the functions read /proc, /sys and libfabric and time 200 sleeps of 0.5 ms; call them
// from one thread.
#pragma once

#include <string>
#include <vector>

namespace ghostrank {

struct Finding {
  std::string area, name, value;
  bool weak = false;
  std::string remedy;   // a command or a short sentence; only where weak
  bool chosen = false;  // a run picks it by default
};
using Findings = std::vector<Finding>;

Findings look_at_fabric();    // libfabric providers, and which one `auto` picks
Findings look_at_timing();    // load, clock, how late this machine wakes up
Findings look_at_cores();     // usable CPUs, and which interfaces they are near
Findings look_at_network();   // interfaces, congestion control
Findings look_at_limits();    // open files, locked memory, huge pages, scheduler statistics
Findings look_at_switches();  // what each target of a switch needs
Findings look_at_programs();  // GPU tools, launchers, PMIx

// `control` is the kernel's TCP congestion control, `available` the list of those that are loaded,
// both as /proc/sys/net/ipv4 gives them.
Finding congestion_control_finding(const std::string& control, const std::string& available);

// The first line of a small file; empty when it cannot be read.
std::string first_line(const std::string& path);

std::string findings_json(const Findings& findings);  // schema ghostrank/doctor/1

}  // namespace ghostrank
