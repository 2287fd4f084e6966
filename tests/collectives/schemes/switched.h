// Communicators and options for the tests of schemes that sum in switches.
#pragma once

#include <array>

#include "collectives/schedule.h"
#include "collectives/schemes/switchml.h"

namespace ghostrank::testing {

inline constexpr std::array kFuncsOfSwitches{Func::all_reduce, Func::reduce_scatter,
                                             Func::all_gather, Func::broadcast, Func::reduce};

// So few slots that a short tensor uses each of them several times.
inline constexpr SwitchMlOptions kFewSlots{.slots = 5, .elements = 32, .timeout = 200'000'000};

// `gpus` ranks on each node, each with a NIC of its own; the NICs are numbered from `first`.
inline Communicator on_nics(int nodes, int gpus, int first = 0) {
  Communicator comm;
  for (int r = 0; r < nodes * gpus; ++r) {
    comm.node_of.push_back(r / gpus);
    comm.nic_of.push_back(first + r);
  }
  return comm;
}

}  // namespace ghostrank::testing
