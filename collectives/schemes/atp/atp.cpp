#include "collectives/schemes/atp.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "collectives/schemes/atp/agents.h"
#include "collectives/schemes/shared/racks.h"
#include "switch/wire/switchml.h"

namespace ghostrank {
namespace {

using atp::Layout;

// traffic() assumes that the communicator has the switch to itself and that no number is too large.
class Atp final : public MemberEnds {
 public:
  Atp(int ranks, std::shared_ptr<const Layout> layout)
      : MemberEnds(ranks, layout, atp::kOverhead), layout_(std::move(layout)) {}

  std::vector<Helper> helpers() const override {
    std::vector<Helper> helpers;
    for (int rail = 0; !layout_->alone() && rail < layout_->rails.rails(); ++rail) {
      helpers.push_back(
          {.kind = PartyKind::network_switch, .near = layout_->rails.worker(rail, 0)});
      helpers.push_back({.kind = PartyKind::server});
    }
    return helpers;
  }

  bool exact() const override { return layout_->alone(); }
  std::string_view estimate() const override {
    return "means over a window's slots, as if every communicator had all aggregators of its "
           "switch";
  }
  Survives survives() const override { return {true, true, true, true}; }
  std::string refuses(const Call& call) const override {
    if (call.collective.func != Func::all_reduce)
      return "atp has no " + std::string(name_of(call.collective.func));
    if (call.type == DataType::int32 || is_float(call.type)) return "";
    return "atp adds int32, and floats as millionths in int32";
  }
  double error_bound(const Call& call, double largest) const override {
    if (!is_float(call.type) || layout_->alone()) return 0;
    const double nodes = layout_->rails.nodes();
    // Each worker rounds to millionths; float32 rounds the sum of each node and of all.
    return nodes * 0.5 / atp::kUnits + size() * largest * (size() + 2) * 0x1p-24;
  }

 private:
  std::unique_ptr<WorkerPart> part(GroupRank worker) const override {
    return part_of(layout_, worker);
  }
  std::unique_ptr<Agent> helper(GroupParty party, Site* site) const override {
    const int rail = (party - size()) / 2;
    if (party == layout_->server_of(rail)) return server_agent(layout_, rail);
    return switch_agent(layout_, rail, needed(site));
  }
  void add_outside(std::vector<Edge>& edges, const Call&, int rail,
                   const RailShare& share) const override {
    const std::uint64_t packets = share.chunks();
    const std::uint64_t each = 26 + 4 * atp::kElements;
    // Slots beyond the aggregators pass all workers' packets. A call takes up the slots where the
    // one before it ended, so that all slots have as many packets in the mean.
    const double window = layout_->options.window;
    const double aggregated = std::min(1.0, layout_->options.aggregators / window);
    const double in =
        static_cast<double>(packets) * (aggregated + (1 - aggregated) * layout_->rails.nodes());
    const GroupParty at = layout_->switch_of(rail), server = layout_->server_of(rail);
    const auto whole = [](double n) { return static_cast<std::uint64_t>(std::llround(n)); };
    edges.push_back(
        {at, server, whole(in * static_cast<double>(each)), whole(in), Carriage::packet});
    edges.push_back({server, at, packets * each, packets, Carriage::packet});
    for (const GroupRank worker : layout_->rails.workers(rail)) {
      edges.push_back({worker, at, packets * each, packets, Carriage::packet});
      edges.push_back({at, worker, packets * each, packets, Carriage::packet, /*copies=*/1});
    }
  }

  std::shared_ptr<const Layout> layout_;
};

}  // namespace

std::unique_ptr<Ends> atp_ends(int ranks, const AtpOptions& options, const Communicator& comm) {
  if (const int workers = Rails(ranks, comm).nodes(); workers > kMostInRack)
    throw std::invalid_argument(
        "it has " + std::to_string(workers) +
        " workers on a rail, and atp serves at most 32; use smaller groups");
  if (options.window < 1 || options.window > switchml::kMaxSlots || options.aggregators < 0)
    throw std::invalid_argument("atp has windows of 1 to " + std::to_string(switchml::kMaxSlots) +
                                " packets, and 0 aggregators or more");
  if (options.first_packet % static_cast<std::uint32_t>(options.window) != 0)
    throw std::invalid_argument("atp's first packet begins a window");
  return std::make_unique<Atp>(ranks, std::make_shared<Layout>(ranks, options, comm));
}

}  // namespace ghostrank
