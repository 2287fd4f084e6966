// An A/B comparison: the runs of the variants of one job, what follows from them, and its forms as
// text, JSON (schema ghostrank/compare/1), CSV and SVG.
//
// The first variant is the baseline of every ratio. Only whole blocks count; a deterministic
// variant is played once and its sample stands in every block. Nothing is concluded from runs that
// were not faithful, because there the host's CPU was in the way; those that were played again
// count for nothing but their number.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/ab/run.h"
#include "tools/compare/ab/spec.h"
#include "tools/compare/ab/statistics.h"
#include "tools/text/table.h"

namespace ghostrank {

struct AbComparison {
  std::string version, job, started_utc;
  std::vector<std::string> argv;
  std::vector<std::string> common;  // settings of all variants
  std::vector<Variant> variants;
  std::uint64_t seed = 1;
  double margin = 0;
  int processes = 1;
  std::vector<AbRun> runs;  // in the order in which they were played
  std::string interrupted;  // why it ended early; empty if complete
  std::vector<std::string> notes;
};

struct VariantSummary {
  std::size_t runs = 0;  // in whole blocks; one if deterministic
  bool deterministic = false;
  std::vector<double> samples;  // seconds a step, one per block
  double median = 0;
  std::optional<Interval> ci95;
  AbRun typical;               // the median of each figure over the runs; words of the first run
  bool mixed = false;          // runs differ in their bottleneck or transport
  std::size_t retried = 0;     // runs that were not faithful and were played again
  std::size_t unfaithful = 0;  // of `runs`
  std::string reason;          // of the first unfaithful run
};

// Bounds on how many times as fast a variant can be as the baseline if links alone mattered: the
// ratio of the times that the busiest NIC needs for its messages.
struct LinkBounds {
  std::optional<double> payload, wire;  // wire: with the headers of packets
};

struct RatioSummary {
  std::size_t of = 0, to = 0;  // variants
  RatioEstimate step;
  Judgement judgement;
  std::optional<double> collectives;  // ratio of the time of the calls, overlap aside
  LinkBounds bounds;
  // Ratios of exposed communication: predicted by a theorem on the job's scheme, and measured.
  std::optional<double> predicted, exposed;
};

struct AbSummary {
  std::size_t blocks = 0;      // whole ones
  bool deterministic = false;  // all variants are
  bool faithful = true;
  std::string unfaithful;  // which variant, how often, why
  std::vector<VariantSummary> variants;
  std::vector<RatioSummary> ratios;  // of every other variant to the first; empty without a block
};
AbSummary summarize(const AbComparison& comparison);

// The ratio of any two variants; needs a whole block.
double ratio_between(const AbSummary& summary, std::size_t of, std::size_t to);
// The greatest half_width() of the ratios; 0 if all is deterministic, infinite without an interval.
double widest(const AbSummary& summary);

// Of ab_text(): its first line, the figures of each variant, and the ratios.
std::string ab_head(const AbComparison& comparison, const AbSummary& summary);
Table ab_table(const AbComparison& comparison, const AbSummary& summary);
std::vector<Fact> ab_facts(const AbComparison& comparison, const AbSummary& summary);
std::string ab_text(const AbComparison& comparison, const AbSummary& summary, const Paint& paint);
std::string ab_json(const AbComparison& comparison, const AbSummary& summary);
std::string ab_csv(const AbComparison& comparison);  // one row a run
std::string ab_svg(const AbComparison& comparison, const AbSummary& summary);

// What ab_json() wrote. Throws Error(usage) that names the file.
AbComparison read_ab_comparison(const std::string& file);

}  // namespace ghostrank
