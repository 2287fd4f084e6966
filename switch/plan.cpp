#include "switch/plan.h"

#include <algorithm>

#include "switch/wire/roce.h"

namespace ghostrank::switchml {
namespace {

bool share_slots(const JobPlan& a, const JobPlan& b) {
  return a.first_slot < b.first_slot + b.slots && b.first_slot < a.first_slot + a.slots;
}

// Where packets of a job come from.
struct Source {
  int port = 0;
  std::uint32_t ip = 0;
  bool operator==(const Source&) const = default;
};

// The workers by number, then the uplink: the switch tells packets of both by port and address.
std::vector<Source> sources_of(const JobPlan& job) {
  std::vector<Source> all;
  for (const Worker& worker : job.workers) all.push_back({worker.port, worker.ip});
  if (job.uplink) all.push_back({job.uplink->port, job.uplink->ip});
  return all;
}

std::string name_of(const JobPlan& job, std::size_t source) {
  return source < job.workers.size() ? "worker " + std::to_string(source) : "the uplink";
}

std::string wrong_source(const SwitchPlan& plan, const JobPlan& job, std::size_t s) {
  const std::vector<Source> sources = sources_of(job);
  const Source source = sources[s];
  const std::string who = name_of(job, s);
  if (source.port < 0 || source.port >= plan.ports)
    return who + " is on port " + std::to_string(source.port) + ", the switch has ports 0 to " +
           std::to_string(plan.ports - 1);
  for (std::size_t before = 0; before < s; ++before) {
    if (sources[before] == source)
      return who + " has the port and address of " + name_of(job, before);
  }
  for (const JobPlan& other : plan.jobs) {
    if (other.format != job.format) continue;
    const std::vector<Source> theirs = sources_of(other);
    if (job.format == Format::roce && s < theirs.size() && theirs[s] == source)
      return who + " has the switch's queue pairs of that number in job '" + other.name +
             "'; give it another number here";
    if (share_slots(job, other) && std::ranges::find(theirs, source) != theirs.end())
      return who + " has slots " + std::to_string(other.first_slot) + " to " +
             std::to_string(other.first_slot + other.slots - 1) + " in job '" + other.name +
             "'; give this job other slots";
  }
  return {};
}

// Checks what only jobs of some format may have.
std::string wrong_format(const JobPlan& job) {
  if (job.format != Format::roce) {
    for (const Worker& worker : job.workers) {
      if (!worker.queue_pairs.empty()) return "queue pairs belong to a job of format roce";
    }
    if (job.format == Format::omnireduce && (job.uplink || job.all_functions))
      return "blocks of OmniReduce are summed on one level, for an all-reduce; leave out uplink "
             "and all_functions";
    return {};
  }
  if (job.guarded)
    return "packets over RoCEv2 have no numbers that tell old ones; leave out guarded";
  if (job.all_functions)
    return "packets over RoCEv2 are those of an all-reduce; leave out all_functions";
  if (job.elements != kRoceElements)
    return "packets over RoCEv2 have " + std::to_string(kRoceElements) + " elements, not " +
           std::to_string(job.elements);
  if (job.uplink)
    return "a job over RoCEv2 has no uplink: a leaf would need queue pairs of its own";
  const std::size_t queues = job.workers[0].queue_pairs.size();
  if (queues < 1 || queues > static_cast<std::size_t>(kQueuePairsOfWorker))
    return "a worker over RoCEv2 has 1 to " + std::to_string(kQueuePairsOfWorker) +
           " queue_pairs, not " + std::to_string(queues);
  for (std::size_t w = 0; w < job.workers.size(); ++w) {
    if (job.workers[w].queue_pairs.size() != queues)
      return "worker " + std::to_string(w) + " has " +
             std::to_string(job.workers[w].queue_pairs.size()) + " queue_pairs, worker 0 has " +
             std::to_string(queues) + "; all have as many";
  }
  return {};
}

}  // namespace

std::vector<int> JobPlan::numbers() const {
  std::vector<int> numbers;
  int next = first_worker;
  for (const Worker& worker : workers) {
    numbers.push_back(next);
    next += worker.workers;
  }
  return numbers;
}

std::string reason_to_refuse(const SwitchPlan& plan, const JobPlan& job) {
  if (job.name.empty()) return "a job needs a name";
  for (const JobPlan& other : plan.jobs) {
    if (other.name == job.name) return "there is a job '" + job.name + "' already";
  }
  if (!valid_elements(job.elements))
    return "elements are 32, 64 or 256, not " + std::to_string(job.elements);
  if (job.workers.empty() || job.workers.size() > static_cast<std::size_t>(kMaxWorkers))
    return "a switch sums for 1 to " + std::to_string(kMaxWorkers) + " workers, not " +
           std::to_string(job.workers.size()) + "; use a leaf and a spine beyond that";
  if (job.first_slot < 0 || job.slots < 1 || job.first_slot > kMaxSlots - job.slots)
    return "slots " + std::to_string(job.first_slot) + " to " +
           std::to_string(static_cast<std::int64_t>(job.first_slot) + job.slots - 1) +
           " do not fit the table: 0 to " + std::to_string(kMaxSlots - 1);
  if (std::string why = wrong_format(job); !why.empty()) return why;
  for (std::size_t s = 0; s < sources_of(job).size(); ++s) {
    if (std::string why = wrong_source(plan, job, s); !why.empty()) return why;
  }
  return {};
}

std::string reason_against_cores(const SwitchPlan& plan) {
  if (std::none_of(plan.loss.begin(), plan.loss.end(),
                   [](const PortLoss& loss) { return loss.ingress != 0 || loss.egress != 0; }))
    return {};
  return "losses on purpose fall on packets in their order, which several cores do not keep; use "
         "one "
         "core";
}

}  // namespace ghostrank::switchml
