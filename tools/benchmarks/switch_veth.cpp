// The compiled switch on veth pairs with four senders, beside a reflector that returns every frame
// to its port: the most that the kernel allows. Both send one frame per frame received. Counters
// give packets and bytes in; the switch touches every payload byte, the reflector copies it. Needs
// root, because it makes a network namespace.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <benchmark/benchmark.h>

#include "switch/compiled/compiled.h"
#include "switch/ports/fd.h"
#include "switch/ports/live.h"
#include "tools/benchmarks/found.h"

namespace ghostrank::bench {
namespace {

using namespace switchml;

constexpr int kWorkers = 4, kWindow = 512, kElements = 256, kRepeatMs = 20;
constexpr std::chrono::seconds kTime{2};
constexpr std::uint32_t kFirstIp = 0x0a000001;
constexpr std::size_t kIndex = 48;  // offset of slot and set in a frame

Worker worker(int w) {
  const auto n = static_cast<std::uint8_t>(w);
  return {w, {2, 0, 0, 0, 0, n}, kFirstIp + n};
}

// Makes the veth pairs pN and qN in a network namespace that ends with the process.
bool make_network() {
  static const bool made = [] {
    if (unshare(CLONE_NEWNET) != 0) return false;
    std::string script;
    for (int w = 0; w < kWorkers; ++w) {
      const std::string p = "p" + std::to_string(w), q = "q" + std::to_string(w);
      script += "ip link add " + p + " type veth peer name " + q + " && ip link set " + p +
                " up && ip link set " + q + " up && ";
    }
    return std::system((script + "true").c_str()) == 0;
  }();
  return made;
}

Fd socket_on(const std::string& interface) {
  Fd fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_IP)));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_IP);
  address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
  const int yes = 1;
  setsockopt(fd.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.close();
  return fd;
}

// Sends one chunk per slot, and a slot's next chunk when the answer has come. After 20 ms without
// an answer it sends the chunks of all slots again. `answered` counts new answers.
void send(int w, const std::atomic<bool>& stop, std::atomic<std::uint64_t>& answered) {
  const Fd line = socket_on("q" + std::to_string(w));
  const int fd = line.get();
  std::array<std::byte, frame_bytes(kElements)> frame{}, answer{};
  Packet p;
  p.source = {worker(w).mac, worker(w).ip, kWorkerPort};
  p.target = {{2, 0, 0, 0, 0xff, 1}, 0x0a0000fe, kUdpPort};
  p.elements = kElements;
  write_header(p, frame.data());
  std::array<int, kWindow> round{};
  const auto post = [&](int slot) {
    const int set = round[slot] % 2;
    store16(frame.data() + kIndex, static_cast<std::uint16_t>(set << 15 | slot));
    (void)!write(fd, frame.data(), frame.size());
  };
  for (int slot = 0; slot < kWindow; ++slot) post(slot);
  while (!stop) {
    pollfd polled{fd, POLLIN, 0};
    if (poll(&polled, 1, kRepeatMs) <= 0) {
      for (int slot = 0; slot < kWindow; ++slot) post(slot);
      continue;
    }
    if (read(fd, answer.data(), answer.size()) != std::ssize(answer)) continue;
    const std::uint16_t index = load16(answer.data() + kIndex);
    const int slot = index & 0x7fff;
    if (slot >= kWindow || index >> 15 != round[slot] % 2) continue;
    ++round[slot];
    answered.fetch_add(1, std::memory_order_relaxed);
    post(slot);
  }
}

void reflect(FramePorts& ports, const std::atomic<bool>& stop) {
  while (!stop) {
    for (Arrival arrival; ports.next(arrival);)
      std::memcpy(ports.frame(arrival.port, arrival.frame.size()), arrival.frame.data(),
                  arrival.frame.size());
    ports.flush();
    wait_for(ports, {});
  }
}

SwitchPlan plan() {
  SwitchPlan plan;
  plan.ports = kWorkers;
  JobPlan job{"a", kElements, 0, kWindow, kWorkerPort, {}, {}};
  for (int w = 0; w < kWorkers; ++w) job.workers.push_back(worker(w));
  plan.jobs.push_back(job);
  return plan;
}

// Runs `serve` on ports p0 to p3 for kTime; it returns when `stop` is set.
template <typename Serve>
void measure(benchmark::State& state, Serve serve) {
  if (!make_network()) return state.SkipWithError("needs root, for a network namespace");
  std::uint64_t all = 0;
  double seconds = 0;
  for (auto _ : state) {
    std::vector<PortName> names;
    for (int w = 0; w < kWorkers; ++w) names.push_back({"p" + std::to_string(w), {}, {}});
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> answered{0};
    const auto ports = open_interfaces(names);
    std::vector<std::thread> threads;
    threads.emplace_back([&] { serve(*ports, stop); });
    for (int w = 0; w < kWorkers; ++w) threads.emplace_back([&, w] { send(w, stop, answered); });
    const auto began = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(kTime);
    all += answered.load();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    stop = true;
    for (std::thread& thread : threads) thread.join();
    state.SetIterationTime(took.count());
    seconds += took.count();
  }
  state.counters["messages"] = static_cast<double>(all);
  state.counters["bytes"] = static_cast<double>(all * frame_bytes(kElements));
  state.counters["payload_touched"] = 1;
  state.counters["packets_per_second"] = static_cast<double>(all) / seconds;
}

void VethSwitch(benchmark::State& state) {
  measure(state, [](FramePorts& ports, const std::atomic<bool>& stop) {
    CompiledSwitch sw(plan());
    run(sw, ports, {}, stop);
  });
}

void VethReflector(benchmark::State& state) {
  measure(state, [](FramePorts& ports, const std::atomic<bool>& stop) { reflect(ports, stop); });
}

BENCHMARK(VethReflector)->Iterations(1)->Repetitions(3)->UseManualTime();
BENCHMARK(VethSwitch)->Iterations(1)->Repetitions(3)->UseManualTime();

}  // namespace

Section section(const Found& found) {
  const auto thousands = [&](const char* name) {
    return figure(found.median(name, "packets_per_second"), 0, 1e3) + " k";
  };
  return {
      "Four senders on veth pairs with " + std::to_string(kWindow) + " packets of " +
          std::to_string(kElements) +
          " elements under way each, packet sockets, senders and switch on the same cores; "
          "medians of 3 plays of 2 s.\n\n" +
          report::markdown_table({{"", "packets/s in, and as many out"},
                                  {"the compiled switch", thousands("VethSwitch")},
                                  {"a reflector on the same ports", thousands("VethReflector")}}),
      {}};
}

}  // namespace ghostrank::bench
