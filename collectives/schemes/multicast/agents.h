// The agents of the multicast schemes. Parties: ranks; for `orca` then, rail by rail and leaf by
// leaf, the one or two servers that may be a rack's agent.
//
// Threading: the layout is immutable; an agent has one owner.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/schemes/multicast.h"
#include "collectives/schemes/multicast/clos.h"
#include "collectives/schemes/shared/member.h"

namespace ghostrank::multicast {

// Note::tag. Note::index is the number of the run.
enum class Tag : std::uint8_t {
  data,    // from the root; words: the header of each packet
  rack,    // from an agent; words: likewise
  credit,  // to the root; words: the status byte of a packet
};
inline constexpr std::uint64_t kCreditBytes = 1;

// Where the packets of a root on a rail go.
struct Way {
  std::vector<GroupParty> to;     // to whom the root sends
  std::vector<std::byte> header;  // of a packet
};

struct Layout final : MemberLayout {
  Layout(Multicast scheme, int ranks, const MulticastOptions& options, const Communicator& comm);

  // Packets of a run, which are the elements of a chunk.
  std::uint64_t packets_of_run(const Call& call) const;
  std::uint64_t per_chunk(const Call& call) const override {
    return packets_of_run(call) * options.elements;
  }
  std::uint64_t packets(std::uint64_t elements) const {
    return (elements + options.elements - 1) / options.elements;
  }

  // The workers below a leaf, on one rail; those that may be the agent's hosts are the first ones.
  struct Below {
    int rail = 0, leaf = 0;
    std::vector<GroupRank> workers;
    std::vector<int> ports;      // of these workers
    GroupParty first_agent = 0;  // orca
    int agents() const { return std::min<int>(2, static_cast<int>(workers.size())); }
  };
  // Those that get packets of the root: the workers below, but for it.
  std::vector<GroupRank> members(const Below& rack, GroupRank root) const;
  GroupParty agent_of(const Below& rack, GroupRank root) const {
    return rack.first_agent + (rack.workers.front() == root ? 1 : 0);
  }
  Way way(int rail, GroupRank root) const;
  std::vector<std::byte> rack_header(const Below& rack, GroupParty agent, GroupRank root) const;

  const Multicast scheme;
  const MulticastOptions options;
  Clos clos;
  std::vector<std::vector<Below>> racks;  // by rail, ascending leaves
  const Below& rack_of(GroupParty agent) const { return *rack_of_helper_[agent - ranks_]; }
  std::vector<Helper> helpers;

 private:
  int leaf_of(GroupRank root) const;

  int ranks_;
  std::vector<const Below*> rack_of_helper_;
};

// To the root, for a run.
inline Note credit_for(const Note& run) {
  static constexpr std::byte kStatus{4};  // of the packet's type the second bit
  return {.tag = static_cast<std::uint8_t>(Tag::credit),
          .call = run.call,
          .index = run.index,
          .type = run.type,
          .words = {&kStatus, kCreditBytes}};
}

// `copies` times the header.
std::vector<std::byte> headers(const std::vector<std::byte>& header, std::uint64_t copies);

std::unique_ptr<WorkerPart> part_of(std::shared_ptr<const Layout> layout, GroupRank worker);
// Of a rack.
std::unique_ptr<Agent> server_agent(std::shared_ptr<const Layout> layout, GroupParty party);

}  // namespace ghostrank::multicast
