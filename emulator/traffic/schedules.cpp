#include "emulator/traffic/schedules.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "collectives/empty_schedule.h"
#include "collectives/library.h"
#include "collectives/nccl/group.h"
#include "collectives/nccl/traced.h"
#include "emulator/fabric/wire.h"
#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "profiles/input/keys.h"
#include "switch/assert.h"

namespace ghostrank {
namespace {

// What to do about a call that the ends refuse.
std::string remedy(const Ends& ends, Call call) {
  std::string types;
  for (int t = 0; t < kDataTypes; ++t) {
    call.type = static_cast<DataType>(t);
    call.collective.element_bytes = bytes_of(call.type);
    if (ends.refuses(call).empty())
      types += (types.empty() ? "" : ", ") + std::string(name_of(call.type));
  }
  return types.empty() ? "use another algorithm"
                       : "types it takes: " + types + "; use one of them, or another algorithm";
}

[[noreturn]] void refuse(const JobSpec& job, Func func, const std::string& group) {
  const CollectiveSpec& spec = job.collectives;
  const std::string name(name_of(func));
  std::vector<std::string> known =
      (spec.own ? spec.own : std::make_shared<const Algorithms>())->names(spec.library, func);
  known.erase(known.begin());  // "auto"
  const std::string what =
      source_of_algorithm(job, func, group) + ": library '" + spec.library + "' has no " + name;
  const std::string why(why_absent(spec.library, func));
  if (known.empty())
    throw Error(what + (why.empty() ? "" : " (" + why + ")") +
                "; name another library's, as in  collectives: {" + name + ": generic/auto}");
  throw Error(what + " algorithm '" + spec.algorithm(func, group) +
              "'; it has: " + join(known, ", "));
}

// Throws Error(usage) if the job's settings name algorithms for a group that the job lacks.
void check_groups(const JobSpec& spec, const Workload& workload, std::size_t job) {
  std::vector<std::string> known;
  for (std::uint16_t kind = 0; kind < workload.group_names.size(); ++kind)
    if (job_of_kind(workload, kind) == job) known.push_back(own_name(workload, kind));
  for (const auto& [group, named] : spec.collectives.groups)
    if (std::find(known.begin(), known.end(), group) == known.end())
      throw Error(spec.source_of("collectives.groups") + ": the job has no group '" + group +
                  "'; it has: " + join(known, ", "));
}

// Throws Error(usage) unless every message of a call of so many elements can say its bytes.
void check_size(const JobSpec& spec, const Workload& workload, const Op& op,
                std::uint64_t elements) {
  constexpr std::uint64_t kTebi = std::uint64_t{1} << 40;
  const std::uint32_t element = bytes_of(op.dtype);
  if (elements <= kMostBytes / element) return;
  const bool transfer = op.kind != Op::Kind::collective;
  const JobSpec& own = settings_of(spec, workload, op.group);
  std::string from;                                      // empty: calls of `bench`
  for (const char* key : {"model", "program", "trace"})  // a program may name its model, too
    if (own.sources.contains(key)) from = own.source_of(key) + ": " + key + ": ";
  throw Error(from + std::string(name_of(transfer ? Func::send_recv : op.func)) + " of group " +
              workload.group_names[op.group] + ": a call has " + std::to_string(elements) +
              " elements of " + std::to_string(element) + " bytes, and at most " +
              std::to_string((kMostBytes + 1) / kTebi) + " TiB can be played; make it smaller");
}

}  // namespace

Collective collective_of(const Workload& workload, const Op& op, int size) {
  Collective c{op.func, size, op.count, bytes_of(op.dtype), op.peer};
  if (reduces(op.func)) c.reduction = op.reduction;
  c.numbers = has_floats(op) ? Numbers::floats : Numbers::integers;
  if (!is_ragged(op.func)) return c;
  if (op.counts < workload.counts.size()) c.counts = workload.counts[op.counts];
  const std::size_t needed = counts_needed(op.func, size), given = c.counts ? c.counts->size() : 0;
  if (given != needed) {
    throw Error("collectives: " + std::string(name_of(op.func)) + " of " + std::to_string(size) +
                " ranks needs " + std::to_string(needed) + " counts, the workload gives " +
                std::to_string(given) + "; correct the plan or trace it was made from");
  }
  return c;
}

std::vector<Op> calls_with(const Workload& workload, const Op& op) {
  if (op.launch == 0) return {op};
  std::vector<Op> calls;
  const GroupedCalls& launch = workload.launches[op.launch - 1];
  for (std::size_t i = 0; i < launch.size(); ++i) {
    if (launch[i].kind != Op::Kind::collective || launch[i].group != op.group) continue;
    Op& call = calls.emplace_back(launch[i]);
    call.launch = op.launch;
    call.launch_index = static_cast<std::uint16_t>(i);
  }
  return calls;
}

bool is_direct(const JobSpec& spec, const Workload& workload, std::uint16_t kind) {
  if (is_service(workload, kind)) return true;
  const Algorithm* row =
      settings_of(spec, workload, kind).collectives.row(Func::send_recv, own_name(workload, kind));
  return row != nullptr && library_named(row->library) != Library::nccl;
}

bool Schedules::is_direct(std::uint16_t kind) const {
  return library_named(transfer_algorithm_[kind]->library) != Library::nccl;
}

Schedules::Schedules(const JobSpec& spec, const Workload& workload, const Cluster& cluster)
    : spec_(spec),
      workload_(workload),
      cluster_(cluster),
      transfer_row_(workload.group_names.size()),
      transfer_algorithm_(workload.group_names.size()) {
  const std::size_t known_kinds = workload.group_names.size();
  for (std::size_t job = 0; job < jobs_of(workload); ++job)
    check_groups(spec.of_job(job), workload, job);
  // For each role: of its ranks' groups, one per kind and layout stands for all of them.
  std::vector<GroupsByKind> groups_of(workload.roles.size(), GroupsByKind(known_kinds));
  for (const WorldRank rank : each<WorldRank>(workload.ranks))
    for (std::uint16_t kind = 0; kind < known_kinds; ++kind) {
      const std::uint32_t group = cluster.membership(rank, kind).group;
      if (group == Membership::kNone) continue;
      auto& groups = groups_of[workload.role_of[rank]][kind];
      const std::uint32_t layout = cluster.layout(group);
      const auto same = [&](std::uint32_t g) { return cluster.layout(g) == layout; };
      if (std::none_of(groups.begin(), groups.end(), same)) groups.push_back(group);
    }
  for (std::size_t r = 0; r < workload.roles.size(); ++r)
    for (const Program& program : workload.roles[r].iterations)
      for (const auto& stream : program.streams)
        for (const Op& op : stream.distinct()) add(op, groups_of[r]);
}

void Schedules::add(const Op& op, const GroupsByKind& groups_of) {
  if (op.kind == Op::Kind::send || op.kind == Op::Kind::recv) {
    check_size(spec_, workload_, op, op.count);
    const Algorithm*& row = transfer_algorithm_[op.group];
    if (row == nullptr) row = &find(Func::send_recv, op.group);
    const Exactness exactness = exactness_of_transfer(*row, op.within != Op::Within::unknown);
    for (const std::uint32_t group : groups_of[op.group])
      transfer_row_[op.group] = row_for(Func::send_recv, op.group, std::string(row->name),
                                        compared(exactness, row->library, row->name, group));
  }
  if (op.kind != Op::Kind::collective) return;
  for (const std::uint32_t group : groups_of[op.group]) {
    const Key key = key_of(group, op);
    Play& play = made_[key];
    if (play.schedule) {
      if (play.scheme && op.tensor != 0) check_served(group, op, *play.scheme);
      continue;
    }
    const auto size = static_cast<int>(workload_.groups[group].members.size());
    check_size(spec_, workload_, op, call_elements(collective_of(workload_, op, size)));
    if (const Algorithm& row = find(op.func, op.group); row.ends) {
      play.scheme = &row;
      play.schedule = std::make_unique<EmptySchedule>(collective_of(workload_, op, size));
      play.row = row_for(op.func, op.group, std::string(row.name), exactness_of(row));
      check_served(group, op, row);
      continue;
    }
    refuse_broadcasts_in_launch(group, op);
    play.schedule = make(key, find(op.func, op.group), collective_of(workload_, op, size));
    if (play.schedule->nics() > 0 && cluster_.nics_per_node() > kMostChosenNics)
      throw Error(spec_.source_of("cluster.nics_per_node") + ": cluster.nics_per_node: library " +
                  settings_of(spec_, workload_, op.group).collectives.library +
                  " chooses among at most " + std::to_string(kMostChosenNics) +
                  " NICs of a node; lower it");
    const Algorithm& row = find(op.func, op.group);
    const std::string& chosen = play.schedule->played();
    const std::string played = chosen.empty() ? std::string(row.name) : chosen;
    const Exactness exactness = exactness_of(played_row(row, *play.schedule));
    play.row = row_for(op.func, op.group, played, compared(exactness, row.library, played, group));
  }
}

// Raises `derived` to `traced` where the algorithm was compared on such a communicator.
Exactness Schedules::compared(Exactness exactness, std::string_view library,
                              std::string_view played, std::uint32_t group) const {
  if (exactness.level == Exactness::Level::messages &&
      nccl_is_traced(library, cluster_.nodes_of_layout(cluster_.layout(group)), played))
    exactness.basis = Exactness::Basis::traced;
  return exactness;
}

void Schedules::check_served(std::uint32_t group, const Op& op, const Algorithm& row) const {
  const SchemeUse& use = cluster_.schemes()[cluster_.scheme(group, row)];
  const JobSpec& own = settings_of(spec_, workload_, op.group);
  const Sparsity sparsity = op.tensor != 0 && own.tensors ? *own.tensors : Sparsity{};
  const Call call{0, collective_of(workload_, op, use.ends->size()), op.dtype, sparsity, op.tensor};
  const std::string scheme = std::string(row.library) + "/" + std::string(row.name);
  if (const std::string why = use.ends->refuses(call); !why.empty()) {
    const std::string func(name_of(op.func));
    throw Error(source_of_algorithm(own, op.func, own_name(workload_, op.group)) + ": " + scheme +
                " cannot serve " + func + " of group " + workload_.group_names[op.group] + ", of " +
                std::string(name_of(op.dtype)) + ": " + why +
                (why.find(';') == std::string::npos ? "; " + remedy(*use.ends, call) : ""));
  }
  if ((own.compression || own.training) && use.ends->expected(call)) {
    const std::string key = own.compression ? "compression.method" : "training.task";
    throw Error(
        own.source_of(key) + ": " + key + ": servers of " + scheme +
        " step weights by whole gradients, and answer with weights; leave it out, or choose "
        "another algorithm");
  }
}

// NCCL plays an all_gather_v as broadcasts and would plan these with the other calls.
void Schedules::refuse_broadcasts_in_launch(std::uint32_t group, const Op& op) const {
  if (op.launch == 0 || op.func != Func::all_gather_v ||
      library_named(find(op.func, op.group).library) != Library::nccl ||
      workload_.groups[group].members.size() < 2)
    return;
  const GroupedCalls& launch = workload_.launches[op.launch - 1];
  const auto planned = std::count_if(launch.begin(), launch.end(), [&](const Op& call) {
    return call.kind == Op::Kind::collective && call.group == op.group &&
           (nccl_plans_together(call.func) || call.func == Func::all_gather_v);
  });
  if (planned > 1)
    throw Error(source_of_algorithm(settings_of(spec_, workload_, op.group), op.func,
                                    own_name(workload_, op.group)) +
                ": an all_gather_v of group " + workload_.group_names[op.group] +
                " starts together with other calls, which NCCL plans with it; that is not "
                "modelled: let it start alone");
}

std::uint16_t Schedules::row_of(const SchemeUse& use) const {
  const std::uint16_t kind = workload_.groups[use.group].kind;
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i].kind == kind && rows_[i].algorithm == use.name)
      return static_cast<std::uint16_t>(i);
  return 0;
}

