#include "collectives/schemes/sharp.h"

#include <stdexcept>
#include <string>

#include "collectives/schemes/sharp_agents.h"

namespace ghostrank {
namespace {

using sharp::Layout;

constexpr std::uint64_t kHeader = 16;  // bytes of a message beside its elements

class Sharp final : public Ends {
 public:
  Sharp(int ranks, const SharpOptions& options, const Communicator& comm)
      : Ends(ranks), layout_(std::make_shared<Layout>(ranks, options, comm)) {}

  std::vector<Helper> helpers() const override { return layout_->racks.helpers(layout_->rails, 0); }
  std::unique_ptr<Agent> agent(GroupParty party) const override {
    if (party < size())
      return member_agent(layout_, party,
                          layout_->is_worker(party) ? lane_of(layout_, party) : nullptr);
    throw std::logic_error("a switch of sharp is made by agent_at()");
  }
  std::unique_ptr<Agent> agent_at(GroupParty party, Site& site) const override {
    return party < size() ? agent(party) : switch_agent(layout_, party, site);
  }

  // With a tree; which communicators have one turns out in the run.
  std::vector<Edge> traffic(const Call& call) const override {
    std::vector<Edge> edges;
    const Rails& rails = layout_->rails;
    for (int rail = 0; rail < rails.rails(); ++rail) {
      const RailShare share(rails, rail, call, layout_->per_chunk(call));
      for (int node = 0; node < rails.nodes(); ++node)
        add_inside(edges, rails, share, call, rail, node, kHeader);
      if (layout_->racks.racks == 0 || share.chunks() == 0) continue;
      add_tree(edges, call, rail, share);
    }
    return edges;
  }
  bool exact() const override { return layout_->racks.racks == 0; }
  std::uint64_t overhead_bytes() const override { return kHeader; }
  std::string refuses(const Call& call) const override {
    if (call.collective.func == Func::all_reduce) return "";
    return "sharp has no " + std::string(name_of(call.collective.func));
  }

 private:
  void add_tree(std::vector<Edge>& edges, const Call& call, int rail,
                const RailShare& share) const {
    const Racks& racks = layout_->racks;
    std::uint64_t elements = 0;
    for (std::uint64_t piece = 0; piece < share.pieces(); ++piece)
      elements += share.elements(piece);
    const std::uint64_t bytes = share.chunks() * kHeader + elements * bytes_of(call.type);
    const auto pair = [&](GroupParty lower, GroupParty upper) {
      edges.push_back({lower, upper, bytes, share.chunks(), Carriage::reliable});
      edges.push_back({upper, lower, bytes, share.chunks(), Carriage::reliable});
    };
    for (int worker = 0; worker < layout_->rails.nodes(); ++worker)
      pair(layout_->rails.worker(rail, worker), racks.leaf_of(rail, worker));
    for (int rack = 0; racks.two_levels() && rack < racks.racks; ++rack)
      pair(racks.leaf(rail, rack), racks.root(rail));
  }

  std::shared_ptr<const Layout> layout_;
};

}  // namespace

std::unique_ptr<Ends> sharp_ends(int ranks, const SharpOptions& options, const Communicator& comm) {
  if (const int workers = Rails(ranks, comm).nodes(); workers > kMostInRacks)
    throw std::invalid_argument("it has " + std::to_string(workers) +
                                " workers on a rail, and two levels of switches serve at most "
                                "1,024; use smaller groups");
  return std::make_unique<Sharp>(ranks, options, comm);
}

}  // namespace ghostrank
