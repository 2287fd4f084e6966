#include "profiles/planners/background.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "profiles/error.h"
#include "profiles/job/optimizer.h"
#include "profiles/model/model.h"
#include "profiles/planners/megatron/plan.h"
#include "profiles/workload/program_builder.h"
#include "profiles/workload/traffic_pattern.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kMostChunks = 100'000;  // of a rank in one step
constexpr std::uint64_t kLongestCycle = 100'000, kMostPrograms = 256;

constexpr std::array kKeys{
    Key{"pattern", KeyType::choice, kRequired,
        "checkpoint: ranks write weights and optimizer state; data: ranks read samples; between "
        "ranks of different nodes: incast: several send to rank 0; permutation: each sends to one "
        "and receives from one, drawn from run.seed; bisection: each half of the nodes sends to "
        "the other",
        0, 0, "checkpoint data incast permutation bisection"},
    Key{"fan_in", KeyType::integer, "0",
        "senders of an incast, in turn over the other nodes; 0: one of every other node", 0, 1e6},
    Key{"every", KeyType::integer, "1",
        "period in steps; it happens in the last step of each, counted from the first one played, "
        "warm-up included",
        1, 1e5},
    Key{"over", KeyType::integer, "1", "steps that share the bytes: that one and those after it", 1,
        1e5},
    Key{"bytes", KeyType::size, "0",
        "checkpoint: of all ranks together; data: of one sample; 0: what the model says "
        "(parameters and optimizer; 8 bytes per token); incast, permutation, bisection: of one "
        "sender; 0: what its rate carries while a step computes",
        0, 1LL << 50},
    Key{"rate", KeyType::rate, "0",
        "at which a rank writes, is served or sends; 0: as fast as the fabric", 0, 1e18},
    Key{"chunk", KeyType::size, "4MiB", "largest message", 1, 1LL << 40},
    Key{"at_once", KeyType::integer, "1", "messages of a rank in flight at once", 1, kMaxAtOnce},
    Key{"blocking", KeyType::boolean, "false",
        "whether it begins only after the step's compute; if not, it overlaps the step"},
};

using Pattern = Background::Pattern;

constexpr std::array<std::string_view, 5> kPatterns{"checkpoint", "data", "incast", "permutation",
                                                    "bisection"};  // by Pattern

std::string name_of(Pattern pattern) {
  return std::string(kPatterns.at(static_cast<std::size_t>(pattern)));
}

Pattern pattern_named(std::string_view text) {
  return static_cast<Pattern>(std::find(kPatterns.begin(), kPatterns.end(), text) -
                              kPatterns.begin());
}

bool is_stored(Pattern pattern) {
  return pattern == Pattern::checkpoint || pattern == Pattern::data;
}
// Every rank sends to one other.
bool is_one_to_one(Pattern pattern) {
  return pattern == Pattern::permutation || pattern == Pattern::bisection;
}

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

// Bytes per parameter: the fp32 weight, the optimizer's moments and, if the parameters' type is not
// fp32, the weight in that type.
std::uint64_t state_bytes(const Precision& precision) {
  const std::uint64_t product =
      precision.parameters == DataType::float32 ? 0 : bytes_of(precision.parameters);
  return product + 4u * (1 + moments_of(precision));
}

std::vector<std::uint64_t> ranks_by_role(const Workload& workload) {
  std::vector<std::uint64_t> ranks(workload.roles.size());
  for (const std::uint16_t role : workload.role_of) ++ranks[role];
  return ranks;
}

