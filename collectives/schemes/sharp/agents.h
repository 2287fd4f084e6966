// The agents of the scheme `sharp`. Parties: ranks; then, rail by rail, the switches of the racks
// and, if there are several, the one above them.
//
// Threading: the layout is immutable; an agent has one owner.
#pragma once

#include <memory>
#include <vector>

#include "collectives/schemes/shared/member.h"
#include "collectives/schemes/shared/racks.h"
#include "collectives/schemes/sharp.h"

namespace ghostrank::sharp {

// Note::tag. Note::call is the call's number. Note::index is the chunk; of an ask, 1 where a switch
// below has no tree; of an answer, 1 where there is a tree.
enum class Tag : std::uint8_t {
  ask,     // for a tree, up
  answer,  // down
  up,      // a message of a worker, or a rack's sum
  down,    // the sum
  ring,    // words: how often the message was sent, 4 bytes
};

struct Layout final : MemberLayout {
  Layout(int ranks, const SharpOptions& chosen, const Communicator& comm)
      : MemberLayout(ranks, comm),
        options(chosen),
        racks(ranks, rails.nodes(), rails.rails()),
        nic_of(comm.nic_of) {}

  std::uint64_t per_chunk(const Call& call) const override {
    return options.bytes / bytes_of(call.type);
  }
  // A worker's port on its switch.
  std::int32_t port(GroupRank worker) const { return nic_of.empty() ? worker : nic_of[worker]; }

  SharpOptions options;
  Racks racks;
  std::vector<std::int32_t> nic_of;
};

std::unique_ptr<WorkerPart> part_of(std::shared_ptr<const Layout> layout, GroupRank worker);
std::unique_ptr<Agent> switch_agent(std::shared_ptr<const Layout> layout, GroupParty party,
                                    Site& site);

}  // namespace ghostrank::sharp