std::uint16_t Schedules::row_for(Func func, std::uint16_t kind, const std::string& algorithm,
                                 Exactness exactness) {
  const auto same = [&](const Row& row) {
    return row.func == func && row.kind == kind && row.algorithm == algorithm;
  };
  const auto at = std::find_if(rows_.begin(), rows_.end(), same);
  if (at != rows_.end()) {
    at->exactness = std::min(at->exactness, exactness);
    return static_cast<std::uint16_t>(at - rows_.begin());
  }
  rows_.push_back(
      {func, kind, std::string(name_of(func)), workload_.group_names[kind], algorithm, exactness});
  return static_cast<std::uint16_t>(rows_.size() - 1);
}

const Algorithm& Schedules::find(Func func, std::uint16_t kind) const {
  if (is_service(workload_, kind))
    return *find_algorithm("generic", func, func == Func::send_recv ? "direct" : "linear");
  const std::string group = own_name(workload_, kind);
  const JobSpec& own = settings_of(spec_, workload_, kind);
  if (const Algorithm* found = own.collectives.row(func, group)) return *found;
  refuse(own, func, group);
}

std::size_t Schedules::Hash::operator()(const Key& k) const {
  std::uint64_t h = k.count * 0x9e3779b97f4a7c15ULL;
  h ^= (static_cast<std::uint64_t>(k.layout) << 32 | k.element_bytes << 8 |
        static_cast<unsigned>(k.func)) *
       0xc2b2ae3d27d4eb4fULL;
  h ^= (static_cast<std::uint64_t>(k.kind) << 32 | static_cast<std::uint32_t>(k.root)) *
       0x165667b19e3779f9ULL;
  h += (static_cast<std::uint64_t>(k.pair) << 32 | static_cast<std::uint32_t>(k.target)) *
       0x27d4eb2f165667c5ULL;
  h ^= static_cast<std::uint64_t>(k.reduction) << 1 | static_cast<std::uint64_t>(k.floats);
  h += (static_cast<std::uint64_t>(k.launch) << 16 | k.launch_index) * 0x9e3779b97f4a7c15ULL;
  return h ^ (h >> 29);
}

