// A ring all-reduce on links that nothing shares, played three ways: by `loggp`, by SimGrid's
// actors and by SMPI. All send the same messages, whose latency and rate are the same.
#include <cmath>
#include <ctime>
#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>
#include <stdexcept>
#include <string>

#include "tools/benchmarks/jobs.h"
#include "tools/benchmarks/peers/simgrid.h"

namespace ghostrank::bench {
namespace {

namespace sg = simgrid::s4u;

constexpr Picoseconds kLatency = 2 * kPicosPerMicro;

std::vector<sg::Host*> hosts_of(sg::NetZone& zone, int ranks) {
  std::vector<sg::Host*> hosts;
  for (int i = 0; i < ranks; ++i)
    hosts.push_back(zone.create_host("host" + std::to_string(i), 1e9)->seal());
  return hosts;
}

Played run(sg::Engine& engine) {
  const std::clock_t began = std::clock();
  engine.run();
  return {static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC, {sg::Engine::get_clock()}};
}

}  // namespace

Played play_ring_by_loggp(int ranks) {
  BenchJob b = collective_job(
      FabricKind::virtual_time, ranks, ranks,
      collective(Func::all_reduce, static_cast<std::uint64_t>(ranks) * kChunk / 4), 1);
  b.job.spec.cluster.nic = {kBitsPerSecond, kLatency};
  b.job.spec.run.warmup = 0;
  const Result result = play_alone(b);
  if (result.messages_per_iteration != ring_messages(ranks))
    throw std::runtime_error("the ring has another number of messages");
  return {result.hosts.front().cpu_seconds, {result.iterations.front().seconds}};
}

Played play_ring_by_actors(int ranks) {
  const auto engine = make_engine();
  sg::NetZone* const zone = sg::create_full_zone("cluster");
  const std::vector<sg::Host*> host = hosts_of(*zone, ranks);
  for (int i = 0; i < ranks; ++i) {
    const sg::Link* link = zone->create_link("link" + std::to_string(i), kBitsPerSecond / 8)
                               ->set_latency(seconds(kLatency))
                               ->seal();
    zone->add_route(host[i]->get_netpoint(), host[(i + 1) % ranks]->get_netpoint(), nullptr,
                    nullptr, {sg::LinkInRoute(link)}, false);
  }
  zone->seal();
  for (int i = 0; i < ranks; ++i)
    sg::Actor::create("rank", host[i], [ranks, i] {
      static char chunk = 0;
      sg::Mailbox* const own = sg::Mailbox::by_name(std::to_string(i));
      sg::Mailbox* const next = sg::Mailbox::by_name(std::to_string((i + 1) % ranks));
      for (int step = 0; step < 2 * (ranks - 1); ++step) {
        char* got = nullptr;
        const sg::CommPtr in = own->get_async(&got), out = next->put_async(&chunk, kChunk);
        in->wait();
        out->wait();
      }
    });
  return run(*engine);
}

// Hosts at one switch; each host's link has half of the latency. The ranks are those of SMPI's
// replay of traces, which neither copies nor adds payload, but they call MPI themselves instead of
// reading a trace.
Played play_ring_by_smpi(int ranks) {
  const auto engine = make_engine();
  smpi_init_options();  // before it, SMPI has no settings
  for (const char* setting : {"smpi/allreduce:lr", "smpi/simulate-computation:no"})
    sg::Engine::set_config(setting);
  SMPI_init();
  sg::NetZone* const zone = sg::create_star_zone("cluster");
  const std::vector<sg::Host*> host = hosts_of(*zone, ranks);
  // The ring begins with a message of each rank to itself, which takes no time.
  const sg::Link* own = zone->create_link("own", 1e30)->set_latency(0)->seal();
  for (int i = 0; i < ranks; ++i) {
    const sg::Link* link =
        zone->create_split_duplex_link("link" + std::to_string(i), kBitsPerSecond / 8)
            ->set_latency(seconds(kLatency) / 2)
            ->seal();
    const auto at = host[i]->get_netpoint();
    zone->add_route(at, nullptr, nullptr, nullptr,
                    {sg::LinkInRoute(link, sg::LinkInRoute::Direction::UP)});
    zone->add_route(at, at, nullptr, nullptr, {sg::LinkInRoute(own)});
  }
  zone->seal();
  SMPI_app_instance_register("ring", nullptr, ranks);
  for (int i = 0; i < ranks; ++i)
    sg::Actor::create("rank", host[i], [ranks, i] {
      static float from = 0, to = 0;  // never read or written
      smpi_replay_init("ring", i, 0);
      MPI_Allreduce(&from, &to, static_cast<int>(kChunk / sizeof from) * ranks, MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
      MPI_Finalize();
    });
  const Played played = run(*engine);
  SMPI_finalize();
  return played;
}

std::optional<double> ring_apart(int ranks, Played (*play)(int ranks)) {
  const auto took = [&](Played (*ring)(int)) {
    return in_child([&] { return ring(ranks).ends.at(0); });
  };
  const auto ours = took(play_ring_by_loggp), theirs = took(play);
  if (!ours || !theirs) return std::nullopt;
  return std::abs(ours->said / theirs->said - 1);
}

}  // namespace ghostrank::bench