// Bytes per rank of a checkpoint, by role of a Megatron job, because each stage has its own
// parameters.
std::vector<std::uint64_t> megatron_checkpoint(const JobSpec& spec, const Workload& workload) {
  const MegatronPlan plan = megatron_plan(spec);
  const std::vector<std::uint64_t> ranks = ranks_by_role(workload);
  const std::size_t per_stage = plan.roles_per_stage();
  const std::uint64_t copies = plan.pipeline.is_bidirectional() ? 2 : 1;
  std::vector<std::uint64_t> bytes;
  for (int stage = 0; stage < plan.pp; ++stage) {
    const auto first = stage * per_stage;
    const std::uint64_t holders =
        std::accumulate(ranks.begin() + static_cast<std::ptrdiff_t>(first),
                        ranks.begin() + static_cast<std::ptrdiff_t>(first + per_stage),
                        std::uint64_t{0}) *
        copies;
    bytes.insert(bytes.end(), per_stage,
                 divide_up(megatron_stored(plan, stage) * state_bytes(spec.precision), holders));
  }
  return bytes;
}

std::vector<std::uint64_t> checkpoint_bytes(const JobSpec& spec, const Workload& workload,
                                            std::uint64_t given) {
  if (given == 0 && spec.parallel.framework == Framework::megatron)
    return megatron_checkpoint(spec, workload);
  const std::uint64_t all =
      given > 0 ? given : spec.model->parameters() * state_bytes(spec.precision);
  const std::uint64_t trainers = workload.ranks - workload.servers;
  return std::vector<std::uint64_t>(workload.roles.size(), divide_up(all, trainers));
}

std::vector<std::uint64_t> data_bytes(const JobSpec& spec, const Workload& workload,
                                      const Background& background) {
  const auto tokens = static_cast<std::uint64_t>(std::max(0, spec.model->sequence));
  const std::uint64_t sample = background.bytes > 0 ? background.bytes : 8 * tokens;
  if (sample == 0)
    throw Error(background.source + ": the model's samples are no tokens, so their size is not " +
                "known; add bytes, as in {pattern: data, bytes: 110KiB}");
  const auto samples = static_cast<std::uint64_t>(workload.samples_per_iteration);
  const std::vector<std::uint64_t> ranks = ranks_by_role(workload);
  std::size_t readers = workload.roles.size();  // the first `readers` roles read
  if (spec.parallel.framework == Framework::megatron)
    readers = megatron_plan(spec).roles_per_stage();
  const std::uint64_t among = std::accumulate(
      ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(readers), std::uint64_t{0});
  std::vector<std::uint64_t> bytes(workload.roles.size());
  std::fill_n(bytes.begin(), readers, divide_up(samples * sample, among));
  return bytes;
}

// ---- Groups ----

enum class Part : std::uint8_t { none, client, server, peer };  // of a rank in a service

struct Service {
  std::size_t background = 0;
  std::uint16_t kind = 0;
  std::uint64_t bytes = 0;         // per client or peer and transfer
  VectorBy<WorldRank, Part> part;  // by rank
};

// A free name for a kind of group: that of the pattern, or with a number behind it.
std::string new_name(Pattern pattern, const std::vector<std::string>& known) {
  std::string name = name_of(pattern);
  for (int n = 2; std::find(known.begin(), known.end(), name) != known.end(); ++n)
    name = name_of(pattern) + "." + std::to_string(n);
  return name;
}