Schedules::Key Schedules::key_of(std::uint32_t group, const Op& op) const {
  const bool together = op.launch != 0 && nccl_plans_together(op.func) &&
                        library_named(find(op.func, op.group).library) == Library::nccl;
  return {is_ragged(op.func) ? op.counts : op.count,
          cluster_.layout(group),
          bytes_of(op.dtype),
          op.peer,
          kNoRank,
          op.func,
          op.group,
          reduces(op.func) ? op.reduction : Reduction::sum,
          has_floats(op),
          0,
          together ? op.launch : 0,
          together ? op.launch_index : std::uint16_t{0}};
}

std::uint32_t Schedules::pair_of(std::uint32_t group, const Op& op, GroupRank source,
                                 GroupRank target) const {
  if (op.within != Op::Within::pair) return 0;
  const auto& members = workload_.groups[group].members;
  const WorldRank low = members[std::min(source, target)], high = members[std::max(source, target)];
  const int gpus = spec_.cluster.gpus_per_node;
  const bool apart = cluster_.location(low).node != cluster_.location(high).node;
  return static_cast<std::uint32_t>(low.value() % gpus) << 16 |
         static_cast<std::uint32_t>(high.value() % gpus) << 2 | (apart ? 2U : 0U) | 1U;
}

Communicator Schedules::communicator(const Key& key, const Algorithm& algorithm) const {
  const CollectiveSpec& wanted = settings_of(spec_, workload_, key.kind).collectives;
  Communicator comm;
  comm.node_of = cluster_.nodes_of_layout(key.layout);
  comm.channels = wanted.channels;
  if (library_named(algorithm.library) == Library::nccl) {
    // 0 channels: the default of the kind of node. "auto" gives no protocol: the tuner chooses.
    // Its sends and receives keep Simple, whatever protocol is forced.
    if (algorithm.name != "p2p") comm.protocol = protocol_named(wanted.protocol);
    comm.max_channels = wanted.max_channels;
    comm.machine = cluster_.machine(key.kind);
    comm.gpu_of = cluster_.gpus_of_layout(key.layout);
    if (key.pair != 0) {
      comm.node_of = {0, (key.pair & 2U) != 0 ? 1 : 0};
      comm.gpu_of = {static_cast<std::int32_t>(key.pair >> 16),
                     static_cast<std::int32_t>(key.pair >> 2 & 0x3fffU)};
    }
    comm.graphs = wanted.graphs;
    comm.environment = wanted.environment;
    if (key.launch != 0) plan_together(key, comm);
  } else if (wanted.channels == 0) {
    comm.channels = cluster_.nics_of_layout(key.layout);
  }
  if (algorithm.library == kSchemes) {
    comm.links = spec_.cluster.links;
    comm.gpu_of = cluster_.gpus_of_layout(key.layout);
  }
  if (is_service(workload_, key.kind)) {
    comm.channels = 1;
  } else {
    comm.slice_bytes = wanted.slice_bytes;
    comm.flow_control.credits = wanted.credits;
  }
  return comm;
}

