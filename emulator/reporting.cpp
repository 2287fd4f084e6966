#include "emulator/reporting.h"

#include <algorithm>
#include <array>
#include <cstdio>
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

// The job of a row's calls.
std::size_t job_of_row(const Schedules::Row& row, const Workload& workload) {
  if (workload.jobs.empty()) return 0;
  for (const Group& group : workload.groups)
    if (group.kind == row.kind) return job_of(workload, group.members.front());
  return 0;
}

// The job that a helper of a scheme serves.
std::size_t job_of_helper(const Cluster& cluster, const Workload& workload, WorldParty party) {
  for (const SchemeUse& use : cluster.schemes()) {
    const int helper = party - use.first_helper;
    if (helper >= 0 && helper < std::ssize(use.helpers))
      return job_of_kind(workload, workload.groups[use.group].kind);
  }
  return 0;
}

struct PerIteration {
  double bytes = 0, messages = 0;
};

// Adds what one job sends in an iteration: the traffic of its rows, and, where the ledger outgrew
// memory, of the sums that name no row. Returns what crosses NICs of different nodes.
PerIteration add_traffic(const SegmentReport& sum, const std::vector<bool>& own_rows,
                         const VectorBy<Nic, NicCount>& without_row, double iterations,
                         Result& result) {
  const auto share = [&](std::uint64_t n) { return static_cast<double>(n) / iterations; };
  std::map<std::pair<Nic, Nic>, LedgerCell> pairs;
  VectorBy<Nic, NicCount> nics = without_row;
  for (const LedgerRow& row : sum.ledger) {
    if (!own_rows[row.key.row]) continue;
    count_at_nics(row, nics);
    // After a spill the files hold these pairs too; listing them here would look like a complete
    // list.
    if (sum.spilled == 0) pairs[{row.key.source_nic, row.key.target_nic}] += row.count;
  }
  for (const auto& [pair, cell] : pairs)
    result.pairs.push_back({pair.first, pair.second, share(cell.bytes), share(cell.messages)});
  LedgerCell wire, intra;
  for (const Nic nic : nics.keys()) {
    const auto& [sent, received] = nics[nic];
    wire += sent;
    if (sent.messages + received.messages > 0)
      result.nics.push_back({nic, share(sent.bytes), share(received.bytes), share(sent.messages),
                             share(received.messages)});
  }
  for (std::size_t row = 0; row < sum.intra.size(); ++row)
    if (own_rows[row]) intra += sum.intra[row];
  result.wire_bytes_per_iteration += share(wire.bytes);
  result.messages_per_iteration += share(wire.messages);
  result.intra_node_bytes_per_iteration += share(intra.bytes);
  result.intra_node_messages_per_iteration += share(intra.messages);
  return {share(wire.bytes), share(wire.messages)};
}

// Merges the entries of several jobs for one NIC or pair: jobs may share a switch.
void join_jobs(Result& result) {
  std::map<std::pair<Nic, Nic>, PairTraffic> pairs;
  for (const PairTraffic& one : result.pairs) {
    PairTraffic& sum = pairs[{one.source_nic, one.target_nic}];
    sum = {one.source_nic, one.target_nic, sum.bytes + one.bytes, sum.messages + one.messages};
  }
  result.pairs.clear();
  for (const auto& [key, sum] : pairs) result.pairs.push_back(sum);
  std::map<Nic, NicTraffic> nics;
  for (const NicTraffic& one : result.nics) {
    NicTraffic& sum = nics[one.nic];
    sum = {one.nic, sum.tx_bytes + one.tx_bytes, sum.rx_bytes + one.rx_bytes,
           sum.tx_messages + one.tx_messages, sum.rx_messages + one.rx_messages};
  }
  result.nics.clear();
  for (const auto& [nic, sum] : nics) result.nics.push_back(sum);
}

// Adds what every job sends in an iteration.
void add_traffic(const SegmentReport& sum, const std::vector<std::size_t>& job_of_row,
                 const std::vector<double>& played, Result& result) {
  for (std::size_t job = 0; job < played.size(); ++job) {
    std::vector<bool> own_rows;
    for (const std::size_t of : job_of_row) own_rows.push_back(of == job);
    const PerIteration own =
        add_traffic(sum, own_rows, job == 0 ? sum.spilled_by_nic : VectorBy<Nic, NicCount>{},
                    played[job], result);
    if (result.jobs.empty()) return;
    result.jobs[job].wire_bytes_per_iteration = own.bytes;
    result.jobs[job].messages_per_iteration = own.messages;
  }
  join_jobs(result);
  if (sum.spilled > 0)
    result.notes.push_back(
        "the ledger outgrew memory: the traffic of NICs is per iteration of the first job, and no "
        "job's own is known");
}

// Notes the files that hold the pairs.
void note_spill(const SegmentReport& sum, Result& result) {
  const std::vector<std::string>& paths = sum.spill_paths;
  result.pairs_file = paths.front();
  std::string where = paths.front();
  if (paths.size() > 1)
    where += " to " + paths.back() + " (" + std::to_string(paths.size()) +
             " files, each on the host of its shard)";
  std::string what;
  switch (sum.in_files) {
    case Spilled::all:
      what = ": the pairs are in " + where + ", to be added up over rows and iterations";
      break;
    case Spilled::one_segment:
      what = std::string(result.open_end ? ", and each part of the run" : ", and each iteration") +
             " overwrites the pairs of the one before: those of the last that outgrew it are in " +
             where + ", to be added up over rows" + (result.open_end ? " and iterations" : "");
      break;
    case Spilled::some:
      what = " and the run was stopped: what was written of the pairs is in " + where;
      break;
  }
  result.notes.push_back("the ledger outgrew memory" + what);
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
  c.seconds_interval = stats.seconds.median_interval();
  c.seconds_spread = stats.seconds.spread_at_median();
  const double total = stats.total.seconds();
  if (total > 0) c.algbw_GBps = static_cast<double>(stats.bytes) / total * 1e-9;
  const auto& kept = stats.without_lateness.values();
  c.seconds_error = error_of(c.seconds_median, median({kept.begin(), kept.end()}));
  c.bandwidth_error = error_of(total, total - stats.total_late.seconds());
  c.busbw_GBps = c.algbw_GBps * busbw_factor(row.func, members);
  result.collectives.push_back(std::move(c));
}

