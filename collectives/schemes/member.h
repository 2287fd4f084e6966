// A rank of a scheme that works on rails (rails.h): it gives its elements to the workers on its
// node, plays its own part as a worker if it is one (lane.h), and hands results on inside the node.
//
//   rank   ── its elements, in pieces, over NVLink ──►  worker of each rail on
//   its node worker ── the sum of its node, chunk by chunk  ──►  what the
//   scheme has: switches, servers rank   ◄─ the pieces of the result, over
//   NVLink ── worker
//
// A result that several ranks take goes from one to the next, so that none sends more than in a
// ring. Calls are played one after the other.
//
// Threading: the layout is immutable; an agent has one owner.
#pragma once

#include <memory>
#include <vector>

#include "collectives/schemes/lane.h"
#include "collectives/schemes/rails.h"

namespace ghostrank {

// Notes inside a node; a scheme's own tags are below. Note::index: piece * rails + rail.
inline constexpr std::uint8_t kGive = 128;  // elements for the worker
inline constexpr std::uint8_t kHand = 129;  // elements of the result

struct MemberLayout {
  MemberLayout(int ranks, const Communicator& comm) : rails(ranks, comm) {}
  virtual ~MemberLayout() = default;
  // The elements of a chunk, which rails share out whole.
  virtual std::uint64_t per_chunk(const Call& call) const = 0;
  bool is_worker(GroupRank r) const {
    return rails.worker(rails.rail_of(r), rails.node_of(r)) == r;
  }

  Rails rails;
};

// `lane`: of a worker; else null.
std::unique_ptr<Agent> member_agent(std::shared_ptr<const MemberLayout> layout, GroupRank rank,
                                    std::unique_ptr<Lane> lane);

// Adds what the ranks of a node give the worker of a rail in a call, and what comes back.
void add_inside(std::vector<Ends::Edge>& edges, const Rails& rails, const RailShare& share,
                const Call& call, int rail, int node, std::uint64_t overhead);

}  // namespace ghostrank
