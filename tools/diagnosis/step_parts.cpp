// What a rank's step consists of: compute, exposed communication and bubble, as means over ranks.
#include <algorithm>
#include <cmath>
#include <optional>

#include "tools/diagnosis/causes.h"
#include "tools/text/humane.h"
#include "tools/text/plain_word.h"
#include "tools/text/statistics.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostRows = 4;

std::string compute_figure(const StepFigures& step) {
  const Result& r = step.run.result;
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (r.flops_per_iteration > 0 && r.ranks > 0 && step.seconds > 0)
    add(significant(r.flops_per_iteration / step.seconds / r.ranks * 1e-12) +
        " TFLOP/s per GPU (model FLOPs)");
  if (const auto mfu = model_flops_utilization(r, step.seconds)) add("MFU " + humane_percent(*mfu));
  if (r.fidelity.assumed_compute) add("assumed, not calibrated");
  return text;
}

std::string compute_remedy(const StepFigures& step) {
  const std::string recompute = config_text(step.run.config, "parallel.recompute");
  if (!recompute.empty() && recompute != "none")
    return "parallel.recompute is " + recompute +
           ": where memory allows less of it, devices compute less";
  return "a faster device, lower precision, or more GPUs for the same work";
}

// Members of a row's communicators, from how busbw follows from algbw; empty: it does not tell.
std::optional<double> members_of(const CollectiveReport& c) {
  if (c.algbw_GBps <= 0) return std::nullopt;
  const double factor = c.busbw_GBps / c.algbw_GBps;
  const std::string op = plain_word(c.op);
  double alone = 0;  // 1 / members
  if (op == "allreduce")
    alone = 1 - factor / 2;
  else if (op == "reducescatter" || op == "allgather" || op == "alltoall")
    alone = 1 - factor;
  else
    return std::nullopt;
  if (alone <= 0 || alone > 1) return std::nullopt;
  return std::round(1 / alone);
}

struct Row {
  const CollectiveReport* call;
  double calls = 0;               // of a rank in a step, on average; with `of_rank`
  std::optional<double> of_rank;  // seconds of a rank's step in such calls, on average
};

std::vector<Row> rows_of(const StepFigures& step) {
  const Result& result = step.run.result;
  std::vector<Row> rows;
  for (const CollectiveReport& c : result.collectives) {
    const bool timed = c.seconds_median > 0 && c.seconds_error <= Figure::kMostError;
    if (c.op == "send_recv" || !timed) continue;
    Row row{&c, 0, {}};
    const bool rated = c.bandwidth_error <= Figure::kMostError && result.ranks > 0;
    if (const auto members = members_of(c); members && rated && c.calls > 0) {
      const double share = *members / result.ranks;
      row.calls = c.calls * share;
      row.of_rank = seconds_of_calls(c.bytes, c.algbw_GBps, c.seconds_median, c.calls) * share;
    }
    rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.of_rank.value_or(0) > b.of_rank.value_or(0);
  });
  return rows;
}

std::string row_text(const StepFigures& step, const Row& row) {
  const CollectiveReport& c = *row.call;
  const std::string name = c.op + " " + c.group + " (" + c.algorithm + "): ";
  if (!row.of_rank) return name + "median " + humane_seconds(c.seconds_median) + " a call";
  return name + humane_count(std::round(row.calls * 1000) / 1000, "call") + " of " +
         humane_seconds(*row.of_rank / row.calls) + " on average, " + humane_seconds(*row.of_rank) +
         " of a rank's step (" + humane_percent(*row.of_rank / step.seconds) + ")";
}

std::string exposed_remedy(const StepFigures& step) {
  const SortedJson& config = step.run.config;
  if (config_text(config, "parallel.launch") == "after_backward")
    return "parallel.launch: overlap starts gradients' calls under backward";
  if (config_text(config, "parallel.framework") == "megatron" &&
      !config_truth(config, "parallel.overlap_grad_reduce"))
    return "parallel.overlap_grad_reduce: true starts gradients' calls under backward";
  if (step.bottleneck == "link")
    return "fewer bytes (compression, other parallelism), or faster links";
  if (step.bottleneck == "latency")
    return "fewer and larger calls, algorithms of fewer steps, or calls that start earlier";
  return "";
}

