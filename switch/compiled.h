// The compiled switch: what the P4 program does, in C++. Frames in, frames out; it knows neither
// sockets nor files nor time.
//
// Threading: one owner. Several cores each own a switch and the slots that are theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "switch/counters.h"
#include "switch/plan.h"
#include "switch/pool.h"
#include "switch/roce.h"
#include "switch/transmitter.h"

namespace ghostrank::switchml {

class CompiledSwitch {
 public:
  // The plan's jobs are admitted; throws std::invalid_argument with the reason where one is not.
  explicit CompiledSwitch(SwitchPlan plan);

  // A frame that came in at `port`. Everything that it causes to leave goes to `out` at once.
  void receive(int port, std::span<const std::byte> frame, Transmitter& out);

  // Empty when admitted, else why not.
  std::string admit(const JobPlan& job);
  bool remove(const std::string& job);
  bool reset(const std::string& job);  // forgets its sums

  const SwitchPlan& plan() const { return plan_; }
  SwitchCounters counters() const;
  const JobCounters* counters(const std::string& job) const;
  const PortCounters& port(int p) const { return ports_[static_cast<std::size_t>(p)]; }

 private:
  // Over RoCEv2: a queue pair of the switch, and what comes next on the worker's that answers it.
  struct Flow {
    RoceQueue in;
    std::uint32_t out_sequence = 0;
  };
  struct Job {
    JobPlan plan;
    Pool pool;
    JobCounters counters;
    std::vector<std::vector<Flow>> flows;  // by worker and queue; empty over UDP
  };
  struct Source {  // who may use which slots, at one ingress port
    std::uint32_t ip = 0;
    int first_slot = 0, slots = 0;
    int worker = 0;  // kUpper: the switch above
    Job* job = nullptr;
  };
  static constexpr int kUpper = -1;

  void receive_udp(int port, const Packet& packet, Transmitter& out);
  void forward(int port, std::span<const std::byte> frame, Transmitter& out);
  void sum(const Source& source, const Packet& packet, Transmitter& out);
  void send_result(Job& job, const Worker& worker, const Packet& result, Transmitter& out);
  void send_up(Job& job, const Packet& packet, Transmitter& out);
  // compiled_roce.cpp
  static std::vector<std::vector<Flow>> flows_of(const JobPlan& job);
  void receive_roce(int port, const RocePacket& packet, Transmitter& out);
  void sum_roce(int port, const Source& source, const RocePacket& packet, Transmitter& out);
  void send_roce(Job& job, int worker, const RocePacket& result, Transmitter& out);
  std::byte* transmit(int port, std::size_t bytes, Transmitter& out);
  void copy_to(int port, std::span<const std::byte> frame, Transmitter& out);
  void index_sources();

  SwitchPlan plan_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::vector<Source>> sources_;  // by port
  std::vector<PortCounters> ports_;
  std::vector<LossDice> loss_in_, loss_out_;  // by port
};

}  // namespace ghostrank::switchml
