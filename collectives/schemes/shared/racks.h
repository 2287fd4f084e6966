// The switches of a communicator: on each rail one for up to 32 workers; for more, one for every
// rack of up to 32 and one above the racks. They are the parties behind the ranks, rail by rail.
//
// Threading: immutable.
#pragma once

#include <algorithm>
#include <vector>

#include "collectives/agent.h"
#include "collectives/schemes/shared/rails.h"

namespace ghostrank {

inline constexpr int kMostInRack = 32;
inline constexpr int kMostInRacks = kMostInRack * kMostInRack;

struct Racks {
  Racks(int ranks, int nodes, int rails) : first_(static_cast<GroupParty>(ranks)), nodes_(nodes) {
    if (nodes <= 1) return;
    in_rack = std::min(nodes, kMostInRack);
    racks = (nodes + in_rack - 1) / in_rack;
    switches = racks > 1 ? racks + 1 : 1;
    all = switches * rails;
  }

  int racks = 0;  // of a rail; 0: a single node needs no switch
  // Workers of a rack; the last one may have fewer. Full racks are 32 nodes or more apart, so that
  // no two of a communicator are on one switch of the modelled network.
  int in_rack = 0;
  int switches = 0;  // of a rail
  int all = 0;

  bool two_levels() const { return racks > 1; }
  GroupParty leaf(int rail, int rack) const { return first_ + rail * switches + rack; }
  GroupParty leaf_of(int rail, int worker) const { return leaf(rail, worker / in_rack); }
  GroupParty root(int rail) const { return leaf(rail, racks); }  // only if two_levels()
  int begin(int rack) const { return rack * in_rack; }           // the workers of a rack
  int end(int rack) const { return std::min(nodes_, (rack + 1) * in_rack); }

  // Where a switch is: rack == racks: above the racks.
  struct Location {
    int rail, rack;
  };
  Location location_of(GroupParty party) const {
    return {(party - first_) / switches, (party - first_) % switches};
  }
  // The parties right below a switch.
  std::vector<GroupParty> below(Location location, const Rails& rails) const {
    std::vector<GroupParty> parties;
    if (location.rack == racks) {
      for (int rack = 0; rack < racks; ++rack) parties.push_back(leaf(location.rail, rack));
    } else {
      for (int w = begin(location.rack); w < end(location.rack); ++w)
        parties.push_back(rails.worker(location.rail, w));
    }
    return parties;
  }
  std::vector<Helper> helpers(const Rails& rails, int slots) const {
    std::vector<Helper> helpers;
    for (int i = 0; i < all; ++i) {
      const Location location = location_of(first_ + i);
      const bool root = location.rack == racks;
      helpers.push_back({.kind = PartyKind::network_switch,
                         .near = rails.worker(location.rail, root ? 0 : begin(location.rack)),
                         .level = root,
                         .slots = slots});
    }
    return helpers;
  }

 private:
  GroupParty first_;
  int nodes_;
};

}  // namespace ghostrank
