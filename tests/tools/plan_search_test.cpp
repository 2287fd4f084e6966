// The search for plans: it leaves out no plan that is among the best, its step times agree with the
// engine's, and it refuses jobs that it cannot search.
#include "tools/search/plan_search.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "emulator/estimate/step_estimate.h"
#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/median.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/layers_job.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

std::string job(const std::string& model, const std::string& parallel, int nodes,
                const std::string& memory = "80GiB") {
  return "schema: ghostrank/job/1\nmodel: " + model +
         "\ndevice: {base: h100-sxm, memory_bytes: " + memory +
         "}\nprecision: {parameters: bf16, gradients: fp32, optimizer: adam}\n"
         "cluster: {nodes: " +
         std::to_string(nodes) +
         ", gpus_per_node: 4, nics_per_node: 4, nic: {rate: 200Gbps, latency_us: 2}, "
         "intra_node: {rate: 2400Gbps, latency_us: 1}}\n"
         "collectives: {library: nccl-2.28}\nfabric: {kind: virtual, inside_node: model}\n"
         "run: {warmup: 0, iterations: 1}\nparallel: {framework: megatron, distributed_optimizer: "
         "true" +
         parallel + "}\n";
}

std::string in_fp8(std::string text) {
  return text.replace(text.find("parameters: bf16"), 16, "parameters: fp8");
}

// As job(), but with NICs of 50 Gb/s; `parallel` holds all keys of that mapping.
std::string spread(const std::string& model, const std::string& parallel, int nodes,
                   const std::string& memory = "80GiB") {
  return "schema: ghostrank/job/1\nmodel: " + model +
         "\ndevice: {base: h100-sxm, memory_bytes: " + memory +
         "}\nprecision: {parameters: bf16, gradients: fp32}\ncluster: {nodes: " +
         std::to_string(nodes) +
         ", gpus_per_node: 4, nics_per_node: 4, nic: {rate: 50Gbps, latency_us: 2}, "
         "intra_node: {rate: 2400Gbps, latency_us: 1}}\n"
         "collectives: {library: nccl-2.28}\nfabric: {kind: virtual, inside_node: model}\n"
         "run: {warmup: 0, iterations: 1}\nparallel: {" +
         parallel + "}\n";
}

TEST(PlanSearch, EstimatesWithoutBackground) {
  const std::vector<std::string> fixed{"tp", "pp", "interleave", "micro_batch", "recompute"};
  const std::string text = job("gpt2", ", pp: 2, global_batch: 16", 2);
  const auto estimated = [&](const std::string& background, int storage) {
    const LoadedJob loaded = test::load_text(
        text, {"background=" + background, "cluster.storage_nodes=" + std::to_string(storage)});
    return search_plans(loaded.spec, 3, fixed).best.front().step;
  };
  const Picoseconds alone = estimated("[]", 0);
  for (const char* pattern : {"incast, fan_in: 4", "permutation", "bisection"})
    EXPECT_EQ(estimated("[{bytes: 1MiB, pattern: " + std::string(pattern) + "}]", 0), alone);
  EXPECT_EQ(estimated("[{pattern: data}, {pattern: checkpoint, at_once: 2}]", 1), alone);
  EXPECT_NE(test::error_of([&] {
              estimated("[{pattern: checkpoint}]", 0);
            }).find("the cluster has none; add them"),
            std::string::npos);
}

