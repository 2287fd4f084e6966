// The links between the GPUs of a node, where they are not alike: which pairs have one, and how
// fast it is. Two named nodes, as published (from memory: nvidia-smi's own table was not at hand),
// and whatever else a job describes:
//
//   dgx-1p   8 P100: two quads, each with a lane between every two GPUs, and a lane from every GPU
//            to its counterpart in the other quad (0-4, 1-5, 2-6, 3-7); 4 lanes of 160 Gbps a GPU
//   dgx-1v   8 V100: the same hybrid cube mesh with 6 lanes of 200 Gbps a GPU; two lanes each
//            between 0-3, 0-4, 1-2, 1-5, 2-3, 4-7, 5-6, 6-7
//
// Units: bits per second, in each of the two directions. Threading: plain data, pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ghostrank {

struct NodeLinks {
  std::string name;
  int gpus = 0;
  std::vector<double> bps;  // of GPU a to GPU b: bps[a * gpus + b], and back the same; 0: no link

  double between(int a, int b) const { return bps[static_cast<std::size_t>(a * gpus + b)]; }
  void connect(int a, int b, double rate);  // both directions
  bool operator==(const NodeLinks&) const = default;
};

// Trees are searched for in a node's links, which takes long for many GPUs.
inline constexpr int kMostLinkedGpus = 16;

NodeLinks unlinked(std::string name, int gpus);
std::vector<std::string_view> named_node_links();
// Throws std::invalid_argument if there is no such node.
NodeLinks node_links(std::string_view name);
// A node with some of the GPUs: GPU i of the result is GPU gpus[i] of `all`.
NodeLinks links_among(const NodeLinks& all, const std::vector<int>& gpus);

}  // namespace ghostrank
