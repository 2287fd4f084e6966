#include "emulator/assemble/capacity.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "emulator/common/blob.h"
#include "emulator/common/clock.h"
#include "emulator/fabric/local.h"
#include "emulator/shard/shard.h"

namespace ghostrank {
namespace {

// Share of the measured capacity that a run may use: well above it, queues make the run unfaithful.
constexpr double kLoad = 0.5;
// Share of a step that late messages of bursts may add up to: a quarter of the limit of `faithful`.
constexpr double kMostLate = 0.0025;

constexpr std::uint64_t kProbeBytes = 1 << 20;
constexpr int kProbeBurst = 2;
// What waits to leave during the probe: at least so many bytes, and what leaves in so many seconds.
constexpr double kProbeQueueBytes = 4 << 20, kProbeQueueSeconds = 0.1;

// Whether the queue is shorter than that. More would go on leaving long after the time is over.
bool has_room(const FabricStats& stats, double seconds) {
  const auto waiting = static_cast<double>(stats.bytes_waiting);
  const double left = static_cast<double>(stats.bytes_sent) - waiting;
  return waiting < std::max(kProbeQueueBytes, left / seconds * kProbeQueueSeconds);
}

// Flows between shard 0 of `self` and shard 0 of `other`, numbered as `self` numbers them.
std::vector<int> flows_between(const Flows& flows, Host self, Host other) {
  std::vector<int> found;
  const std::vector<FlowEnd>& mine = flows.of(self, 0);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const FlowEndpoint& far = flows.endpoint({mine[i].flow, 1 - mine[i].end});
    if (far.host == other && far.shard == 0) found.push_back(static_cast<int>(i));
  }
  return found;
}

// The least dilation at which collectives, each running as fast as its NICs and its chain of
// messages allow, have their messages handled in time: messages that are not handled by then are
// late, and kMostLate bounds their sum. `share`: the part of all messages that one thread handles.
double dilation_of_bursts(const TrafficPlan& plan, double share, double seconds_per_message,
                          double step) {
  const auto late = [&](double dilation) {
    double sum = 0;
    for (const CollectiveTraffic& row : plan.collectives) {
      const double messages = share * static_cast<double>(row.wire_messages + row.wire_credits);
      sum += std::max(0.0, messages * seconds_per_message / dilation - row.chained_seconds);
    }
    return sum;
  };
  double above = 1;
  while (late(above) > kMostLate * step) above *= 2;
  double least = above / 2;  // too small, unless 1 suffices
  while (above - least > 1) {
    const double middle = std::ceil((least + above) / 2);
    (late(middle) > kMostLate * step ? least : above) = middle;
  }
  return above;
}

// No play ends before its last message has arrived, although no step waits for one that is not
// answered. `wired`: whether one goes between nodes of a process; between processes the latency of
// the real network takes the place of the job's.
double latency_at_the_end(const JobSpec& spec, const TrafficPlan& plan, bool wired) {
  return seconds(std::max(wired ? spec.cluster.nic.latency : 0,
                          plan.intra_messages > 0 ? spec.cluster.intra_node.latency : 0));
}

}  // namespace

