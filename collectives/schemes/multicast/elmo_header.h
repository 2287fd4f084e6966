// How many bytes Elmo's header takes: a list of p-rules, one for every switch on the way that
// copies a packet; leaves, and the spines of pods, that copy alike share a rule.
//
//   leaf up     type, ports down, spines, multipath, next        1 + d + u + 2 bits
//   spine up    type, leaves, cores, multipath, next             1 + d + u + 2
//   core        type, pods                                       1 + d
//   spine down  type, leaves, pods that it is for, 2 marks       1 + d + i (id + 1) + 2
//   leaf down   type, ports, leaves that it is for, 2 marks      1 + d + i (id + 1) + 2
//
// Only what is on the way is there. Rules shared by most leaves come first; leaves for which a
// header of 325 bytes (Elmo's bound) has no room hold an s-rule in their group table instead, which
// adds no bytes. Widths are those of Orca's prototype or, if larger, the fabric's; an id has as
// many bits as there are pods or leaves to number. Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schemes/multicast/clos.h"

namespace ghostrank::multicast {

inline constexpr std::uint64_t kMostElmoHeader = 325;  // bytes

struct ElmoHeader {
  std::uint64_t bytes = 0;
  int p_rules = 0, s_rules = 0;
};

// From below leaf `source` to these racks, ascending.
ElmoHeader elmo_header(const Clos& clos, int source, const std::vector<Rack>& racks);

}  // namespace ghostrank::multicast