// Adds a kind of group whose communicators have these members, the server of each, or the receiver,
// first. Members alone are left out.
Service add_service(std::size_t background, Pattern pattern, std::uint64_t bytes,
                    std::vector<std::vector<WorldRank>> groups, Workload& workload) {
  Service service{background, static_cast<std::uint16_t>(workload.group_names.size()), bytes,
                  VectorBy<WorldRank, Part>(workload.ranks, Part::none)};
  for (std::vector<WorldRank>& members : groups) {
    if (members.size() < 2) continue;
    for (const WorldRank rank : members)
      service.part[rank] = is_one_to_one(pattern)    ? Part::peer
                           : rank == members.front() ? Part::server
                                                     : Part::client;
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

// Among the ranks that train: who sends to whom. Rank g of a node only talks to rank g of others,
// but for an incast, whose senders are the first ranks of all other nodes, then the second ones.
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

void check_pattern(const JobSpec& spec, const Background& background) {
  const int nodes = spec.cluster.nodes, gpus = spec.cluster.gpus_per_node;
  const std::string what = background.source + ": pattern: " + name_of(background.pattern);
  if (nodes < 2)
    throw Error(what + " goes between nodes and the cluster has one; set cluster.nodes");
  if (background.pattern == Pattern::bisection && nodes % 2 != 0)
    throw Error(what + " needs two halves and cluster.nodes is " + std::to_string(nodes) +
                "; take an even number");
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
    if (bytes == 0)
      bytes = static_cast<std::uint64_t>(background.rate_bps / 8 * background.over *
                                         seconds(compute_of_step(workload)));
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

// ---- Steps ----

// Which of its `over` parts a background transfers in an iteration; empty: none.
std::optional<int> part_in(const Background& background, std::uint64_t iteration) {
  const std::uint64_t every = background.every;
  if (iteration + 1 < every) return std::nullopt;
  const auto since = static_cast<int>((iteration + 1) % every);
  return since < background.over ? std::optional(since) : std::nullopt;
}

struct Variant {
  std::size_t base = 0;                  // program of the plan without background
  std::vector<std::optional<int>> part;  // by background
  auto operator<=>(const Variant&) const = default;
};

// The distinct programs of a job with background; the one most frequent in the steady state is
// last.
std::vector<Variant> order_variants(const JobSpec& spec, Workload& workload) {
  std::size_t bases = 1;
  for (const Role& role : workload.roles) bases = std::max(bases, role.iterations.size());
  std::uint64_t cycle = 1, settled = bases - 1;
  for (const Background& b : spec.background) {
    cycle = std::lcm(cycle, static_cast<std::uint64_t>(b.every));
    settled = std::max(settled, static_cast<std::uint64_t>(b.every) - 1);
    if (cycle > kLongestCycle)
      throw Error(b.source + ": the values of every coincide again after " + std::to_string(cycle) +
                  " steps only, at most " + std::to_string(kLongestCycle) +
                  " are supported; choose multiples of one number");
  }
  std::vector<Variant> all;
  std::map<Variant, std::uint64_t> steady;
  for (std::uint64_t i = 0; i < settled + cycle; ++i) {
    Variant variant{std::min<std::size_t>(i, bases - 1), {}};
    for (const Background& b : spec.background) variant.part.push_back(part_in(b, i));
    if (i >= settled) ++steady[variant];
    all.push_back(std::move(variant));
  }
  const auto rarer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const Variant last = std::max_element(steady.begin(), steady.end(), rarer)->first;
  std::vector<Variant> variants;
  for (const Variant& variant : all)
    if (variant != last && std::find(variants.begin(), variants.end(), variant) == variants.end())
      variants.push_back(variant);
  variants.push_back(last);
  if (variants.size() > kMostPrograms)
    throw Error(spec.background.front().source + ": " + std::to_string(variants.size()) +
                " steps differ from each other, at most " + std::to_string(kMostPrograms) +
                " are supported; lower over");
  for (const Variant& variant : all)
    workload.order.push_back(static_cast<std::uint32_t>(
        std::find(variants.begin(), variants.end(), variant) - variants.begin()));
  workload.cycle = static_cast<std::uint32_t>(cycle);
  return variants;
}

// ---- Programs ----

// Bytes of the first `parts` of `over` parts.
std::uint64_t bytes_until(std::uint64_t bytes, int parts, int over) {
  const std::uint64_t p = parts, all = over;
  return bytes / all * p + bytes % all * p / all;
}

// The bytes of one service in one step.
std::uint64_t bytes_of_part(const Background& background, const Service& service, int part) {
  const std::uint64_t bytes = bytes_until(service.bytes, part + 1, background.over) -
                              bytes_until(service.bytes, part, background.over);
  if (divide_up(bytes, background.chunk) > kMostChunks)
    throw Error(background.source + ": " + std::to_string(bytes) +
                " bytes of a rank are more than " + std::to_string(kMostChunks) +
                " chunks; use a larger chunk");
  return bytes;
}

// Holds `stream` back for as long as a chunk takes at the background's rate.
void pace(const Background& background, std::uint64_t chunk, std::size_t stream,
          std::size_t control, ProgramBuilder& out) {
  const double seconds = static_cast<double>(chunk) * 8 / background.rate_bps;
  out.compute(control, "pace",
              static_cast<Picoseconds>(seconds * static_cast<double>(kPicosPerSecond)));
  out.after(stream, control);
}

// Chunks between a server and its clients. The server answers one request for all chunks (data), or
// confirms when it has received them all (checkpoint, incast), so that servers and clients keep in
// step. With a rate, the sender holds each chunk back until the earlier ones have had their time.
Program transfers(const Background& background, const Service& service, int part, bool serves) {
  constexpr std::size_t kChunks = 0, kControl = 1;
  const bool loads = background.pattern == Pattern::data;
  const bool paced = background.rate_bps > 0 && serves == loads;
  const std::string name = name_of(background.pattern);
  std::vector<std::string> streams{name};
  if (loads || paced || serves) streams.push_back(name + " control");
  ProgramBuilder out(std::move(streams));
  out.at_once(kChunks, static_cast<std::uint8_t>(background.at_once));
  std::uint64_t left = bytes_of_part(background, service, part);
  if (loads) {
    out.collective(kControl, "request", Func::gather, service.kind, DataType::uint8, 0);
    out.after(kChunks, kControl);
  }
  while (left > 0) {
    const std::uint64_t chunk = std::min(left, background.chunk);
    left -= chunk;
    out.collective(kChunks, name, loads ? Func::scatter : Func::gather, service.kind,
                   DataType::uint8, chunk);
    if (paced && left > 0) pace(background, chunk, kChunks, kControl, out);
  }
  if (!loads) {  // a client's call queues behind its chunks, because a group's calls have one order
    const std::size_t stream = serves ? kControl : kChunks;
    out.after(stream, kChunks);
    out.collective(stream, "written", Func::scatter, service.kind, DataType::uint8, 0);
  }
  return out.take();
}

// Chunks to the next member of the group, and as many from the one before.
Program exchange(const Background& background, const Service& service, int part) {
  constexpr std::size_t kOut = 0, kIn = 1, kControl = 2;
  const std::string name = name_of(background.pattern);
  const bool paced = background.rate_bps > 0;
  std::vector<std::string> streams{name, name + " in"};
  if (paced) streams.push_back(name + " control");
  ProgramBuilder out(std::move(streams));
  const std::uint32_t label = out.label(name);
  for (std::uint64_t left = bytes_of_part(background, service, part); left > 0;) {
    const std::uint64_t chunk = std::min(left, background.chunk);
    left -= chunk;
    out.send(kOut, label, service.kind, 1, DataType::uint8, chunk);
    out.recv(kIn, label, service.kind, -1, DataType::uint8, chunk);
    if (paced && left > 0) pace(background, chunk, kOut, kControl, out);
  }
  return out.take();
}

// Adds the streams of `extra` to `program`; `blocking`: they start after its whole compute stream.
void append(Program& program, Program extra, bool blocking) {
  const auto labels = static_cast<std::uint32_t>(program.labels.size());
  program.at_once.resize(program.streams.size(), 1);
  for (std::size_t s = 0; s < extra.streams.size(); ++s) {
    OpList ops;
    if (blocking) {
      Op op;
      op.event = program.events + extra.events++;
      op.kind = Op::Kind::record;
      program.streams.front().push_back(op);
      op.kind = Op::Kind::wait;
      ops.push_back(op);
    }
    for (Op op : extra.streams[s]) {
      const bool event = op.kind == Op::Kind::record || op.kind == Op::Kind::wait;
      if (event)
        op.event += program.events;
      else
        op.label += labels;
      ops.push_back(op);
    }
    ops.shrink_to_fit();
    program.streams.push_back(std::move(ops));
    program.stream_names.push_back(extra.stream_names[s]);
    program.at_once.push_back(extra.at_once[s]);
    if (!program.outlives.empty()) program.outlives.push_back(false);
  }
  program.labels.insert(program.labels.end(), extra.labels.begin(), extra.labels.end());
  program.events += extra.events;
}

// Storage nodes are never held back: they answer when a client is ready.
Program with_services(Program program, const JobSpec& spec, const std::vector<Service>& services,
                      const Variant& variant, const std::vector<Part>& mine) {
  for (std::size_t i = 0; i < services.size(); ++i) {
    const Service& service = services[i];
    const Background& background = spec.background[service.background];
    const std::optional<int> part = variant.part[service.background];
    if (mine[i] == Part::none || !part) continue;
    const bool serves = mine[i] == Part::server;
    append(program,
           mine[i] == Part::peer ? exchange(background, service, *part)
                                 : transfers(background, service, *part, serves),
           background.blocking && !(serves && is_stored(background.pattern)));
  }
  return program;
}

std::vector<Program> all_variants(const Role& plain, const JobSpec& spec,
                                  const std::vector<Service>& services,
                                  const std::vector<Variant>& variants,
                                  const std::vector<Part>& mine) {
  std::vector<Program> programs;
  for (const Variant& variant : variants)
    programs.push_back(
        with_services(plain.iterations[std::min(variant.base, plain.iterations.size() - 1)], spec,
                      services, variant, mine));
  return programs;
}

std::vector<Part> parts_of(WorldRank rank, const std::vector<Service>& services) {
  std::vector<Part> mine;
  for (const Service& service : services) mine.push_back(service.part[rank]);
  return mine;
}

// "stage 0, sends incast": ranks of a role that have different parts in an incast.
std::string name_with_incasts(std::string name, const JobSpec& spec, const Workload& workload,
                              const std::vector<Service>& services, const std::vector<Part>& mine) {
  for (std::size_t i = 0; i < services.size(); ++i)
    if (spec.background[services[i].background].pattern == Pattern::incast && mine[i] != Part::none)
      name += (mine[i] == Part::server ? ", receives " : ", sends ") +
              workload.group_names[services[i].kind];
  return name;
}

// Gives every rank a role with its part of the services. Ranks of a role with the same parts keep a
// common role; servers of storage nodes with the same parts share one.
void add_to_roles(const JobSpec& spec, Workload& workload, const std::vector<Service>& services,
                  const std::vector<Variant>& variants) {
  const Role idle{"storage", {Program{{"compute"}, {{}}, {}, 0, {}}}};
  const int trainers = workload.ranks - workload.servers;
  const std::vector<Role> plain = std::move(workload.roles);
  workload.roles.clear();
  // By role, in the order of roles, then of the first rank with these parts.
  std::vector<std::vector<std::vector<Part>>> seen(plain.size());
  for (const WorldRank rank : each<WorldRank>(trainers)) {
    std::vector<Part> mine = parts_of(rank, services);
    auto& known = seen[workload.role_of[rank]];
    if (std::find(known.begin(), known.end(), mine) == known.end())
      known.push_back(std::move(mine));
  }
  std::map<std::pair<std::size_t, std::vector<Part>>, std::uint16_t> number;
  for (std::size_t r = 0; r < plain.size(); ++r)
    for (const std::vector<Part>& mine : seen[r]) {
      number[{r, mine}] = static_cast<std::uint16_t>(workload.roles.size());
      workload.roles.push_back({name_with_incasts(plain[r].name, spec, workload, services, mine),
                                all_variants(plain[r], spec, services, variants, mine),
                                plain[r].job});
    }
  for (const WorldRank rank : each<WorldRank>(trainers))
    workload.role_of[rank] = number.at({workload.role_of[rank], parts_of(rank, services)});
  const std::size_t before = workload.roles.size();
  for (int s = 0; s < workload.servers; ++s) {
    const std::vector<Part> mine = parts_of(WorldRank(trainers + s), services);
    const auto [at, fresh] =
        number.try_emplace({plain.size(), mine}, static_cast<std::uint16_t>(workload.roles.size()));
    if (fresh) {
      const std::size_t nth = workload.roles.size() - before + 1;
      workload.roles.push_back({nth == 1 ? idle.name : idle.name + " " + std::to_string(nth),
                                all_variants(idle, spec, services, variants, mine)});
    }
    workload.role_of.push_back(at->second);
  }
}

}  // namespace

std::span<const Key> background_keys() { return kKeys; }

namespace {

// Refuses keys that mean nothing to the pattern, and a pattern whose size nothing gives.
void check_keys(const Settings& in, const Background& b) {
  const std::string pattern = "pattern: " + name_of(b.pattern);
  if (b.fan_in > 0 && b.pattern != Pattern::incast)
    fail(in.at("fan_in").mark,
         "fan_in means nothing to " + pattern + "; leave it out, or use pattern: incast");
  if (b.at_once > 1 && is_one_to_one(b.pattern))
    fail(in.at("at_once").mark, "at_once means nothing to " + pattern +
                                    ", whose messages leave one after the other; leave it out");
  if (!is_stored(b.pattern) && b.bytes == 0 && b.rate_bps == 0)
    fail(in.at("pattern").mark,
         pattern + " has neither bytes nor a rate; add one, as in {" + pattern + ", bytes: 64MiB}");
}

}  // namespace

std::vector<Background> read_background(const Setting& setting) {
  if (!setting.raw || setting.raw->kind == YamlValue::Kind::null) return {};
  if (!setting.raw->is_list())
    fail(setting.mark, "background is " + description(*setting.raw) +
                           "; write a list, as in [{pattern: checkpoint, every: 100}]");
  std::vector<Background> out;
  for (const YamlValue& one : setting.raw->children) {
    const Settings in(one, kKeys, "background");
    Background b;
    b.pattern = pattern_named(in.text("pattern"));
    b.fan_in = in.small("fan_in");
    b.every = in.small("every");
    b.over = in.small("over");
    if (b.over > b.every)
      fail(in.at("over").mark, "over is " + std::to_string(b.over) + " but every " +
                                   std::to_string(b.every) +
                                   ": one would begin before the last has ended; lower over");
    b.bytes = static_cast<std::uint64_t>(in.number("bytes"));
    b.rate_bps = in.number("rate");
    b.chunk = static_cast<std::uint64_t>(in.number("chunk"));
    b.at_once = in.small("at_once");
    b.blocking = in.boolean("blocking");
    b.source = location(one.mark);
    check_keys(in, b);
    out.push_back(std::move(b));
  }
  return out;
}

std::vector<std::uint64_t> background_bytes(const JobSpec& spec, const Workload& workload,
                                            const Background& background) {
  return background.pattern == Pattern::data ? data_bytes(spec, workload, background)
                                             : checkpoint_bytes(spec, workload, background.bytes);
}

void add_background(const JobSpec& spec, Workload& workload) {
  const int storage = spec.cluster.storage_nodes;
  const auto stores = [](const Background& background) { return is_stored(background.pattern); };
  const auto stored = std::find_if(spec.background.begin(), spec.background.end(), stores);
  if (stored == spec.background.end() && storage > 0)
    throw Error(spec.source_of("cluster.storage_nodes") + ": cluster.storage_nodes is " +
                std::to_string(storage) + " but nothing is stored; add background, as in " +
                "[{pattern: checkpoint, every: 100}], or leave it out");
  if (spec.background.empty()) return;
  if (stored != spec.background.end() && storage == 0)
    throw Error(stored->source +
                ": background goes to storage nodes and the cluster has none; add them, as in "
                "cluster.storage_nodes=1");
  for (const Background& background : spec.background)
    if (!stores(background)) check_pattern(spec, background);
  const std::vector<Variant> variants = order_variants(spec, workload);
  workload.servers = storage * spec.cluster.gpus_per_node;
  workload.ranks += workload.servers;
  add_to_roles(spec, workload, make_services(spec, workload), variants);
}

}  // namespace ghostrank
