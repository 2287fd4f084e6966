// What a comparison keeps of one run: figures per step, what limited it, and whether it can be
// trusted. Read from the run's result file; written to and read from the comparison's JSON.
//
// Units: seconds and bytes of the emulated cluster, per step, unless a name says otherwise.
// Threading: pure functions of their arguments and of files.
#pragma once

#include <optional>
#include <string>

#include "profiles/job/job.h"
#include "tools/report/json/json.h"

namespace ghostrank {

struct AbRun {
  std::size_t variant = 0, block = 0;
  std::uint64_t seed = 0;
  std::string file;         // the result, relative to the bundle; empty if it was not kept
  std::string job_hash;     // of what it played (tools/report/job_hash.h); not kept
  double step_seconds = 0;  // the sample: the median of the measured iterations
  int iterations = 0;
  double compute_seconds = 0, exposed_seconds = 0, bubble_seconds = 0;  // medians
  std::optional<double> collective_seconds;  // of all calls; where they were timed
  // Time of a step's communication by a theorem on the job's scheme (BytePS's best split).
  std::optional<double> predicted_seconds;
  double bytes = 0, messages = 0;                // between emulated nodes
  std::optional<double> packets;                 // of schemes, or of the modelled framing
  std::optional<double> header_share;            // of all bytes on the links
  std::string header_basis;                      // "modelled udp", "interfaces"
  std::optional<double> retransmissions;         // and what else was sent in vain
  double busiest_nic_bytes = 0;                  // of the ranks' NICs, in the busier direction
  std::optional<double> busiest_nic_wire_bytes;  // with headers
  double nic_bps = 0;                 // its rate, on average where it changes; 0: unlimited
  std::optional<double> nic_busy;     // share of the step that its bytes take at the NIC's rate
  std::optional<double> helper_busy;  // likewise, of the busiest NIC of a server or switch
  std::optional<double> switch_busy;  // share of a core that a started switch uses
  std::string switch_target;          // of the switch outside ghostrank; empty: none
  std::optional<double> link_busy;    // share of the time of the hottest link inside the fabric
  std::string hottest_link;
  std::optional<double> cpu_seconds_per_GB;  // 1e9 message bytes; not in virtual time
  double dilation = 1, critical_lateness = 0, wall_seconds = 0;
  std::string transport, fabric, schemes;
  bool faithful = false, modelled = false, deterministic = false;
  bool retried = false;  // was not faithful, and was played again; counts for nothing
  std::string reason;    // why it is not faithful
  std::string bottleneck;
};

// What a run of `spec` wrote with --json. Throws Error(environment) when the file is no such
// result.
AbRun read_ab_run(const std::string& file, const JobSpec& spec);

Json to_json(const AbRun& run);
AbRun ab_run_from(const Json& json);  // throws nlohmann's exceptions

}  // namespace ghostrank
