#include "switch/tables.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace ghostrank::switchml {
namespace {

int groups_of(const JobPlan& job) {
  return 1 + static_cast<int>(job.workers.size()) + (job.uplink ? 1 : 0);
}

std::size_t sources_of(const JobPlan& job) {
  return static_cast<std::size_t>(job.slots) * (job.workers.size() + (job.uplink ? 1 : 0));
}

// The first of `count` free numbers from `first` to `last`, none of those taken (first, count);
// below `first` where there is no such run.
int first_free(int first, int last, int count, std::vector<std::pair<int, int>> taken) {
  std::sort(taken.begin(), taken.end());
  int at = first;
  for (const auto& [begin, length] : taken) {
    if (begin - at >= count) break;
    at = std::max(at, begin + length);
  }
  return at + count - 1 <= last ? at : first - 1;
}

bool share_slots(const JobPlan& a, const JobPlan& b) {
  return a.first_slot < b.first_slot + b.slots && b.first_slot < a.first_slot + a.slots;
}

}  // namespace

Tables tables_of(const JobPlan& job, const Placement& place) {
  Tables tables;
  tables.job = place.job;
  tables.elements = job.elements;
  tables.first_slot = job.first_slot;
  tables.slots = job.slots;
  const auto everybody = static_cast<std::uint32_t>(place.first_group);
  const auto workers = static_cast<std::uint32_t>(job.workers.size());
  const std::uint32_t up = everybody + 1 + workers;
  tables.groups.push_back({everybody, {}});
  for (std::uint32_t w = 0; w < workers; ++w) {
    const Worker& worker = job.workers[w];
    const Receiver receiver{worker.port, worker.mac, worker.ip, job.worker_port};
    tables.groups[0].receivers.push_back(receiver);
    tables.groups.push_back({everybody + 1 + w, {receiver}});
  }
  if (job.uplink)
    tables.groups.push_back({up, {{job.uplink->port, job.uplink->mac, job.uplink->ip, kUdpPort}}});
  for (int i = 0; i < job.slots; ++i) {
    const int slot = job.first_slot + i;
    for (std::uint32_t w = 0; w < workers; ++w) {
      Tables::Source source{job.workers[w].port, job.workers[w].ip, slot};
      source.worker = static_cast<int>(w);
      source.workers = static_cast<int>(workers);
      source.row = 2 * static_cast<std::uint32_t>(place.first_slot + i);
      source.all = job.uplink ? up : everybody;
      source.again = job.uplink ? up : everybody + 1 + w;
      tables.sources.push_back(source);
    }
    if (!job.uplink) continue;
    Tables::Source above{job.uplink->port, job.uplink->ip, slot, true};
    above.all = everybody;
    tables.sources.push_back(above);
  }
  return tables;
}

Placement Allocation::admit(const JobPlan& job) {
  const std::string who = "job '" + job.name + "'";
  if (job.format != Format::udp)
    throw std::invalid_argument(who +
                                " is over RoCEv2, which the P4 program does not sum; use "
                                "--target compiled");
  if (job.elements != elements_)
    throw std::invalid_argument(who + " has packets of " + std::to_string(job.elements) +
                                " elements, the program is for " + std::to_string(elements_));
  check_addresses(job);
  std::vector<std::pair<int, int>> numbers, slots, groups;
  std::size_t sources = sources_of(job);
  for (const auto& [name, other] : admitted_) {
    numbers.emplace_back(other.place.job, 1);
    slots.emplace_back(other.place.first_slot, other.job.slots);
    groups.emplace_back(other.place.first_group, groups_of(other.job));
    sources += sources_of(other.job);
  }
  const Placement place{first_free(0, kMostJobs - 1, 1, numbers),
                        first_free(0, slots_ - 1, job.slots, slots),
                        first_free(1, kMostGroups, groups_of(job), groups)};
  if (place.first_slot < 0)
    throw std::invalid_argument(who + " wants " + std::to_string(job.slots) +
                                " slots; so many in a row are not free of the program's " +
                                std::to_string(slots_));
  if (sources > kMostSources)
    throw std::invalid_argument(who + ": slots times workers of all jobs are over " +
                                std::to_string(kMostSources) + "; give the jobs fewer slots");
  if (place.job < 0 || place.first_group < 1)
    throw std::invalid_argument(who + ": the program has room for " + std::to_string(kMostJobs) +
                                " jobs and " + std::to_string(kMostGroups) +
                                " groups of receivers, and they are taken; remove a job first");
  admitted_.insert({job.name, {job, place}});
  return place;
}

void Allocation::check_addresses(const JobPlan& job) const {
  const auto refuse = [&](std::uint32_t ip) {
    throw std::invalid_argument("job '" + job.name + "': the address " + text_of_ip(ip) +
                                " has the same slots at two ports; the program tells receivers "
                                "apart by address and slot");
  };
  std::set<std::uint32_t> own;
  for (const Worker& w : job.workers) {
    if (!own.insert(w.ip).second) refuse(w.ip);
  }
  for (const auto& [name, other] : admitted_) {
    if (!share_slots(job, other.job)) continue;
    for (const Worker& w : other.job.workers) {
      if (own.contains(w.ip)) refuse(w.ip);
    }
  }
}

}  // namespace ghostrank::switchml
