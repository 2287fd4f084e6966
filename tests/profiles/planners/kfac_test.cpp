// Distributed K-FAC: factors against the published lists of ResNet-50, placements against their
// authors' vectors and against brute force, traffic against closed forms.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "profiles/planners/kfac/factors.h"
#include "profiles/planners/kfac/placement.h"
#include "profiles/planners/memory_check.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using Dimensions = std::vector<std::uint64_t>;

const std::string kCluster = "device: rtx2080ti\ncluster: {base: rtx2080ti-100gbib, nodes: 16}\n";

std::vector<Factor> factors(const std::string& model, int samples = 1) {
  const LoadedJob job = test::load_text("model: " + model + "\ndevice: rtx2080ti\n");
  const std::vector<Module> modules = modules_of(*job.spec.model, step_times(job.spec));
  return factors_of(*job.spec.model, modules, samples);
}

Dimensions dimensions(const std::vector<Factor>& factors, std::size_t first, std::size_t stride) {
  Dimensions out;
  for (std::size_t f = first; f < factors.size(); f += stride) out.push_back(factors[f].dimension);
  return out;
}

std::uint64_t packed(const Dimensions& dimensions) {
  std::uint64_t sum = 0;
  for (const std::uint64_t d : dimensions) sum += d * (d + 1) / 2;
  return sum;
}

TEST(Factors, OfResNet50AreThosePublished) {
  const std::vector<Factor> found = factors("resnet50", 32);
  const Dimensions a{147,  64,   576,  64,   64,   256,  576,  64,   256,  576,  64,
                     256,  1152, 128,  256,  512,  1152, 128,  512,  1152, 128,  512,
                     1152, 128,  512,  2304, 256,  512,  1024, 2304, 256,  1024, 2304,
                     256,  1024, 2304, 256,  1024, 2304, 256,  1024, 2304, 256,  1024,
                     4608, 512,  1024, 2048, 4608, 512,  2048, 4608, 512,  2049};
  const Dimensions g{64,   64,   64,   256,  256,  64,   64,   256, 64,   64,   256,
                     128,  128,  512,  512,  128,  128,  512,  128, 128,  512,  128,
                     128,  512,  256,  256,  1024, 1024, 256,  256, 1024, 256,  256,
                     1024, 256,  256,  1024, 256,  256,  1024, 256, 256,  1024, 512,
                     512,  2048, 2048, 512,  512,  2048, 512,  512, 2048, 1000};
  EXPECT_EQ(dimensions(found, 0, 2), a);
  EXPECT_EQ(dimensions(found, 1, 2), g);
  EXPECT_EQ(packed(a), 62'348'671u);
  EXPECT_EQ(packed(g), 14'618'356u);
  // A row is a position of the output of a sample: 112 x 112, and 1 for the classifier.
  EXPECT_EQ(found.front().rows, 32.0 * 112 * 112);
  EXPECT_EQ(found.back().rows, 32.0);
}

TEST(Factors, AreOfLinearMapsAndConvolutionsAlone) {
  EXPECT_EQ(factors("vgg16").size(), 2u * 16);
  EXPECT_EQ(factors("resnet152").size(), 2u * 156);
  EXPECT_EQ(factors("densenet201").size(), 2u * 201);
  EXPECT_EQ(factors("inception-v4").size(), 2u * 150);
  const std::vector<Factor> bert = factors("bert-base");
  EXPECT_EQ(bert.size(), 2u * (12 * 6 + 3));  // pooler, and two in the heads: no vocabulary
  EXPECT_EQ(bert.front().dimension, 769u);
  EXPECT_TRUE(factors("gpt2").empty());
  EXPECT_TRUE(factors("lstm-ptb-large").empty());  // an embedding, cells and the vocabulary
  // Latent attention has maps to the latents, from them and to the output; beside it are three of
  // the feed-forward part. A multi-token prediction module has one more, for its two inputs.
  const std::string latent = "{base: deepseek-v2-lite, layers: 2, experts: {count: 0}";
  EXPECT_EQ(factors(latent + "}").size(), 2u * 2 * (4 + 3));
  EXPECT_EQ(factors(latent + ", latent: {q_lora: 64}}").size(), 2u * 2 * (5 + 3));
  EXPECT_EQ(factors(latent + ", mtp_layers: 1}").size(), 2u * (3 * (4 + 3) + 1));
}

