#include "collectives/schemes/multicast.h"

#include <string>

#include "collectives/schemes/multicast/agents.h"

namespace ghostrank {

std::string_view name_of(Multicast scheme) {
  switch (scheme) {
    case Multicast::orca:
      return "orca";
    case Multicast::elmo:
      return "elmo";
    case Multicast::unicast:
      return "unicast";
  }
  return "";
}

namespace {

using multicast::kCreditBytes;
using multicast::Layout;

class MulticastEnds final : public MemberEnds {
 public:
  MulticastEnds(int ranks, std::shared_ptr<const Layout> layout)
      : MemberEnds(ranks, layout, 0), layout_(std::move(layout)) {}

  std::vector<Helper> helpers() const override { return layout_->helpers; }
  bool needs_copies() const override { return layout_->scheme != Multicast::unicast; }
  std::string refuses(const Call& call) const override {
    if (call.collective.func == Func::broadcast) return "";
    return std::string(name_of(layout_->scheme)) + " has no " +
           std::string(name_of(call.collective.func));
  }

 private:
  std::unique_ptr<WorkerPart> part(GroupRank worker) const override {
    return part_of(layout_, worker);
  }
  std::unique_ptr<Agent> helper(GroupParty party, Site*) const override {
    return server_agent(layout_, party);
  }
  void add_outside(std::vector<Edge>& edges, const Call& call, int rail,
                   const RailShare& share) const override {
    const Rails& rails = layout_->rails;
    const GroupRank root = rails.worker(rail, rails.node_of(call.collective.root));
    const multicast::Way way = layout_->way(rail, root);
    std::uint64_t elements = 0;
    for (std::uint64_t piece = 0; piece < share.pieces(); ++piece)
      elements += share.elements(piece);
    const auto bytes = [&](std::uint64_t header) {
      return elements * bytes_of(call.type) + layout_->packets(elements) * header;
    };
    // Copies that leave as one have one number.
    const auto add = [&](GroupParty from, GroupParty to, std::uint64_t sent, std::uint32_t copies) {
      edges.push_back({from, to, sent, share.chunks(), Carriage::reliable, copies});
    };
    std::uint32_t number = 1;
    for (const GroupParty to : way.to) {
      add(root, to, bytes(way.header.size()), number);
      number += layout_->scheme == Multicast::unicast;
    }
    for (const GroupParty to : way.to) {
      if (to >= size()) {
        const Layout::Below& rack = layout_->rack_of(to);
        const std::uint64_t header = layout_->rack_header(rack, to, root).size();
        for (const GroupRank member : layout_->members(rack, root))
          add(to, member, bytes(header), 1);
      }
      add(to, root, share.chunks() * kCreditBytes, 2);
    }
  }

  std::shared_ptr<const Layout> layout_;
};

}  // namespace

std::unique_ptr<Ends> multicast_ends(Multicast scheme, int ranks, const MulticastOptions& options,
                                     const Communicator& comm) {
  return std::make_unique<MulticastEnds>(ranks,
                                         std::make_shared<Layout>(scheme, ranks, options, comm));
}

}  // namespace ghostrank
