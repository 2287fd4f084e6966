// Facts about a fabric of switches, without any traffic: its size, diameter and bisection.
//
// Units: bits per second. Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiles/job/switches.h"

namespace ghostrank {

struct FabricFacts {
  struct Layer {       // switches at the same distance from the NICs
    std::string name;  // what their names have in common: "leaf"
    int switches = 0;
    int ports = 0;  // in use, of the largest switch: NICs and cables that work
  };
  struct Cables {  // of one rate
    std::string tier;
    double bps = 0;
    int count = 0, failed = 0;
  };
  std::vector<Layer> layers;  // from the NICs on
  std::vector<Cables> cables;
  int nics = 0, ports = 0;  // ports of all switches, with those for NICs
  int diameter = 0;         // links on the longest of the shortest paths between NICs
  // The most that the first half of the NICs can send to the second, and its share of what the
  // ports of these NICs could send; 0: the NICs have no limit, or there is one NIC.
  double bisection_bps = 0, bisection_share = 0;
};

// `graph`: the switches of `cluster`.
FabricFacts fabric_facts(const SwitchGraph& graph, const ClusterSpec& cluster);

// The distance of every switch from the nearest switch with ports for NICs.
std::vector<int> layers_of(const SwitchGraph& graph);

}  // namespace ghostrank