// Three stages of ten 3x3 convolutions; the first one of stages 2 and 3 reads half the channels.
TEST(Factors, OfResNet32ForCifarFollowFromItsArchitecture) {
  Dimensions a{27}, g{16};
  for (const std::uint64_t channels : {16, 32, 64})
    for (int i = 0; i < 10; ++i) {
      a.push_back(9 * (i == 0 && channels > 16 ? channels / 2 : channels));
      g.push_back(channels);
    }
  a.push_back(65);
  g.push_back(10);
  const std::vector<Factor> found = factors("cifar-resnet32", 128);
  EXPECT_EQ(dimensions(found, 0, 2), a);
  EXPECT_EQ(dimensions(found, 1, 2), g);
  EXPECT_EQ(found.front().rows, 128.0 * 32 * 32);
  EXPECT_EQ(found[2 * 30].rows, 128.0 * 8 * 8);
}

TEST(Placement, BalancedIsThatOfSpdKfac) {
  const Dimensions all = dimensions(factors("resnet50"), 0, 1);
  const std::vector<int> ranks = place_balanced(all, 64, 1024);
  std::map<int, int> tensors;
  Dimensions sent;
  for (std::size_t f = 0; f < all.size(); ++f) {
    if (ranks[f] == kEveryRank) continue;
    ++tensors[ranks[f]];
    sent.push_back(all[f]);
  }
  EXPECT_EQ(sent.size(), 34u);
  EXPECT_EQ(tensors.size(), 34u);
  EXPECT_EQ(4 * packed(sent), 289'930'244u);
  EXPECT_EQ(place_balanced(Dimensions{5, 9, 3, 4, 1}, 2, 2),
            (std::vector<int>{1, 0, 0, 1, kEveryRank}));
}

TEST(Placement, InTurnKeepsLayersTogetherWhereRanksAreFew) {
  EXPECT_EQ(place_round_robin(6, 4, false), (std::vector<int>{0, 1, 2, 3, 0, 1}));
  EXPECT_EQ(place_round_robin(6, 4, true), (std::vector<int>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(place_round_robin(6, 2, false), (std::vector<int>{0, 0, 1, 1, 0, 0}));
}

// The least possible largest sum of a partition of `weights` into `parts` runs, by recursion.
std::uint64_t least_largest(const Dimensions& weights, std::size_t first, int parts) {
  const std::uint64_t rest = std::accumulate(weights.begin() + static_cast<std::ptrdiff_t>(first),
                                             weights.end(), std::uint64_t{0});
  if (parts == 1 || first == weights.size()) return rest;
  std::uint64_t best = rest, head = 0;
  for (std::size_t end = first; end < weights.size(); ++end) {
    head += weights[end];
    best = std::min(best, std::max(head, least_largest(weights, end + 1, parts - 1)));
  }
  return best;
}

TEST(Placement, BlocksHaveTheLeastLargestSum) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Dimensions weights(1 + random() % 9);
    for (std::uint64_t& weight : weights) weight = 1 + random() % 50;
    const int ranks = 1 + static_cast<int>(random() % 5);
    const std::vector<int> placed = place_blocks(weights, ranks);
    ASSERT_EQ(placed.size(), weights.size());
    Dimensions load(static_cast<std::size_t>(ranks));
    for (std::size_t f = 0; f < placed.size(); ++f)
      load.at(static_cast<std::size_t>(placed[f])) += weights[f];
    EXPECT_EQ(*std::max_element(load.begin(), load.end()), least_largest(weights, 0, ranks));
  }
}

