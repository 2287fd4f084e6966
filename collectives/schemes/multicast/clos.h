// The switches of a Clos network, as far as the labels of multicast packets name them, and the
// members of a group below them.
//
// Leaves are numbered over the fabric, pod by pod; a spine has a link down to every leaf of its
// pod. Threading: plain values.
#pragma once

#include <algorithm>
#include <vector>

namespace ghostrank::multicast {

// Of the switches of Orca's prototype: ports each way of leaves and spines, and down of cores.
inline constexpr int kPorts = 24, kPods = 48;

struct Clos {
  int pods = 1;
  int leaves = 1, spines = 1;  // of a pod
  int cores = 1;               // that a spine has links to
  int ports = 1;               // down, of a leaf

  int pod_of(int leaf) const { return leaf / leaves; }
  int link_of(int leaf) const { return leaf % leaves; }  // of a spine, down
};

// What a group has below a leaf: the ports of its members there, ascending.
struct Rack {
  int leaf = 0;
  std::vector<int> ports;
};

}  // namespace ghostrank::multicast