TEST(PlanSearch, LosesNoneOfTheBestByLeavingOut) {
  std::size_t left_out = 0;
  const std::vector<std::string> one_optimizer{"optimizer"};
  for (const std::string& text :
       {job("gpt2-medium", ", tp: 2, global_batch: 64, sequence_parallel: true", 4),
        job("gpt3-6.7b", ", tp: 4, global_batch: 32, sequence_parallel: true", 4),
        job("gpt3-6.7b", ", global_batch: 32, attention: unfused", 2, "40GiB"),
        job("llama3-8b", ", global_batch: 16, cp: 2", 2),
        job("mixtral-8x7b", ", global_batch: 16", 8, "0"),
        in_fp8(job("gpt3-medium", ", tp: 2, global_batch: 16, sequence_parallel: true", 1)),
        spread("gpt2-xl", "framework: ddp, micro_batch: 4, bucket_cap_mb: 50", 2),
        spread("llama3.2-3b", "framework: zero2, micro_batch: 1", 4, "70GiB"),
        spread("llama3-8b", "framework: fsdp, micro_batch: 1", 4)}) {
    SCOPED_TRACE(text);
    const LoadedJob loaded = test::load_text(text);
    // Whole and sharded optimizers double the plans; the smallest model has both.
    const std::vector<std::string> fixed =
        loaded.spec.model->name == "gpt2-medium" ? std::vector<std::string>{} : one_optimizer;
    const PlanSearch pruned = search_plans(loaded.spec, 3, fixed);
    const PlanSearch whole = search_plans(loaded.spec, 100'000, fixed);
    EXPECT_EQ(whole.left_out, 0u);
    EXPECT_EQ(pruned.left_out + pruned.estimated, whole.estimated);
    EXPECT_EQ(pruned.looked_at, pruned.illegal + pruned.too_large + whole.estimated);
    left_out += pruned.left_out;
    ASSERT_EQ(whole.best.size(), whole.estimated);
    ASSERT_EQ(pruned.best.size(), 3u);
    for (std::size_t i = 0; i < pruned.best.size(); ++i) {
      EXPECT_EQ(pruned.best[i].step, whole.best[i].step);
      EXPECT_EQ(settings_of(loaded.spec, pruned.best[i].choice),
                settings_of(loaded.spec, whole.best[i].choice));
    }
    for (const PlanFound& plan : whole.best) EXPECT_LE(plan.least, plan.step);
  }
  EXPECT_GT(left_out, 0u);
}

// Gradients have the type of each framework, and settings name no key that stays as it is.
TEST(PlanSearch, TakesKeysAtTheirDefaultsForKeysThatAreLeftOut) {
  std::string text = spread("gpt2-xl", "framework: zero2, micro_batch: 2", 2);
  text.replace(text.find(", gradients: fp32"), 17, "");
  const auto found = [](const LoadedJob& job) {
    const PlanSearch search = search_plans(searched(job), 3);
    std::vector<std::pair<Picoseconds, std::vector<std::string>>> plans;
    for (const PlanFound& plan : search.best)
      plans.emplace_back(plan.step, settings_of(searched(job), plan.choice));
    return plans;
  };
  const LoadedJob job = test::load_text(text);
  EXPECT_EQ(found(test::load_text(text, {"precision.gradients=auto"})), found(job));
  EXPECT_EQ(found(test::load_text(job.config_json)), found(job));
}

// A captured model has buckets of its own, which sizes take the place of, at their defaults, too.
TEST(PlanSearch, TakesSizesOfBucketsBesideACapturedModelsOwn) {
  const test::LayersJob layers{.layers = {{"[20000000]", 10, 1e5}, {"[20000000]", 10, 1e5}},
                               .nodes = 4};
  const auto step = [&](std::vector<std::string> settings) {
    settings.emplace_back("model.buckets=[2]");
    const LoadedJob job = test::load_text(text_of(layers), settings);
    return search_plans(searched(job), 1, {"framework"}).best.at(0).step;
  };
  EXPECT_LT(step({"parallel.bucket_cap_mb=25"}), step({}));
  EXPECT_EQ(step({"parallel.bucket_cap_mb=25"}), step({"parallel.bucket_cap_mb=26"}));
}

// Plays each plan by its settings_of(). Calls share NICs in the engine, but not in the estimate.
TEST(PlanSearch, SaysWhatTheEnginePlays) {
  const std::string text = job("gpt3-6.7b",
                               ", tp: 2, pp: 2, schedule: interleaved, interleave: 2, "
                               "global_batch: 32, sequence_parallel: true",
                               4);
  const LoadedJob loaded = test::load_text(text);
  const PlanSearch search = search_plans(loaded.spec, 4);
  ASSERT_EQ(search.best.size(), 4u);
  for (const PlanFound& plan : search.best) {
    const std::vector<std::string> settings = settings_of(loaded.spec, plan.choice);
    const LoadedJob one = test::load_text(text, settings);
    EXPECT_EQ(one.spec.parallel.tp, plan.choice.tp);
    const Result result = testing::play(one);
    const double share = static_cast<double>(plan.step) * 1e-12 / result.iterations.back().seconds;
    EXPECT_LE(share, 1.005) << ::testing::PrintToString(settings);
    EXPECT_GE(share, 0.8) << ::testing::PrintToString(settings);
  }
}

// Without the links' limits, fsdp with 3 models came first, 40 % slower than zero3.
TEST(PlanSearch, PutsPlansInOrderWhereLinksAreTheLimit) {
  const std::string text =
      "schema: ghostrank/job/1\nmodel: {kind: transformer, layers: 4, hidden: 1024, heads: 8, "
      "sequence: 1024, vocabulary: 20000}\ndevice: h100-sxm\nprecision: {parameters: bf16}\n"
      "cluster: {nodes: 3, gpus_per_node: 4, nics_per_node: 2, nic: {rate: 100Gbps}, "
      "topology: {kind: leaf_spine, oversubscription: 8}}\nfabric: {kind: virtual}\n"
      "run: {warmup: 0, iterations: 1}\nparallel: {framework: ddp}\n";
  const PlanSearch search = search_plans(test::load_text(text).spec, 100);
  std::vector<double> played;
  for (const PlanFound& plan : search.best) {
    const LoadedJob one =
        test::load_text(text, settings_of(test::load_text(text).spec, plan.choice));
    played.push_back(
        testing::play(one, in_steady_state(plan_workload(one.spec))).iterations.back().seconds);
  }
  EXPECT_LE(played.front(), 1.02 * *std::min_element(played.begin(), played.end()));
}

// Bytes per parameter: ddp 20; zero1 4 and 12 sharded. 2 FSDP replicas shard over half the ranks.
TEST(PlanSearch, ShardsAsMuchAsTheMemoryAsks) {
  const LoadedJob loaded =
      test::load_text(spread("llama3.2-3b", "framework: ddp, bucket_cap_mb: 50", 4, "60GiB"));
  const PlanSearch search = search_plans(loaded.spec, 100);
  EXPECT_GT(search.too_large, 0u);
  std::map<Framework, double> optimizer;
  for (const PlanFound& plan : search.best) {
    EXPECT_NE(plan.choice.framework, Framework::ddp);
    if (plan.choice.recompute == Recompute::none) {
      EXPECT_GT(plan.memory->activations, 20e9);  // one sample of 8,192 tokens
    }
    EXPECT_LE(plan.memory->total(), 60.0 * (1 << 30));
    if (plan.choice.framework != Framework::fsdp || plan.choice.replicate == 1)
      optimizer[plan.choice.framework] = plan.memory->optimizer;
  }
  const double parameters = static_cast<double>(loaded.spec.model->parameters());
  EXPECT_DOUBLE_EQ(optimizer.at(Framework::zero1), parameters * 12 / 16);
  EXPECT_DOUBLE_EQ(optimizer.at(Framework::fsdp), parameters * 8 / 16);
  ASSERT_TRUE(search.own.has_value());
  EXPECT_EQ(search.own->choice.framework, Framework::ddp);
  EXPECT_GT(search.own->memory->total(), 60.0 * (1 << 30));
}

// Plays the fastest plan of each framework by its settings_of(), which override the job's own.
TEST(PlanSearch, SaysWhatTheEnginePlaysOfEveryFramework) {
  const std::string text =
      spread("gpt2-xl", "framework: ddp, micro_batch: 2, bucket_cap_mb: 50", 2);
  const LoadedJob loaded = test::load_text(text);
  const PlanSearch search = search_plans(loaded.spec, 100);
  std::set<Framework> seen;
  for (const PlanFound& plan : search.best) {
    const bool first = seen.insert(plan.choice.framework).second;
    if (!first) continue;
    const std::vector<std::string> settings = settings_of(loaded.spec, plan.choice);
    SCOPED_TRACE(::testing::PrintToString(settings));
    const LoadedJob one = test::load_text(text, settings);
    EXPECT_EQ(one.spec.parallel.framework, plan.choice.framework);
    const Result result = testing::play(one, in_steady_state(plan_workload(one.spec)));
    EXPECT_NEAR(static_cast<double>(plan.step) * 1e-12 / result.iterations.back().seconds, 1,
                0.005);
  }
  EXPECT_EQ(seen.size(), 5u);
}

TEST(PlanSearch, TakesTheMediansOfACapturedModel) {
  const std::string layers =
      "{kind: layers, layers: [{parameters: [10000], forward_us: 1000, "
      "backward_us: 2000}]";
  const auto found = [&](const std::string& recorded) {
    const std::string text = spread(layers + recorded + "}", "framework: ddp", 2);
    return search_plans(test::load_text(text).spec, 100);
  };
  const PlanSearch medians = found(""), captured = found(
                                            ", recorded_ns: [[[0, 9000000, 0, 9000000, "
                                            "0, 0], [0, 8000000, 0, 8000000, 0, 0]]]");
  ASSERT_TRUE(medians.own && captured.own);
  EXPECT_EQ(captured.own->step, medians.own->step);
  EXPECT_EQ(captured.own->compute, 3000 * kPicosPerMicro);
}

// Pipelines with uneven stages, sharding and recomputation, in too little memory to do without any
// of them.
TEST(PlanSearch, SplitsModelsAsTorchTitan) {
  const std::string text = spread(
      "llama3-8b", "framework: torchtitan, micro_batch: 1, global_batch: 32, pp: 2", 4, "22GiB");
  const std::string network = "cluster.nic.rate=200Gbps";  // wide enough for transfers beside calls
  const LoadedJob loaded = test::load_text(text, {network, "device.memory_bytes=0"});
  JobSpec spec = loaded.spec;
  spec.device.memory_bytes = 22.0 * (1 << 30);
  const std::vector<std::string> fixed{"dp_replicate"};
  const PlanSearch pruned = search_plans(spec, 3, fixed), whole = search_plans(spec, 10'000, fixed);
  EXPECT_GT(pruned.left_out, 0u);
  EXPECT_GT(whole.too_large, 0u);
  ASSERT_EQ(pruned.best.size(), 3u);
  std::set<int> stages;
  for (const PlanFound& plan : whole.best) {
    EXPECT_LE(plan.least, plan.step) << ::testing::PrintToString(settings_of(spec, plan.choice));
    stages.insert(plan.choice.pp);
  }
  EXPECT_GT(stages.size(), 2u);
  for (std::size_t i = 0; i < pruned.best.size(); ++i) {
    EXPECT_EQ(pruned.best[i].step, whole.best[i].step);
    std::vector<std::string> settings = settings_of(spec, pruned.best[i].choice);
    settings.push_back(network);
    SCOPED_TRACE(::testing::PrintToString(settings));
    const LoadedJob one = test::load_text(text, settings);
    EXPECT_EQ(one.spec.parallel.pp, pruned.best[i].choice.pp);
    EXPECT_EQ(one.spec.parallel.recompute, pruned.best[i].choice.recompute);
    const Result result = testing::play(one);
    const double share =
        static_cast<double>(pruned.best[i].step) * 1e-12 / result.iterations.back().seconds;
    EXPECT_LE(share, 1.005);
    EXPECT_GE(share, 0.8);
  }
}

// Shards are gathered and scattered beside all-reduces of several models, over the same NICs.
TEST(PlanSearch, CountsCallsOfAllKindsOnANic) {
  const std::string text =
      spread("{base: llama3.2-1b, layers: 4, sequence: 512, vocabulary: 8000}",
             "framework: torchtitan, dp_replicate: 2, global_batch: 48", 4, "0");
  const LoadedJob loaded = test::load_text(text);
  const PlanSearch search =
      search_plans(loaded.spec, 1, {"tp", "pp", "micro_batch", "dp_replicate"});
  ASSERT_TRUE(search.own.has_value());
  const Result result = testing::play(loaded);
  const double share = static_cast<double>(search.own->step) * 1e-12 / result.iterations[0].seconds;
  EXPECT_GE(share, 0.95);
  EXPECT_LE(share, 1.005);
}

// Gloo's process group reduces two buckets at once.
TEST(PlanSearch, FollowsTheWorkersOfAStream) {
  const test::LayersJob layers{
      .layers = {{"[20000]", 10, 20}, {"[20000]", 10, 20}, {"[20000]", 10, 20}}, .nodes = 4};
  const std::vector<std::string> settings{"collectives.library=gloo", "parallel.bucket_cap_mb=0.05",
                                          "parallel.first_bucket_mb=0.05", "fabric.kind=virtual"};
  const LoadedJob loaded = test::load_text(text_of(layers), settings);
  const PlanSearch search = search_plans(searched(loaded), 1, {"framework"});
  ASSERT_TRUE(search.own.has_value());
  const Result result = testing::play(loaded, in_steady_state(plan_workload(loaded.spec)));
  EXPECT_NEAR(static_cast<double>(search.own->step) * 1e-12 / result.iterations.back().seconds, 1,
              0.03);
}

TEST(PlanSearch, KnowsTheJobsOwnPlan) {
  const LoadedJob loaded =
      test::load_text(job("gpt2-medium", ", tp: 2, global_batch: 64, sequence_parallel: true", 4));
  const PlanSearch search = search_plans(loaded.spec, 100'000);
  ASSERT_TRUE(search.own.has_value());
  EXPECT_GE(search.own->step, search.best.front().step);
  EXPECT_TRUE(std::any_of(search.best.begin(), search.best.end(), [&](const PlanFound& plan) {
    return plan.choice.tp == 2 && plan.choice.pp == 1 && plan.choice.micro_batch == 1 &&
           plan.choice.sharded_optimizer && plan.step == search.own->step;
  }));
}

// Interleaved stages have two chunks unless the job says how many.
TEST(PlanSearch, KnowsTheChunksOfTorchTitansOwnPlan) {
  const auto step_of = [](const std::string& more, const std::string& rate) {
    const LoadedJob loaded = test::load_text(
        spread("{base: llama3.2-3b, tied_embeddings: false}",
               "framework: torchtitan, pp: 2, global_batch: 32, schedule: " + more, 2),
        {"cluster.nic.rate=" + rate});
    const PlanSearch search =
        search_plans(loaded.spec, 1, {"tp", "pp", "ep", "interleave", "micro_batch", "recompute"});
    return search.own.value().step;
  };
  for (const char* rate : {"50Gbps", "200Gbps"})
    EXPECT_EQ(step_of("interleaved", rate), step_of("interleaved, interleave: 2", rate));
  // As played, 2.272 and 2.353 s. Slower transfers, for which senders wait, cost more than chunks
  // gain: 2.417 s played for 2.406.
  EXPECT_LT(step_of("interleaved", "200Gbps"), step_of("1f1b", "200Gbps"));
  EXPECT_GT(step_of("interleaved", "50Gbps"), step_of("1f1b", "50Gbps"));
}

// The type that a job does not give is the framework's; one that it gives is kept.
TEST(PlanSearch, KnowsTheGradientTypeOfEachFramework) {
  const std::string text = spread("gpt2", "framework: ddp", 1), given = ", gradients: fp32";
  std::string open = text;
  open.erase(open.find(given), given.size());
  for (const std::string& job : {open, text})
    for (const Framework framework : {Framework::ddp, Framework::zero1, Framework::fsdp}) {
      const JobSpec spec = test::load_text(job).spec;
      const PlanChoice choice{.framework = framework};
      const DataType type = with_choice(spec, choice).precision.gradients;
      EXPECT_EQ(type, test::load_text(job, settings_of(spec, choice)).spec.precision.gradients);
      EXPECT_EQ(type == DataType::bfloat16, framework == Framework::zero1 && job == open);
    }
}

// Also values that the search does not try by itself.
TEST(PlanSearch, KeepsWhatTheJobHas) {
  const auto best_of = [](const std::string& text, const std::vector<std::string>& fixed) {
    const PlanSearch search = search_plans(test::load_text(text).spec, 1, fixed);
    EXPECT_EQ(search.best.size(), 1u) << text;
    return search.best.at(0).choice;
  };
  EXPECT_EQ(
      best_of(job("gpt2-medium", ", recompute: selective, global_batch: 48", 2), {"recompute"})
          .recompute,
      Recompute::selective);
  EXPECT_EQ(best_of(job("gpt2-medium", ", micro_batch: 3, global_batch: 48", 2), {"micro_batch"})
                .micro_batch,
            3);
  const std::string titan = "framework: torchtitan, global_batch: 48, micro_batch: 3, recompute: ";
  const PlanChoice both =
      best_of(spread("llama3.2-3b", titan + "selective", 2), {"recompute", "micro_batch"});
  EXPECT_EQ(both.recompute, Recompute::selective);
  EXPECT_EQ(both.micro_batch, 3);
  EXPECT_EQ(best_of(spread("llama3.2-3b", "framework: fsdp, recompute: selective", 2),
                    {"recompute", "framework"})
                .recompute,
            Recompute::selective);
}

// Gloo has no reduce_scatter, without which zero3 and fsdp do not go.
TEST(PlanSearch, LeavesOutPlansWhoseCallsTheLibraryLacks) {
  std::string text = spread("gpt2", "framework: ddp", 2);
  text.replace(text.find("nccl-2.28"), 9, "gloo");
  const PlanSearch search = search_plans(test::load_text(text).spec, 100);
  EXPECT_EQ(search.best.size(), 3u);
  EXPECT_EQ(search.estimated, 3u);
  EXPECT_EQ(search.looked_at, search.illegal + search.too_large + search.estimated);
  for (const PlanFound& plan : search.best) EXPECT_NE(plan.choice.framework, Framework::zero3);
  EXPECT_TRUE(search.own.has_value());
  EXPECT_NE(test::error_of([&] {
              text.replace(text.find("framework: ddp"), 14, "framework: zero3");
              search_plans(test::load_text(text).spec, 1, {"framework"});
            }).find("no plan can be estimated; the last one: "),
            std::string::npos);
}

// A job without tensor parallelism does not say how its experts would be with it.
TEST(PlanSearch, GivesExpertsTheSequenceParallelismThatTheyNeed) {
  const std::string text = job("{base: mixtral-8x7b, layers: 4}", ", global_batch: 16", 2, "0");
  const JobSpec spec = test::load_text(text).spec;
  const PlanSearch search = search_plans(spec, 100'000, {"optimizer"});
  std::set<int> degrees;
  for (const PlanFound& plan : search.best) {
    if (!degrees.insert(plan.choice.tp).second) continue;
    const JobSpec one = test::load_text(text, settings_of(spec, plan.choice)).spec;
    EXPECT_EQ(one.parallel.tp, plan.choice.tp);
    EXPECT_EQ(one.parallel.sequence_parallel, plan.choice.tp > 1);
  }
  EXPECT_EQ(degrees, (std::set<int>{1, 2, 4}));
}

TEST(PlanSearch, RefusesWhatItCannotSearch) {
  const auto refused = [](const std::string& text) {
    return test::error_of([&] { search_plans(test::load_text(text).spec, 1); });
  };
  const auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(refused("schema: ghostrank/job/1\nmodel: gpt2\ndevice: h100-sxm\n"
                 "cluster: {nodes: 2, gpus_per_node: 1}\nparallel: {framework: horovod}\n"),
         "the job has parallel.framework: horovod");
  expect(refused("schema: ghostrank/job/1\nmodel: dlrm-criteo\ndevice: h100-sxm\n"
                 "cluster: {nodes: 2, gpus_per_node: 1}\nparallel: {framework: torchrec}\n"),
         "the job has parallel.framework: torchrec");
  expect(refused("schema: ghostrank/job/1\nmodel: resnet50\ndevice: h100-sxm\n"
                 "cluster: {nodes: 2, gpus_per_node: 1}\nservers: {count: 1}\n"
                 "collectives: {allreduce: omnireduce}\nparallel: {framework: ddp}\n"),
         "steps with servers are played, not estimated");
  expect(refused(job("gpt2-medium", ", micro_batch: 1000000", 1024)),
         "--search: parallel.micro_batch=1000000 on 4096 data-parallel ranks is a batch of "
         "4096000000 samples");
  expect(refused(job("gpt2-medium", ", pp: 2, decoder_first_pipeline_num_layers: 10", 2)),
         "leave that out");
  expect(refused(job("gpt2-medium", "", 1, "64MiB")), "no plan fits the device's memory");
  expect(refused(job("gpt2-medium", ", global_batch: 7", 5)), "no plan is legal; the last one: ");
}

}  // namespace
}  // namespace ghostrank
