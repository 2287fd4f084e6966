// Jobs whose calls contend for NICs and links, and collectives alone on an idle network, played by
// each model of the network: what tests and `tools/dev fidelity network` hold beside each other.
//
// Units: seconds. Threading: pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/emulator/support.h"

namespace ghostrank::testing {

struct ContendedCase {
  std::string name;
  int nodes = 0;  // of one GPU and one NIC, 100 Gb/s, 2 us
  TopologySpec topology;
  std::function<void(SmallJob&, double)> add;  // adds calls; the factor scales sizes and times
};
const std::vector<ContendedCase>& contended_cases();  // 16
// A long message, and short ones to the same NIC while it arrives: all models agree on that.
ContendedCase interrupted_case();

// How packets are played.
enum class Queues {
  fair,    // fair queues, windows, and buffers that nothing fills: what `flow` assumes
  pauses,  // one queue, and nothing but pauses slows a sender down
  dcqcn,   // one queue, pauses, marks, DCQCN
};

// The job of a case: packets of 1,024 bytes with RoCEv2's headers, whatever the model.
SmallJob contended_job(const ContendedCase& contended, NetworkModel model, Queues queues,
                       double scale);

// A collective of 8 ranks, one per node behind one switch, alone.
struct LoneCollective {
  std::string name;
  Func func;
  std::string algorithm;
  // Its duration is that of `steps` messages, one after the other, each of the bytes divided by
  // `share_of`; 0: of no bytes.
  int steps, share_of;
};
const std::vector<LoneCollective>& lone_collectives();
SmallJob lone_job(const LoneCollective& lone, NetworkModel model, std::uint64_t bytes);
// Seconds by the closed form: steps x (latency + serialisation), and in packets for each step what
// store and forward adds.
double closed_form(const LoneCollective& lone, NetworkModel model, std::uint64_t bytes);

}  // namespace ghostrank::testing
