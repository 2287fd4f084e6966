#include "tools/search/plan_search.h"

#include <algorithm>
#include <optional>

#include "emulator/estimate/step_estimate.h"
#include "profiles/error.h"
#include "profiles/model/model.h"
#include "profiles/planners/megatron/memory.h"
#include "profiles/planners/megatron/plan.h"
#include "profiles/planners/plan.h"

namespace ghostrank {
namespace {

constexpr int kMostChunks = 8;       // of a stage
constexpr int kMostMicroBatch = 16;  // samples
constexpr int kMostContextParallel = 16;

std::vector<int> divisors(std::int64_t number, std::int64_t most) {
  std::vector<int> found;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) found.push_back(static_cast<int>(d));
  return found;
}

std::vector<int> powers(int most) {
  std::vector<int> found;
  for (int p = 1; p <= most; p *= 2) found.push_back(p);
  return found;
}

void check(const JobSpec& job) {
  const ParallelPlan& p = job.parallel;
  if (p.framework != Framework::megatron || !job.model || !job.model->transformer)
    throw Error(
        "--search: looks for plans of transformers with parallel.framework: megatron; the "
        "job has another framework or model");
  if (!p.pipeline_layout.empty() || p.first_layers > 0 || p.last_layers > 0)
    throw Error(
        "--search: the job says which layers its stages hold "
        "(parallel.pipeline_model_parallel_layout, decoder_first_pipeline_num_layers, "
        "decoder_last_pipeline_num_layers); leave that out, as it fits one plan alone");
}

// Samples of a step, which every plan keeps.
int batch_of(const JobSpec& job) {
  const ParallelPlan& p = job.parallel;
  if (p.global_batch > 0) return p.global_batch;
  return p.micro_batch * std::max(1, job.cluster.gpus() / (p.tp * p.pp * p.cp));
}

std::vector<PlanChoice> choices_of(const JobSpec& job) {
  const Transformer& model = *job.model->transformer;
  const ParallelPlan& p = job.parallel;
  const int gpus = job.cluster.gpus();
  const auto layers =
      static_cast<int>(model.layers) + int{p.embedding_in_split} + int{p.loss_in_split};
  const std::vector<int> context = p.cp > 1 ? powers(kMostContextParallel) : std::vector{1};
  const auto experts = static_cast<int>(model.experts.count);
  const std::vector<int> expert = experts > 0 ? divisors(experts, gpus) : std::vector{1};
  const bool plain = p.schedule == "1f1b" || p.schedule == "interleaved";
  // Where memory is no matter, nobody computes twice; a fused attention core keeps no scores that
  // could be computed again.
  std::vector<Recompute> recompute{p.recompute};
  if (job.device.memory_bytes > 0 && p.attention == Attention::fused)
    recompute = {Recompute::none, Recompute::full};
  else if (job.device.memory_bytes > 0)
    recompute = {Recompute::none, Recompute::selective, Recompute::full};
  std::vector<PlanChoice> choices;
  for (const int tp : divisors(job.cluster.gpus_per_node, job.cluster.gpus_per_node))
    for (const int pp : divisors(gpus / tp, layers))
      for (const int cp : context)
        for (const int ep : expert)
          for (const int chunks :
               plain&& pp > 1 ? divisors(layers / pp, kMostChunks) : std::vector{1})
            for (const int micro_batch : powers(kMostMicroBatch))
              for (const Recompute again : recompute)
                choices.push_back({tp, pp, cp, ep, chunks, micro_batch, again});
  return choices;
}

// At least what a stage computes in its layers, and the bubble of a pipeline of such stages.
Picoseconds least_of(const MegatronPlan& plan) {
  const LayerTimes times = megatron_layer_times(plan);
  Picoseconds layer = 0;
  const auto add = [&](const WorkTimes& part) {
    layer += part.forward.time + part.input.time + part.weight.time;
  };
  for (const WorkTimes* part : {&times.qkv, &times.core, &times.projection}) add(*part);
  if (plan.model.experts.count == 0)  // else some layers have others
    for (const WorkTimes* part : {&times.fc1, &times.fc2}) add(*part);
  int layers = plan.parts.front().layers;  // of every part at least
  for (const Part& part : plan.parts) layers = std::min(layers, part.layers);
  const Picoseconds stage = plan.pipeline.chunks * layers * layer;
  const double filling = plan.pipeline.schedule == "1f1b" || plan.pipeline.schedule == "interleaved"
                             ? static_cast<double>(plan.pipeline.stages - 1) / plan.pipeline.chunks
                             : 0;
  return static_cast<Picoseconds>(static_cast<double>(stage) *
                                  (plan.pipeline.micro_batches + filling));
}

}  // namespace

