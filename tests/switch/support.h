// Frames and switches for the tests of switch/: a job of n workers, worker w on port w.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "switch/compiled/compiled.h"

namespace ghostrank::switchml {

using Bytes = std::vector<std::byte>;

inline const Mac kSwitchMac{2, 0, 0, 0, 0xff, 1};
inline constexpr std::uint32_t kSwitchIp = 0x0a0000fe;

inline Worker worker(int w, int port) {
  return {port,
          {2, 0, 0, 0, 0, static_cast<std::uint8_t>(w)},
          0x0a000001u + static_cast<std::uint32_t>(w)};
}

inline JobPlan job_of(int workers, int elements, int slots = 4) {
  JobPlan job;
  job.name = "a";
  job.elements = elements;
  job.slots = slots;
  for (int w = 0; w < workers; ++w) job.workers.push_back(worker(w, w));
  return job;
}

inline SwitchPlan plan_of(std::vector<JobPlan> jobs, int ports) {
  SwitchPlan plan;
  plan.ports = ports;
  plan.mac = kSwitchMac;
  plan.ip = kSwitchIp;
  plan.jobs = std::move(jobs);
  return plan;
}

// A packet of worker w to the switch's UDP port.
inline Packet packet_from(int w, std::uint16_t port, int slot, int set, std::uint32_t id,
                          int elements) {
  Packet p;
  const Worker who = worker(w, w);
  p.source = {who.mac, who.ip, kWorkerPort};
  p.target = {kSwitchMac, kSwitchIp, port};
  p.id = id;
  p.slot = static_cast<std::uint16_t>(slot);
  p.set = static_cast<std::uint8_t>(set);
  p.elements = elements;
  return p;
}

// Element i is `first` + i.
inline void put_elements(std::int32_t first, int elements, std::byte* to) {
  for (int i = 0; i < elements; ++i)
    store32(to + 4 * i, static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(i));
}

// A packet of SwitchML's with elements from `first` on.
inline Bytes frame_of(const Packet& p, std::int32_t first) {
  Bytes frame(frame_bytes(p.elements, p.type));
  write_header(p, frame.data());
  put_elements(first, p.elements, frame.data() + header_bytes(p.type));
  return frame;
}

// The chunk of worker w, with elements from `first` on.
inline Bytes chunk(int w, int slot, int set, std::int32_t first, int elements, std::uint32_t id = 0,
                   std::int8_t exponent = 0) {
  Packet p = packet_from(w, kUdpPort, slot, set, id, elements);
  p.e0 = p.e1 = exponent;
  return frame_of(p, first);
}

inline std::int32_t element(const Bytes& frame, int i) {
  return static_cast<std::int32_t>(load32(frame.data() + kHeaderBytes + 4 * i));
}

// Keeps the frames that leave, with their ports.
class Tray final : public Transmitter {
 public:
  std::byte* frame(int port, std::size_t bytes) override {
    frames.emplace_back(port, Bytes(bytes));
    return frames.back().second.data();
  }
  std::vector<std::pair<int, Bytes>> take() { return std::exchange(frames, {}); }

  std::vector<std::pair<int, Bytes>> frames;
};

inline std::vector<std::pair<int, Bytes>> answers(CompiledSwitch& sw, int port,
                                                  const Bytes& frame) {
  Tray tray;
  sw.receive(port, frame, tray);
  return tray.take();
}

}  // namespace ghostrank::switchml
