// What one process measured in one segment (the iterations between two barriers), its form on the
// wire, and the sum over all processes.
//
// Units: picoseconds of emulated time unless a name says otherwise. Threading: plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/shard/shard.h"

namespace ghostrank {

// What every process learns of a segment, so that all judge it alike. Its size is fixed, whatever
// the number of processes and traced ranks.
struct SegmentSummary {
  Histogram lateness_ns;
  Moment end;             // when the last rank ended
  Picoseconds until = 0;  // as in ShardStats
  Picoseconds wall_behind = 0;
  // Shares of the wall time of the worst shard, as in ShardStats. queued, throttled < 0:
  // unreadable.
  double held_up = 0, taken = 0, queued = 0;
  double throttled = 0;  // of the worst process, by its CPU quota
  // Relative error of the median step, and its duration in emulated seconds; of several jobs, the
  // greatest error and the shortest step. From process 0, which hears of every iteration.
  double median_error = 0, median_seconds = 0;
  double call_seconds = 0;  // of all calls that a StepChooser measures, as process 0 sums them
  double loop_busy = 0;
  Picoseconds paced = 0, pace_error = 0;
  std::uint64_t events = 0, messages = 0, checked = 0, wrong = 0, spans_dropped = 0, strays = 0;
  std::uint64_t spilled = 0;  // number of ledgers that outgrew memory
  std::uint64_t stalls = 0;   // of the whole job, as process 0 saw them
};

// What the files of ledgers that outgrew memory hold.
enum class Spilled : std::uint8_t {
  all,          // every row
  one_segment,  // of several segments: the rows of the last that outgrew memory
  some,         // what was written before the run was stopped
};

// How many there are in a job of what a report numbers.
struct JobSizes {
  std::size_t rows = 0;  // of the ledger
  int nics = 0, parties = 0;
};

// What only process 0 learns of the other processes.
struct SegmentReport : SegmentSummary {
  HostReport host;
  std::vector<InterfaceReport> interfaces;
  std::vector<RowStats> rows;
  std::vector<LedgerRow> ledger;           // rows that were not written to a file
  VectorBy<Nic, NicCount> spilled_by_nic;  // sums of the rows that were
  std::vector<std::string> spill_paths;    // by shard, also of shards that did not spill
  Spilled in_files = Spilled::all;         // in a sum
  std::vector<LedgerCell> intra;           // inside nodes, by row; missing: none
  LedgerCell to_outside, from_outside;     // as in ShardStats
  PacketCounts packets;
  SwitchTroubles troubles;
  std::vector<HelperCount> helpers;  // those that heard anything
  std::vector<LinkCount> links;      // by link
  LinkTimes link_times;              // of this process; not told to others
  std::uint64_t fluids = 0;          // collectives that travelled as flows
  std::vector<Span> spans;
  std::vector<std::vector<Gap>> gaps;  // by shard

  void add(Shard& shard, std::vector<Span> spans);
  // Adds all but host and interfaces, and moves `other`'s lists here.
  void merge(SegmentReport& other);
  std::string to_blob() const;
  static std::optional<SegmentReport> from_blob(std::string_view blob);  // empty if malformed
  // Whether all that it numbers is there: its numbers can be indexes.
  bool could_be_of(const JobSizes& job) const;
};

// Advice for a `reason` of judge(); `dilation` is the user's name of the setting to raise.
std::string remedy_for(const std::string& reason, const std::string& dilation);

// Judges the run by the thresholds of docs/accuracy.md. `wired`: messages crossed a real network.
Fidelity judge(const SegmentSummary& sum, const JobSpec& spec, double dilation, bool wired);

}  // namespace ghostrank
