// A rank of a scheme that works on rails (rails.h): it gives its elements to the workers on its
// node, plays its own part as a worker if it is one (worker_part.h), and hands results on inside
// the node.
//
//   rank ─ its elements, in pieces, over NVLink ─► worker of each rail on its node
//   worker ─ the sum of its node, chunk by chunk ─► what the scheme has: switches, servers
//   rank ◄─ the pieces of the result, over NVLink ─ worker
//
// A result that several ranks take goes from one to the next, so that none sends more than in a
// ring. Calls are played one after the other.
//
// Threading: the layout is immutable; an agent has one owner.
#pragma once

#include <memory>
#include <vector>

#include "collectives/schemes/shared/rails.h"
#include "collectives/schemes/shared/worker_part.h"

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

// The ends of such a scheme; it adds its parts and helpers, and what they send.
class MemberEnds : public Ends {
 public:
  // `overhead`: bytes of a note's header.
  MemberEnds(int ranks, std::shared_ptr<const MemberLayout> layout, std::uint64_t overhead)
      : Ends(ranks), members_(std::move(layout)), overhead_(overhead) {}

  std::unique_ptr<Agent> agent(GroupParty party) const final;
  std::unique_ptr<Agent> agent_at(GroupParty party, Site& site) const final;
  std::vector<Edge> traffic(const Call& call) const final;
  std::uint64_t overhead_bytes() const final { return overhead_; }

 private:
  virtual std::unique_ptr<WorkerPart> part(GroupRank worker) const = 0;
  // Null: the site is not known. needed() throws then.
  virtual std::unique_ptr<Agent> helper(GroupParty party, Site* site) const = 0;
  // What workers and helpers send in a call, on one rail, which has chunks.
  virtual void add_outside(std::vector<Edge>& edges, const Call& call, int rail,
                           const RailShare& share) const = 0;
  std::unique_ptr<Agent> member(GroupRank rank) const;

  const std::shared_ptr<const MemberLayout> members_;
  const std::uint64_t overhead_;
};

// For helpers that share something at their site. Throws std::logic_error where it is not known.
Site& needed(Site* site);

}  // namespace ghostrank
