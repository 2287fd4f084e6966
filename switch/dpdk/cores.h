// The pipelines of a switch: one per core, each with its own frames. Requests reach all pipelines
// while none of them runs.
//
// Threading: constructed, asked and run on one thread, which is also the first core. run() starts
// and joins a thread for each other core.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "switch/dpdk/pipeline.h"
#include "switch/ports/frame_ports.h"

namespace ghostrank::dpdk {

class Cores {
 public:
  // Makes a pipeline for each element of `frames`. Throws as Pipeline does.
  Cores(const Spec& spec, std::vector<std::unique_ptr<switchml::FramePorts>> frames, bool in_order);

  // Carries out lines of commands.h on every core. Throws std::runtime_error naming the line that
  // is refused.
  void obey(const std::vector<std::string>& lines);
  // Sums over all cores.
  std::vector<PortCounters> counters();
  std::vector<std::uint64_t> cells(const SpecRegisters& registers);

  // Runs until `stop`, or until all frames are handled. Calls `serve` between rounds and wakes up
  // for it when the descriptor `bell` is readable. Never waits for ports without descriptors. An
  // exception on one core, such as std::system_error for an interface that is gone, ends all cores
  // and is rethrown here.
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
    std::exception_ptr ended_by;
  };
  void work(Core& core, const std::atomic<bool>& stop, int bell,
            const std::function<void()>& serve);
  // Runs `task` for every core while no core runs.
  void on_each(const std::function<void(Core&)>& task);

  std::vector<std::unique_ptr<Core>> cores_;
  std::atomic<bool> pause_{false};   // no core begins a round
  std::atomic<bool> broken_{false};  // a core has thrown
};

}  // namespace ghostrank::dpdk
