#include "profiles/planners/background.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/job/optimizer.h"
#include "profiles/model/model.h"
#include "profiles/planners/megatron/plan.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kMostChunks = 100'000;  // of a rank in one step
constexpr std::uint64_t kLongestCycle = 100'000, kMostPrograms = 256;

constexpr std::array kKeys{
    Key{"pattern", KeyType::choice, kRequired,
        "checkpoint: ranks write weights and optimizer state; data: ranks read samples", 0, 0,
        "checkpoint data", "incast permutation bisection"},
    Key{"fan_in", KeyType::integer, kAbsent, "senders of an incast", 0, 0, "", "", false},
    Key{"every", KeyType::integer, "1",
        "period in steps; it happens in the last step of each, counted from the first one played, "
        "warm-up included",
        1, 1e5},
    Key{"over", KeyType::integer, "1", "steps that share the bytes: that one and those after it", 1,
        1e5},
    Key{"bytes", KeyType::size, "0",
        "checkpoint: of all ranks together; data: of one sample; 0: what the model says "
        "(parameters "
        "and optimizer; 8 bytes per token)",
        0, 1LL << 50},
    Key{"rate", KeyType::rate, "0", "at which a rank writes or is served; 0: as fast as the fabric",
        0, 1e18},
    Key{"chunk", KeyType::size, "4MiB", "largest message", 1, 1LL << 40},
    Key{"at_once", KeyType::integer, "1", "messages of a rank in flight at once", 1, kMaxAtOnce},
    Key{"blocking", KeyType::boolean, "false",
        "whether it begins only after the step's compute; if not, it overlaps the step"},
};

