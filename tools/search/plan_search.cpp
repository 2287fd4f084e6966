#include "tools/search/plan_search.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "emulator/estimate/step_estimate.h"
#include "profiles/error.h"
#include "profiles/input/keys.h"
#include "profiles/load/job_schema.h"
#include "profiles/load/tree.h"
#include "profiles/model/model.h"
#include "profiles/planners/fsdp/mesh.h"
#include "profiles/planners/megatron/memory.h"
#include "profiles/planners/megatron/plan.h"
#include "profiles/planners/memory_check.h"
#include "profiles/planners/plan.h"
#include "profiles/planners/shared/data_parallel.h"

namespace ghostrank {
namespace {

constexpr int kMostChunks = 8;       // of a stage
constexpr int kMostMicroBatch = 16;  // samples
constexpr int kMostContextParallel = 16;
constexpr Picoseconds kAnyStep = std::numeric_limits<Picoseconds>::max();

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

constexpr Framework kSpread[] = {Framework::ddp, Framework::zero1, Framework::zero2,
                                 Framework::zero3, Framework::fsdp};

// Whether the framework has a whole model on every data-parallel rank, or shards of it.
bool is_spread(Framework framework) {
  return std::find(std::begin(kSpread), std::end(kSpread), framework) != std::end(kSpread);
}

bool splits_models(Framework framework) {
  return framework == Framework::megatron || framework == Framework::torchtitan;
}

// Samples of a step, which every plan keeps.
int batch_of(const JobSpec& job) {
  const ParallelPlan& p = job.parallel;
  if (p.global_batch > 0) return p.global_batch;
  const std::int64_t ranks =
      std::max<std::int64_t>(1, job.cluster.gpus() / (std::int64_t{p.tp} * p.pp * p.cp));
  const std::int64_t batch = p.micro_batch * ranks;
  if (batch > std::numeric_limits<int>::max())
    throw Error("--search: parallel.micro_batch=" + std::to_string(p.micro_batch) + " on " +
                std::to_string(ranks) + " data-parallel ranks is a batch of " +
                std::to_string(batch) + " samples, and a search keeps up to " +
                std::to_string(std::numeric_limits<int>::max()) +
                "; lower it, or give parallel.global_batch");
  return static_cast<int>(batch);
}

void check_framework(const JobSpec& job) {
  const ParallelPlan& p = job.parallel;
  if (is_spread(p.framework) && job.model && !job.model->recommendation) return;
  if (!splits_models(p.framework) || !job.model || !job.model->transformer) {
    const bool other = !is_spread(p.framework) && !splits_models(p.framework);
    const std::string has = !job.model || job.program ? "programs in place of a model"
                            : other ? "parallel.framework: " + std::string(name_of(p.framework))
                            : job.model->recommendation
                                ? "tables of a recommendation model (" + job.model->name + ")"
                                : job.model->name + ", which is no transformer";
    throw Error(
        "--search: looks for plans of transformers with parallel.framework: megatron or "
        "torchtitan, and of models without tables with ddp, zero1, zero2, zero3 or fsdp; the job "
        "has " +
        has);
  }
}

void check(const JobSpec& job) {
  const ParallelPlan& p = job.parallel;
  check_framework(job);
  if (job.cluster.servers.count > 0)
    throw Error(job.source_of("servers.count") +
                ": --search: steps with servers are played, not estimated; leave servers out, or "
                "use 'ghostrank sweep', which plays every point of a grid");
  if (job.events)
    throw Error(job.source_of("events") +
                ": --search: estimates know no events; leave them out, or give -s 'events=[]'");
  if (is_spread(p.framework)) return;
  if (!p.pipeline_layout.empty() || p.first_layers > 0 || p.last_layers > 0)
    throw Error(
        "--search: the job says which layers its stages hold "
        "(parallel.pipeline_model_parallel_layout, decoder_first_pipeline_num_layers, "
        "decoder_last_pipeline_num_layers); leave that out, as it fits one plan alone");
  static_cast<void>(batch_of(job));
}

// The recomputations worth trying: only the job's own if memory is not checked. With fused
// attention Megatron has no scores to compute again; and what FSDP's selection by op keeps is not
// counted (planners/memory_check.h).
std::vector<Recompute> recomputations(const JobSpec& job, Framework framework) {
  if (job.device.memory_bytes <= 0) return {job.parallel.recompute};
  if (framework == Framework::megatron && job.parallel.attention == Attention::unfused)
    return {Recompute::none, Recompute::selective, Recompute::full};
  return {Recompute::none, Recompute::full};
}

// TorchTitan's interleaved stages have two chunks unless the job says how many.
PlanChoice choice_of(const JobSpec& job) {
  const ParallelPlan& p = job.parallel;
  const bool two =
      p.framework == Framework::torchtitan && p.schedule == "interleaved" && p.interleave == 1;
  return {p.framework,    p.tp,        p.pp,
          p.cp,           p.ep,        two ? 2 : p.interleave,
          p.micro_batch,  p.recompute, p.distributed_optimizer,
          p.dp_replicate, p.reshard};
}

// The dimensions of a plan that stay as the job has them.
struct Kept {
  const std::vector<std::string>& names;