double measure_wire(Control& control, const Flows& flows, Fabric& fabric, std::uint64_t nonce,
                    int milliseconds, std::chrono::nanoseconds spin, double patience_s) {
  const int self = control.world().rank, size = control.world().size;
  const std::vector<int> right = flows_between(flows, Host(self), Host((self + 1) % size));
  const std::size_t left = flows_between(flows, Host(self), Host((self + size - 1) % size)).size();
  std::size_t turn = 0, ended = 0, heard_ends = 0;  // each flow has an end message of its own
  const std::int64_t began = monotonic_ns();
  const std::int64_t until = began + milliseconds * 1'000'000LL;
  const std::int64_t settled = began + (until - began) / 3;
  std::uint64_t received = 0;
  std::int64_t first = 0, last = 0;
  std::vector<Message> arrived;
  std::uint64_t moved = 0;
  std::int64_t moved_at = began;
  while (!(ended == right.size() && heard_ends == left && fabric.idle()) &&
         control.stop() == Stop::none && fabric.failure().empty()) {
    bool sent = false;  // send a small burst, then poll: a run alternates, too
    for (int n = 0; n < kProbeBurst && ended < right.size(); ++n) {
      Message m;
      m.header.nonce = nonce;
      m.header.kind = MessageKind::probe;
      const std::int64_t now = monotonic_ns();
      const bool over = now >= until;
      if (!over && !has_room(fabric.stats(), static_cast<double>(now - began + 1) * 1e-9)) break;
      m.header.bytes = over ? 0 : kProbeBytes;
      if (!fabric.try_send(right[over ? ended : turn++ % right.size()], m)) break;
      ended += over;
      sent = true;
    }
    fabric.poll(arrived);
    for (const Message& m : arrived) {
      heard_ends += m.header.bytes == 0;
      if (monotonic_ns() < settled) continue;  // skip the start: connections open, windows grow
      last = monotonic_ns();
      if (first == 0)
        first = last;
      else
        received += m.header.bytes;
    }
    if (arrived.empty() && !sent) fabric.wait(std::chrono::milliseconds(1), spin);
    arrived.clear();
    if (const std::uint64_t now = fabric.stats().moved; now != moved) {
      moved = now;
      moved_at = monotonic_ns();
    } else if (static_cast<double>(monotonic_ns() - moved_at) * 1e-9 > patience_s) {
      control.fail("nothing moved for " + std::to_string(std::lround(patience_s)) +
                   " s while the network was measured before the start (run.stall_timeout_s)");
    }
  }
  const double rate =
      last > first ? static_cast<double>(received) / (static_cast<double>(last - first) * 1e-9) : 0;
  BlobWriter mine;
  mine.put(rate);
  double slowest = rate;
  for (const std::string& blob : control.all_gather(mine.bytes())) {
    double theirs = 0;
    BlobReader(blob).get(theirs);
    if (theirs > 0) slowest = slowest > 0 ? std::min(slowest, theirs) : theirs;
  }
  return slowest;
}

double measure_engine() {
  JobSpec spec;
  spec.cluster.nodes = 8;
  spec.fabric.kind = FabricKind::virtual_time;
  Workload w;
  w.ranks = spec.cluster.gpus();
  w.group_names = {"all"};
  w.role_of.assign(w.ranks, 0);
  w.groups.push_back({0, world_ranks(w.ranks)});
  Program p;
  p.labels = {"probe"};
  Op op;
  op.kind = Op::Kind::collective;
  op.count = 1 << 20;
  p.streams.push_back({op});
  w.roles.push_back({"probe", {p}});

  const Cluster cluster(spec, w, 1);
  const Flows flows(spec, w, cluster);
  const auto fabric = make_local_fabric();
  Shard shard({spec, w, cluster, Host(0), 0, flows, *fabric, 0, {}, 0, "", {}});
  ShardShared shared(1);
  shared.fabrics = {fabric.get()};
  const std::int64_t began = monotonic_ns();
  shard.prepare({}, shared);
  shard.play(Clock::virtual_time());
  return static_cast<double>(monotonic_ns() - began) * 1e-9 /
         static_cast<double>(std::max<std::uint64_t>(1, shard.stats().messages));
}

