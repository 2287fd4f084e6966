#include "collectives/schemes/sharp.h"

#include <stdexcept>
#include <string>

#include "collectives/schemes/sharp/agents.h"

namespace ghostrank {
namespace {

using sharp::Layout;

constexpr std::uint64_t kHeader = 16;  // bytes of a message beside its elements

// traffic() assumes a tree; the run decides which communicators get one.
class Sharp final : public MemberEnds {
 public:
  Sharp(int ranks, std::shared_ptr<const Layout> layout)
      : MemberEnds(ranks, layout, kHeader), layout_(std::move(layout)) {}

  std::vector<Helper> helpers() const override { return layout_->racks.helpers(layout_->rails, 0); }
  bool exact() const override { return layout_->racks.racks == 0; }
  std::string_view estimate() const override {
    return "counted as if every communicator had a tree, without its asking for it";
  }
  std::string refuses(const Call& call) const override {
    if (call.collective.func == Func::all_reduce) return "";
    return "sharp has no " + std::string(name_of(call.collective.func));
  }

 private:
  std::unique_ptr<WorkerPart> part(GroupRank worker) const override {
    return part_of(layout_, worker);
  }
  std::unique_ptr<Agent> helper(GroupParty party, Site* site) const override {
    return switch_agent(layout_, party, needed(site));
  }
  void add_outside(std::vector<Edge>& edges, const Call& call, int rail,
                   const RailShare& share) const override {
    const Racks& racks = layout_->racks;
    std::uint64_t elements = 0;
    for (std::uint64_t piece = 0; piece < share.pieces(); ++piece)
      elements += share.elements(piece);
    const std::uint64_t bytes = share.chunks() * kHeader + elements * bytes_of(call.type);
    const auto pair = [&](GroupParty lower, GroupParty upper) {
      edges.push_back({lower, upper, bytes, share.chunks(), Carriage::reliable});
      edges.push_back({upper, lower, bytes, share.chunks(), Carriage::reliable, /*copies=*/1});
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
  return std::make_unique<Sharp>(ranks, std::make_shared<Layout>(ranks, options, comm));
}

}  // namespace ghostrank
