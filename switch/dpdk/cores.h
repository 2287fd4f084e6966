// The pipelines of a switch: one or, on several cores, one for each, with frames of its own. What
// is asked of them is asked of all, while none of them runs.
//
// Threading: made, asked and run on one thread, which is also the first core; the others are
// threads that run() starts and joins.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "switch/dpdk/pipeline.h"
#include "switch/frame_ports.h"

namespace ghostrank::dpdk {

class Cores {
 public:
  // A pipeline for each element of `frames`. Throws as Pipeline does.
  Cores(const Spec& spec, std::vector<std::unique_ptr<switchml::FramePorts>> frames, bool in_order);

  // Lines of commands.h, on every core. Throws std::runtime_error naming the one that is refused.
  void obey(const std::vector<std::string>& lines);
  // Sums over all cores.
  std::vector<PortCounters> counters();
  std::vector<std::uint64_t> cells(const SpecRegisters& registers);

  // Until `stop`, or until all frames are through. `serve` is called in between, and is woken for
  // by `bell`, a descriptor; ports without descriptors are never waited for.
  void run(const std::atomic<bool>& stop, int bell, const std::function<void()>& serve);

 private:
  struct Core {
    Core(const Spec& spec, std::unique_ptr<switchml::FramePorts> arrivals, bool in_order,
         int number)
        : frames(std::move(arrivals)), ports(*frames), pipeline(spec, ports, in_order, number) {}
    std::unique_ptr<switchml::FramePorts> frames;
    PortSet ports;
    Pipeline pipeline;
    std::mutex running;  // held during a round
  };
  void work(Core& core, const std::atomic<bool>& stop, int bell,
            const std::function<void()>& serve);
  // `task` on every core, none of which runs meanwhile.
  void on_each(const std::function<void(Core&)>& task);

  std::vector<std::unique_ptr<Core>> cores_;
  std::atomic<bool> pause_{false};  // no round begins
};

}  // namespace ghostrank::dpdk