// Names the calls of the launch that NCCL plans with this one: those of the communicator.
void Schedules::plan_together(const Key& key, Communicator& comm) const {
  const auto size = static_cast<int>(comm.node_of.size());
  std::vector<Collective> calls;
  const GroupedCalls& launch = workload_.launches[key.launch - 1];
  for (std::size_t i = 0; i < launch.size(); ++i) {
    const Op& op = launch[i];
    if (op.kind != Op::Kind::collective || op.group != key.kind || op.count == 0 || size < 2 ||
        !nccl_plans_together(op.func))
      continue;
    if (i == key.launch_index) comm.launch_index = calls.size();
    calls.push_back(collective_of(workload_, op, size));
  }
  if (calls.size() > 1 && launch[key.launch_index].count > 0)
    comm.together = std::make_shared<const std::vector<Collective>>(std::move(calls));
}

std::unique_ptr<Schedule> Schedules::make(const Key& key, const Algorithm& algorithm,
                                          const Collective& c) const {
  try {
    return algorithm.make(c, communicator(key, algorithm));
  } catch (const std::invalid_argument& error) {  // the user can change the job
    throw Error(source_of_algorithm(settings_of(spec_, workload_, key.kind), key.func,
                                    own_name(workload_, key.kind)) +
                ": " + error.what());
  }
}

