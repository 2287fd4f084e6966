#include "emulator/segment_series.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "emulator/result/figures.h"
#include "profiles/median.h"

namespace ghostrank {
namespace {

// One row for each key.
void join(std::vector<LedgerRow>& ledger) {
  const auto name = [](const LedgerRow& row) {
    return std::tuple(row.key.source_nic, row.key.target_nic, row.key.row);
  };
  std::sort(ledger.begin(), ledger.end(),
            [&](const LedgerRow& a, const LedgerRow& b) { return name(a) < name(b); });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < ledger.size(); ++i) {
    if (kept > 0 && ledger[kept - 1].key == ledger[i].key)
      ledger[kept - 1].count += ledger[i].count;
    else
      ledger[kept++] = ledger[i];
  }
  ledger.resize(kept);
}

void join(std::vector<HelperCount>& helpers) {
  std::vector<HelperCount> joined;
  for (const HelperCount& one : helpers) {
    const auto known = std::find_if(joined.begin(), joined.end(), [&](const HelperCount& other) {
      return other.party == one.party;
    });
    if (known == joined.end()) {
      joined.push_back(one);
      continue;
    }
    known->rx_bytes += one.rx_bytes;
    known->tx_bytes += one.tx_bytes;
    known->memory_bytes = std::max(known->memory_bytes, one.memory_bytes);
    known->busy += one.busy;
  }
  helpers = std::move(joined);
}

void add(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& next) {
  if (sum && next)
    *sum += *next;
  else
    sum.reset();
}

void add(InterfaceReport& sum, const InterfaceReport& next) {
  add(sum.tx_bytes, next.tx_bytes);
  add(sum.rx_bytes, next.rx_bytes);
  sum.iterations.insert(sum.iterations.end(), next.iterations.begin(), next.iterations.end());
  for (const auto& [name, value] : next.counters) {
    const auto known = std::find_if(sum.counters.begin(), sum.counters.end(),
                                    [&](const auto& counter) { return counter.first == name; });
    if (known == sum.counters.end())
      sum.counters.emplace_back(name, value);
    else
      known->second += value;
  }
}

}  // namespace

void SegmentSeries::add(SegmentReport sum, int iterations,
                        const std::vector<SegmentReport>& reports, std::vector<StallReport> stalls,
                        double dilation) {
  const double before = seconds(end());
  for (StallReport& stall : stalls) {
    stall.start_s += before;
    stall.wall_start_s += before * dilation;
    for (int& iteration : stall.iterations) iteration += count_;
    stalls_.push_back(std::move(stall));
  }
  for (const SegmentReport& report : reports) add_report(report);
  steps_.push_back(sum.median_seconds);
  late_.push_back(sum.median_seconds - sum.median_seconds / (1 + sum.median_error));
  add_sum(sum);
  count_ += iterations;
  if (static_cast<std::size_t>(count_) <= kMostIterations) return;
  for (SegmentReport& report : reports_)
    for (InterfaceReport& interface : report.interfaces) interface.iterations = {};
}

void SegmentSeries::add_sum(SegmentReport& next) {
  if (count_ == 0) {
    sum_ = std::move(next);
    return;
  }
  const SegmentSummary before = sum_, then = next;
  const Spilled before_files = sum_.in_files;
  for (Span& span : next.spans) span.start += before.end.at;
  if (const std::size_t all = sum_.spans.size() + next.spans.size(); all > kMostSpans) {
    const std::size_t kept = kMostSpans - std::min(kMostSpans, sum_.spans.size());
    next.spans_dropped += next.spans.size() - kept;
    next.spans.resize(kept);
  }
  next.gaps.clear();
  sum_.link_times.append(std::exchange(next.link_times, {}), before.end.at);
  sum_.spill_paths.clear();  // those of the next are the same
  sum_.merge(next);
  if (sum_.spilled > 0)
    sum_.in_files = std::max({Spilled::one_segment, before_files, next.in_files});
  join(sum_.ledger);
  join(sum_.helpers);
  sum_.end = {before.end.at + then.end.at, before.end.slip + then.end.slip};
  sum_.until = before.end.at + then.until;
  const double share =
      sum_.end.at > 0 ? static_cast<double>(then.end.at) / static_cast<double>(sum_.end.at) : 0;
  for (double SegmentSummary::*part :
       {&SegmentSummary::held_up, &SegmentSummary::taken, &SegmentSummary::queued,
        &SegmentSummary::throttled, &SegmentSummary::loop_busy})
    sum_.*part = before.*part < 0 || then.*part < 0
                     ? -1
                     : (1 - share) * (before.*part) + share * (then.*part);
}

void SegmentSeries::add_report(const SegmentReport& next) {
  const auto known = std::find_if(reports_.begin(), reports_.end(), [&](const SegmentReport& one) {
    return one.host.index == next.host.index;
  });
  SegmentReport& own = known == reports_.end() ? reports_.emplace_back() : *known;
  const double cpu_seconds = own.host.cpu_seconds;
  own.host = next.host;
  own.host.cpu_seconds += cpu_seconds;
  if (own.interfaces.empty()) {
    own.interfaces = next.interfaces;
    return;
  }
  for (std::size_t i = 0; i < std::min(own.interfaces.size(), next.interfaces.size()); ++i)
    ghostrank::add(own.interfaces[i], next.interfaces[i]);
}

SegmentReport SegmentSeries::take_sum() {
  sum_.median_seconds = median(steps_);
  sum_.median_error = median_error(steps_, late_);
  return std::move(sum_);
}

}  // namespace ghostrank
