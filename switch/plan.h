// What a switch is told: its ports, where ordinary frames go, and which jobs may use which slots.
// Every target (compiled, dpdk, bmv2) is set up from the same plan.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "switch/switchml.h"

namespace ghostrank::switchml {

enum class Format : std::uint8_t {
  udp,   // switchml.h
  roce,  // roce.h: 256 elements
};

// Of a worker: where results over RoCEv2 go, and the sequence number of the first one.
struct QueuePair {
  std::uint32_t number = 0, first_sequence = 0;  // 24 bits
};

struct Worker {
  int port = 0;  // of the switch, 0 ..
  Mac mac{};
  std::uint32_t ip = 0;
  // Over RoCEv2: of the memory that results are written to; and what answers the switch's queue
  // pairs of this worker, one for one.
  std::uint32_t remote_key = 0;
  std::vector<QueuePair> queue_pairs = {};
};

// The switch above a leaf: it sees the leaf as one worker.
struct Uplink {
  int port = 0;
  Mac mac{};  // of the upper switch
  std::uint32_t ip = 0;
};

// Slots [first_slot, first_slot + slots) of the packets of these workers. A packet belongs to a
// job by its ingress port, its source address and its slot; the job number inside is the workers'
// own. Over RoCEv2 it is the port, the source address and the worker's number in the queue pair
// that tell, then the slots.
struct JobPlan {
  std::string name;
  int elements = 256;
  int first_slot = 0, slots = 512;
  // Results go to this UDP port plus the low four bits of the port that was written to, so that
  // a worker's threads are told apart.
  std::uint16_t worker_port = kWorkerPort;
  std::vector<Worker> workers;  // by number
  std::optional<Uplink> uplink;
  Format format = Format::udp;
};

struct Forward {
  Mac mac{};
  int port = 0;
};

// Loss on purpose, of SwitchML packets only: probability in units of 1/65536. Every target throws
// the same dice (LossDice), so that runs with loss can be compared packet by packet.
struct PortLoss {
  std::uint16_t ingress = 0, egress = 0;
};

struct SwitchPlan {
  int ports = 0;
  Mac mac{};  // of the switch, as source of results
  std::uint32_t ip = 0;
  std::vector<Forward> forward;
  std::vector<PortLoss> loss;  // by port; shorter: none on the others
  std::uint32_t seed = 1;      // of the losses
  std::vector<JobPlan> jobs;
};

// A generator of 32 bits (xorshift) that decides whether the next packet is lost.
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

// What the dice of a port start from.
enum class Way : std::uint8_t { ingress, egress };
inline std::uint32_t loss_seed(std::uint32_t seed, int port, Way way) {
  return seed * 0x9e3779b9u + 2 * static_cast<std::uint32_t>(port) + (way == Way::egress) + 1;
}

// Empty, or what is wrong with a job in the company of those already admitted: a port that does not
// exist, too many workers, slots beyond the table or of a worker that has them in another job.
std::string reason_to_refuse(const SwitchPlan& plan, const JobPlan& job);

// Empty, or why several cores cannot play this plan: losses on purpose fall on packets in their
// order, which several cores do not keep.
std::string reason_against_cores(const SwitchPlan& plan);

}  // namespace ghostrank::switchml
