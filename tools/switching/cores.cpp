#include "tools/switching/cores.h"

#include <stdexcept>
#include <sys/eventfd.h>
#include <system_error>

namespace ghostrank {
namespace {

using switchml::CompiledSwitch;
using switchml::SwitchCounters;

void add(switchml::PortCounters& to, const switchml::PortCounters& from) {
  to.received += from.received;
  to.received_bytes += from.received_bytes;
  to.sent += from.sent;
  to.sent_bytes += from.sent_bytes;
  to.malformed += from.malformed;
  to.strangers += from.strangers;
  to.lost += from.lost;
  to.unknown += from.unknown;
}

void add(switchml::JobCounters& to, const switchml::JobCounters& from) {
  to.received += from.received;
  to.collected += from.collected;
  to.duplicates += from.duplicates;
  to.broadcasts += from.broadcasts;
  to.retransmissions += from.retransmissions;
  to.sent += from.sent;
  to.results += from.results;
  to.gaps += from.gaps;
}

}  // namespace

SwitchOnCores::SwitchOnCores(const switchml::SwitchPlan& plan,
                             const std::vector<switchml::PortName>& ports, int cores,
                             std::atomic<bool>& stop)
    : stop_(stop) {
  if (const std::string why = reason_against_cores(plan); !why.empty())
    throw std::invalid_argument(why);
  std::vector<std::unique_ptr<switchml::FramePorts>> shards = open_interfaces(ports, cores);
  for (auto& shard : shards) {
    cores_.push_back(std::make_unique<Core>(plan));
    cores_.back()->frames = std::move(shard);
    cores_.back()->bell = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }
}

void SwitchOnCores::work(Core& core, const std::vector<switchml::Watch>& watches) {
  std::vector<switchml::Watch> all = watches;
  all.push_back({core.bell.get(), [&core] {
                   eventfd_t rung = 0;
                   if (eventfd_read(core.bell.get(), &rung) != 0) return;
                   core.task();
                   core.task = nullptr;
                   core.done = true;
                   core.done.notify_one();
                 }});
  try {
    switchml::run(core.sw, *core.frames, all, stop_);
  } catch (const std::system_error&) {  // an interface is gone, for all cores
    core.ended_by = std::current_exception();
    stop_ = true;
  }
  core.ended = true;
  core.done = true;
  core.done.notify_one();
}

void SwitchOnCores::run(const std::vector<switchml::Watch>& watches) {
  for (std::size_t c = 1; c < cores_.size(); ++c)
    threads_.emplace_back([this, c] { work(*cores_[c], {}); });
  work(*cores_[0], watches);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (const auto& core : cores_)
    if (core->ended_by) std::rethrow_exception(core->ended_by);
}

void SwitchOnCores::on_each(const std::function<void(CompiledSwitch&)>& task) {
  task(cores_[0]->sw);
  for (std::size_t c = 1; c < cores_.size(); ++c) {
    Core& core = *cores_[c];
    core.task = [&] { task(core.sw); };
    core.done = false;
    if (!threads_.empty() && !core.ended) {
      eventfd_write(core.bell.get(), 1);
      core.done.wait(false);
    }
    if (core.task) core.task();  // the core ended before the bell, or does not run
    core.task = nullptr;
  }
}

std::string SwitchOnCores::admit(const switchml::JobPlan& job) {
  std::string why;
  on_each([&](CompiledSwitch& sw) {
    if (std::string refusal = sw.admit(job); !refusal.empty()) why = std::move(refusal);
  });
  return why;
}

bool SwitchOnCores::remove(const std::string& job) {
  bool found = false;
  on_each([&](CompiledSwitch& sw) { found = sw.remove(job) || found; });
  return found;
}

bool SwitchOnCores::reset(const std::string& job) {
  bool found = false;
  on_each([&](CompiledSwitch& sw) { found = sw.reset(job) || found; });
  return found;
}

SwitchCounters SwitchOnCores::counters() {
  SwitchCounters all;
  on_each([&](CompiledSwitch& sw) {
    const SwitchCounters one = sw.counters();
    if (all.ports.empty()) {
      all = one;
      return;
    }
    for (std::size_t p = 0; p < one.ports.size(); ++p) add(all.ports[p], one.ports[p]);
    for (std::size_t j = 0; j < one.jobs.size(); ++j) add(all.jobs[j].second, one.jobs[j].second);
  });
  return all;
}

}  // namespace ghostrank
