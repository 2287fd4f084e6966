#include "switch/tables.h"

#include <stdexcept>
#include <string>

namespace ghostrank::switchml {
namespace {

std::vector<Receiver> receivers_of(const JobPlan& job) {
  std::vector<Receiver> all;
  for (const Worker& w : job.workers) all.push_back({w.port, w.mac, w.ip, job.worker_port});
  return all;
}

class Builder {
 public:
  void add(const JobPlan& job, int first_register) {
    const std::vector<Receiver> workers = receivers_of(job);
    const std::uint32_t everybody = group(workers);
    std::uint32_t up = 0;
    if (job.uplink) up = group({{job.uplink->port, job.uplink->mac, job.uplink->ip, kUdpPort}});
    for (int slot = job.first_slot; slot < job.first_slot + job.slots; ++slot) {
      for (std::size_t w = 0; w < job.workers.size(); ++w) {
        Tables::Source source{job.workers[w].port, job.workers[w].ip, slot};
        source.worker = static_cast<int>(w);
        source.workers = static_cast<int>(job.workers.size());
        source.offset = static_cast<std::uint16_t>(first_register - job.first_slot);
        source.all = job.uplink ? up : everybody;
        source.again = job.uplink ? up : everybody + 1 + static_cast<std::uint32_t>(w);
        tables.sources.push_back(source);
      }
      if (job.uplink) {
        Tables::Source above{job.uplink->port, job.uplink->ip, slot, true};
        above.all = everybody;
        tables.sources.push_back(above);
      }
      for (std::uint32_t i = 1; i < workers.size(); ++i)
        tables.resume.push_back({workers[i - 1].ip, slot, everybody, i});
    }
  }

  Tables tables;

 private:
  // A group, followed by one for each of its receivers alone.
  std::uint32_t group(const std::vector<Receiver>& receivers) {
    const auto number = static_cast<std::uint32_t>(tables.groups.size() + 1);
    tables.groups.push_back({number, receivers});
    for (std::uint32_t i = 0; i < receivers.size(); ++i)
      tables.groups.push_back({number + 1 + i, {receivers[i]}});
    return number;
  }
};

}  // namespace

Tables tables_of(const SwitchPlan& plan, int elements, int slots) {
  Builder builder;
  int used = 0;
  for (const JobPlan& job : plan.jobs) {
    if (job.elements != elements)
      throw std::invalid_argument("job '" + job.name + "' has packets of " +
                                  std::to_string(job.elements) + " elements, the program is for " +
                                  std::to_string(elements));
    if (job.slots > slots - used)
      throw std::invalid_argument("job '" + job.name + "' wants " + std::to_string(job.slots) +
                                  " slots, " + std::to_string(slots - used) + " of " +
                                  std::to_string(slots) + " are left");
    builder.add(job, used);
    used += job.slots;
    if (builder.tables.sources.size() > kMostSources)
      throw std::invalid_argument("job '" + job.name +
                                  "': slots times workers of all jobs are over " +
                                  std::to_string(kMostSources) + "; give the jobs fewer slots");
  }
  return std::move(builder.tables);
}

}  // namespace ghostrank::switchml
