// The real machines that play a job.
//
// Threading: plain values.
#pragma once

#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

// A network interface of a real host. Emulated NIC n of a node uses rail n modulo the host's number
// of rails.
struct HostNic {
  std::string device;  // "eth0"
  int rail = 0;        // 0, 1, ... without gaps
};

// A real machine or a part of it; process i plays entry i.
struct HostEntry {
  std::string name;
  std::string cores;          // "0-7,16-23"; empty: all CPUs of the inherited mask
  std::vector<HostNic> nics;  // by rail; empty: chosen automatically
};

struct Placement {
  bool cyclic = false;  // else in blocks of neighbouring nodes
  VectorBy<Node, Host>
      host_of_node;  // the process of every emulated node; empty: blocked or cyclic
};

}  // namespace ghostrank
