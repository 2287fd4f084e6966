// What the calls that travelled as flows have sent, for the ledger and the links. See
// fluid_calls.h.
#include <algorithm>

#include "emulator/shard/fluid_links.h"

namespace ghostrank {

std::uint64_t FluidCalls::count(Ledger& ledger, std::vector<LinkCount>& links) const {
  const auto first_link = 2 * static_cast<std::uint32_t>(cluster_.nics());
  if (by_flowlets_)
    for (std::size_t link = 0; link < links.size(); ++link) links[link].merge(of_flowlets_[link]);
  const auto pass = [&](std::span<const FlowNetwork::Need> needs, std::uint64_t calls) {
    for (const FlowNetwork::Need& need : needs)
      if (!by_flowlets_ && need.resource >= first_link)
        links[need.resource - first_link].passed += calls;
  };
  for (const Fluid* fluid : in_order_) {
    if (fluid->of_turn.empty()) pass(fluid->route->needs, fluid->calls);
    for (std::size_t turn = 0; turn < fluid->of_turn.size(); ++turn)
      pass(fluid->route->of_turn[turn], fluid->of_turn[turn]);
  }
  for (std::uint32_t link = 0; link < links.size(); ++link)
    links[link].waited += network_.held_back(first_link + link);
  std::vector<const Fluid*> played;
  for (const Fluid* fluid : in_order_)
    if (fluid->calls > 0) played.push_back(fluid);
  const auto what = [](const Fluid* fluid) { return std::pair(fluid->route->number, fluid->row); };
  std::stable_sort(played.begin(), played.end(),
                   [&](const Fluid* a, const Fluid* b) { return what(a) < what(b); });
  std::uint64_t messages = 0;
  std::vector<LedgerCell> sum;  // by edge: all calls of a row over one route have the same edges
  std::vector<LedgerCell> of_pairs;  // likewise, then by queue pair
  for (auto at = played.begin(); at != played.end();) {
    const FluidRoute& route = *(*at)->route;
    const std::uint16_t row = (*at)->row;
    sum.assign(route.pattern->edges.size(), {});
    of_pairs.assign(sum.size() * (pairs_.several() ? pairs_.count : 0), {});
    for (; at != played.end() && (*at)->route == &route && (*at)->row == row; ++at) {
      const std::uint64_t calls = (*at)->calls;
      const std::vector<CallTraffic::Edge>& edges = (*at)->layout->traffic.edges;
      for (std::size_t i = 0; i < edges.size(); ++i)
        sum[i] += {edges[i].bytes * calls, edges[i].messages * calls};
      if (!of_pairs.empty()) add_to_pairs(**at, of_pairs);
    }
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const FluidPattern::Edge& e = route.pattern->edges[i];
      messages += sum[i].messages;
      if (inside_node(route, e)) {
        ledger.add_intra(row, sum[i]);
        continue;
      }
      const Connected edge = connected(route, e);
      ledger.add({edge.nics.source, edge.nics.target, row}, sum[i]);
      if (by_flowlets_) continue;
      for_each_link(edge, 0, [&](std::uint32_t link, const Part& part) {
        if (of_pairs.empty()) return add(links[link], link, sum[i], part);
        add(links[link], link, of_pairs[i * part.of + part.number], Part{0, 1});
      });
    }
  }
  return messages;
}

// Adds what the calls of a fluid send over each queue pair; `sums`: by edge, then pair.
void FluidCalls::add_to_pairs(const Fluid& fluid, std::vector<LedgerCell>& sums) const {
  const std::vector<CallTraffic::Edge>& edges = fluid.layout->traffic.edges;
  const auto add_calls = [&](std::uint64_t calls, std::uint32_t turn) {
    for (std::size_t i = 0; i < edges.size(); ++i)
      for (std::uint32_t pair = 0; pair < pairs_.count; ++pair) {
        const CallTraffic::Edge& e = edges[i];
        const bool known = e.any_turn(pairs_), turns = fluid.route->pattern->edges[i].turns > 0;
        const Part part{pair, pairs_.count};
        const LedgerCell& one =
            e.by_pair[known ? pair : behind_first(pair, turn, e.messages, pairs_.count)];
        sums[i * pairs_.count + pair] +=
            known || turns ? LedgerCell{one.bytes * calls, one.messages * calls}
                           : LedgerCell{part.in(e.bytes * calls), part.in(e.messages * calls)};
      }
  };
  if (fluid.of_turn.empty()) add_calls(fluid.calls, 0);
  for (std::uint32_t turn = 0; turn < fluid.of_turn.size(); ++turn)
    add_calls(fluid.of_turn[turn], turn);
}

// A link is as busy as the flow makes it: with its share of the edge's bytes on the wire.
void FluidCalls::add(LinkCount& count, std::uint32_t link, const LedgerCell& sent,
                     const Part& part) const {
  const LinkSpeed& speed = cluster_.topology().link(link);
  const double busy = static_cast<double>(bytes_on_wire(sent)) / part.of * speed.ps_per_byte;
  count.merge({part.in(sent.bytes), part.in(sent.messages), static_cast<Picoseconds>(busy + 0.5)});
}

std::uint64_t FluidCalls::collectives() const {
  std::uint64_t calls = 0;
  for (const Fluid* fluid : in_order_)
    if (!fluid->transfer) calls += fluid->calls;
  return calls;
}

}  // namespace ghostrank
