#include "emulator/reporting.h"

#include <algorithm>
#include <map>

#include "emulator/result/figures.h"
#include "profiles/median.h"

namespace ghostrank {
namespace {

double busbw_factor(Func func, double n) {
  switch (func) {
    case Func::all_reduce:
      return 2 * (n - 1) / n;
    case Func::reduce_scatter:
    case Func::all_gather:
    case Func::all_to_all:
    case Func::gather:
    case Func::scatter:
    case Func::all_gather_v:
    case Func::all_to_all_v:
      return (n - 1) / n;
    default:
      return 1;
  }
}

NicTraffic per_iteration(Nic nic, const NicCount& count, double iterations) {
  const auto share = [&](std::uint64_t n) { return static_cast<double>(n) / iterations; };
  return {nic, share(count.sent.bytes), share(count.received.bytes), share(count.sent.messages),
          share(count.received.messages)};
}

void add_traffic(const SegmentReport& sum, double iterations, Result& result) {
  std::map<std::pair<Nic, Nic>, LedgerCell> pairs;
  VectorBy<Nic, NicCount> nics = sum.spilled_by_nic;
  for (const LedgerRow& row : sum.ledger) {
    count_at_nics(row, nics);
    // After a spill the files hold these pairs too; listing them here would look like a complete
    // list.
    if (sum.spilled == 0) pairs[{row.key.source_nic, row.key.target_nic}] += row.count;
  }
  for (const auto& [pair, cell] : pairs)
    result.pairs.push_back({pair.first, pair.second, static_cast<double>(cell.bytes) / iterations,
                            static_cast<double>(cell.messages) / iterations});
  LedgerCell wire;
  for (const Nic nic : nics.keys()) {
    wire += nics[nic].sent;
    if (nics[nic].sent.messages + nics[nic].received.messages > 0)
      result.nics.push_back(per_iteration(nic, nics[nic], iterations));
  }
  result.wire_bytes_per_iteration = static_cast<double>(wire.bytes) / iterations;
  result.messages_per_iteration = static_cast<double>(wire.messages) / iterations;
  result.intra_node_bytes_per_iteration = static_cast<double>(sum.intra.bytes) / iterations;
  result.intra_node_messages_per_iteration = static_cast<double>(sum.intra.messages) / iterations;
}

// Notes the files that hold the pairs.
void note_spill(const SegmentReport& sum, Result& result) {
  const std::vector<std::string>& paths = sum.spill_paths;
  result.pairs_file = paths.front();
  std::string where = paths.front();
  if (paths.size() > 1)
    where += " to " + paths.back() + " (" + std::to_string(paths.size()) +
             " files, each on the host of its shard)";
  result.notes.push_back(
      "the ledger outgrew memory" +
      (sum.spills_whole
           ? ": the pairs are in " + where + ", to be added up over rows and iterations"
           : " and the run was stopped: what was written of the pairs is in " + where));
}

void add_row(const Schedules::Row& row, const RowStats& stats, const Workload& workload,
             double iterations, Result& result) {
  if (stats.calls == 0) return;
  double members = 1;
  for (const Group& g : workload.groups) {
    if (g.kind == row.kind) members = std::max(members, static_cast<double>(g.members.size()));
  }
  CollectiveReport c;
  c.op = row.op;
  c.group = row.group;
  c.algorithm = row.algorithm;
  c.exactness = row.exactness;
  c.calls = static_cast<double>(stats.calls) / iterations;
  c.bytes = static_cast<double>(stats.bytes) / iterations;
  c.seconds_median = median({stats.seconds.values().begin(), stats.seconds.values().end()});
  const double total = stats.total.seconds();
  if (total > 0) c.algbw_GBps = static_cast<double>(stats.bytes) / total * 1e-9;
  const auto& kept = stats.without_lateness.values();
  c.seconds_error = error_of(c.seconds_median, median({kept.begin(), kept.end()}));
  c.bandwidth_error = error_of(total, total - stats.total_late.seconds());
  c.busbw_GBps = c.algbw_GBps * busbw_factor(row.func, members);
  result.collectives.push_back(std::move(c));
}

}  // namespace

void report_segment(const Segment& segment, const Workload& workload,
                    const std::vector<Schedules::Row>& rows, const SegmentReport& sum,
                    const std::vector<SegmentReport>& reports, Result& result) {
  for (const SegmentReport& r : reports) {
    result.hosts[r.host.index.index()] = r.host;
    result.interfaces.insert(result.interfaces.end(), r.interfaces.begin(), r.interfaces.end());
  }
  if (result.iterations.size() < segment.count) {
    result.notes.push_back("stopped early: traffic counts the unfinished iteration too");
  }
  const double iterations = std::max<double>(1, static_cast<double>(result.iterations.size()));
  add_traffic(sum, iterations, result);
  if (sum.spilled > 0) note_spill(sum, result);
  for (std::size_t i = 0; i < sum.rows.size(); ++i) {
    add_row(rows[i], sum.rows[i], workload, iterations, result);
  }
  if (!result.fidelity.modelled) result.fidelity.figures = step_figures(result.iterations);
  if (segment.verify) result.verify = VerifyReport{sum.checked, sum.wrong};
  result.spans = sum.spans;
  result.spans_dropped = sum.spans_dropped;
  if (sum.strays > 0) {
    result.notes.push_back(std::to_string(sum.strays) + " stray messages were dropped");
  }
}

void report_troubles(const SegmentReport& sum, const SwitchSpec& spec, Result& result) {
  SwitchTroubles troubles = sum.troubles;
  for (const Picoseconds at : spec.fails_at) troubles.failures += at < sum.end.at;
  if (troubles.any()) result.troubles = troubles;
}

void report_servers(const SegmentReport& sum, const Cluster& cluster, int cores, Result& result) {
  const double iterations = std::max<double>(1, static_cast<double>(result.iterations.size()));
  std::map<Node, ServerReport> by_node;
  double measured = 0;
  for (const IterationReport& i : result.iterations) measured += i.seconds;
  for (const HelperCount& helper : sum.helpers) {
    const Node node = cluster.location(helper.party).node;
    ServerReport& server = by_node[node];
    server.name = "n" + to_string(node);
    server.rx_bytes += static_cast<double>(helper.rx_bytes) / iterations;
    server.tx_bytes += static_cast<double>(helper.tx_bytes) / iterations;
    if (measured > 0) server.busy += seconds(helper.busy) / (measured * cores);
    server.memory_bytes += helper.memory_bytes;
  }
  for (auto& [node, server] : by_node) result.servers.push_back(std::move(server));
}

}  // namespace ghostrank
