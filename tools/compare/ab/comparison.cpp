#include "tools/compare/ab/comparison.h"

#include <algorithm>
#include <limits>

#include "profiles/median.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

using Runs = std::vector<const AbRun*>;  // of one variant, by block; none that was retried

std::vector<Runs> runs_by_variant(const AbComparison& c) {
  std::vector<Runs> by(c.variants.size());
  for (const AbRun& run : c.runs) {
    if (!run.retried) by[run.variant].push_back(&run);
  }
  for (Runs& runs : by) {
    std::sort(runs.begin(), runs.end(),
              [](const AbRun* a, const AbRun* b) { return a->block < b->block; });
  }
  return by;
}

bool is_deterministic(const Runs& runs) { return !runs.empty() && runs.front()->deterministic; }

// The number of leading blocks in which every variant has its run; 1 if all are deterministic.
std::size_t whole_blocks(const std::vector<Runs>& by) {
  std::size_t blocks = std::numeric_limits<std::size_t>::max();
  bool all_exact = true;
  for (const Runs& runs : by) {
    if (runs.empty()) return 0;
    if (is_deterministic(runs)) continue;
    all_exact = false;
    blocks = std::min(blocks, runs.size());
  }
  return all_exact ? 1 : blocks;
}

double median_over(const Runs& runs, double AbRun::*figure) {
  std::vector<double> values;
  for (const AbRun* run : runs) values.push_back(run->*figure);
  return median(std::move(values));
}

std::optional<double> median_over(const Runs& runs, std::optional<double> AbRun::*figure) {
  std::vector<double> values;
  for (const AbRun* run : runs) {
    if (const auto& value = run->*figure) values.push_back(*value);
  }
  return values.size() == runs.size() ? std::optional(median(std::move(values))) : std::nullopt;
}

// The word that most runs have; the first of equals.
std::string most_common(const Runs& runs, std::string AbRun::*word, bool& mixed) {
  std::string best;
  std::ptrdiff_t most = 0;
  for (const AbRun* run : runs) {
    const auto n = std::count_if(runs.begin(), runs.end(),
                                 [&](const AbRun* r) { return r->*word == run->*word; });
    if (n > most) best = run->*word, most = n;
  }
  mixed = mixed || most < std::ssize(runs);
  return best;
}

AbRun typical_of(const Runs& runs, bool& mixed) {
  AbRun typical = *runs.front();
  for (double AbRun::*figure :
       {&AbRun::step_seconds, &AbRun::compute_seconds, &AbRun::exposed_seconds,
        &AbRun::bubble_seconds, &AbRun::bytes, &AbRun::messages, &AbRun::busiest_nic_bytes,
        &AbRun::dilation, &AbRun::critical_lateness, &AbRun::wall_seconds})
    typical.*figure = median_over(runs, figure);
  for (std::optional<double> AbRun::*figure :
       {&AbRun::collective_seconds, &AbRun::packets, &AbRun::header_share, &AbRun::retransmissions,
        &AbRun::busiest_nic_wire_bytes, &AbRun::nic_busy, &AbRun::helper_busy, &AbRun::link_busy,
        &AbRun::switch_busy, &AbRun::cpu_seconds_per_GB})
    typical.*figure = median_over(runs, figure);
  typical.bottleneck = most_common(runs, &AbRun::bottleneck, mixed);
  typical.transport = most_common(runs, &AbRun::transport, mixed);
  return typical;
}

VariantSummary summarize_variant(const Runs& all, std::size_t blocks, std::uint64_t seed) {
  VariantSummary v;
  v.deterministic = is_deterministic(all);
  v.runs = v.deterministic ? std::min<std::size_t>(all.size(), 1) : std::min(all.size(), blocks);
  if (v.runs == 0) return v;
  const Runs runs(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(v.runs));
  for (std::size_t b = 0; b < blocks; ++b)
    v.samples.push_back(runs[v.deterministic ? 0 : b]->step_seconds);
  v.median = median(v.samples);
  if (!v.deterministic) v.ci95 = median_interval(v.samples, seed);
  v.typical = typical_of(runs, v.mixed);
  for (const AbRun* run : runs) {
    if (run->faithful || run->modelled) continue;
    if (v.unfaithful++ == 0) v.reason = run->reason;
  }
  return v;
}

