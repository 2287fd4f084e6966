#include "switch/tables.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "switch/wire/sparse.h"

namespace ghostrank::switchml {
namespace {

int own_groups_of(const JobPlan& job) { return static_cast<int>(job.workers.size()); }

std::size_t source_rows_of(const JobPlan& job) {
  return 2 * static_cast<std::size_t>(job.slots) * (job.workers.size() + (job.uplink ? 1 : 0)) *
         (job.all_functions ? 2 : 1);
}

// The first of `count` consecutive free numbers in `first` .. `last`, given the ranges in use as
// (first, count); first - 1 if there are none.
int first_free(int first, int last, int count, std::vector<std::pair<int, int>> taken) {
  std::sort(taken.begin(), taken.end());
  int at = first;
  for (const auto& [begin, length] : taken) {
    if (begin - at >= count) break;
    at = std::max(at, begin + length);
  }
  return at + count - 1 <= last ? at : first - 1;
}

void add_groups(const JobPlan& job, std::uint32_t first_own, Tables& tables) {
  const auto row = static_cast<std::uint32_t>(tables.row());
  const std::vector<int> numbers = job.numbers();
  std::vector<Receiver> workers;
  for (std::size_t w = 0; w < job.workers.size(); ++w) {
    const Worker& worker = job.workers[w];
    const int number = worker.workers > 1 ? kSeveral + static_cast<int>(w) : numbers[w];
    workers.push_back(
        {worker.port, worker.mac, worker.ip, job.worker_port, static_cast<std::uint16_t>(number)});
  }
  if (job.uplink) {
    const Receiver above{job.uplink->port, job.uplink->mac, job.uplink->ip, kUdpPort, kAbove};
    tables.groups = {{row + kBroadcasts, {above}}, {row + kFromAbove, workers}};
  } else {
    tables.groups = {{row + kBroadcasts, workers}};
  }
  for (std::uint32_t w = 0; w < workers.size(); ++w)
    tables.groups.push_back({first_own + w, {workers[w]}});
}

// Adds the sources of one set of one slot; `kind`: 0, kSparseIndex or kAloneIndex.
void add_sources(const JobPlan& job, int slot, int set, int kind, std::uint32_t first_row,
                 std::uint32_t first_own, Tables& tables) {
  const int index = set << 15 | slot | kind;
  const auto of_set = static_cast<std::uint32_t>(set);
  Tables::Source source{.index = index};
  source.row = first_row + of_set;
  source.other = job.tells_old_packets() ? kGuarded : first_row + (1 - of_set);
  source.workers = static_cast<int>(job.workers.size());
  for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
    source.port = job.workers[w].port;
    source.ip = job.workers[w].ip;
    source.worker = static_cast<int>(w);
    source.again = first_own + w + (job.uplink ? kOfLeaf : 0);
    tables.sources.push_back(source);
  }
  if (!job.uplink) return;
  source.port = job.uplink->port;
  source.ip = job.uplink->ip;
  source.upper = true;
  tables.sources.push_back(source);
}

}  // namespace

Tables tables_of(const JobPlan& job, const JobResources& resources) {
  Tables tables;
  tables.job = resources.job;
  tables.result_bytes = job.format == Format::omnireduce ? sparse_frame_bytes(job.elements)
                                                         : frame_bytes(job.elements);
  const auto first_own = static_cast<std::uint32_t>(kFirstOwnGroup + resources.first_group);
  add_groups(job, first_own, tables);
  std::vector<int> kinds{job.format == Format::omnireduce ? kSparseIndex : 0};
  if (job.all_functions) kinds.push_back(kAloneIndex);
  for (const int kind : kinds)
    for (int set = 0; set < 2; ++set)
      for (int i = 0; i < job.slots; ++i)
        add_sources(job, job.first_slot + i, set, kind,
                    2 * static_cast<std::uint32_t>(resources.first_slot + i), first_own, tables);
  return tables;
}

JobResources Allocation::admit(const JobPlan& job) {
  const std::string who = "job '" + job.name + "'";
  if (job.format == Format::roce)
    throw std::invalid_argument(who +
                                " is over RoCEv2, which the P4 program does not sum; use "
                                "--target compiled");
  if (job.all_functions && !ours_)
    throw std::invalid_argument(who +
                                " has all_functions, and this program may know packets of an "
                                "all-reduce only; leave that out, or use --target compiled, or "
                                "another without --program");
  if (job.tells_old_packets() && !ours_)
    throw std::invalid_argument(
        who +
        " is guarded, and this program cannot tell old packets; leave "
        "out guarded, or use --target compiled, or another without --program");
  if (job.elements != elements_)
    throw std::invalid_argument(who + " has packets of " + std::to_string(job.elements) +
                                " elements, the program is for " + std::to_string(elements_));
  std::vector<std::pair<int, int>> numbers, slots, groups;
  std::size_t sources = source_rows_of(job);
  for (const auto& [name, other] : admitted_) {
    numbers.emplace_back(other.resources.job, 1);
    slots.emplace_back(other.resources.first_slot, other.job.slots);
    groups.emplace_back(other.resources.first_group, own_groups_of(other.job));
    sources += source_rows_of(other.job);
  }
  const JobResources resources{first_free(0, kMostJobs - 1, 1, numbers),
                               first_free(0, slots_ - 1, job.slots, slots),
                               first_free(1, kMostGroups, own_groups_of(job), groups)};
  if (resources.first_slot < 0)
    throw std::invalid_argument(who + " wants " + std::to_string(job.slots) +
                                " slots; so many in a row are not free of the program's " +
                                std::to_string(slots_));
  if (sources > kMostSources)
    throw std::invalid_argument(who + ": slots times workers of all jobs are over " +
                                std::to_string(kMostSources / 2) + "; give the jobs fewer slots");
  if (resources.job < 0 || resources.first_group < 1)
    throw std::invalid_argument(who + ": the program has room for " + std::to_string(kMostJobs) +
                                " jobs and " + std::to_string(kMostGroups) +
                                " groups of receivers, and they are taken; remove a job first");
  admitted_.insert({job.name, {job, resources}});
  return resources;
}

}  // namespace ghostrank::switchml
