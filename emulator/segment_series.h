// Segments that follow each other, added up as if they had been one: times follow each other,
// counts add up, and shares of time are means weighted by duration. A ledger that outgrew memory is
// known per NIC only: each segment overwrites the files of the one before, and the sum says so.
//
// Bound: every row of the ledger once, at most kMostSpans spans, and the counts of interfaces by
// iteration of at most kMostIterations, whatever the number of segments. Threading: one owner.
#pragma once

#include <vector>

#include "emulator/segment.h"

namespace ghostrank {

class SegmentSeries {
 public:
  static constexpr std::size_t kMostSpans = 1'000'000;
  static constexpr std::size_t kMostIterations = 100'000;

  // Adds the next segment, of so many iterations: its sum, the reports behind it, and its stalls.
  void add(SegmentReport sum, int iterations, const std::vector<SegmentReport>& reports,
           std::vector<StallReport> stalls, double dilation);

  Picoseconds end() const { return sum_.end.at; }  // of those so far
  SegmentReport take_sum();
  // One for each host: who they are and what their interfaces counted; by iteration only if there
  // are few.
  std::vector<SegmentReport> take_reports() { return std::move(reports_); }
  std::vector<StallReport> take_stalls() { return std::move(stalls_); }

 private:
  void add_sum(SegmentReport& next);
  void add_report(const SegmentReport& next);

  int count_ = 0;  // iterations
  SegmentReport sum_;
  std::vector<SegmentReport> reports_;
  std::vector<StallReport> stalls_;
  std::vector<double> steps_, late_;  // seconds, by segment
};

}  // namespace ghostrank
