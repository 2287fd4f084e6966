// The compiled switch: what the P4 program does, in C++. Frames in, frames out; it knows neither
// sockets nor files nor time.
//
// Threading: one owner. With several cores, each core owns a switch and a part of the slots.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "switch/compiled/counters.h"
#include "switch/compiled/pool.h"
#include "switch/compiled/transmitter.h"
#include "switch/plan.h"
#include "switch/wire/roce.h"

namespace ghostrank::switchml {

class CompiledSwitch {
 public:
  // Admits the plan's jobs; throws std::invalid_argument with the reason if it refuses one.
  explicit CompiledSwitch(SwitchPlan plan);

  // Handles a frame that came in at `port`, and writes all frames that it causes to `out` at once.
  void receive(int port, std::span<const std::byte> frame, Transmitter& out);

  // Admits a job while the switch runs. Empty: admitted; else the reason for refusing it.
  std::string admit(const JobPlan& job);
  bool remove(const std::string& job);
  bool reset(const std::string& job);  // clears its sums and marks

  const SwitchPlan& plan() const { return plan_; }
  SwitchCounters counters() const;
  const JobCounters* counters(const std::string& job) const;
  const PortCounters& port(int p) const { return ports_[p]; }

 private:
  // Over RoCEv2: a queue pair of the switch, and the next sequence number that the switch sends to
  // the worker's queue pair of the same index.
  struct QueuePairState {
    RoceQueue in;
    std::uint32_t out_sequence = 0;
  };
  struct Job {
    JobPlan plan;
    Pool pool;
    JobCounters counters;
    std::vector<std::vector<QueuePairState>> flows;  // by worker and queue; empty over UDP
    std::vector<int> numbers;                        // of its workers
  };
  struct Source {  // a sender at one ingress port, and its slots
    std::uint32_t ip = 0;
    int first_slot = 0, slots = 0;
    int worker = 0;  // kUpper: the switch above sends
    Job* job = nullptr;
  };
  static constexpr int kUpper = -1;

  void receive_udp(int port, const Packet& packet, Transmitter& out);
  void forward(int port, std::span<const std::byte> frame, Transmitter& out);
  void sum(const Source& source, const Packet& packet, Transmitter& out);
  void send_to_all(Job& job, const Packet& result, Transmitter& out);
  void send_result(Job& job, int worker, const Packet& result, Transmitter& out);
  void send_up(Job& job, const Packet& packet, Transmitter& out);
  // Gives a worker's chunk to the pool, and counts the chunk by the verdict that it returns.
  static Verdict receive_chunk(const Source& source, const Packet& packet);
  // In compiled/sparse.cpp:
  void receive_sparse(int port, const Packet& packet, Transmitter& out);
  void sum_sparse(const Source& source, const Packet& packet, Transmitter& out);
  void send_block(Job& job, int number, const Packet& result, Transmitter& out);
  // In compiled/roce.cpp:
  static std::vector<std::vector<QueuePairState>> queue_pairs_of(const JobPlan& job);
  void receive_roce(int port, const RocePacket& packet, Transmitter& out);
  void sum_roce(int port, const Source& source, const RocePacket& packet, Transmitter& out);
  void send_roce(Job& job, int worker, const RocePacket& result, Transmitter& out);
  // Sends a packet in the job's format, unless the port's deliberate egress loss drops it.
  void send_packet(Job& job, int port, const Packet& packet, Transmitter& out);
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
