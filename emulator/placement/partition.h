// Where emulated nodes should lie on real hosts so that they send each other the least: a partition
// of a weighted graph into parts of given sizes with the least weight between them.
//
// Finding the least is NP-hard. Several starts are each improved by exchanges of two nodes
// (Kernighan and Lin's passes between two parts), and the best of them by a few more after small
// disturbances; the result is no worse than any start. Draws are from a fixed seed: the same graph
// has the same partition.
//
// Units: weights are bytes. Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ghostrank {

// What two nodes send each other, in both directions.
struct NodeEdge {
  int a = 0, b = 0;
  double weight = 0;
};

class NodeGraph {
 public:
  // Edges between the same nodes add up; those from a node to itself are left out.
  NodeGraph(int nodes, std::span<const NodeEdge> edges);

  struct Neighbour {
    int node = 0;
    double weight = 0;
  };
  int nodes() const { return static_cast<int>(of_.size()); }
  const std::vector<Neighbour>& of(int node) const { return of_[static_cast<std::size_t>(node)]; }

 private:
  std::vector<std::vector<Neighbour>> of_;
};

using Parts = std::vector<int>;  // the part of every node

double weight_between(const NodeGraph& graph, const Parts& parts);

// Parts of these sizes, which add up to the nodes; at least as good as each of `starts`, whose
// parts must have these sizes, too.
Parts least_between(const NodeGraph& graph, const std::vector<int>& sizes,
                    std::vector<Parts> starts);

}  // namespace ghostrank
