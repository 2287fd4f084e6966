#include "profiles/workload/merge.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "profiles/error.h"

namespace ghostrank {
namespace {

// Where the numbers of a job begin among those of all.
struct Offsets {
  std::uint16_t kind = 0;
  std::uint32_t counts = 0, launch = 0;
};

Op moved(Op op, const Offsets& by) {
  op.group = static_cast<std::uint16_t>(op.group + by.kind);
  if (op.kind == Op::Kind::collective && is_ragged(op.func)) op.counts += by.counts;
  if (op.launch != 0) op.launch += by.launch;
  return op;
}

OpList moved(const OpList& ops, const Offsets& by) {
  OpList out = ops.changed([&](const Op& op) { return moved(op, by); });
  out.shrink_to_fit();
  return out;
}

Role moved(const Role& role, const std::string& name, std::uint16_t job, const Offsets& by) {
  Role out{name + "/" + role.name, role.iterations, job};
  for (Program& program : out.iterations)
    for (OpList& stream : program.streams) stream = moved(stream, by);
  return out;
}

void refuse_what_is_alone(const NamedWorkload& job) {
  const auto refuse = [&](const std::string& what) {
    throw Error(job.name + ": " + what + " cannot play beside other jobs; leave it out");
  };
  if (job.workload.servers > 0) refuse("traffic of storage nodes");
}

// Offsets and roles are 16-bit numbers.
void check_numbers(const Workload& all) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint16_t>::max();
  if (all.roles.size() > kMost || all.group_names.size() > kMost)
    throw Error("jobs: together they have " + std::to_string(all.roles.size()) + " roles and " +
                std::to_string(all.group_names.size()) + " kinds of groups; at most " +
                std::to_string(kMost) + " are supported");
}

void append(const NamedWorkload& job, Workload& all) {
  refuse_what_is_alone(job);
  const Workload& own = job.workload;
  const Offsets by{static_cast<std::uint16_t>(all.group_names.size()),
                   static_cast<std::uint32_t>(all.counts.size()),
                   static_cast<std::uint32_t>(all.launches.size())};
  const auto number = static_cast<std::uint16_t>(all.jobs.size());
  const std::size_t roles = all.roles.size();
  for (const Role& role : own.roles) all.roles.push_back(moved(role, job.name, number, by));
  for (const std::string& name : own.group_names) all.group_names.push_back(job.name + "/" + name);
  check_numbers(all);
  for (const std::uint16_t role : own.role_of)
    all.role_of.push_back(static_cast<std::uint16_t>(roles + role));
  for (const Group& group : own.groups) {
    Group& added = all.groups.emplace_back(group);
    added.kind = static_cast<std::uint16_t>(added.kind + by.kind);
    for (WorldRank& rank : added.members) rank = rank + all.ranks;
  }
  all.counts.insert(all.counts.end(), own.counts.begin(), own.counts.end());
  for (const GroupedCalls& launch : own.launches) {
    GroupedCalls& added = all.launches.emplace_back();
    for (const Op& op : launch) added.push_back(moved(op, by));
  }
  for (const std::uint16_t kind : own.services)
    all.services.push_back(static_cast<std::uint16_t>(kind + by.kind));
  all.jobs.push_back({job.name, WorldRank(all.ranks), own.ranks, own.order, own.cycle,
                      own.samples_per_iteration, own.flops_per_iteration, by.kind, own.compressed,
                      own.layouts});
  all.ranks += own.ranks;
  all.least = std::max(all.least, own.least);
}

}  // namespace

Workload merge(const std::vector<NamedWorkload>& jobs) {
  Workload all;
  for (const NamedWorkload& job : jobs) append(job, all);
  return all;
}

}  // namespace ghostrank