const char* name_of(Background::Pattern pattern) {
  return pattern == Background::Pattern::data ? "data" : "checkpoint";
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

// ---- Groups: a server with those of its clients that move equal amounts ----

struct Service {
  std::size_t background = 0;
  std::uint16_t kind = 0;
  std::uint64_t bytes = 0;  // per client and transfer
  std::vector<bool> roles;  // of clients
  std::vector<bool> servers;
};

std::vector<Service> make_services(const JobSpec& spec, Workload& workload) {
  const std::size_t servers = workload.servers;
  const WorldRank first_server(workload.ranks - workload.servers);
  std::vector<Service> services;
  for (std::size_t b = 0; b < spec.background.size(); ++b) {
    const std::vector<std::uint64_t> bytes = background_bytes(spec, workload, spec.background[b]);
    std::map<std::uint64_t, std::vector<bool>> roles;  // by bytes
    for (std::size_t role = 0; role < bytes.size(); ++role) {
      if (bytes[role] == 0) continue;
      std::vector<bool>& alike = roles[bytes[role]];
      alike.resize(bytes.size());
      alike[role] = true;
    }
    for (auto& [amount, alike] : roles) {
      Service service{b, static_cast<std::uint16_t>(workload.group_names.size()), amount,
                      std::move(alike), std::vector<bool>(servers)};
      std::vector<Group> groups(servers);
      for (std::size_t s = 0; s < servers; ++s)
        groups[s] = {service.kind, {first_server + static_cast<int>(s)}};
      for (const WorldRank rank : each<WorldRank>(first_server.value()))
        if (service.roles[workload.role_of[rank]])
          groups[rank.index() % servers].members.push_back(rank);
      for (std::size_t s = 0; s < servers; ++s) {
        service.servers[s] = groups[s].members.size() > 1;
        if (service.servers[s]) workload.groups.push_back(std::move(groups[s]));
      }
      std::string name = name_of(spec.background[b].pattern);
      const auto& names = workload.group_names;
      for (int n = 2; std::find(names.begin(), names.end(), name) != names.end(); ++n)
        name = std::string(name_of(spec.background[b].pattern)) + "." + std::to_string(n);
      workload.group_names.push_back(name);
      workload.services.push_back(service.kind);
      services.push_back(std::move(service));
    }
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

// The chunks of one service in one step. The server answers one request for all chunks (data), or
// confirms when it has received them all (checkpoint), so that servers and clients keep in step.
// With a rate, the sender holds each chunk back until the earlier ones have had their time.
Program transfers(const Background& background, const Service& service, int part, bool serves) {
  constexpr std::size_t kChunks = 0, kControl = 1;
  const bool loads = background.pattern == Background::Pattern::data;
  const bool paced = background.rate_bps > 0 && serves == loads;
  const std::string name = name_of(background.pattern);
  std::vector<std::string> streams{name};
  if (loads || paced || serves) streams.push_back(name + " control");
  ProgramBuilder out(std::move(streams));
  out.at_once(kChunks, static_cast<std::uint8_t>(background.at_once));
  std::uint64_t left = bytes_until(service.bytes, part + 1, background.over) -
                       bytes_until(service.bytes, part, background.over);
  if (divide_up(left, background.chunk) > kMostChunks)
    throw Error(background.source + ": " + std::to_string(left) +
                " bytes of a rank are more than " + std::to_string(kMostChunks) +
                " chunks; use a larger chunk");
  if (loads) {
    out.collective(kControl, "request", Func::gather, service.kind, DataType::uint8, 0);
    out.after(kChunks, kControl);
  }
  while (left > 0) {
    const std::uint64_t chunk = std::min(left, background.chunk);
    left -= chunk;
    out.collective(kChunks, name, loads ? Func::scatter : Func::gather, service.kind,
                   DataType::uint8, chunk);
    if (!paced || left == 0) continue;
    const double seconds = static_cast<double>(chunk) * 8 / background.rate_bps;
    out.compute(kControl, "pace",
                static_cast<Picoseconds>(seconds * static_cast<double>(kPicosPerSecond)));
    out.after(kChunks, kControl);
  }
  if (!loads) {  // a client's call queues behind its chunks, because a group's calls have one order
    const std::size_t stream = serves ? kControl : kChunks;
    out.after(stream, kChunks);
    out.collective(stream, "written", Func::scatter, service.kind, DataType::uint8, 0);
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

Program with_services(Program program, const JobSpec& spec, const std::vector<Service>& services,
                      const Variant& variant, const std::vector<bool>& mine, bool serves) {
  for (std::size_t i = 0; i < services.size(); ++i) {
    const Service& service = services[i];
    const Background& background = spec.background[service.background];
    const std::optional<int> part = variant.part[service.background];
    if (!mine[i] || !part) continue;
    append(program, transfers(background, service, *part, serves), background.blocking && !serves);
  }
  return program;
}

std::vector<Program> all_variants(const Role& plain, const JobSpec& spec,
                                  const std::vector<Service>& services,
                                  const std::vector<Variant>& variants,
                                  const std::vector<bool>& mine, bool serves) {
  std::vector<Program> programs;
  for (const Variant& variant : variants)
    programs.push_back(
        with_services(plain.iterations[std::min(variant.base, plain.iterations.size() - 1)], spec,
                      services, variant, mine, serves));
  return programs;
}

// Servers with the same services share a role.
void add_servers(const JobSpec& spec, Workload& workload, const std::vector<Service>& services,
                 const std::vector<Variant>& variants) {
  const Role idle{"storage", {Program{{"compute"}, {{}}, {}, 0, {}}}};
  std::map<std::vector<bool>, std::uint16_t> known;
  for (std::size_t s = 0; s < static_cast<std::size_t>(workload.servers); ++s) {
    std::vector<bool> mine;
    for (const Service& service : services) mine.push_back(service.servers[s]);
    const auto [at, fresh] =
        known.try_emplace(mine, static_cast<std::uint16_t>(workload.roles.size()));
    if (fresh)
      workload.roles.push_back(
          {known.size() == 1 ? idle.name : idle.name + " " + std::to_string(known.size()),
           all_variants(idle, spec, services, variants, mine, true)});
    workload.role_of.push_back(at->second);
  }
}

}  // namespace

std::span<const Key> background_keys() { return kKeys; }

std::vector<Background> read_background(const Setting& setting) {
  if (!setting.raw || setting.raw->kind == YamlValue::Kind::null) return {};
  if (!setting.raw->is_list())
    fail(setting.mark, "background is " + description(*setting.raw) +
                           "; write a list, as in [{pattern: checkpoint, every: 100}]");
  std::vector<Background> out;
  for (const YamlValue& one : setting.raw->children) {
    const Settings in(one, kKeys, "background");
    Background b;
    b.pattern =
        in.text("pattern") == "data" ? Background::Pattern::data : Background::Pattern::checkpoint;
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
    out.push_back(std::move(b));
  }
  return out;
}

std::vector<std::uint64_t> background_bytes(const JobSpec& spec, const Workload& workload,
                                            const Background& background) {
  return background.pattern == Background::Pattern::data
             ? data_bytes(spec, workload, background)
             : checkpoint_bytes(spec, workload, background.bytes);
}

void add_background(const JobSpec& spec, Workload& workload) {
  const int storage = spec.cluster.storage_nodes;
  if (spec.background.empty() && storage == 0) return;
  if (spec.background.empty())
    throw Error(spec.source_of("cluster.storage_nodes") + ": cluster.storage_nodes is " +
                std::to_string(storage) + " but nothing is stored; add background, as in " +
                "[{pattern: checkpoint, every: 100}], or leave it out");
  if (storage == 0)
    throw Error(spec.background.front().source +
                ": background goes to storage nodes and the cluster has none; add them, as in "
                "cluster.storage_nodes=1");
  const std::vector<Variant> variants = order_variants(spec, workload);
  workload.servers = storage * spec.cluster.gpus_per_node;
  workload.ranks += workload.servers;
  const std::vector<Service> services = make_services(spec, workload);
  for (std::size_t r = 0; r < workload.roles.size(); ++r) {
    std::vector<bool> mine;
    for (const Service& service : services) mine.push_back(service.roles[r]);
    workload.roles[r].iterations =
        all_variants(workload.roles[r], spec, services, variants, mine, false);
  }
  add_servers(spec, workload, services, variants);
}

}  // namespace ghostrank