// Adds ranks that events made slow, for which others wait.
void add_slow_ranks(const StepFigures& step, Cause& finding) {
  constexpr std::size_t kMostSlow = 3;
  std::size_t slow = 0;
  for (const EventReport& event : step.run.result.events)
    if (event.kind == "slow" && ++slow <= kMostSlow)
      finding.figures.push_back("events: from " + humane_seconds(event.at_s) + " on " + event.what +
                                ": others wait for it");
}

void find_exposed(const StepFigures& step, std::vector<Cause>& findings) {
  if (!step.matters(step.exposed)) return;
  Cause finding{"exposed_comm", "exposed communication", step.exposed, false, {}, ""};
  const std::vector<Row> rows = rows_of(step);
  for (std::size_t i = 0; i < std::min(rows.size(), kMostRows); ++i)
    finding.figures.push_back(row_text(step, rows[i]));
  if (!rows.empty()) finding.figures.push_back("calls count whether they are overlapped or not");
  if (step.run.result.compression && step.bottleneck == "compute")
    finding.figures.push_back(
        "all calls together take less than a fifth of that: the rest is "
        "what devices compress on the calls' stream");
  add_slow_ranks(step, finding);
  finding.remedy = exposed_remedy(step);
  findings.push_back(std::move(finding));
}

// "1f1b, 16 stages, 64 micro-batches"
std::string pipeline_text(const SortedJson& config) {
  const double stages = config_number(config, "parallel.pp");
  if (stages <= 1) return "";
  std::string text =
      config_text(config, "parallel.schedule") + ", " + humane_count(stages, "stage");
  if (const double v = config_number(config, "parallel.interleave"); v > 1)
    text += " of " + humane_count(v, "chunk") + " each";
  const double batch = config_number(config, "parallel.global_batch"),
               each = config_number(config, "parallel.micro_batch"),
               replicas = config_number(config, "parallel.dp");
  if (batch > 0 && each > 0 && replicas > 0)
    text += ", " + humane_count(batch / each / replicas, "micro-batch", "micro-batches");
  return text;
}

void find_bubble(const StepFigures& step, std::vector<Cause>& findings) {
  if (!step.matters(step.bubble)) return;
  Cause finding{"bubble", "bubble: ranks wait for a send or receive", step.bubble, false, {}, ""};
  const std::string pipeline = pipeline_text(step.run.config);
  if (!pipeline.empty()) finding.figures.push_back(pipeline);
  for (const CollectiveReport& c : step.run.result.collectives)
    if (c.op == "send_recv" && c.seconds_median > 0 && c.seconds_error <= Figure::kMostError)
      finding.figures.push_back("transfers " + c.group + ": " + humane_count(c.calls) +
                                " a step, a wait of " + humane_seconds(c.seconds_median) + " each");
  add_slow_ranks(step, finding);
  if (!pipeline.empty())
    finding.remedy = "more micro-batches in a step, fewer stages, or another parallel.schedule";
  findings.push_back(std::move(finding));
}

// Steps that differ: how much longer they are than the shortest, on average.
void find_variation(const StepFigures& step, std::vector<Cause>& findings) {
  std::vector<double> seconds;
  for (const IterationReport& i : step.run.result.iterations) seconds.push_back(i.seconds);
  const Summary s = summarize(seconds);
  if (!s.mean || seconds.size() < 2) return;
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  if (!step.matters(*s.mean - *least)) return;
  Cause finding{"variation", "steps that differ", *s.mean - *least, false, {}, ""};
  finding.figures.push_back("the shortest takes " + humane_seconds(*least) + ", the longest " +
                            humane_seconds(*most) + ", cv " + humane_percent(s.cv.value_or(0)));
  if (const double jitter = config_number(step.run.config, "run.jitter"); jitter > 0)
    finding.figures.push_back("run.jitter is " + significant(jitter) +
                              ": ranks wait for the slowest of them");
  for (const EventReport& event : step.run.result.events)
    if (event.kind == "slow" || event.kind == "link")
      finding.figures.push_back("events: at " + humane_seconds(event.at_s) + " " + event.what);
  findings.push_back(std::move(finding));
}

}  // namespace

void find_parts_of_step(const StepFigures& step, std::vector<Cause>& findings) {
  if (step.matters(step.compute)) {
    Cause compute{"compute", "compute", step.compute, false, {}, compute_remedy(step)};
    if (const std::string text = compute_figure(step); !text.empty())
      compute.figures.push_back(text);
    findings.push_back(std::move(compute));
  }
  find_exposed(step, findings);
  find_bubble(step, findings);
  find_variation(step, findings);
}

}  // namespace ghostrank