const Schedules::Play& Schedules::get(std::uint32_t group, const Op& op) const {
  const auto made = made_.find(key_of(group, op));
  GHOSTRANK_ASSERT(made != made_.end());
  return made->second;
}

bool are_one_transfer(const Op& a, const Op& b) {
  return a.group == b.group && a.dtype == b.dtype && a.count == b.count && a.floats == b.floats &&
         a.within == b.within;
}

std::shared_ptr<const Schedule> Schedules::transfer(std::uint32_t group, const Op& op,
                                                    GroupRank source, GroupRank target) const {
  const Key key{op.count,
                cluster_.layout(group),
                bytes_of(op.dtype),
                source,
                target,
                Func::send_recv,
                op.group,
                Reduction::sum,
                has_floats(op),
                pair_of(group, op, source, target)};
  if (const auto found = transfers_.find(key); found != transfers_.end()) return found->second;
  if (transfers_.size() >= kMostTransfers) transfers_.clear();
  const Collective c{.func = Func::send_recv,
                     .size = static_cast<int>(workload_.groups[group].members.size()),
                     .count = op.count,
                     .element_bytes = bytes_of(op.dtype),
                     .root = source,
                     .target = target,
                     .pair = key.pair != 0};
  static const Algorithm& direct = *find_algorithm("generic", Func::send_recv, "direct");
  std::shared_ptr<const Schedule> made =
      is_direct(op.group) ? direct.make(c, {}) : make(key, *transfer_algorithm_[op.group], c);
  return transfers_[key] = std::move(made);
}

const Algorithm& Schedules::algorithm(std::uint32_t group, const Op& op) const {
  return played_row(find(op.func, op.group), *get(group, op).schedule);
}

void check_schedules(const JobSpec& spec, const Workload& workload) {
  const Cluster cluster(spec, workload, 1);
  Schedules schedules(spec, workload, cluster);
  std::vector<std::vector<const Op*>> of_role;
  for (const Role& role : workload.roles) {
    std::vector<const Op*>& calls = of_role.emplace_back();
    for (const Program& program : role.iterations)
      for (const OpList& stream : program.streams)
        for (const Op& op : stream.distinct())
          if (op.kind == Op::Kind::collective) calls.push_back(&op);
  }
  for (const WorldRank rank : each<WorldRank>(workload.ranks))
    for (const Op* op : of_role[workload.role_of[rank]]) {
      const Membership& membership = cluster.membership(rank, op->group);
      if (membership.position == 0) schedules.get(membership.group, *op);
    }
}

}  // namespace ghostrank
