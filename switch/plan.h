// The configuration of a switch: its ports, where it forwards ordinary frames, and which jobs may
// use which slots. Every target (compiled, dpdk, bmv2) is set up from the same plan.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "switch/wire/switchml.h"

namespace ghostrank::switchml {

enum class Format : std::uint8_t {
  udp,         // switchml.h
  roce,        // roce.h: 256 elements
  omnireduce,  // sparse.h: always guarded
};

// A worker's queue pair that receives results over RoCEv2, and the first sequence number there.
struct QueuePair {
  std::uint32_t number = 0, first_sequence = 0;  // 24 bits each
};

struct Worker {
  int port = 0;  // of the switch, from 0
  Mac mac{};
  std::uint32_t ip = 0;
  // Over RoCEv2: the key of the memory that results are written to, and the worker's queue pairs.
  // Queue pair i answers the switch's queue pair i of this worker.
  std::uint32_t remote_key = 0;
  std::vector<QueuePair> queue_pairs = {};
  int workers = 1;  // below it, if it is a leaf; else 1
};

// The switch above a leaf. It treats the leaf as one worker.
struct Uplink {
  int port = 0;
  Mac mac{};  // of the upper switch
  std::uint32_t ip = 0;
};

// A job: its workers share slots [first_slot, first_slot + slots). The switch finds a packet's job
// by its ingress port, source address and slot; the job number inside the packet belongs to the
// workers. Over RoCEv2 it finds the job by the port, the source address and the worker's number in
// the queue pair, then checks the slot.
struct JobPlan {
  std::string name;
  int elements = 256;
  int first_slot = 0, slots = 512;
  // Results go to this UDP port plus the low four bits of the port that the worker sent to, so that
  // a worker can tell its threads apart.
  std::uint16_t worker_port = kWorkerPort;
  std::vector<Worker> workers;  // by number
  int first_worker = 0;         // the number of the first one; not 0 on a leaf
  std::optional<Uplink> uplink;
  Format format = Format::udp;
  bool guarded = false;  // against old packets (pool.h); over UDP
  // Packets of every type, those of ours too (switchml.h); over UDP.
  bool all_functions = false;

  // The number of each worker, as packets name it; of a leaf, that of the first worker below it.
  std::vector<int> numbers() const;
  bool tells_old_packets() const { return guarded || format == Format::omnireduce; }
};

struct Forward {
  Mac mac{};
  int port = 0;
};

// Deliberate loss, of SwitchML packets only: probabilities in units of 1/65536. Every target uses
// the same generator (LossDice), so runs with loss can be compared packet by packet.
struct PortLoss {
  std::uint16_t ingress = 0, egress = 0;
};

struct SwitchPlan {
  int ports = 0;
  Mac mac{};  // of the switch; source address of results
  std::uint32_t ip = 0;
  std::vector<Forward> forward;
  std::vector<PortLoss> loss;  // by port; ports beyond its end lose nothing
  std::uint32_t seed = 1;      // of the loss generators
  int elements = 0;  // of packets, for targets with one size; 0: the first job's, else 256
  std::vector<JobPlan> jobs;
};

// A 32-bit xorshift generator that decides whether the next packet is lost.
class LossDice {
 public:
  LossDice(std::uint16_t probability, std::uint32_t seed)
      : probability_(probability), state_(seed == 0 ? 1 : seed) {}
  bool lost() {
    if (probability_ == 0) return false;
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return (state_ & 0xffff) < probability_;
  }

 private:
  std::uint32_t probability_, state_;
};

// The seed of the generator of one port and direction.
enum class Direction : std::uint8_t { ingress, egress };
inline std::uint32_t loss_seed(std::uint32_t seed, int port, Direction direction) {
  return seed * 0x9e3779b9u + 2 * static_cast<std::uint32_t>(port) +
         (direction == Direction::egress) + 1;
}

// Empty if the switch can admit the job beside those of the plan, else the reason: a port that does
// not exist, too many workers, slots beyond the table, slots that a worker or the uplink uses in
// another job, or two of them that packets do not tell apart.
std::string reason_to_refuse(const SwitchPlan& plan, const JobPlan& job);

// Empty if several cores can play this plan, else the reason: deliberate losses depend on the order
// of packets, which several cores do not keep.
std::string reason_against_cores(const SwitchPlan& plan);

}  // namespace ghostrank::switchml
