#include "emulator/traffic/job_goal.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <queue>

#include "collectives/exchange/goal.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/schedules.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

using Labels = RankGoal::Labels;

void append(Labels& to, const Labels& more) { to.insert(to.end(), more.begin(), more.end()); }

int channels_of(const Schedule& schedule) {
  int channels = 1;
  for (GroupRank r = 0; r < schedule.collective().size; ++r)
    for (int a = 0; a < schedule.actors(r); ++a)
      channels = std::max(channels, schedule.actor(r, a).channel + 1);
  return channels;
}

// Position in a stream: what its next operation depends on.
struct StreamAt {
  Labels gate;                  // every operation depends on it
  std::vector<Labels> workers;  // the last labels of each worker
  std::size_t next = 0;         // next worker
  std::size_t op = 0;           // next operation
  Labels before, launched;      // of a launch: what it follows, and its calls so far

  // The labels that complete everything so far.
  Labels end() const {
    Labels all = gate;
    for (const Labels& worker : workers) append(all, worker);
    return all;
  }
  void set(const Labels& done) {
    gate = done;
    for (Labels& worker : workers) worker.clear();
  }
};

constexpr int kTransferTags = 64;  // the most channels of a transfer

class RankOfJob {
 public:
  RankOfJob(const Workload& workload, const Cluster& cluster, const Schedules& schedules,
            WorldRank rank)
      : workload_(workload),
        cluster_(cluster),
        schedules_(schedules),
        rank_(rank),
        calls_(workload.group_names.size()) {}

  bool some_wait() const { return some_wait_; }

  // Streams advance until they wait for an event that is not recorded yet.
  std::string write(const Program& program) {
    std::vector<StreamAt> streams(program.streams.size());
    for (std::size_t s = 0; s < streams.size(); ++s) streams[s].workers.resize(workers(program, s));
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < streams.size(); ++s)
        for (; streams[s].op < program.streams[s].size(); ++streams[s].op, moved = true) {
          const Op& op = program.streams[s][streams[s].op];
          if (op.kind == Op::Kind::wait && !op.previous && recorded_[op.event].empty()) break;
          write_op(op, s, streams[s]);
        }
    }
    for (std::size_t s = 0; s < streams.size(); ++s)
      if (streams[s].op < program.streams[s].size())
        throw Error("rank " + to_string(rank_) + ": stream " + program.stream_names[s] +
                    " waits for an event that nothing records; correct the program");
    return goal_.text(rank_);
  }

 private:
  // Computations of each stream have a cpu of their own, beside that of all messages.
  void write_op(const Op& op, std::size_t stream, StreamAt& at) {
    switch (op.kind) {
      case Op::Kind::compute:
        return at.set({goal_.calc(static_cast<std::uint64_t>(op.duration + 500) / 1000, at.end(),
                                  stream + 1)});
      case Op::Kind::record:
        at.set({goal_.calc(0, at.end())});
        recorded_[op.event].push(at.gate.front());
        return;
      case Op::Kind::wait: {
        if (op.previous) return;  // this iteration has no predecessor
        std::queue<int>& records = recorded_[op.event];
        at.gate.push_back(records.front());
        records.pop();
        at.gate = {goal_.calc(0, at.gate)};
        return;
      }
      case Op::Kind::collective:
      case Op::Kind::send:
      case Op::Kind::recv:
        return op.launch != 0 ? write_launched(op, at) : write_call(op, at);
    }
  }

  void write_call(const Op& op, StreamAt& at) {
    if (!cluster_.membership(rank_, op.group).taken()) return;
    if (op.kind != Op::Kind::collective) return at.set(labels_of(op, at.end()));
    Labels& worker = at.workers[at.next++ % at.workers.size()];
    Labels after = at.gate;
    append(after, worker);
    worker = labels_of(op, after);
  }

  // Calls of one launch start together; what follows them waits for all. Turns on the channels that
  // they share are left out.
  void write_launched(const Op& op, StreamAt& at) {
    if (op.launch_index == 0) at.before = at.end(), at.launched.clear();
    append(at.launched, labels_of(op, at.before));
    if (op.launch_index + 1U < workload_.launches[op.launch - 1].size()) return;
    if (!at.launched.empty()) at.set(at.launched);
  }

  // Tags of a kind of group: one per channel for transfers, then, call by call, one per channel.
  int tag_of(std::uint16_t kind, int number) const {
    return static_cast<int>(kind) + static_cast<int>(calls_.size()) * number;
  }

  // The labels of the op's call, which starts after `after`; none: the rank has no part in it.
  Labels labels_of(const Op& op, const Labels& after) {
    const Membership& membership = cluster_.membership(rank_, op.group);
    if (!membership.taken()) return {};
    return op.kind == Op::Kind::collective ? collective(op, membership, after)
                                           : transfer(op, membership, after);
  }

  Labels collective(const Op& op, const Membership& membership, const Labels& after) {
    const std::uint32_t group = membership.group;
    const Schedule& schedule = *schedules_.get(group, op).schedule;
    note(schedule);
    const int channels = channels_of(schedule), first = kTransferTags + calls_[op.group];
    calls_[op.group] += channels;
    return goal_.call(
        schedule, membership.position, workload_.groups[group].members,
        [&](int channel) { return tag_of(op.group, first + channel); }, after);
  }

  Labels transfer(const Op& op, const Membership& membership, const Labels& after) {
    const std::uint32_t group = membership.group;
    const auto& members = workload_.groups[group].members;
    const auto size = static_cast<int>(members.size());
    const GroupRank peer = ((membership.position + op.peer) % size + size) % size;
    const bool sends = op.kind == Op::Kind::send;
    const auto schedule = schedules_.transfer(group, op, sends ? membership.position : peer,
                                              sends ? peer : membership.position);
    note(*schedule);
    return goal_.call(
        *schedule, membership.position, members,
        [&](int channel) { return tag_of(op.group, channel); }, after);
  }

  void note(const Schedule& schedule) {
    const FlowControl flow = schedule.flow_control();
    some_wait_ |= flow.credits > 0 || flow.posting.needed();
  }

  const Workload& workload_;
  const Cluster& cluster_;
  const Schedules& schedules_;
  const WorldRank rank_;
  RankGoal goal_;
  bool some_wait_ = false;
  std::vector<int> calls_;  // by kind of group: number of tags that calls have used
  std::map<std::uint32_t, std::queue<int>> recorded_;  // by event: labels that no wait has taken
};

