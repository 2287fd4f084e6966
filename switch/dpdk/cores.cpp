#include "switch/dpdk/cores.h"

#include <chrono>
#include <thread>

#include "switch/dpdk/commands.h"
#include "switch/ports/live.h"

namespace ghostrank::dpdk {
namespace {

// Most instructions of a round, enough for some hundreds of packets; and of one call of run(). The
// core checks after every call whether frames still come.
constexpr std::uint32_t kMostInstructions = 100'000, kBetweenLooks = 500;
constexpr std::chrono::microseconds kPause{50};

}  // namespace

Cores::Cores(const Spec& spec, std::vector<std::unique_ptr<switchml::FramePorts>> frames,
             bool in_order) {
  for (auto& arrivals : frames)
    cores_.push_back(std::make_unique<Core>(spec, std::move(arrivals), in_order,
                                            static_cast<int>(cores_.size())));
}

void Cores::on_each(const std::function<void(Core&)>& task) {
  // A core begins its next round at once, so that waiting for its lock alone might never end.
  pause_ = true;
  std::vector<std::unique_lock<std::mutex>> held;
  for (const auto& core : cores_) held.emplace_back(core->running);
  pause_ = false;
  for (const auto& core : cores_) task(*core);
}

void Cores::obey(const std::vector<std::string>& lines) {
  on_each([&](Core& core) { dpdk::obey(lines, core.pipeline); });
}

std::vector<PortCounters> Cores::counters() {
  std::vector<PortCounters> all(cores_[0]->ports.counters.size());
  on_each([&](Core& core) {
    for (std::size_t p = 0; p < all.size(); ++p) {
      const PortCounters& c = core.ports.counters[p];
      all[p].received += c.received;
      all[p].received_bytes += c.received_bytes;
      all[p].sent += c.sent;
      all[p].sent_bytes += c.sent_bytes;
      all[p].short_frames += c.short_frames;
      all[p].overlong += c.overlong;
    }
  });
  return all;
}

std::vector<std::uint64_t> Cores::cells(const SpecRegisters& registers) {
  std::vector<std::uint64_t> sums(registers.size);
  on_each([&](Core& core) {
    for (std::uint32_t i = 0; i < registers.size; ++i)
      sums[i] += core.pipeline.read_register(registers.name, i);
  });
  return sums;
}

void Cores::work(Core& core, const std::atomic<bool>& stop, int bell,
                 const std::function<void()>& serve) {
  switchml::FramePorts& frames = *core.frames;
  std::vector<switchml::Watch> watches;
  if (bell >= 0) watches.push_back({bell, serve});
  for (bool more = true; !stop && !broken_ && more;) {
    while (pause_ && !stop) std::this_thread::sleep_for(kPause);
    {
      const std::lock_guard held(core.running);
      core.ports.look_again();
      for (std::uint32_t run = 0; run < kMostInstructions && !core.ports.idle();
           run += kBetweenLooks)
        core.pipeline.run(kBetweenLooks);
      if (core.ports.idle()) core.pipeline.drain();
      more = !frames.finished() || !core.ports.idle();
      frames.flush();
    }
    // Under load more frames have come meanwhile: sleep only after a round without any.
    if (!frames.finished() && !frames.descriptors().empty() && core.ports.idle() &&
        !core.ports.gave())
      wait_for(frames, watches);
    else
      serve();
  }
  frames.finish();
}

void Cores::run(const std::atomic<bool>& stop, int bell, const std::function<void()>& serve) {
  const auto play = [&](Core& core, int rung_by, const std::function<void()>& then) {
    try {
      work(core, stop, rung_by, then);
    } catch (...) {
      core.ended_by = std::current_exception();
      broken_ = true;
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t c = 1; c < cores_.size(); ++c)
    threads.emplace_back([&, c] { play(*cores_[c], -1, [] {}); });
  play(*cores_[0], bell, serve);
  for (std::thread& thread : threads) thread.join();
  for (const auto& core : cores_)
    if (core->ended_by) std::rethrow_exception(core->ended_by);
}

}  // namespace ghostrank::dpdk
