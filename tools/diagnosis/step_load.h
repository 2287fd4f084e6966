// What a step's resources had to do, and which of them limits it: `compare` names it (bottleneck),
// `diagnose` explains it.
//
// Units: bytes and messages per step; seconds of the emulated cluster; bits per second.
// Threading: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/result/result.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Shares above which a resource counts as what limits the step.
inline constexpr double kSaturated = 0.9;  // of the step
inline constexpr double kExplains = 0.8;   // of the exposed communication

// Packets of messages in one direction, and their bytes with headers, by the framing. All messages
// count as equally large, so mixed sizes make the number of packets approximate.
struct Framed {
  double packets = 0, bytes = 0;
};
Framed framed(const Framing& framing, double bytes, double messages);

// The NICs of a cluster. Nodes from rank_nodes on are machines of servers, those from all_nodes on
// switches, whose NIC stands for many ports.
struct NicSetting {
  int nics_per_node = 1, rank_nodes = 1, all_nodes = 1;
  double bps = 0, helper_bps = 0;   // 0: unlimited, or unknown
  const NicRates* rates = nullptr;  // of NICs whose rate changes
  Framing framing;
};
NicSetting nic_setting(const JobSpec& spec);

struct NicUse {  // one direction
  Nic nic;
  bool sends = false, helper = false;
  double bytes = 0, messages = 0, wire_bytes = 0;
  double bps = 0;              // on average over all iterations; 0: unlimited, or unknown
  std::optional<double> busy;  // share of the step that wire_bytes take at that rate
};
// By NIC, sent before received, without those of switches. `step_seconds` 0: busy is not known;
// `seconds`: of all measured iterations.
std::vector<NicUse> nic_uses(std::span<const NicTraffic> nics, const NicSetting& setting,
                             double step_seconds, double seconds);

// Time of all calls of a row, all communicators together. Calls may differ in size: the bandwidth
// holds the time of all. Barriers have none.
double seconds_of_calls(double bytes, double algbw_GBps, double seconds_median, double calls);

struct StepLoad {
  double seconds = 0, compute_seconds = 0;
  double waiting_seconds = 0;  // exposed communication and bubble
  // Shares of the step that the busiest needs: NIC of a rank or link of the fabric; NIC or cores of
  // a helper.
  double link_busy = 0, helper_busy = 0;
  std::optional<double> collective_seconds;  // of all calls; where they were timed
  bool kept_up = false;                      // the run is faithful or modelled
  bool of_several_jobs = false;  // the bytes are those of all jobs, the step is the first one's
  bool compresses = false;
};

// "link", "switch" (a helper's NIC or cores), "host-cpu", "latency", "compute"; empty: unknown. The
// host's CPU comes first, because what it delays looks like any other resource.
std::string bottleneck_of(const StepLoad& load);

}  // namespace ghostrank
