// What the links of a modelled network carry of what a job sends, by the paths that a run takes.
//
// Units: bytes, messages, emulated picoseconds. Threading: one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/result/network_report.h"
#include "emulator/traffic/call_traffic.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/ledger.h"

namespace ghostrank {

// The path of a note's first copy, which the others share as far as they can
// (Shard::note_by_links).
struct WayOfCopies {
  std::uint32_t path = 0, paths = 0;  // 0 paths: no copy has taken links yet
};

class LinkTraffic {
 public:
  // `cluster` must outlive it.
  explicit LinkTraffic(const Cluster& cluster)
      : cluster_(cluster), links_(cluster.topology().links()) {}

  void add(std::uint32_t link, const LedgerCell& sum) {
    const Picoseconds busy = cluster_.topology().link(link).serialise(sum.bytes);
    links_[link].merge({sum.bytes, sum.messages, busy, 0});
  }

  // Calls `add` with every link that some of `sum` takes, and how much of it. If routing chooses
  // per message or flowlet, each path gets an equal share. `copies`: of the note to many that this
  // is part of; null: it is none.
  template <typename Add>
  void along(const RoutedConnection& connection, const NicPair& nics, const LedgerCell& sum,
             const Add& add, WayOfCopies* copies = nullptr) const {
    const Topology& topology = cluster_.topology();
    if (cluster_.location(connection.from).node == cluster_.location(connection.to).node) return;
    const std::uint32_t paths = topology.paths(nics.source, nics.target);
    const auto on_path = [&](std::uint32_t number, const LedgerCell& part) {
      const Path path = topology.path(nics.source, nics.target, number);
      for (int i = 0; i < path.links; ++i) add(path.link[i], part);
    };
    if (paths == 0) return;
    if (topology.one_path()) {
      WayOfCopies alone;
      WayOfCopies& first = copies ? *copies : alone;
      if (first.paths == 0) first = {topology.choose(connection, nics.source, nics.target), paths};
      return on_path(static_cast<std::uint32_t>(std::uint64_t{first.path} * paths / first.paths),
                     sum);
    }
    for (std::uint32_t number = 0; number < paths; ++number)
      on_path(number, share_of(sum, number, paths));
  }

  // Adds what so many calls send on a connection. Its messages take its queue pairs in turn. Which
  // pair has a call's first message depends on the calls before it: where that matters, each pair
  // gets an equal share.
  void add_calls(const RoutedConnection& connection, const NicPair& nics,
                 const CallTraffic::Edge& edge, std::uint64_t times);

  // By link. Whoever takes what was counted leaves zeros.
  std::vector<LinkCount>& links() { return links_; }
  const std::vector<LinkCount>& links() const { return links_; }
  // What is added is, in part, an estimate from now on.
  void add_estimates() { estimates_ = true; }
  // Whether every message is counted on the links that it takes, not on an equal share of several.
  bool is_exact() const { return cluster_.topology().one_path() && knows_pairs_ && !estimates_; }

 private:
  // One of `of` equal shares.
  static LedgerCell share_of(const LedgerCell& sum, std::uint32_t number, std::uint32_t of) {
    return {sum.bytes / of + (number < sum.bytes % of),
            sum.messages / of + (number < sum.messages % of)};
  }

  const Cluster& cluster_;
  std::vector<LinkCount> links_;
  bool knows_pairs_ = true;  // which queue pairs carry which messages
  bool estimates_ = false;
};

}  // namespace ghostrank