// How far the median call may be off. A call's slip is that of one member; the others, for which it
// waited or need not wait, may be as late, hence the factor 2. The machine also decides which
// message goes first at a NIC when several are due at once. Lateness does not show that, so the
// median may lie elsewhere in its interval, known no better than the spread of its kind of calls.
double median_call_error(const CollectiveReport& c) {
  if (c.seconds_median <= 0) return c.seconds_error;
  const auto [least, most] = c.seconds_interval;
  const double elsewhere =
      std::max(most - c.seconds_median, c.seconds_median - least) / c.seconds_median;
  return std::max(2 * (c.seconds_error + elsewhere), c.seconds_spread / c.seconds_median);
}

}  // namespace

void report_segment(const Segment& segment, const Workload& workload,
                    const std::vector<Schedules::Row>& rows, const SegmentReport& sum,
                    const std::vector<SegmentReport>& reports, const std::vector<double>& played,
                    Result& result) {
  for (const SegmentReport& r : reports) {
    result.hosts[r.host.index.index()] = r.host;
    result.interfaces.insert(result.interfaces.end(), r.interfaces.begin(), r.interfaces.end());
  }
  const std::size_t first = segment.job == kEveryJob ? 0 : static_cast<std::size_t>(segment.job);
  if (iterations_played(result) < segment.count_of(first)) {
    result.notes.push_back("stopped early: traffic counts the unfinished iteration too");
    std::erase(result.fidelity.valid_for, "bytes");
  }
  std::vector<std::size_t> jobs;
  for (const Schedules::Row& row : rows) jobs.push_back(job_of_row(row, workload));
  add_traffic(sum, jobs, played, result);
  if (sum.spilled > 0) note_spill(sum, result);
  if (result.slice) {
    const auto share = [&](std::uint64_t n) { return static_cast<double>(n) / played[0]; };
    result.slice->bytes_to_outside = share(sum.to_outside.bytes);
    result.slice->messages_to_outside = share(sum.to_outside.messages);
    result.slice->bytes_from_outside = share(sum.from_outside.bytes);
    result.slice->messages_from_outside = share(sum.from_outside.messages);
  }
  for (std::size_t i = 0; i < sum.rows.size(); ++i)
    add_row(rows[i], sum.rows[i], workload, played[jobs[i]], result);
  if (!result.fidelity.modelled) {
    result.fidelity.figures = step_figures(result.iterations);
    for (CollectiveReport& c : result.collectives) {
      c.seconds_error = median_call_error(c);
      for (double* const error : {&c.seconds_error, &c.bandwidth_error})
        *error = call_error(*error, result.fidelity.figures);
    }
  }
  if (segment.verify) result.verify = VerifyReport{sum.checked, sum.wrong};
  result.spans = sum.spans;
  result.spans_dropped = sum.spans_dropped;
  if (sum.strays > 0) {
    result.notes.push_back(std::to_string(sum.strays) + " stray messages were dropped");
  }
}

std::string warm_up_stall(const StallReport& stall) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(),
                "warm-up: nothing moved for %.1f s from %.1f s after its start, wall",
                stall.wall_seconds, stall.wall_start_s);
  std::string note = text.data();
  for (const int i : stall.iterations)
    note += (i == stall.iterations.front() ? "; iteration " : ", ") + std::to_string(i);
  return note;
}

void report_troubles(const SegmentReport& sum, const SwitchSpec& spec, Result& result) {
  SwitchTroubles troubles = sum.troubles;
  for (const Picoseconds at : spec.fails_at) troubles.failures += at < sum.until;
  if (troubles.any()) result.troubles = troubles;
}

void report_servers(const SegmentReport& sum, const Cluster& cluster, const Workload& workload,
                    const std::vector<double>& played_by_job, int cores, Result& result) {
  std::map<Node, ServerReport> by_node;
  const double lasted = seconds(sum.until);
  for (const HelperCount& helper : sum.helpers) {
    const Node node = cluster.location(helper.party).node;
    const double iterations = played_by_job[job_of_helper(cluster, workload, helper.party)];
    ServerReport& server = by_node[node];
    server.name = "n" + to_string(node);
    server.rx_bytes += static_cast<double>(helper.rx_bytes) / iterations;
    server.tx_bytes += static_cast<double>(helper.tx_bytes) / iterations;
    // A modelled switch has one processor.
    const bool is_switch = cluster.topology().is_switch(cluster.location(helper.party).nic);
    if (lasted > 0) server.busy += seconds(helper.busy) / (lasted * (is_switch ? 1 : cores));
    server.memory_bytes += helper.memory_bytes;
  }
  for (auto& [node, server] : by_node) {
    // Work counts when it begins, and some may be left when the run ends.
    server.busy = std::min(server.busy, 1.0);
    result.servers.push_back(std::move(server));
  }
}

}  // namespace ghostrank