const Program& program_of(const Workload& workload, WorldRank rank, int iteration) {
  const Role& role = workload.roles[workload.role_of[rank]];
  const auto last = static_cast<int>(role.iterations.size()) - 1;
  return role.iterations[std::min(iteration, last)];
}

}  // namespace

bool write_goal(std::ostream& out, const JobSpec& spec, const Workload& workload,
                std::optional<int> iteration) {
  const int number = iteration.value_or(steady_program(workload).number);
  const TrafficPlan plan = plan_traffic(spec, workload, number);
  const double messages = static_cast<double>(plan.wire_messages + plan.intra_messages);
  if (messages > kMostGoalMessages) {
    throw Error(
        "an iteration of this job has " + std::to_string(plan.wire_messages + plan.intra_messages) +
        " messages; GOAL is written for at most 50 million: take a smaller cluster or model");
  }
  const Cluster cluster(spec, workload, 1);
  for (const SchemeUse& use : cluster.schemes())
    if (std::ranges::any_of(plan.collectives, [&](const CollectiveTraffic& calls) {
          return calls.calls > 0 && calls.algorithm == use.name;
        }))
      throw Error(std::string(use.name) +
                  " has no schedule that could be written as GOAL: its agents decide as they go; "
                  "name other algorithms in collectives");
  const Schedules schedules(spec, workload, cluster);
  out << "num_ranks " << workload.ranks << '\n';
  bool some_wait = false;
  for (const WorldRank r : each<WorldRank>(workload.ranks)) {
    RankOfJob rank(workload, cluster, schedules, r);
    out << rank.write(program_of(workload, r, number));
    some_wait |= rank.some_wait();
  }
  return some_wait;
}

}  // namespace ghostrank