Capacity needs_of(const JobSpec& spec, const TrafficPlan& plan, int processes, int threads,
                  double wire_bytes_per_second, double seconds_per_message, int iterations) {
  Capacity c;
  c.wire_bytes_per_second = wire_bytes_per_second;
  c.seconds_per_message = seconds_per_message;
  c.step_seconds_at_least = plan.step_seconds_at_least;
  const VectorBy<Node, Host> host_of = host_of_nodes(spec, processes);
  const auto host_of_nic = [&](Nic nic) {  // NICs of modelled switches: one process
    const Node node(nic.value() / spec.cluster.nics_per_node);
    return node.value() < host_of.size() ? host_of[node] : Host(0);  // kNoHost: not played
  };
  struct Load {
    double out_bytes = 0, in_bytes = 0, out_messages = 0, in_messages = 0;
    double wired = 0;                 // messages between nodes of the process
    double inside = 0;                // work within nodes
    std::set<Nic> out_nics, in_nics;  // NICs that exchange data with other processes
  };
  VectorBy<Host, Load> loads(processes);
  const double played =  // share of the nodes
      1 - static_cast<double>(std::count(host_of.begin(), host_of.end(), kNoHost)) /
              static_cast<double>(host_of.size());
  for (const PairTraffic& pair : plan.pairs) {
    const Host from = host_of_nic(pair.source_nic);
    const Host to = host_of_nic(pair.target_nic);
    if (from == kNoHost || to == kNoHost) {  // a slice's share is played there, but does not leave
      if (from != to) loads[from == kNoHost ? to : from].wired += pair.messages;
      continue;
    }
    if (from == to && spec.fabric.colocated != Colocated::wire) {
      loads[from].wired += pair.messages;
      continue;
    }
    loads[from].out_bytes += pair.bytes;
    loads[from].out_messages += pair.messages;
    loads[to].in_bytes += pair.bytes;
    loads[from].out_nics.insert(pair.source_nic);
    loads[to].in_nics.insert(pair.target_nic);
    loads[to].in_messages += pair.messages;
  }
  std::uint64_t credits = 0;
  for (const CollectiveTraffic& row : plan.collectives) credits += row.wire_credits;
  const double with_credits =
      plan.wire_messages == 0
          ? 1
          : 1 + static_cast<double>(credits) / static_cast<double>(plan.wire_messages);
  double busiest = 0, busiest_wire = 0, burst = 0, most_handled = 0;
  for (Load& load : loads) {
    load.inside = static_cast<double>(plan.work_inside_nodes) * played / processes;
    const double bytes = std::max(load.out_bytes, load.in_bytes);
    const double messages = std::max(load.out_messages, load.in_messages);
    const double wire = wire_bytes_per_second > 0 ? bytes / wire_bytes_per_second : 0;
    busiest_wire = std::max(busiest_wire, wire);
    // In a burst all these NICs send, or receive, at their full rate.
    const auto nics = static_cast<double>(std::max(load.out_nics.size(), load.in_nics.size()));
    if (wire > 0) {
      burst = std::max(burst, nics * spec.cluster.nic.rate_bps / 8 / wire_bytes_per_second);
    }
    const double handled = load.wired + load.out_messages + load.in_messages;
    most_handled = std::max(most_handled, handled);
    const double work = (load.inside + handled * with_credits) * seconds_per_message;
    const double seconds = wire + work / threads;
    if (seconds < busiest) continue;
    busiest = seconds;
    c.wire_bytes = bytes;
    c.wire_messages = messages;
    c.local_messages = load.wired + load.inside;
  }
  const bool wired =
      std::any_of(loads.begin(), loads.end(), [](const Load& load) { return load.wired > 0; });
  const double step =
      std::max({plan.step_seconds_at_least,
                latency_at_the_end(spec, plan, wired) / std::max(1, iterations), 1e-9});
  const double share = plan.wire_messages == 0
                           ? 0
                           : most_handled / static_cast<double>(plan.wire_messages) / threads;
  c.wire_dilation = std::max(1.0, std::ceil(std::max(busiest_wire / step, burst) / kLoad));
  c.dilation_needed = std::max({1.0, std::ceil(std::max(busiest / step, burst) / kLoad),
                                dilation_of_bursts(plan, share, seconds_per_message, step)});
  return c;
}

}  // namespace ghostrank
