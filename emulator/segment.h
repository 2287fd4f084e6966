// What one process found out in one segment (the iterations between two barriers), in the form in
// which it travels to the others, and the sum over all processes.
//
// Threading: plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/shard/shard.h"

namespace ghostrank {

// What every process learns of a segment, so that all judge it alike: of fixed size, however many
// they are and whatever they traced.
struct SegmentSummary {
  Histogram lateness_ns;
  Moment end;  // of the last rank
  Picoseconds wall_behind = 0;
  double run_queue_wait = 0;  // share of wall; < 0: unreadable
  double loop_busy = 0;
  Picoseconds paced = 0, pace_error = 0;
  std::uint64_t events = 0, messages = 0, checked = 0, wrong = 0, spans_dropped = 0, strays = 0;
  std::uint64_t spilled = 0;  // ledgers that outgrew memory
};

// What only process 0 learns of the others.
struct SegmentReport : SegmentSummary {
  HostReport host;
  std::vector<InterfaceReport> interfaces;
  std::vector<RowStats> rows;
  std::vector<LedgerRow> ledger;         // what did not go to a file
  std::vector<NicCount> spilled_by_nic;  // what did
  std::vector<std::string> spill_paths;  // by shard, whether or not it spilled
  bool spills_whole = true;              // of the sum: whether their files have all rows
  LedgerCell intra;
  PacketCounts packets;
  std::vector<LinkCount> links;  // by link
  std::vector<Span> spans;
  std::vector<std::vector<Gap>> gaps;  // by shard

  void add(Shard& shard, std::vector<Span> spans);
  // All but host and interfaces, which stay with `other`; its lists are moved away.
  void merge(SegmentReport& other);
  std::string to_blob() const;
  static std::optional<SegmentReport> from_blob(std::string_view blob);  // empty: malformed
};

// What may be done about a reason of judge(); `dilation` is what a user calls it.
std::string remedy_for(const std::string& reason, const std::string& dilation);

// Whether the run did what it claims, by the thresholds of docs/accuracy.md.
Fidelity judge(const SegmentSummary& sum, const JobSpec& spec, double dilation,
               double median_step_seconds);

}  // namespace ghostrank
