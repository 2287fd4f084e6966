// The agents of the scheme `switchml`, and what they know of their communicator. Ranks are members
// (member.h); the helpers are its switches (racks.h). A communicator inside one node has none.
//
// Threading: the layout is immutable; an agent has one owner.
#pragma once

#include <memory>

#include "collectives/schemes/shared/member.h"
#include "collectives/schemes/shared/racks.h"
#include "collectives/schemes/switchml.h"

namespace ghostrank::switchml {

struct Layout final : MemberLayout {
  Layout(int ranks, const SwitchMlOptions& chosen, const Communicator& comm)
      : MemberLayout(ranks, comm), options(chosen), racks(ranks, rails.nodes(), rails.rails()) {}

  // A chunk fills a packet: sums travel as int32, other elements as they are.
  std::uint64_t per_chunk(const Call& call) const override;
  bool needs_exponents(const Call& call) const;

  SwitchMlOptions options;
  Racks racks;
};

std::unique_ptr<WorkerPart> part_of(std::shared_ptr<const Layout> layout, GroupRank worker);
std::unique_ptr<Agent> switch_agent(std::shared_ptr<const Layout> layout, GroupParty party);

}  // namespace ghostrank::switchml
