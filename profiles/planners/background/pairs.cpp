#include "profiles/planners/background/pairs.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/planners/background/background.h"
#include "profiles/planners/background/pattern.h"
#include "profiles/workload/traffic_pattern.h"

namespace ghostrank {
namespace {

constexpr double kMostBytes = 1LL << 50;  // as of the key `bytes`

// A free name for a kind of group: that of the pattern, or with a number behind it.
std::string new_name(Pattern pattern, const std::vector<std::string>& known) {
  std::string name = name_of(pattern);
  for (int n = 2; std::find(known.begin(), known.end(), name) != known.end(); ++n)
    name = name_of(pattern) + "." + std::to_string(n);
  return name;
}

// Adds a kind of group with these communicators. The first member of each is its server or, in an
// incast, its receiver. A communicator of one member is left out.
Service add_service(std::size_t background, Pattern pattern, std::uint64_t bytes,
                    std::vector<std::vector<WorldRank>> groups, Workload& workload) {
  Service service{background, static_cast<std::uint16_t>(workload.group_names.size()), bytes,
                  VectorBy<WorldRank, ServicePart>(workload.ranks, ServicePart::none)};
  for (std::vector<WorldRank>& members : groups) {
    if (members.size() < 2) continue;
    for (const WorldRank rank : members)
      service.part[rank] = is_one_to_one(pattern)    ? ServicePart::peer
                           : rank == members.front() ? ServicePart::server
                                                     : ServicePart::client;
    workload.groups.push_back({service.kind, std::move(members)});
  }
  workload.group_names.push_back(new_name(pattern, workload.group_names));
  workload.services.push_back(service.kind);
  return service;
}

// Checkpoints and data: a server with those of its clients that move equal amounts.
void add_stored(const JobSpec& spec, std::size_t b, Workload& workload,
                std::vector<Service>& services) {
  const std::vector<std::uint64_t> bytes = background_bytes(spec, workload, spec.background[b]);
  const std::size_t servers = workload.servers;
  const WorldRank first_server(workload.ranks - workload.servers);
  for (const std::uint64_t amount : std::set<std::uint64_t>(bytes.begin(), bytes.end())) {
    if (amount == 0) continue;
    std::vector<std::vector<WorldRank>> groups(servers);
    for (std::size_t s = 0; s < servers; ++s)
      groups[s].push_back(first_server + static_cast<int>(s));
    for (const WorldRank rank : each<WorldRank>(first_server.value()))
      if (bytes[workload.role_of[rank]] == amount) groups[rank.index() % servers].push_back(rank);
    services.push_back(
        add_service(b, spec.background[b].pattern, amount, std::move(groups), workload));
  }
}

// Groups among the ranks that train. Rank g of a node sends only to rank g of another node, except
// in an incast: its senders are the first ranks of all other nodes, then the second ones.
std::vector<std::vector<WorldRank>> groups_of_pattern(const JobSpec& spec,
                                                      const Background& background,
                                                      std::uint64_t seed) {
  const int nodes = spec.cluster.nodes, gpus = spec.cluster.gpus_per_node;
  const auto rank_of = [&](int node, int gpu) { return WorldRank(node * gpus + gpu); };
  std::vector<std::vector<WorldRank>> groups;
  if (background.pattern == Pattern::incast) {
    const int fan_in = background.fan_in > 0 ? background.fan_in : nodes - 1;
    groups.push_back({WorldRank(0)});
    for (int i = 0; i < fan_in; ++i)
      groups[0].push_back(rank_of(1 + i % (nodes - 1), i / (nodes - 1)));
  } else if (background.pattern == Pattern::bisection) {
    for (int node = 0; node < nodes / 2; ++node)
      for (int gpu = 0; gpu < gpus; ++gpu)
        groups.push_back({rank_of(node, gpu), rank_of(node + nodes / 2, gpu)});
  } else {  // one cycle through all nodes
    const VectorBy<WorldRank, WorldRank> target = random_cycle(nodes, seed);
    groups.resize(static_cast<std::size_t>(gpus));
    WorldRank node(0);
    for (int i = 0; i < nodes; ++i, node = target[node])
      for (int gpu = 0; gpu < gpus; ++gpu)
        groups[static_cast<std::size_t>(gpu)].push_back(rank_of(node.value(), gpu));
  }
  return groups;
}

// The longest compute of a rank in one step.
Picoseconds compute_of_step(const Workload& workload) {
  Picoseconds longest = 0;
  for (const Role& role : workload.roles) {
    const OpList& ops = role.iterations.back().streams.front();
    const std::vector<std::uint64_t> times = ops.times();
    Picoseconds sum = 0;
    for (std::size_t i = 0; i < times.size(); ++i)
      if (const Op& op = ops.distinct()[i]; op.kind == Op::Kind::compute)
        sum += op.duration * static_cast<Picoseconds>(times[i]);
    longest = std::max(longest, sum);
  }
  return longest;
}

}  // namespace

void check_pattern(const JobSpec& spec, const Background& background) {
  const int nodes = spec.cluster.nodes, gpus = spec.cluster.gpus_per_node;
  const std::string what = background.source + ": pattern: " + name_of(background.pattern);
  if (nodes < 2)
    throw Error(what +
                " goes between nodes and the job has one; give it more, by cluster.nodes or " +
                "by its nodes in jobs");
  if (background.pattern == Pattern::bisection && nodes % 2 != 0)
    throw Error(what + " needs two halves and there are " + std::to_string(nodes) +
                " nodes; take an even number");
  const std::int64_t most = std::int64_t{nodes - 1} * gpus;
  if (background.fan_in > most)
    throw Error(background.source + ": fan_in is " + std::to_string(background.fan_in) +
                " but the nodes without the receiver have " + std::to_string(most) +
                " ranks; lower it");
}

std::vector<Service> make_services(const JobSpec& spec, Workload& workload) {
  std::vector<Service> services;
  for (std::size_t b = 0; b < spec.background.size(); ++b) {
    const Background& background = spec.background[b];
    if (is_stored(background.pattern)) {
      add_stored(spec, b, workload, services);
      continue;
    }
    std::uint64_t bytes = background.bytes;
    if (bytes == 0) {
      const double carried =
          background.rate_bps / 8 * background.over * seconds(compute_of_step(workload));
      if (carried > kMostBytes)
        throw Error(background.source + ": while a step computes, " +
                    rate_text(background.rate_bps) + " carries " + number_text(carried) +
                    " bytes, at most " + number_text(kMostBytes) + " are supported; lower rate");
      bytes = static_cast<std::uint64_t>(carried);
    }
    if (bytes == 0)
      throw Error(background.source + ": the steps compute nothing meanwhile, so a rate gives no " +
                  "bytes; add bytes, as in {pattern: " + name_of(background.pattern) +
                  ", bytes: 64MiB}");
    services.push_back(add_service(b, background.pattern, bytes,
                                   groups_of_pattern(spec, background, spec.run.seed + b),
                                   workload));
  }
  return services;
}

}  // namespace ghostrank
