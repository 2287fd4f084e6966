#include "profiles/workload/traffic_pattern.h"

#include <cmath>
#include <span>
#include <string>
#include <utility>

namespace ghostrank {
namespace {

// Group kinds of the patterns. Requests have a group of their own, so that a request and an answer
// between the same two ranks cannot be mistaken for each other.
constexpr std::uint16_t kWorld = 0, kRequests = 1;

Workload empty_workload(int ranks, std::vector<std::string> group_names) {
  Workload w;
  w.ranks = ranks;
  w.group_names = std::move(group_names);
  for (std::uint16_t kind = 0; kind < w.group_names.size(); ++kind)
    w.groups.push_back({kind, world_ranks(ranks)});
  return w;
}

// All ranks play the same programs.
void set_role(Workload& w, std::vector<Program> programs) {
  w.roles.push_back({"all", std::move(programs)});
  w.role_of.assign(w.ranks, 0);
}

Program program_of(std::size_t streams) {
  Program p;
  p.stream_names = {"receive", "send"};
  p.stream_names.resize(streams);
  p.streams.resize(streams);
  p.labels = {"send", std::string(kFlowLabel), "unlabelled"};
  return p;
}

enum Label : std::uint32_t { kSends, kFlow, kOther };

Op transfer(Op::Kind kind, std::uint16_t group, std::int32_t peer, std::uint64_t bytes,
            Label label) {
  Op op;
  op.kind = kind;
  op.func = Func::send_recv;
  op.dtype = DataType::uint8;
  op.group = group;
  op.label = label;
  op.peer = peer;
  op.count = bytes;
  return op;
}

Op send(std::int32_t peer, std::uint64_t bytes, std::uint16_t group = kWorld) {
  return transfer(Op::Kind::send, group, peer, bytes, kSends);
}

Op receive(std::int32_t peer, std::uint64_t bytes, Label label = kFlow,
           std::uint16_t group = kWorld) {
  return transfer(Op::Kind::recv, group, peer, bytes, label);
}

std::uint64_t next_random(std::uint64_t& state) {  // splitmix64
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t x = state;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

Counts uneven_counts(const CollectivePhases& phases, std::uint64_t count) {
  std::vector<std::uint64_t> counts(counts_needed(phases.func, phases.ranks));
  std::uint64_t state = phases.seed;
  for (std::uint64_t& c : counts) {
    const double unit = static_cast<double>(next_random(state) >> 11) * 0x1p-53;  // 0 .. 1
    const double factor = 1 + phases.imbalance * (2 * unit - 1);
    c = std::llround(static_cast<double>(count) * factor);
  }
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(counts));
}

// A flow to the rank `to` positions after this one, and a flow from the rank `from` positions
// after. Each has its own stream, so neither waits for the other.
Program flows(std::int32_t to, std::int32_t from, std::uint64_t bytes, int messages) {
  Program p = program_of(2);
  for (int i = 0; i < messages; ++i) {
    p.streams[0].push_back(receive(from, bytes));
    p.streams[1].push_back(send(to, bytes));
  }
  return p;
}

// Asks the rank `k` positions after this one, and answers the rank `k` positions before.
Program bounces(std::int32_t k, int messages) {
  Program p = program_of(2);
  p.stream_names = {"ask", "answer"};
  for (int i = 0; i < messages; ++i) {
    p.streams[0].push_back(send(k, 1, kRequests));
    p.streams[0].push_back(receive(k, 1));
    p.streams[1].push_back(receive(-k, 1, kOther, kRequests));
    p.streams[1].push_back(send(-k, 1));
  }
  return p;
}

}  // namespace

Workload collective_phases(const CollectivePhases& phases) {
  const Func func = phases.func;
  const int groups = phases.groups.empty() ? 1 : static_cast<int>(phases.groups.size());
  Workload w = empty_workload(phases.ranks * groups, {"world"});
  if (!phases.groups.empty()) w.groups.clear();
  for (const std::vector<WorldRank>& members : phases.groups) w.groups.push_back({kWorld, members});
  std::vector<Program> programs;
  for (const CollectiveCall& call : phases.calls) {
    Program p = program_of(func == Func::send_recv ? 2 : 1);
    p.stream_names.front() = "nccl";
    p.labels = {std::string(name_of(func))};
    Op op;
    op.func = func;
    op.dtype = call.dtype;
    op.count = call.count;
    op.floats = call.floats;
    if (reduces(func)) {
      op.tensor = 1;
      op.reduction = call.reduction;
    }
    if (is_ragged(func)) {
      op.counts = static_cast<std::uint32_t>(w.counts.size());
      w.counts.push_back(uneven_counts(phases, call.count));
    }
    if (func == Func::send_recv) {
      op.kind = Op::Kind::send;  // at the same time as the receive
      op.peer = 1;
      p.streams[1].push_back(op);
      op.kind = Op::Kind::recv;
      op.peer = -1;
    } else {
      op.kind = Op::Kind::collective;
      op.peer = call.root;
    }
    p.streams[0].push_back(op);
    programs.push_back(std::move(p));
  }
  set_role(w, std::move(programs));
  return w;
}

Workload pair_phases(int ranks, std::uint64_t bytes, int messages) {
  Workload w = empty_workload(ranks, {"world", "requests"});
  std::vector<Program> programs;
  for (int k = 1; k < ranks; ++k) {
    programs.push_back(flows(k, -k, bytes, messages));
    programs.push_back(bounces(k, messages));
  }
  set_role(w, std::move(programs));
  return w;
}

Workload permutation_phases(const VectorBy<WorldRank, WorldRank>& target,
                            const std::vector<std::uint64_t>& sizes, int messages) {
  const int ranks = target.size();
  Workload w = empty_workload(ranks, {"world"});
  VectorBy<WorldRank, WorldRank> source(ranks);
  for (const WorldRank r : target.keys()) source[target[r]] = r;
  for (const WorldRank r : target.keys()) {
    Role role{"rank " + to_string(r), {}};
    for (const std::uint64_t bytes : sizes) {
      role.iterations.push_back(flows(target[r] - r, source[r] - r, bytes, messages));
    }
    w.role_of.push_back(static_cast<std::uint16_t>(w.roles.size()));
    w.roles.push_back(std::move(role));
  }
  return w;
}

VectorBy<WorldRank, WorldRank> random_cycle(int ranks, std::uint64_t seed) {
  std::vector<WorldRank> target = world_ranks(ranks);
  std::uint64_t state = seed;
  // Sattolo's shuffle: every element swaps with one of a lower index, which leaves a single cycle.
  for (std::size_t i = target.size(); i-- > 1;) {
    std::swap(target[i], target[next_random(state) % i]);
  }
  return VectorBy<WorldRank, WorldRank>(std::move(target));
}

VectorBy<WorldRank, WorldRank> opposite(int ranks) {
  VectorBy<WorldRank, WorldRank> target;
  for (int r = 0; r < ranks; ++r) target.push_back(WorldRank((r + ranks / 2) % ranks));
  return target;
}

Workload incast_phases(int ranks, const std::vector<WorldRank>& sources,
                       const std::vector<int>& fan_ins, std::uint64_t bytes) {
  Workload w = empty_workload(ranks, {"world", "requests"});
  constexpr WorldRank kAsks(0);
  // index in `sources`; `ranks`: not a source
  VectorBy<WorldRank, int> turn(ranks, ranks);
  for (int i = 0; i < std::ssize(sources); ++i) turn[sources[i]] = i;
  for (const WorldRank r : each<WorldRank>(ranks)) {
    Role role{"rank " + to_string(r), {}};
    for (const int fan_in : fan_ins) {
      Program p = program_of(1);
      auto& ops = p.streams[0];
      const auto asked = std::span(sources).first(fan_in);
      if (r == kAsks) {
        for (const WorldRank from : asked) ops.push_back(send(from - r, 1, kRequests));
        for (const WorldRank from : asked) ops.push_back(receive(from - r, bytes));
      } else if (turn[r] < fan_in) {
        ops.push_back(receive(kAsks - r, 1, kOther, kRequests));
        ops.push_back(send(kAsks - r, bytes));
      }
      role.iterations.push_back(std::move(p));
    }
    w.role_of.push_back(static_cast<std::uint16_t>(w.roles.size()));
    w.roles.push_back(std::move(role));
  }
  return w;
}

}  // namespace ghostrank