// Two ranks are left over: each takes the last factor of a run of two or more.
TEST(Placement, BlocksGiveFactorsToRanksWithout) {
  EXPECT_EQ(place_blocks(Dimensions{1, 1, 10, 1, 1, 1, 10}, 6),
            (std::vector<int>{0, 4, 1, 2, 2, 5, 3}));
  EXPECT_EQ(place_blocks(Dimensions{3, 2, 1}, 4), (std::vector<int>{0, 1, 2}));
}

Workload kfac_workload(const std::string& parallel, const std::string& model = "resnet50") {
  return plan_workload(test::load_text("model: " + model + "\n" + kCluster +
                                       "parallel: {framework: kfac, micro_batch: 32" +
                                       (parallel.empty() ? "" : ", " + parallel) + "}\n")
                           .spec);
}

test::CallSums kfac_sums(const Workload& workload, std::size_t step = 0) {
  return test::sums_of(workload.roles[0].iterations.at(step), workload, "dp");
}

constexpr std::uint64_t kGradients = 4 * 25'557'032ull, kFactors = 4 * (62'348'671ull + 14'618'356);

TEST(Kfac, SendsWhatItsVariantSends) {
  const auto expect = [](const std::string& parallel, std::uint64_t all_reduced,
                         std::uint64_t reduced, std::uint64_t broadcast) {
    const Workload workload = kfac_workload(parallel);
    for (const Role& role : workload.roles)
      for (const Program& program : role.iterations) {
        EXPECT_TRUE(test::streams_end(program)) << parallel;
        test::CallSums sums = test::sums_of(program, workload, "dp");
        EXPECT_EQ(sums.bytes[Func::all_reduce], all_reduced) << parallel;
        EXPECT_EQ(sums.bytes[Func::reduce], reduced) << parallel;
        EXPECT_EQ(sums.bytes[Func::broadcast], broadcast) << parallel;
      }
  };
  expect("variant: ssgd", kGradients, 0, 0);
  expect("variant: d", kGradients + kFactors, 0, 0);
  expect("variant: mpd", kGradients + kFactors, 0, kFactors);
  expect("variant: spd", kGradients + kFactors, 0, 289'930'244);
  expect("variant: pad", kGradients, kFactors, kFactors);
  // The weights of convolutions and of the classifier, with its bias.
  expect("variant: dp", kGradients, 0, 4 * (25'557'032ull - 2 * 26'560));
  expect("variant: spd, exclude: inverse_comm", kGradients + kFactors, 0, 0);
  expect("variant: spd, exclude: factor_comm", kGradients, 0, 0);
}

TEST(Kfac, FusesFactorsByEveryRule) {
  const auto calls = [](const std::string& parallel) {
    const Workload workload = kfac_workload(parallel), gradients = kfac_workload("variant: ssgd");
    test::CallSums with = kfac_sums(workload), without = kfac_sums(gradients);
    EXPECT_EQ(with.bytes[Func::all_reduce], kGradients + kFactors) << parallel;
    return with.calls[Func::all_reduce] - without.calls[Func::all_reduce];
  };
  EXPECT_EQ(calls("variant: d, factor_fusion: none"), 108u);
  EXPECT_EQ(calls("variant: d, factor_fusion: layer"), 54u);
  EXPECT_EQ(calls("variant: d, factor_fusion: optimal"), 1u);
  EXPECT_EQ(calls("variant: d, factor_fusion: threshold, factor_mb: 1000"), 1u);
  // The default rule fills buffers of 64 MiB.
  const std::uint64_t some = calls("variant: d");
  EXPECT_GE(some, kFactors / (64ull << 20) + 1);
  EXPECT_LT(some, 12u);
  EXPECT_EQ(calls("variant: d, factor_fusion: threshold, factor_mb: 64"), some);
  EXPECT_EQ(calls("variant: spd, factor_launch: after_backward"), some);
  // SPD's default fuses only the factors A.
  const std::uint64_t both = calls("variant: spd, factor_fusion: optimal"),
                      with_gs_alone = calls("variant: spd");
  EXPECT_GT(with_gs_alone, 54u);
  EXPECT_LT(with_gs_alone, 108u);
  EXPECT_LT(both, with_gs_alone);
}

// Ranks that invert compute longer; all ranks play the same calls.
TEST(Kfac, GivesEveryRankItsOwnInverses) {
  const Workload workload = kfac_workload("variant: spd");
  EXPECT_EQ(workload.roles.size(), 35u);  // 34 ranks that invert; one for all others
  std::size_t inverses = 0;
  for (const Role& role : workload.roles) {
    const Program& program = role.iterations.at(0);
    for (const Op& op : program.streams[0])
      inverses += program.labels[op.label].starts_with("inverse") ? 1 : 0;
  }
  EXPECT_EQ(inverses, 35u * 74 + 34);
  EXPECT_EQ(kfac_workload("variant: d").roles.size(), 1u);
  // Under DP a rank computes its own factors alone.
  const Workload apart = kfac_workload("variant: dp");
  EXPECT_EQ(apart.roles.size(), 55u);
  std::size_t all = 0;
  for (const Role& role : apart.roles) {
    const Program& program = role.iterations.at(0);
    std::size_t computed = 0;
    for (const Op& op : program.streams[0])
      if (op.kind == Op::Kind::compute && program.labels[op.label].starts_with("factor"))
        ++computed;
    EXPECT_LE(computed, 2u);
    all += computed;
  }
  EXPECT_EQ(all, 2u * 54);
}

// Hooks compute factors between the passes of modules, so calls of factors run beside later passes.
TEST(Kfac, HooksComputeAInFrontOfTheForwardAndGBehindTheBackward) {
  const Workload workload = kfac_workload("variant: spd, factor_fusion: none");
  const Program& program = workload.roles[0].iterations[0];
  std::vector<std::string> labels;
  for (const Op& op : program.streams[0])
    if (op.kind == Op::Kind::compute) labels.push_back(program.labels[op.label]);
  const auto place = [&](const std::string& label) {
    return std::find(labels.begin(), labels.end(), label) - labels.begin();
  };
  EXPECT_EQ(place("factor A of conv1") + 1, place("pack A of conv1"));
  EXPECT_EQ(place("factor A of conv1") + 2, place("forward conv1"));
  EXPECT_EQ(place("backward fc") + 1, place("factor G of fc"));
  EXPECT_LT(place("factor G of fc"), place("backward conv1"));
}

// Seconds that a stream of the first role computes under labels that begin with `what`.
double seconds(const Workload& workload, std::size_t stream, const std::string& what) {
  const Program& program = workload.roles[0].iterations[0];
  Picoseconds sum = 0;
  for (const Op& op : program.streams[stream])
    if (op.kind == Op::Kind::compute && program.labels[op.label].starts_with(what))
      sum += op.duration;
  return static_cast<double>(sum) * 1e-12;
}

// The GPU's memory moves 616 GB/s; packing moves 40 bytes per element, unpacking 104.
TEST(Kfac, PacksAndUnpacksTriangles) {
  const double once = static_cast<double>(kFactors) / 4 / 616e9;
  const auto expect = [](const std::string& parallel, double packs, double unpacks) {
    const Workload workload = kfac_workload(parallel);
    EXPECT_NEAR(seconds(workload, 0, "pack "), packs, 1e-9) << parallel;
    EXPECT_NEAR(seconds(workload, 0, "unpack "), unpacks, 1e-9) << parallel;
  };
  expect("variant: ssgd", 0, 0);
  expect("variant: d", 40 * once, 104 * once);
  expect("variant: mpd", 2 * 40 * once, 2 * 104 * once);
  expect("variant: mpd, exclude: factor_comm", 0, 0);
  // DP sends whole gradients, not triangles.
  expect("variant: dp", 0, 0);
}

// Every rank sends a request for every tensor. Requests for what a hook hands over (gradients; a
// call of factors) hold up the pass; others precede their call. A call that is alone in its cycle
// waits for the cycle: groups of gradients, broadcasts, and what hooks send.
TEST(Kfac, AsksHorovodForEveryTensor) {
  const auto part = [](const std::string& parallel, std::size_t stream, const char* what) {
    return seconds(kfac_workload("kfac_cost: rtx2080ti, " + parallel), stream, what) * 1e6 / 64;
  };
  constexpr double kTensors = 161, kEach = 108;
  const double request = part("variant: ssgd", 2, "requests") / kTensors;
  EXPECT_GT(request, 1);
  const auto handed_over = [&](const std::string& variant) {
    return part("variant: " + variant, 2, "requests") / request;
  };
  for (const char* variant : {"d", "mpd", "pad"})
    EXPECT_NEAR(handed_over(variant), kTensors, 1e-6) << variant;
  EXPECT_NEAR(handed_over("spd, factor_fusion: none"), kTensors + kEach, 1e-6);
  const auto in_front = [&](const std::string& variant) {
    return part("variant: " + variant, 1, "requests") / request;
  };
  EXPECT_NEAR(in_front("ssgd"), 0, 1e-6);
  EXPECT_NEAR(in_front("d"), kEach, 1e-6);
  EXPECT_NEAR(in_front("mpd"), 2 * kEach, 1e-6);
  EXPECT_NEAR(in_front("spd, inverse_placement: none"), 0, 1e-6);
  EXPECT_NEAR(in_front("pad"), kEach, 1e-6);  // inverses alone
  EXPECT_NEAR(in_front("dp"), 54, 1e-6);
  test::CallSums calls = kfac_sums(kfac_workload("variant: ssgd"));
  const auto groups = static_cast<double>(calls.calls[Func::all_reduce]);
  const double cycle = part("variant: ssgd", 1, "cycle") / groups;
  EXPECT_GT(cycle, 1);
  const auto cycles = [&](const std::string& variant) {
    return part("variant: " + variant, 1, "cycle") / cycle;
  };
  EXPECT_NEAR(cycles("d"), groups, 1e-6);
  EXPECT_NEAR(cycles("mpd"), groups + kEach, 1e-6);
  EXPECT_NEAR(cycles("spd, factor_fusion: none, inverse_placement: none"), groups + kEach, 1e-6);
  EXPECT_EQ(seconds(kfac_workload("variant: d"), 1, "requests"), 0);
}

TEST(Kfac, UpdatesAsOftenAsItIsTold) {
  const Workload workload = kfac_workload("variant: mpd, fac_update_freq: 2, kfac_update_freq: 4");
  ASSERT_EQ(workload.roles[0].iterations.size(), 3u);
  EXPECT_EQ(workload.cycle, 4u);
  const auto bytes = [&](std::size_t iteration, Func func) {
    test::CallSums found = kfac_sums(workload, program_number(workload, iteration));
    return found.bytes[func];
  };
  for (const std::size_t start : {0u, 4u, 400u}) {
    EXPECT_EQ(bytes(start, Func::all_reduce), kGradients + kFactors);
    EXPECT_EQ(bytes(start + 1, Func::all_reduce), kGradients);
    EXPECT_EQ(bytes(start + 2, Func::all_reduce), kGradients + kFactors);
    EXPECT_EQ(bytes(start, Func::broadcast), kFactors);
    for (const std::size_t later : {1u, 2u, 3u})
      EXPECT_EQ(bytes(start + later, Func::broadcast), 0u);
  }
  // The commonest step is the last program, which `plan` shows: 90 of 100 update nothing.
  const Workload seldom = kfac_workload("variant: mpd, fac_update_freq: 10, kfac_update_freq: 100");
  ASSERT_EQ(seldom.roles[0].iterations.size(), 3u);
  EXPECT_EQ(program_number(seldom, 1), 2u);
  EXPECT_EQ(kfac_sums(seldom, 2).bytes[Func::all_reduce], kGradients);
}

// Measured layers need no device, and have no factors.
TEST(Kfac, OfMeasuredLayersIsSsgdAlone) {
  const auto plan = [](const std::string& variant) {
    return plan_workload(
        test::load_text("model: {kind: layers, name: one, layers: [{parameters: [100], "
                        "forward_us: 1000, backward_us: 2000}]}\n"
                        "cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n"
                        "parallel: {framework: kfac, variant: " +
                        variant + "}\n")
            .spec);
  };
  EXPECT_NEAR(seconds(plan("ssgd"), 0, ""), 3e-3, 1e-9);
  const std::string said = test::error_of([&] { plan("d"); });
  EXPECT_NE(said.find("whose factors K-FAC could invert; use parallel.variant=ssgd"),
            std::string::npos)
      << said;
}

TEST(Kfac, RefusesWhatCannotBe) {
  const auto error = [](const std::string& parallel, const std::string& model = "resnet50") {
    return test::error_of([&] { kfac_workload(parallel, model); });
  };
  const auto expect = [](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  expect(error("factor_fusion: threshold, factor_mb: 0"),
         "a fusion threshold of 0 MiB fuses nothing");
  expect(error("variant: spd", "{base: gpt2, layers: 2}"),
         "has no linear maps or convolutions whose factors K-FAC could invert; use "
         "parallel.variant=ssgd");
  expect(error("factor_fusion: layer"), "are computed in different passes");
  expect(error("second_order: gradients"), "needs both of its factors");
  expect(error("variant: dp, inverse_placement: none"), "needs both of its factors");
  expect(
      error("variant: dp, inverse_placement: block, second_order: inverses, factor_fusion: none"),
      "under variant dp no factor is sent");
  expect(error("variant: pad, inverse_placement: lbp"), "a factor reaches one rank alone");
  expect(error("variant: d, second_order: inverses"), "sends nothing");
  expect(error("variant: mpd, local_below: 3"), "only the placement lbp");
  expect(error("variant: mpd, allreduce_cost: spdkfac"), "only parallel.factor_fusion=optimal");
  // A of the first fully connected layer: 25,088 inputs and the bias.
  const auto small = [](const std::string& model, const std::string& memory) {
    return test::error_of([&] {
      plan_workload(test::load_text("model: " + model +
                                    "\ndevice: {base: rtx2080ti, memory_bytes: " + memory +
                                    "}\ncluster: {nodes: 2, gpus_per_node: 2}\n" +
                                    "parallel: {framework: kfac}\n")
                        .spec);
    });
  };
  expect(small("vgg16", "4GiB"),
         "A of classifier.0 has dimension 25089, and inverting it takes 7.6 GB");
  expect(small("resnet152", "2900M"), "factors and inverses take 3.1 GB beside ");
  // Of 24 layers: four of 1,025 and 1,024 rows, one of 1,025 and 4,096, one of 4,097 and 1,024; and
  // the heads. Beside them are 5 GB; a rank's own fit.
  const std::string bert = "{base: bert-large, sequence: 64, positions: 512}\n";
  expect(small(bert, "11GiB"), "factors and inverses take 8.5 GB beside ");
  // dp is advised where it helps.
  expect(small(bert, "11GiB"), "use parallel.variant=dp, which keeps a rank's own, or a device");
  expect(small(bert, "5300M"), "use parallel.variant=ssgd, or a device");
  const JobSpec fits =
      test::load_text("model: " + bert + kCluster + "parallel: {framework: kfac, variant: dp}\n")
          .spec;
  JobSpec without = fits;
  without.parallel.kfac.variant = KfacVariant::ssgd;
  // In turn a rank has three of 147 layers, at most one of them in the feed-forward part.
  const double own = gpu_memory(fits)->total() - gpu_memory(without)->total();
  EXPECT_DOUBLE_EQ(own, 8.0 * (4097.0 * 4097 + 1024 * 1024 + 2 * (1025 * 1025 + 1024 * 1024)));
  EXPECT_EQ(gpu_memory(fits)->optimizer - gpu_memory(without)->optimizer, own);
}

}  // namespace
}  // namespace ghostrank