std::optional<double> wire_bytes(const AbRun& run) {
  if (run.busiest_nic_wire_bytes) return run.busiest_nic_wire_bytes;
  if (run.header_share && *run.header_share < 1)
    return run.busiest_nic_bytes / (1 - *run.header_share);
  return std::nullopt;
}

LinkBounds bounds_between(const AbRun& of, const AbRun& to) {
  LinkBounds bounds;
  if (of.busiest_nic_bytes <= 0 || to.busiest_nic_bytes <= 0 || of.nic_bps <= 0 || to.nic_bps <= 0)
    return bounds;
  const double rates = of.nic_bps / to.nic_bps;
  bounds.payload = to.busiest_nic_bytes / of.busiest_nic_bytes * rates;
  const std::optional<double> of_wire = wire_bytes(of), to_wire = wire_bytes(to);
  if (of_wire && to_wire) bounds.wire = *to_wire / *of_wire * rates;
  return bounds;
}

RatioSummary compare_variants(const AbSummary& s, std::size_t of, std::size_t to,
                              const AbComparison& c) {
  RatioSummary ratio{of, to, {}, {}, {}, {}, {}, {}};
  const VariantSummary &a = s.variants[to], &b = s.variants[of];
  if (a.deterministic && b.deterministic) {
    ratio.step.value = b.median / a.median;
    ratio.step.blocks = 1;
    ratio.judgement = judge_exact(ratio.step.value, c.margin);
  } else {
    ratio.step = ratio_of_medians(b.samples, a.samples, c.seed);
    ratio.judgement = judge(ratio.step, c.margin);
  }
  if (!s.faithful)
    ratio.judgement = {Verdict::inconclusive, "no conclusion: not faithful: " + s.unfaithful};
  if (a.typical.collective_seconds && b.typical.collective_seconds &&
      *a.typical.collective_seconds > 0)
    ratio.collectives = *b.typical.collective_seconds / *a.typical.collective_seconds;
  ratio.bounds = bounds_between(b.typical, a.typical);
  if (a.typical.predicted_seconds && b.typical.predicted_seconds &&
      *a.typical.predicted_seconds > 0 && a.typical.exposed_seconds > 0) {
    ratio.predicted = *b.typical.predicted_seconds / *a.typical.predicted_seconds;
    ratio.exposed = b.typical.exposed_seconds / a.typical.exposed_seconds;
  }
  return ratio;
}

}  // namespace

AbSummary summarize(const AbComparison& c) {
  AbSummary s;
  const std::vector<Runs> by = runs_by_variant(c);
  s.blocks = whole_blocks(by);
  s.deterministic = std::all_of(by.begin(), by.end(), is_deterministic);
  for (std::size_t i = 0; i < by.size(); ++i) {
    s.variants.push_back(summarize_variant(by[i], s.blocks, c.seed));
    const VariantSummary& v = s.variants.back();
    if (v.unfaithful == 0) continue;
    s.faithful = false;
    s.unfaithful += (s.unfaithful.empty() ? "" : "; ") + std::to_string(v.unfaithful) + " of " +
                    humane_count(static_cast<double>(v.runs), "run") + " of " + c.variants[i].name +
                    " (" + v.reason + ")";
  }
  for (const AbRun& run : c.runs) {
    if (run.retried) ++s.variants[run.variant].retried;
  }
  if (s.blocks == 0) return s;
  for (std::size_t i = 1; i < by.size(); ++i) s.ratios.push_back(compare_variants(s, i, 0, c));
  return s;
}

double ratio_between(const AbSummary& s, std::size_t of, std::size_t to) {
  return s.variants[of].median / s.variants[to].median;
}

double widest(const AbSummary& s) {
  if (s.deterministic) return 0;
  if (s.ratios.empty()) return std::numeric_limits<double>::infinity();
  double widest = 0;
  for (const RatioSummary& r : s.ratios) {
    const bool exact = s.variants[r.of].deterministic && s.variants[r.to].deterministic;
    if (!exact) widest = std::max(widest, r.step.half_width());
  }
  return widest;
}

}  // namespace ghostrank
