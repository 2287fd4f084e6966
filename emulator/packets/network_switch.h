// A switch outside ghostrank that plays the helpers of schemes (SwitchService in
// collectives/agent.h): where it is, and how it learns of the job's communicators. The front end
// that starts or names the switch implements it; process 0 calls it.
//
// Port n leads to NIC n % N of emulated node n / N, where N is SwitchSpec::nics. Errors: text for
// the user. Threading: one owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/common/number.h"

namespace ghostrank {

// Which of `leaves` leaf switches has an emulated node: neighbours share one.
constexpr int leaf_of_node(int node, int nodes, int leaves) { return node * leaves / nodes; }

// A rail of a communicator as the switch knows it. The switch tells packets apart by their ingress
// port, their source address and their slot.
struct SwitchJob {
  struct Worker {
    int port = 0;
    std::string mac, ip;  // "02:00:00:00:00:01", "10.0.0.1"
  };
  std::string name;
  int elements = 0;               // of a packet
  int first_slot = 0, slots = 0;  // as its packets number them
  std::uint16_t worker_port = 0;  // UDP port of all workers: answers go there
  std::vector<Worker> workers;    // by number
  // Whether calls need packets that not every switch knows (SwitchService::of_every).
  bool all_functions = false;
  std::string format = {};  // of its packets (SwitchService::format)
};

class NetworkSwitch {
 public:
  virtual ~NetworkSwitch() = default;
  // Makes the switch serve `job`, without sums of earlier jobs. Returns "", or why it does not.
  // Does nothing for a switch that need not be told.
  virtual std::string admit(const SwitchJob& job) = 0;
  // Processor seconds that the switch has used so far; negative: unknown.
  virtual double processor_seconds() = 0;
  // Bytes of its memory that the admitted communicators' slots take; 0: unknown.
  virtual std::uint64_t memory_bytes() const = 0;
};

}  // namespace ghostrank
