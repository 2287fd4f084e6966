// Where the nodes of a job should lie on the places of a modelled fabric so that their bytes cross
// the fewest links: an assignment of nodes to places (a quadratic assignment problem, NP-hard).
// Several starts are each improved by exchanging two nodes, or moving one to an empty place, until
// none gains; the result is no worse than any start, and the same each time.
//
// Units: bytes times links. Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/job/job.h"

namespace ghostrank {

// What a NIC of one node sends to one of another.
struct NicStream {
  int from = 0, to = 0;          // nodes
  int from_nic = 0, to_nic = 0;  // of the node
  double bytes = 0;
};

// How many links between switches lie between any two NICs of the places of a fabric.
class PlaceDistances {
 public:
  // Those of the job's fabric, whatever place its nodes have. Throws Error(usage) if two places are
  // not connected.
  explicit PlaceDistances(const JobSpec& spec);

  int places() const { return places_; }
  int links(int place, int nic, int other_place, int other_nic) const {
    const std::size_t a = leaf(place, nic), b = leaf(other_place, other_nic);
    return links_[a * leaves_ + b];
  }

 private:
  std::size_t leaf(int place, int nic) const {
    return leaf_of_[static_cast<std::size_t>(place * nics_ + nic)];
  }
  int places_ = 0, nics_ = 1;
  std::size_t leaves_ = 0;
  std::vector<std::uint32_t> leaf_of_;  // by NIC
  std::vector<int> links_;              // by pair of leaves
};

using Places = std::vector<int>;  // the place of every node

double crossed(std::span<const NicStream> streams, const PlaceDistances& distances,
               const Places& places);

// Places of the nodes; at least as good as each of `starts`.
Places least_crossed(std::span<const NicStream> streams, const PlaceDistances& distances,
                     std::vector<Places> starts);

}  // namespace ghostrank
