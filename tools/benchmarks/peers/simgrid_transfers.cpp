// Transfers over a contended fat tree, played by `flow` and by SimGrid: the same ones, at the same
// times, over the same links. Both share links max-min fairly; links have no latency, so SimGrid,
// too, gives all transfers of a link equal shares.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "collectives/common/dice.h"
#include "collectives/routing.h"
#include "emulator/network/topology.h"
#include "tools/benchmarks/jobs.h"
#include "tools/benchmarks/peers/simgrid.h"

namespace ghostrank::bench {
namespace {

namespace sg = simgrid::s4u;

constexpr double kWithin = 20e-3;  // seconds in which all of them begin

struct Transfer {
  int from = 0, to = 0;
  std::uint64_t bytes = 0;
  Picoseconds at = 0;
  std::uint8_t stream = 0;  // of the receiver
};

// Random transfers between hosts, ordered by when they begin.
std::vector<Transfer> transfers_between(int hosts) {
  checking::Dice dice(1);
  std::vector<Transfer> out;
  for (int from = 0; from < hosts; ++from)
    for (int i = 0; i < kTransfersEach; ++i) {
      const int away = 1 + static_cast<int>(dice.below(static_cast<std::uint64_t>(hosts) - 1));
      const std::uint64_t bytes = std::uint64_t{1} << (20 + dice.below(6));
      const auto at = dice.below(static_cast<std::uint64_t>(kWithin * kPicosPerSecond));
      out.push_back({from, (from + away) % hosts, bytes, static_cast<Picoseconds>(at)});
    }
  std::sort(out.begin(), out.end(),
            [](const Transfer& a, const Transfer& b) { return a.at < b.at; });
  return out;
}

// A leaf's up-links carry half of what its hosts can send, a pod's a quarter. Paths follow from the
// receiver alone, so that ghostrank and SimGrid take the same ones.
ClusterSpec cluster_of(int hosts) {
  ClusterSpec cluster;
  cluster.nodes = hosts;
  cluster.gpus_per_node = cluster.nics_per_node = 1;
  cluster.nic = {kBitsPerSecond, 0};
  TopologySpec& topology = cluster.topology;
  topology.kind = TopologySpec::Kind::fat_tree;
  topology.pods = 4;
  topology.leaves = hosts / 16;
  topology.oversubscription = topology.pod_oversubscription = 2;
  const auto rows = routings();
  topology.routing = &*std::find_if(rows.begin(), rows.end(),
                                    [](const Routing& row) { return row.name == "static"; });
  return cluster;
}

// A job in which every transfer has a stream of its own at both ends. Stores the receiver's stream
// in `transfers`.
BenchJob job_of(int hosts, std::vector<Transfer>& transfers, int times) {
  BenchJob b = collective_job(FabricKind::virtual_time, hosts, hosts, {}, 0);
  JobSpec& spec = b.job.spec;
  spec.cluster = cluster_of(hosts);
  spec.fabric.network = NetworkModel::flow;
  spec.run.warmup = times - 1;
  b.workload.roles.assign(hosts, {"host", {Program{}}});
  for (int i = 0; i < hosts; ++i) {
    b.workload.role_of[WorldRank(i)] = static_cast<std::uint16_t>(i);
    b.workload.roles[i].iterations[0].labels = {"op"};
  }
  const auto stream = [&](int host, OpList ops) {
    Program& program = b.workload.roles[host].iterations[0];
    program.streams.push_back(std::move(ops));
    program.stream_names.push_back("transfer");
    return static_cast<std::uint8_t>(program.streams.size() - 1);
  };
  for (Transfer& t : transfers) {
    Op before, op;
    before.duration = t.at;
    op.kind = Op::Kind::send;
    op.count = t.bytes / 4;
    op.peer = t.to - t.from;
    stream(t.from, {before, op});
    op.kind = Op::Kind::recv;
    op.peer = t.from - t.to;
    t.stream = stream(t.to, {op});
  }
  return b;
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

Played play_transfers_as_flows(int hosts, int times) {
  std::vector<Transfer> transfers = transfers_between(hosts);
  const double began = cpu_seconds();
  const BenchJob job = job_of(hosts, transfers, times);
  RunOptions options;
  for (int i = 0; i < hosts; ++i) options.trace_ranks.push_back(WorldRank(i));
  const auto control = Control::meet(World{});
  Observer nobody;
  const Result result = run_job(job.job, job.workload, *control, options, nobody);
  std::map<std::pair<int, std::uint8_t>, double> ends;
  for (const Span& s : result.spans)
    if (s.kind == 2)  // a wait for the step's end would be a stream's last
      ends[{s.rank.value(), s.stream}] =
          static_cast<double>(s.start + s.duration) / static_cast<double>(kPicosPerSecond);
  Played played{result.hosts.front().cpu_seconds};
  for (const Transfer& t : transfers) played.ends.push_back(ends.at({t.to, t.stream}));
  played.whole_cpu_seconds = cpu_seconds() - began;
  return played;
}

Played play_transfers_in_simgrid(int hosts, int times) {
  const std::vector<Transfer> transfers = transfers_between(hosts);
  const double began = cpu_seconds();
  JobSpec spec;
  spec.cluster = cluster_of(hosts);
  spec.fabric.kind = FabricKind::virtual_time;
  const Topology topology(spec);

  const auto engine = make_engine();
  sg::NetZone* const zone = sg::create_full_zone("cluster");
  std::vector<sg::Host*> host;
  std::vector<sg::Link*> out, in, link;
  const auto new_link = [&](const std::string& kind, std::size_t i, double bits_per_second) {
    return zone->create_link(kind + std::to_string(i), bits_per_second / 8)->set_latency(0)->seal();
  };
  for (int i = 0; i < hosts; ++i) {
    host.push_back(zone->create_host("host" + std::to_string(i), 1e9)->seal());
    out.push_back(new_link("out", i, kBitsPerSecond));
    in.push_back(new_link("in", i, kBitsPerSecond));
  }
  for (std::uint32_t i = 0; i < topology.links(); ++i)
    link.push_back(new_link("link", i, 8e12 / topology.link(i).ps_per_byte));
  std::set<std::pair<int, int>> routed;
  for (const Transfer& t : transfers) {
    if (!routed.insert({t.from, t.to}).second) continue;
    std::vector<sg::LinkInRoute> route{sg::LinkInRoute(out[t.from])};
    const Nic from(t.from), to(t.to);
    if (topology.paths(from, to) > 0) {
      const RoutedConnection connection{0, 0, WorldRank(t.from), WorldRank(t.to)};
      const Path path = topology.path(from, to, topology.choose(connection, from, to));
      for (int i = 0; i < path.links; ++i) route.emplace_back(link[path.link[i]]);
    }
    route.emplace_back(in[t.to]);
    zone->add_route(host[t.from]->get_netpoint(), host[t.to]->get_netpoint(), nullptr, nullptr,
                    route, false);
  }
  zone->seal();

  Played played;
  sg::Actor::create("sender", host[0], [&] {
    for (int time = 0; time < times; ++time) {
      const double now = sg::Engine::get_clock(), before = cpu_seconds();
      std::vector<sg::CommPtr> comms;
      for (const Transfer& t : transfers) {
        const double at = static_cast<double>(t.at) / static_cast<double>(kPicosPerSecond);
        sg::this_actor::sleep_until(now + at);
        comms.push_back(sg::Comm::sendto_async(host[t.from], host[t.to], t.bytes));
      }
      sg::Comm::wait_all(comms);
      played.cpu_seconds = cpu_seconds() - before;
      played.ends.clear();
      for (const sg::CommPtr& comm : comms) played.ends.push_back(comm->get_finish_time() - now);
    }
  });
  engine->run();
  played.whole_cpu_seconds = cpu_seconds() - began;
  return played;
}

Apart transfers_apart(int hosts) {
  const std::vector<Transfer> transfers = transfers_between(hosts);
  const Played flows = play_transfers_as_flows(hosts, 1),
               simgrid = play_transfers_in_simgrid(hosts, 1);
  Apart out;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const double began =
        static_cast<double>(transfers[i].at) / static_cast<double>(kPicosPerSecond);
    const double off = std::abs(flows.ends[i] - simgrid.ends[i]) / (simgrid.ends[i] - began);
    out.worst = std::max(out.worst, off);
    out.mean += off / static_cast<double>(transfers.size());
  }
  return out;
}

std::unique_ptr<sg::Engine> make_engine() {
  static std::string name = "bench", quiet = "--log=root.thres:warning";
  static char* argv[] = {name.data(), quiet.data(), nullptr};
  int argc = 2;
  auto engine = std::make_unique<sg::Engine>(&argc, argv);
  for (const char* setting :
       {"network/model:CM02", "network/crosstraffic:no", "network/TCP-gamma:0",
        "surf/precision:1e-12", "maxmin/precision:1e-9"})
    sg::Engine::set_config(setting);
  return engine;
}

}  // namespace ghostrank::bench
