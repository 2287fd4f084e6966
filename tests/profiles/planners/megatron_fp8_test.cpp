// Megatron plans whose linear layers multiply in fp8, against closed forms: what is sent, when the
// largest elements are reduced, memory, times by FLOPs, and errors.
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/device/compute.h"
#include "profiles/planners/megatron/fp8.h"
#include "profiles/planners/megatron/memory.h"
#include "profiles/planners/megatron/plan.h"
#include "tests/profiles/planners/megatron_support.h"
#include "tests/profiles/programs.h"

namespace ghostrank {
namespace {

using test::MegatronJob;

// Llama-3 8B.
constexpr std::uint64_t kLlamaLayers = 32, kLlamaHidden = 4096, kLlamaFfn = 14336,
                        kLlamaKeys = 1024, kLlamaSequence = 8192;
constexpr std::uint64_t kLlamaLinear = kLlamaHidden * (2 * kLlamaHidden + 2 * kLlamaKeys) +
                                       3 * kLlamaHidden * kLlamaFfn;  // weights of a layer
// Products of a layer with scales: four, and attention's core counts as three.
constexpr std::uint64_t kLlamaProducts = 7;

// Calls of a step by their elements, of one kind of group and type.
using Calls = std::map<std::uint64_t, std::uint64_t>;
Calls calls_of(const Workload& workload, const Program& program, const std::string& group,
               Func func, DataType type) {
  Calls out;
  for (const OpList& stream : program.streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::collective && workload.group_names[op.group] == group &&
          op.func == func && op.dtype == type)
        ++out[op.count];
  return out;
}

std::uint64_t bytes_of(const Calls& calls, DataType type) {
  std::uint64_t sum = 0;
  for (const auto& [count, times] : calls) sum += count * times * bytes_of(type);
  return sum;
}

// ---- Traffic ----

class Fp8Traffic : public testing::TestWithParam<std::tuple<int, int, const char*>> {};

// A byte for each element that sequence parallelism gathers for a product: forward twice a layer,
// backward four times. The embedding and the head gather bf16, and nothing else changes.
TEST_P(Fp8Traffic, GathersOperandsInBytes) {
  const auto [tp, pp, recompute] = GetParam();
  MegatronJob job{.tp = tp,
                  .pp = pp,
                  .dp = 2,
                  .micro_batches = 3,
                  .sequence = true,
                  .sharded = true,
                  .recompute = recompute};
  const Workload before = job.workload();
  job.parameters = "fp8";
  const Workload after = job.workload();
  EXPECT_EQ(test::unmatched_transfers(after), "");
  const std::uint64_t again = std::string(recompute) == "full" ? 1 : 0,
                      elements = kLlamaSequence * kLlamaHidden / static_cast<std::uint64_t>(tp);
  std::uint64_t in_bytes = 0, others = 0, all = 0;
  for (std::size_t role = 0; role < after.roles.size(); ++role) {
    const Program &one = before.roles[role].iterations.back(),
                  &other = after.roles[role].iterations.back();
    EXPECT_TRUE(test::streams_end(other));
    for (const char* group : {"dp", "pp.forward", "pp.backward", "world"}) {
      test::CallSums a = test::sums_of(one, before, group), b = test::sums_of(other, after, group);
      EXPECT_EQ(a.bytes, b.bytes) << group;
      EXPECT_EQ(a.sent, b.sent) << group;
    }
    in_bytes +=
        bytes_of(calls_of(after, other, "tp", Func::all_gather, DataType::uint8), DataType::uint8);
    others += bytes_of(calls_of(after, other, "tp", Func::all_gather, DataType::bfloat16),
                       DataType::bfloat16);
    test::CallSums was = test::sums_of(one, before, "tp"), is = test::sums_of(other, after, "tp");
    all += was.bytes[Func::all_gather];
    EXPECT_EQ(was.bytes[Func::reduce_scatter], is.bytes[Func::reduce_scatter]);
    EXPECT_EQ(was.bytes[Func::all_reduce], is.bytes[Func::all_reduce]);
  }
  EXPECT_EQ(in_bytes, 3 * (6 + 2 * again) * kLlamaLayers * elements);
  EXPECT_EQ(others, 3 * 3 * elements * 2);
  EXPECT_EQ(all, 2 * in_bytes + others);
}

INSTANTIATE_TEST_SUITE_P(Sweep, Fp8Traffic,
                         testing::Combine(testing::Values(2, 4), testing::Values(1, 2),
                                          testing::Values("none", "selective", "full")));

// One call after every forward and backward of a part, with the elements of all parts of the rank.
TEST(Fp8Maxima, AreReducedAfterEveryPass) {
  for (const auto& [pp, more, chunks] : {std::tuple(1, "", 1),
                                         {4, "", 1},
                                         {4, ", schedule: interleaved, interleave: 2", 2},
                                         {4, ", schedule: zbv", 2}}) {
    MegatronJob job{
        .tp = 2, .pp = pp, .dp = 3, .micro_batches = 4, .more = more, .parameters = "fp8"};
    const Workload workload = job.workload();
    const std::uint64_t products = kLlamaLayers / static_cast<std::uint64_t>(pp) * kLlamaProducts,
                        passes = 4 * static_cast<std::uint64_t>(chunks);
    for (const Role& role : workload.roles)
      EXPECT_EQ(
          calls_of(workload, role.iterations.back(), "amax", Func::all_reduce, DataType::float32),
          (Calls{{3 * products, passes}, {2 * products, passes}}))
          << pp << more;
    for (const Group& group : workload.groups)
      if (workload.group_names[group.kind] == "amax") {
        EXPECT_EQ(group.members.size(), 6U);
      }
  }
}

TEST(Fp8Maxima, AreAmongReplicasOrNot) {
  MegatronJob job{.tp = 2, .pp = 2, .cp = 2, .dp = 3, .micro_batches = 2, .parameters = "fp8"};
  const auto members = [&] {
    const Workload workload = job.workload();
    std::size_t most = 0;
    for (const Group& group : workload.groups)
      if (workload.group_names[group.kind] == "amax") most = std::max(most, group.members.size());
    return most;
  };
  EXPECT_EQ(members(), 12U);
  job.parameters = "fp8, tp_only_amax_red: true";
  EXPECT_EQ(members(), 4U);
  job.tp = job.cp = 1;
  EXPECT_EQ(members(), 0U);  // nobody to reduce with
}

// A layer that is computed again reduces once more, and each of its four linear layers backward.
TEST(Fp8Maxima, AreReducedByWhatIsComputedAgain) {
  MegatronJob job{.tp = 2, .dp = 1, .micro_batches = 3, .recompute = "full", .parameters = "fp8"};
  const Workload workload = job.workload();
  EXPECT_EQ(calls_of(workload, workload.roles[0].iterations.back(), "amax", Func::all_reduce,
                     DataType::float32),
            (Calls{{3 * kLlamaLayers * kLlamaProducts, 3 * (1 + kLlamaLayers)},
                   {2 * kLlamaLayers * kLlamaProducts, 3 * 4 * kLlamaLayers}}));
}

// DeepSeek-V3, of a dense layer and two with 4 of 16 experts on a rank: latent attention has five
// linear layers, experts two each, shared experts two; the module of multi-token prediction is a
// layer and a projection, and each of the two reduces on its own.
TEST(Fp8Maxima, OfLatentAttentionExpertsAndPredictions) {
  MegatronJob job{.model =
                      "{base: deepseek-v3, layers: 3, mtp_layers: 1, experts: {count: 16, "
                      "top_k: 4, first_dense: 1, groups: 1, group_top_k: 1}}",
                  .dp = 4,
                  .micro_batches = 2,
                  .more = ", ep: 4",
                  .parameters = "fp8"};
  constexpr std::uint64_t kCore = 3, kDense = 5 + kCore + 2, kSparse = 5 + kCore + 8 + 2;
  constexpr std::uint64_t kAll = kDense + 2 * kSparse + kSparse + 1;
  const auto calls = [&] {
    const Workload workload = job.workload();
    return calls_of(workload, workload.roles[0].iterations.back(), "amax", Func::all_reduce,
                    DataType::float32);
  };
  EXPECT_EQ(calls(), (Calls{{3 * kAll, 2 * 3}, {2 * kAll, 2 * 3}}));
  // Computed again: of the linear layers backward all but the experts' second; the projection and
  // its layer as one.
  job.recompute = "full";
  EXPECT_EQ(calls(), (Calls{{3 * kAll, 2 * (1 + 3 + 1 + 1)},
                            {2 * kAll, 2 * ((5 + 2) + 3 * (5 + 1 + 2) + 1)}}));
}

// The largest element of each tensor before its gather, among those who gather it.
TEST(Fp8Maxima, OfTensorwiseScalingAreSingleElements) {
  MegatronJob job{.tp = 4,
                  .dp = 2,
                  .micro_batches = 3,
                  .sequence = true,
                  .parameters = "fp8, fp8_recipe: tensorwise"};
  const auto ones = [&](std::uint64_t factor) {
    const Workload workload = job.workload();
    const Program& program = workload.roles[0].iterations.back();
    const Calls calls = calls_of(workload, program, "tp", Func::all_reduce, DataType::float32);
    EXPECT_EQ(calls.at(1), 3 * factor * kLlamaLayers);
    EXPECT_EQ(calls_of(workload, program, "amax", Func::all_reduce, DataType::float32), Calls{});
    EXPECT_EQ(calls_of(workload, program, "tp", Func::all_gather, DataType::uint8).begin()->second,
              3 * (factor + 2) * kLlamaLayers);
  };
  ones(4);
  job.recompute = "full";
  ones(6);
  job.recompute = "none";
  job.more = ", tp_comm_overlap: true";
  job.per_node = 4;
  const Workload workload = job.workload();
  EXPECT_EQ(calls_of(workload, workload.roles[0].iterations.back(), "tp", Func::all_reduce,
                     DataType::float32)
                .at(1),
            3 * 4 * kLlamaLayers);
}

// Rings in place of gathers carry bytes, too.
TEST(Fp8Rings, OverlappedGathersSendBytes) {
  MegatronJob job{.tp = 4,
                  .dp = 1,
                  .micro_batches = 2,
                  .sequence = true,
                  .more = ", tp_comm_overlap: true",
                  .per_node = 4};
  const auto sent = [&] {
    const Workload workload = job.workload();
    return test::sums_of(workload.roles[0].iterations.back(), workload, "tp").sent;
  };
  const std::uint64_t before = sent();
  job.parameters = "fp8";
  EXPECT_EQ(before, 2 * sent());
  EXPECT_EQ(sent(), 2 * 4 * kLlamaLayers * 3 * kLlamaSequence * kLlamaHidden / 4);
}

// ---- Memory ----

// Two fp8 copies of each weight of a linear layer, on Blackwell one; inputs of linear layers in
// bytes, and the result of attention's core besides.
TEST(Fp8Memory, HasWeightsOfAStepAndInputsInBytes) {
  MegatronJob job{.tp = 2, .dp = 1};
  const auto memory = [&] {
    const JobSpec spec = job.spec();
    return megatron_memory(megatron_plan(spec));
  };
  const GpuMemory before = memory();
  job.parameters = "fp8";
  const GpuMemory after = memory();
  const double weights = kLlamaLayers * kLlamaLinear / 2., tokens = kLlamaSequence,
               layers = kLlamaLayers;
  EXPECT_EQ(after.weights, before.weights + 2 * weights);
  EXPECT_EQ(after.gradients, before.gradients);
  EXPECT_EQ(after.optimizer, before.optimizer);
  EXPECT_EQ(after.activations, before.activations + layers * tokens *
                                                        (-2. * kLlamaHidden + kLlamaHidden / 2. -
                                                         static_cast<double>(kLlamaFfn) / 2));
  job.device = "{base: b200-sxm, memory_bytes: 0}";
  EXPECT_EQ(memory().weights, before.weights + weights);
  EXPECT_EQ(memory().activations, after.activations);
}

TEST(Fp8Memory, OfExpertsHasTheRoutersInput) {
  MegatronJob job{.model = "mixtral-8x7b", .dp = 1};
  const auto layer = [&](const char* parameters) {
    job.parameters = parameters;
    const JobSpec spec = job.spec();
    return megatron_layer_activations(megatron_plan(spec), true);
  };
  const JobSpec spec = job.spec();
  const Transformer& m = *spec.model->transformer;
  const double tokens = static_cast<double>(m.sequence), rows = 2 * tokens,
               h = static_cast<double>(m.hidden), ffn = static_cast<double>(m.experts.ffn);
  // Attention's norm gives bytes, its result is there twice; arriving rows and inner ones in bytes.
  EXPECT_EQ(layer("fp8") - layer("bf16"), -tokens * h + tokens * h - rows * h - rows * ffn);
}

// ---- Times ----

constexpr const char* kByFlops =
    "{peak_tflops: {bf16: 100, fp8: 300}, efficiency: 0.5, memory_GBps: 1000}";

// Linear layers at the peak of fp8, the core and the head at that of bf16; casts take the time of
// their bytes, those of weights once a step.
TEST(Fp8Times, ByFlopsAreThoseOfProductsAndCasts) {
  MegatronJob job{.dp = 1, .device = kByFlops, .parameters = "fp8"};
  const JobSpec spec = job.spec();
  const LayerTimes times = megatron_layer_times(megatron_plan(spec));
  const double t = kLlamaSequence, h = kLlamaHidden, f = kLlamaFfn;
  const auto seconds = [](const GpuWork& work) { return static_cast<double>(work.time) * 1e-12; };
  const double product = 2 * t * h * 2 * f / 150e12;                           // gate and up
  EXPECT_NEAR(seconds(times.fc1.forward), product + 2 * t * h / 1e12, 1e-11);  // transposed
  EXPECT_NEAR(seconds(times.fc1.input), product + 4 * t * 2 * f / 1e12, 1e-11);
  EXPECT_NEAR(seconds(times.fc1.weight), product, 1e-11);
  EXPECT_NEAR(seconds(times.fc1.cast), 4 * h * 2 * f / 1e12, 1e-11);
  EXPECT_NEAR(seconds(times.fc2.forward), product / 2 + 4 * t * f / 1e12, 1e-11);
  EXPECT_NEAR(seconds(times.fc2.input), product / 2 + 4 * t * h / 1e12, 1e-11);
  EXPECT_NEAR(seconds(times.core.forward), 4 * t * t * h / 50e12, 1e-11);
  EXPECT_NEAR(seconds(megatron_head_times(megatron_plan(spec)).forward), 2 * t * h * 128256 / 50e12,
              1e-11);
}

// Picoseconds that the forwards of a stage's micro-batches compute.
std::map<std::string, Picoseconds> forwards_of(const Program& program) {
  std::map<std::string, Picoseconds> time;
  for (std::size_t i = 0; i < program.streams[0].size(); ++i) {
    const Op& op = program.streams[0][i];
    const std::string label = label_of(program, 0, i);
    if (op.kind == Op::Kind::compute && label.starts_with("F"))
      time[label.substr(0, label.find(' '))] += op.duration;
  }
  return time;
}

// Mixtral has 8 experts of three matrices, here 4 on a rank.
TEST(Fp8Times, OfAStepCastEachWeightOnce) {
  constexpr double kAttention = kLlamaHidden * (2 * kLlamaHidden + 2 * kLlamaKeys),
                   kMatrices = 3 * kLlamaHidden * kLlamaFfn;
  for (const auto& [model, more, weights] :
       {std::tuple("llama3-8b", "", kAttention + kMatrices),
        {"mixtral-8x7b", ", ep: 2", kAttention + 4 * kMatrices}})
    for (const bool sharded : {false, true}) {
      MegatronJob job{.model = model,
                      .pp = 2,
                      .dp = 2,
                      .micro_batches = 5,
                      .sharded = sharded,
                      .more = more,
                      .device = kByFlops,
                      .parameters = "fp8"};
      for (const Role& role : job.workload().roles) {
        auto time = forwards_of(role.iterations.back());
        ASSERT_EQ(time.size(), 5U);
        EXPECT_NEAR(static_cast<double>(time["F0"] - time["F1"]) * 1e-12,
                    kLlamaLayers / 2. * weights * 4 / 1e12, 1e-9);
        EXPECT_EQ(time["F1"], time["F4"]);
      }
      job.parameters = "bf16";
      for (const Role& role : job.workload().roles) {
        auto time = forwards_of(role.iterations.back());
        EXPECT_EQ(time["F0"], time["F1"]);
      }
    }
}

// A calibration of bf16, or of any type, says nothing of fp8, unless it says that it does.
TEST(Fp8Times, AreAssumedUnlessTheDeviceIsCalibratedForThem) {
  MegatronJob job{.dp = 1};
  const auto calibration = [&](const std::string& device, const char* parameters) {
    job.device = "{base: h100-sxm, memory_bytes: 0" + device + "}";
    job.parameters = parameters;
    return compute_calibration(job.spec());
  };
  EXPECT_EQ(calibration("", "bf16"), Calibration::fitted);
  EXPECT_EQ(calibration("", "fp8"), Calibration::assumed);
  EXPECT_EQ(calibration(", calibrated_type: any", "fp8"), Calibration::assumed);
  EXPECT_EQ(calibration(", calibrated_type: fp8", "fp8"), Calibration::fitted);
  const auto with_products = [&](const std::string& type) {
    return ", calibration: measured, calibrated_type: any, kernels: {products: \"type,operands,m,n,"
           "k,us\\n" +
           type + ",forward,4096,4096,4096,300\\n\"}";
  };
  EXPECT_EQ(calibration(with_products("bf16"), "fp8"), Calibration::assumed);
  EXPECT_EQ(calibration(with_products("fp8"), "fp8"), Calibration::measured);
}

// ---- Errors ----

std::string error_of(const std::string& job, const std::vector<std::string>& settings = {}) {
  return test::load_error("schema: ghostrank/job/1\n" + job, settings);
}

TEST(Fp8Errors, SayWhereAndWhatToDo) {
  const std::string model = "model: gpt3-small\n", cluster = "cluster: {nodes: 1}\n",
                    fp8 = "precision: {parameters: fp8}\n",
                    megatron = "parallel: {framework: megatron}\n";
  EXPECT_EQ(error_of(model + "device: a100-sxm-80gb\n" + fp8 + cluster + megatron),
            "job.yaml:4:25: the device 'a100-sxm-80gb' has no peak_tflops for fp8; choose another "
            "precision.parameters");
  for (const std::string framework : {"ddp", "fsdp", "torchtitan", "zero3", "horovod"})
    EXPECT_EQ(error_of(model + "device: h100-sxm\n" + fp8 + cluster +
                       "parallel: {framework: " + framework + "}\n"),
              "job.yaml:4:25: precision.parameters: fp8 is played for linear layers of Megatron, "
              "not for framework " +
                  framework + "; use parallel.framework: megatron, or bf16");
  EXPECT_EQ(error_of("model: {base: gpt3-small, ffn: 3080}\ndevice: h100-sxm\n" + fp8 + cluster +
                     megatron),
            "job.yaml:4:25: products in fp8 need an ffn in multiples of 16, and a rank has 3080; "
            "use precision.parameters=bf16, another parallel.tp or other sizes");
  const std::string job = model + "device: h100-sxm\n" + fp8 + cluster + megatron;
  EXPECT_EQ(
      error_of(job, {"precision.fp8_recipe=mxfp8"}),
      "-s 'precision.fp8_recipe=mxfp8': precision.fp8_recipe: mxfp8 is not available yet; use "
      "delayed or tensorwise");
  EXPECT_EQ(error_of(job, {"precision.fp8_recipe=tensorwise"}), "");
  // Rows are a leading dimension of the weight's gradient.
  const std::string sizes = "; use precision.parameters=bf16, another parallel.tp or other sizes";
  EXPECT_EQ(error_of(job, {"model.sequence=2008"}),
            "job.yaml:4:25: products in fp8 need tokens of a micro-batch in multiples of 16, and a "
            "rank has 2008" +
                sizes);
  EXPECT_EQ(error_of(job, {"device.compute_capability=8.6"}),
            "job.yaml:4:25: fp8 needs a GPU of compute capability 8.9 or more, and the device's "
            "compute_capability is 8.6; use precision.parameters=bf16");
  EXPECT_EQ(error_of(model + "device: {name: x, peak_tflops: {fp8: 100}, memory_GBps: 1000}\n" +
                     fp8 + cluster + megatron),
            "job.yaml:4:25: the device 'x' has no peak_tflops for bf16, in which all but linear "
            "layers is; choose another precision.parameters");
}

}  // namespace
}  // namespace ghostrank