  template <typename T>
  std::vector<T> or_else(const char* name, const T& own, std::vector<T> tried) const {
    const bool kept = std::find(names.begin(), names.end(), name) != names.end();
    return kept ? std::vector{own} : std::move(tried);
  }
};

// All frameworks of kSpread; FSDP with the models that all ranks hold together (one or several),
// and with units that are freed after the forward pass (and gathered again) or kept.
std::vector<PlanChoice> spread_choices_of(const JobSpec& job, const Kept& kept) {
  const PlanChoice own = choice_of(job);
  PlanChoice choice;
  choice.micro_batch = job.parallel.micro_batch;
  std::vector<PlanChoice> choices;
  for (const Framework framework : kSpread) {
    choice.framework = framework;
    if (framework != Framework::fsdp) {
      choices.push_back(choice);
      continue;
    }
    const std::vector<Recompute> again_or_not =
        job.model->transformer ? recomputations(job, framework) : std::vector{Recompute::none};
    for (const int replicate : kept.or_else("dp_replicate", own.replicate,
                                            divisors(job.cluster.gpus(), job.cluster.gpus() / 2)))
      for (const char* reshard : {"always", "never"})
        for (const Recompute again : kept.or_else("recompute", own.recompute, again_or_not)) {
          choice.replicate = replicate;
          choice.reshard = reshard;
          choice.recompute = again;
          choices.push_back(choice);
        }
  }
  return choices;
}

// How a choice may hold the optimizer's state: Megatron whole or sharded over the data-parallel
// ranks, TorchTitan for one model or several.
std::vector<PlanChoice> holdings_of(const JobSpec& job, const Kept& kept,
                                    const PlanChoice& choice) {
  std::vector<PlanChoice> out;
  const PlanChoice own = choice_of(job);
  const int ranks = job.cluster.gpus() / (choice.tp * choice.pp);
  PlanChoice one = choice;
  if (choice.framework == Framework::megatron) {
    const std::vector<bool> both =
        ranks > 1 ? std::vector{true, false} : std::vector{true};  // nobody shares it
    for (const bool sharded : kept.or_else("optimizer", own.sharded_optimizer, both)) {
      one.sharded_optimizer = sharded;
      out.push_back(one);
    }
    return out;
  }
  one.reshard = job.parallel.reshard;
  for (const int replicate : kept.or_else("dp_replicate", own.replicate, divisors(ranks, ranks))) {
    one.replicate = replicate;
    out.push_back(one);
  }
  return out;
}

std::vector<PlanChoice> choices_of(const JobSpec& job, const Kept& kept) {
  if (is_spread(job.parallel.framework)) return spread_choices_of(job, kept);
  const PlanChoice own = choice_of(job);
  const Transformer& model = *job.model->transformer;
  const ParallelPlan& p = job.parallel;
  const int gpus = job.cluster.gpus();
  const bool titan = p.framework == Framework::torchtitan;
  // TorchTitan counts embedding and head as layers, and its stages need not be even.
  const auto layers = static_cast<int>(model.layers) +
                      (titan ? 2 : int{p.embedding_in_split} + int{p.loss_in_split});
  const std::vector<int> context = p.cp > 1 ? powers(kMostContextParallel) : std::vector{1};
  const auto experts = static_cast<int>(model.experts.count);
  const std::vector<int> expert = experts > 0 ? divisors(experts, gpus) : std::vector{1};
  const bool plain = p.schedule == "1f1b" || p.schedule == "interleaved";
  const auto chunk_counts = [&](int pp) {
    if (!plain || pp == 1) return std::vector{1};
    return kept.or_else(
        "interleave", own.interleave,
        titan ? powers(std::min(kMostChunks, layers / pp)) : divisors(layers / pp, kMostChunks));
  };
  const int node = job.cluster.gpus_per_node;
  std::vector<PlanChoice> choices;
  for (const int tp : kept.or_else("tp", own.tp, divisors(node, node)))
    for (const int pp : kept.or_else("pp", own.pp, divisors(gpus / tp, layers))) {
      if (gpus / tp % pp != 0) continue;
      for (const int cp : kept.or_else("cp", own.cp, context))
        for (const int ep : kept.or_else("ep", own.ep, expert))
          for (const int chunks : chunk_counts(pp))
            for (const int micro_batch :
                 kept.or_else("micro_batch", own.micro_batch, powers(kMostMicroBatch)))
              for (const Recompute again :
                   kept.or_else("recompute", own.recompute, recomputations(job, p.framework))) {
                const std::vector<PlanChoice> held = holdings_of(job, kept,
                                                                 {.framework = p.framework,
                                                                  .tp = tp,
                                                                  .pp = pp,
                                                                  .cp = cp,
                                                                  .ep = ep,
                                                                  .interleave = chunks,
                                                                  .micro_batch = micro_batch,
                                                                  .recompute = again});
                choices.insert(choices.end(), held.begin(), held.end());
              }
    }
  return choices;
}

// A lower bound: the compute of the layers of a stage, and the bubble of a pipeline of such stages.
Picoseconds least_of(const MegatronPlan& plan) {
  const LayerTimes times = megatron_layer_times(plan);
  const auto sum = [](std::initializer_list<const WorkTimes*> parts) {
    Picoseconds time = 0;
    for (const WorkTimes* part : parts)
      time += part->forward.time + part->input.time + part->weight.time;
    return time;
  };
  const Picoseconds attention = sum({&times.qkv, &times.core, &times.projection}),
                    dense = sum({&times.fc1, &times.fc2}),
                    // Some ranks have less to do if routing is uneven.
      experts = plan.is_uneven() ? 0 : sum({&times.router, &times.experts, &times.combine});
  Picoseconds least = kAnyStep;  // of a part
  for (const Part& part : plan.parts) {
    Picoseconds time = 0;
    for (int layer = part.first_layer; layer < part.first_layer + part.layers; ++layer)
      time +=
          attention + (plan.model.has_experts(static_cast<std::uint64_t>(layer)) ? experts : dense);
    least = std::min(least, time);
  }
  const Picoseconds stage = plan.pipeline.chunks * least;
  const double filling = plan.pipeline.schedule == "1f1b" || plan.pipeline.schedule == "interleaved"
                             ? static_cast<double>(plan.pipeline.stages - 1) / plan.pipeline.chunks
                             : 0;
  return static_cast<Picoseconds>(static_cast<double>(stage) *
                                  (plan.pipeline.micro_batches + filling));
}

// The layers' compute alone.
Picoseconds least_of(const JobSpec& spec) {
  Picoseconds least = 0;
  for (const LayerTime& layer : step_times(spec).layers) least += layer.forward + layer.backward;
  return least;
}

// A lower bound: what the stages of a TorchTitan plan compute on average in their layers; for 1f1b,
// the last stage's micro-batches, and one micro-batch on its way there and back.
Picoseconds least_of(const JobSpec& spec, const FsdpMesh& mesh) {
  const StepTimes times = step_times(spec);
  const std::size_t layers = times.layers.size();  // with embedding and head
  std::vector<Picoseconds> of_layer;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const auto [forward, backward] = times.layers[layer];
    const bool block = layer > 0 && layer + 1 < layers;
    const Picoseconds again = !block                                            ? 0
                              : spec.parallel.recompute == Recompute::full      ? forward
                              : spec.parallel.recompute == Recompute::selective ? forward / 2
                                                                                : 0;
    of_layer.push_back((forward + again + backward) / mesh.tp / mesh.cp);
  }
  const auto sum = [&](std::size_t first) {
    return std::accumulate(of_layer.begin() + static_cast<std::ptrdiff_t>(first), of_layer.end(),
                           Picoseconds{0});
  };
  const Pipeline& pipeline = mesh.pipeline;
  const Picoseconds average = sum(0) / pipeline.stages * pipeline.micro_batches;
  if (pipeline.stages == 1 || pipeline.schedule != "1f1b") return average;
  const Part last = split_as_torchtitan(spec, *spec.model->transformer, pipeline).back();
  const std::size_t units = last.units();
  return std::max(average, sum(0) + (pipeline.micro_batches - 1) * sum(layers - units));
}

bool is_too_large(const JobSpec& job, const PlanFound& plan) {
  return job.device.memory_bytes > 0 && plan.memory &&
         plan.memory->total() > job.device.memory_bytes;
}

// The choice with its memory and least time. Throws Error where the job cannot have the plan.
PlanFound looked_at(const JobSpec& job, const PlanChoice& choice) {
  JobSpec spec = with_choice(job, choice);
  spec.device.memory_bytes = 0;  // checked by the search
  if (choice.framework == Framework::torchtitan) {
    PlanFound found{.choice = choice, .memory = gpu_memory(spec)};
    if (is_too_large(job, found)) return found;  // whether it is legal does not matter
    Workload groups;
    const FsdpMesh mesh = fsdp_mesh(spec, groups);
    found.dp = mesh.shard / mesh.cp * mesh.replicate;
    found.least = least_of(spec, mesh);
    return found;
  }
  if (choice.framework != Framework::megatron) {
    const Workload workload = plan_workload(spec);
    return {choice, workload.ranks, gpu_memory(spec), least_of(spec)};
  }
  const MegatronPlan plan = megatron_plan(spec);
  if (spec.parallel.global_batch !=
      std::int64_t{plan.micro_batch} * plan.dp * plan.pipeline.micro_batches)
    throw Error("the batch cannot be split");
  return {choice, plan.dp, megatron_memory(plan), least_of(plan)};
}

void estimate(StepEstimator& estimator, const JobSpec& job, Picoseconds enough, PlanFound& plan) {
  JobSpec spec = with_choice(job, plan.choice);
  spec.device.memory_bytes = 0;
  // One rank of every role is followed, and background pairs ranks regardless of their roles.
  spec.background.clear();
  spec.cluster.storage_nodes = 0;
  const StepEstimate estimate = estimator.estimate(spec, plan_workload(spec), enough);
  plan.step = estimate.step;
  plan.compute = estimate.compute;
}

struct Dimension {
  const char* name;
  bool (*alike)(const PlanChoice&, const PlanChoice&);
};
constexpr Dimension kDimensions[] = {
    {"framework",
     [](const PlanChoice& a, const PlanChoice& b) { return a.framework == b.framework; }},
    {"tp", [](const PlanChoice& a, const PlanChoice& b) { return a.tp == b.tp; }},
    {"pp", [](const PlanChoice& a, const PlanChoice& b) { return a.pp == b.pp; }},
    {"cp", [](const PlanChoice& a, const PlanChoice& b) { return a.cp == b.cp; }},
    {"ep", [](const PlanChoice& a, const PlanChoice& b) { return a.ep == b.ep; }},
    {"interleave",
     [](const PlanChoice& a, const PlanChoice& b) { return a.interleave == b.interleave; }},
    {"micro_batch",
     [](const PlanChoice& a, const PlanChoice& b) { return a.micro_batch == b.micro_batch; }},
    {"recompute",
     [](const PlanChoice& a, const PlanChoice& b) { return a.recompute == b.recompute; }},
    {"optimizer", [](const PlanChoice& a,
                     const PlanChoice& b) { return a.sharded_optimizer == b.sharded_optimizer; }},
    {"dp_replicate",
     [](const PlanChoice& a, const PlanChoice& b) { return a.replicate == b.replicate; }}};

bool is_alike(const PlanChoice& a, const PlanChoice& b, const std::vector<std::string>& in) {
  return std::all_of(std::begin(kDimensions), std::end(kDimensions), [&](const Dimension& one) {
    return std::find(in.begin(), in.end(), one.name) == in.end() || one.alike(a, b);
  });
}

// The plans that the job can have and that fit its device, by their least times. Counts the others.
std::vector<PlanFound> fitting_plans(const JobSpec& job, const std::vector<std::string>& fixed,
                                     PlanSearch& search) {
  std::vector<PlanFound> fit;
  std::vector<PlanChoice> choices = choices_of(job, Kept{fixed});
  std::erase_if(choices, [&](const PlanChoice& c) { return !is_alike(c, choice_of(job), fixed); });
  search.looked_at = choices.size();
  std::string why;  // the last one was not legal
  for (const PlanChoice& choice : choices) {
    try {
      const PlanFound found = looked_at(job, choice);
      if (is_too_large(job, found))
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
                : choices.empty()
                    ? "--search: no plan has what --keep leaves as it is; leave some of it out"
                    : "--search: no plan is legal; the last one: " + why);
  std::stable_sort(fit.begin(), fit.end(),
                   [](const PlanFound& a, const PlanFound& b) { return a.least < b.least; });
  return fit;
}

}  // namespace

std::string name_of(Recompute recompute) {
  return recompute == Recompute::none        ? "none"
         : recompute == Recompute::selective ? "selective"
                                             : "full";
}

std::vector<std::string> plan_dimensions() {
  std::vector<std::string> names;
  for (const Dimension& one : kDimensions) names.emplace_back(one.name);
  return names;
}

JobSpec with_choice(const JobSpec& job, const PlanChoice& choice) {
  JobSpec spec = job;
  ParallelPlan& p = spec.parallel;
  p.dp = 0;
  p.framework = choice.framework;
  p.dp_replicate = choice.replicate;
  p.reshard = choice.reshard;
  p.recompute = choice.recompute;
  if (is_spread(choice.framework)) {
    // The loader's defaults, which depend on the framework.
    if (!job.sources.contains("parallel.overlap_comm"))
      p.overlap_comm = choice.framework == Framework::zero3;
    if (!job.sources.contains("precision.gradients"))
      spec.precision.gradients =
          is_zero(choice.framework) ? spec.precision.parameters : DataType::float32;
    return spec;
  }
  p.global_batch = batch_of(job);
  p.distributed_optimizer = choice.sharded_optimizer;
  p.tp = choice.tp;
  // Megatron has no experts with tensor parallelism alone.
  if (choice.tp > 1 && job.model->transformer->experts.count > 0) p.sequence_parallel = true;
  p.pp = choice.pp;
  p.cp = choice.cp;
  p.ep = choice.ep;
  p.micro_batch = choice.micro_batch;
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
  const std::string recompute = "parallel.recompute=" + name_of(p.recompute);
  if (is_spread(choice.framework)) {
    settings.push_back("parallel.framework=" + std::string(name_of(choice.framework)));
    // What the job says of another framework goes back to its default.
    for (const Key& key : job_keys())
      if (job.sources.contains(std::string(key.path)) && !key.frameworks.empty() &&
          !is_among(key.frameworks, name_of(choice.framework)))
        settings.push_back(std::string(key.path) + "=" + std::string(key.standard));
    if (choice.framework == Framework::fsdp) {
      set("dp_replicate", choice.replicate);
      settings.push_back("parallel.reshard_after_forward=" + choice.reshard);
      settings.push_back(recompute);
    }
    return settings;
  }
  set("global_batch", p.global_batch);
  set("tp", p.tp);
  set("pp", p.pp);
  if (job.parallel.cp != 1 || p.cp != 1) set("cp", p.cp);
  if (job.parallel.ep != 1 || p.ep != 1) set("ep", p.ep);
  if (p.tp == 1 && job.parallel.sequence_parallel)
    settings.emplace_back("parallel.sequence_parallel=false");
  if (p.sequence_parallel && !job.parallel.sequence_parallel)
    settings.emplace_back("parallel.sequence_parallel=true");
  set("micro_batch", p.micro_batch);
  if (choice.framework == Framework::torchtitan)
    set("dp_replicate", choice.replicate);
  else if (choice.sharded_optimizer != job.parallel.distributed_optimizer)
    settings.push_back(std::string("parallel.distributed_optimizer=") +
                       (choice.sharded_optimizer ? "true" : "false"));
  settings.push_back("parallel.schedule=" + p.schedule);
  if (p.schedule == "interleaved" || job.parallel.interleave != 1) set("interleave", p.interleave);
  settings.push_back(recompute);
  return settings;
}

JobSpec with_medians(JobSpec job) {
  if (!job.model || job.model->recorded.empty()) return job;
  const auto model = std::make_shared<Model>(*job.model);
  model->recorded.clear();
  job.model = model;
  return job;
}

JobSpec searched(const LoadedJob& job) {
  JobSpec spec = job.spec;
  const std::set<std::string_view> more = keys_that_say_more(spec);
  for (const ConfigEntry& entry : job.entries)
    for (const Key& key : job_keys())
      if (key.path == entry.path && key.standard == entry.value && !more.contains(key.path))
        spec.sources.erase(entry.path);
  return spec;
}

PlanSearch search_plans(const JobSpec& given, std::size_t keep,
                        const std::vector<std::string>& fixed) {
  const JobSpec job = with_medians(given);
  check(job);
  PlanSearch search;
  std::vector<PlanFound> fit = fitting_plans(job, fixed, search);
  if (!job.background.empty() || job.cluster.storage_nodes > 0) {
    JobSpec first = with_choice(job, fit.front().choice);
    first.device.memory_bytes = 0;
    plan_workload(first);  // refuses background that the cluster cannot have
  }
  StepEstimator estimator;
  std::string why;  // the last plan cannot be estimated
  const auto faster = [](const PlanFound& a, const PlanFound& b) { return a.step < b.step; };
  for (std::size_t i = 0; i < fit.size(); ++i) {
    if (search.best.size() == keep && fit[i].least > search.best.back().step) {
      search.left_out = fit.size() - i;
      break;
    }
    try {
      estimate(estimator, job, search.best.size() == keep ? search.best.back().step : kAnyStep,
               fit[i]);
    } catch (const Error& error) {  // the library may lack a call
      ++search.illegal;
      why = error.what();
      continue;
    }
    ++search.estimated;
    search.best.insert(std::upper_bound(search.best.begin(), search.best.end(), fit[i], faster),
                       fit[i]);
    if (search.best.size() > keep) search.best.pop_back();
  }
  if (search.best.empty()) throw Error("--search: no plan can be estimated; the last one: " + why);
  try {
    search.own = looked_at(job, choice_of(job));
    estimate(estimator, job, kAnyStep, *search.own);
  } catch (const Error&) {
    search.own.reset();
  }
  return search;
}

}  // namespace ghostrank