JobSpec with_choice(const JobSpec& job, const PlanChoice& choice) {
  JobSpec spec = job;
  ParallelPlan& p = spec.parallel;
  p.global_batch = batch_of(job);
  p.dp = 0;
  p.tp = choice.tp;
  p.pp = choice.pp;
  p.cp = choice.cp;
  p.ep = choice.ep;
  p.micro_batch = choice.micro_batch;
  p.recompute = choice.recompute;
  p.interleave = choice.interleave;
  if (choice.pp == 1)
    p.schedule = "1f1b";
  else if (p.schedule == "1f1b" || p.schedule == "interleaved")
    p.schedule = choice.interleave > 1 ? "interleaved" : "1f1b";
  return spec;
}

std::vector<std::string> settings_of(const JobSpec& job, const PlanChoice& choice) {
  const JobSpec spec = with_choice(job, choice);
  const ParallelPlan& p = spec.parallel;
  std::vector<std::string> settings{"parallel.dp=0"};
  const auto set = [&](const char* key, int value) {
    settings.push_back(std::string("parallel.") + key + "=" + std::to_string(value));
  };
  set("global_batch", p.global_batch);
  set("tp", p.tp);
  set("pp", p.pp);
  if (job.parallel.cp != 1 || p.cp != 1) set("cp", p.cp);
  if (job.parallel.ep != 1 || p.ep != 1) set("ep", p.ep);
  if (p.tp == 1 && job.parallel.sequence_parallel)
    settings.emplace_back("parallel.sequence_parallel=false");
  set("micro_batch", p.micro_batch);
  settings.push_back("parallel.schedule=" + p.schedule);
  if (p.schedule == "interleaved" || job.parallel.interleave != 1) set("interleave", p.interleave);
  settings.push_back(std::string("parallel.recompute=") + (p.recompute == Recompute::none ? "none"
                                                           : p.recompute == Recompute::selective
                                                               ? "selective"
                                                               : "full"));
  return settings;
}

PlanSearch search_plans(const JobSpec& job, std::size_t keep) {
  check(job);
  PlanSearch search;
  const double memory = job.device.memory_bytes;
  std::vector<PlanFound> fit;
  const std::vector<PlanChoice> choices = choices_of(job);
  search.looked_at = choices.size();
  std::string why;  // the last one was not legal
  for (const PlanChoice& choice : choices) {
    JobSpec spec = with_choice(job, choice);
    spec.device.memory_bytes = 0;  // checked here
    try {
      const MegatronPlan plan = megatron_plan(spec);
      if (spec.parallel.global_batch != plan.micro_batch * plan.dp * plan.pipeline.micro_batches)
        throw Error("the batch cannot be split");
      PlanFound found{choice, plan.dp, megatron_memory(plan), least_of(plan)};
      if (memory > 0 && found.memory.total() > memory)
        ++search.too_large;
      else
        fit.push_back(found);
    } catch (const Error& error) {
      ++search.illegal;
      why = error.what();
    }
  }
  if (fit.empty())
    throw Error(search.too_large > 0
                    ? "--search: no plan fits the device's memory, with recomputation neither; use "
                      "more GPUs, or a device with more memory"
                    : "--search: no plan is legal; the last one: " + why);
  std::stable_sort(fit.begin(), fit.end(),
                   [](const PlanFound& a, const PlanFound& b) { return a.least < b.least; });
  StepEstimator estimator;
  const auto faster = [](const PlanFound& a, const PlanFound& b) { return a.step < b.step; };
  for (std::size_t i = 0; i < fit.size(); ++i) {
    if (search.best.size() == keep && fit[i].least > search.best.back().step) {
      search.left_out = fit.size() - i;
      break;
    }
    const JobSpec spec = with_choice(job, fit[i].choice);
    const StepEstimate estimate = estimator.estimate(spec, plan_workload(spec));
    fit[i].step = estimate.step;
    fit[i].compute = estimate.compute;
    ++search.estimated;
    search.best.insert(std::upper_bound(search.best.begin(), search.best.end(), fit[i], faster),
                       fit[i]);
    if (search.best.size() > keep) search.best.pop_back();
  }
  return search;
}

}  // namespace ghostrank
