// Links between switches whose rates events of a job change: they fail for a time (nothing passes)
// or slow down. Both directions of a cable change together. Where events overlap, the lowest rate
// counts.
//
// Units: emulated picoseconds since the measured iterations began; links as of Topology. Threading:
// immutable.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "emulator/network/links.h"
#include "emulator/network/topology.h"
#include "profiles/job/events.h"
#include "profiles/job/nic_rates.h"

namespace ghostrank {

class LinkRates {
 public:
  LinkRates(const JobEvents& events, const Topology& topology);

  bool any() const { return !curves_.empty(); }
  // Null: the link keeps its rate.
  const RateCurve* of(std::uint32_t link) const {
    const auto found = curves_.find(link);
    return found == curves_.end() ? nullptr : &found->second;
  }
  const std::map<std::uint32_t, RateCurve>& all() const { return curves_; }
  // When any link's rate changes next; NicRates::kNever: none does.
  Picoseconds next_change(Picoseconds after) const;

 private:
  std::map<std::uint32_t, RateCurve> curves_;
};

// The turn of a message of `bytes` on the wire at a link, which is free from `free` on; times count
// from `begin` of the curve. Its bytes come evenly from in.head to in.tail, and pass at the link's
// rate of their time.
LinkTurn turn_on(const RateCurve& curve, Picoseconds begin, const Passage& in, const Moment& free,
                 double bytes);

}  // namespace ghostrank
