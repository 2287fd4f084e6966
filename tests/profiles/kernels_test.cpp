// Kernels of a GPU, the layers made of them, programs with slow launches, times of pipelines.
#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "profiles/device/compute.h"
#include "profiles/device/device.h"
#include "profiles/device/kernels/of_layer.h"
#include "profiles/planners/pipeline/pipeline.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::load_error;
using test::load_text;

constexpr double kPeakTflops = 100;

// Ten multiprocessors of 10 TFLOP/s each, memory of 10 TB/s; a kernel starts in no time.
DeviceProfile ten() {
  DeviceProfile device;
  device.multiprocessors = 10;
  device.memory_GBps = 10'000;
  device.peak_tflops = {{"bfloat16", kPeakTflops}};
  return device;
}

KernelModel model_of(const DeviceProfile& device) { return {device, DataType::bfloat16}; }

TEST(Kernels, AProductTakesWholeWavesOfTiles) {
  const KernelModel device = model_of(ten());
  const auto time = [&](double m) { return device.product(m, 128, 4096, 1, 2).seconds; };
  // Ten tiles of 256 x 128 fill the GPU once; one more tile takes another wave.
  const double wave = 2. * 256 * 128 * (4096 + 256) / 10e12;
  EXPECT_NEAR(time(2560), wave, wave * 1e-9);
  EXPECT_GT(time(2568), 1.4 * wave);
  EXPECT_NEAR(time(5120), 2 * wave, wave * 1e-9);
  // A batch of products shares the waves.
  EXPECT_NEAR(device.product(256, 128, 4096, 10, 2).seconds, wave, wave * 1e-9);
}

TEST(Kernels, AProductNeverTakesLessThanItsBytes) {
  DeviceProfile slow = ten();
  slow.memory_GBps = 10;
  const KernelModel device = model_of(slow);
  const double m = 64, n = 4096, k = 8;
  const double bytes = 2 * (m * k + k * n + m * n);
  EXPECT_NEAR(device.product(m, n, k, 1, 2).seconds, bytes / 10e9, 1e-9);
  EXPECT_NEAR(device.product(m, n, k, 1, 4).seconds, 2 * bytes / 10e9, 1e-9);
}

TEST(Kernels, SizesThatAreNoMultipleOfEightAreSlower) {
  const KernelModel device = model_of(ten());
  EXPECT_GT(device.product(1024, 50257, 1024, 1, 2).seconds,
            2 * device.product(1024, 50304, 1024, 1, 2).seconds);
}

TEST(Kernels, SharesAndStartsComeFromTheDevice) {
  DeviceProfile slow = ten();
  slow.kernels = {.5, .25, 7, 0};
  const KernelModel fast = model_of(ten()), device = model_of(slow);
  EXPECT_NEAR(device.memory(1e9).seconds, 4 * fast.memory(1e9).seconds + 7e-6, 1e-12);
  EXPECT_NEAR(device.product(4096, 4096, 4096, 1, 2).seconds,
              2 * fast.product(4096, 4096, 4096, 1, 2).seconds + 7e-6, 1e-12);
}

LayerShape gpt_layer() {
  LayerShape shape;
  shape.tokens = shape.own_tokens = 2 * 1024;
  shape.hidden = shape.query = shape.key = 1024;
  shape.ffn = 4096;
  shape.heads = 16;
  shape.head_width = 64;
  shape.queries = shape.keys = 1024;
  shape.bias = shape.dropout = true;
  return shape;
}

Kernels sum_of(const LayerKernels& layer, Kernels KernelTimes::*way) {
  return layer.qkv.*way + layer.core.*way + layer.projection.*way + layer.fc1.*way + layer.fc2.*way;
}

TEST(LayerKernels, CountTheProductsOfALayer) {
  DeviceProfile endless = ten();  // no bytes to wait for, no waves lost
  endless.multiprocessors = 1;
  endless.memory_GBps = 1e9;
  const LayerKernels layer = layer_kernels(model_of(endless), gpt_layer());
  const double s = 1024, h = 1024, tokens = 2 * s;
  const double flops = 24 * tokens * h * h + 4 * tokens * s * h;
  const double forward = sum_of(layer, &KernelTimes::forward).seconds;
  // The fill adds a quarter at k = 1024, and more to the scores, whose k is the width of a head.
  EXPECT_GT(forward, flops / (kPeakTflops * 1e12));
  EXPECT_LT(forward, 2 * flops / (kPeakTflops * 1e12));
  const double backward =
      sum_of(layer, &KernelTimes::input).seconds + sum_of(layer, &KernelTimes::weight).seconds;
  EXPECT_NEAR(backward / forward, 2, .3);
}

// Experts of one rank that get as many rows as a dense layer of their width has tokens.
ExpertShape experts_like(const LayerShape& layer, double here) {
  const double tokens = static_cast<double>(layer.tokens);
  return {.count = 8,
          .top_k = 2,
          .here = here,
          .rows = tokens,
          .routed = tokens / 2,
          .ffn = static_cast<double>(layer.ffn)};
}

TEST(ExpertKernels, MultiplyAsADenseLayerOfTheirRowsDoes) {
  DeviceProfile endless = ten();
  endless.memory_GBps = 1e9;
  const KernelModel device = model_of(endless);
  const LayerShape shape = gpt_layer();
  const LayerKernels dense = layer_kernels(device, shape);
  const auto experts = [&](double here) {
    return expert_kernels(device, shape, experts_like(shape, here)).experts;
  };
  for (const auto way : {&KernelTimes::forward, &KernelTimes::input, &KernelTimes::weight}) {
    const double products = (dense.fc1.*way).seconds + (dense.fc2.*way).seconds;
    EXPECT_NEAR((experts(1).*way).seconds, products, 1e-3 * products);
    // Two have half of the rows each; 64 have 32, which do not fill the tiles.
    EXPECT_GT((experts(64).*way).seconds, 1.3 * (experts(2).*way).seconds);
  }
  EXPECT_GT(experts(64).forward.launches, experts(1).forward.launches);
}

TEST(ExpertKernels, MoveARowForEveryChoiceOfAToken) {
  DeviceProfile slow = ten();  // 10 GB/s
  slow.peak_tflops = {{"bfloat16", 1e6}};
  slow.memory_GBps = 10;
  LayerShape shape = gpt_layer();
  shape.bias = shape.dropout = false;
  const auto bytes = [&](double top_k) {
    ExpertShape experts = experts_like(shape, 1);
    experts.top_k = top_k;
    const ExpertKernels kernels = expert_kernels(model_of(slow), shape, experts);
    return std::pair{kernels.router.forward.seconds * 10e9, kernels.combine.forward.seconds * 10e9};
  };
  const double one = 1024. * 1024 * 2;  // of all routed tokens: half of 2,048, 1,024 wide
  EXPECT_NEAR(bytes(3).first - bytes(2).first, 2 * one, 1);  // read and written
  EXPECT_NEAR(bytes(3).second - bytes(2).second, one, 1);    // read
  EXPECT_NEAR(bytes(2).second, 3 * one + 3 * 2 * one, 1);    // and the sum, and the residual
}

// Layers with experts on a device with kernels take their time, not that of FLOPs.
TEST(ExpertKernels, AreThoseOfMegatronsPlans) {
  const auto seconds = [](const char* efficiency) {
    const LoadedJob job =
        load_text(std::string("schema: ghostrank/job/1\nmodel: mixtral-8x7b\n") +
                  "device: {base: h100-sxm, efficiency: " + efficiency +
                  "}\nprecision: {parameters: bf16}\ncluster: {nodes: 4}\n"
                  "parallel: {framework: megatron, tp: 2, ep: 8, sequence_parallel: true}\n"
                  "fabric: {kind: virtual}\n");
    Picoseconds all = 0;
    const Workload workload = plan_workload(job.spec);
    for (const auto& stream : workload.roles.at(0).iterations.at(0).streams)
      for (const Op& op : stream)
        if (op.kind == Op::Kind::compute) all += op.duration;
    return all;
  };
  EXPECT_EQ(seconds("0.4"), seconds("0.2"));
}

// On a device whose fp8 products are twice as fast and whose memory is endless, linear layers take
// half of their time and all else as long. The second device has so little memory bandwidth that
// bytes are all that counts.
TEST(LayerKernels, MultiplyInFp8InLinearLayersAlone) {
  DeviceProfile endless = ten();
  endless.peak_tflops["float8"] = 2 * kPeakTflops;
  endless.memory_GBps = 1e9;
  LayerShape shape = gpt_layer();
  const LayerKernels before = layer_kernels(model_of(endless), shape);
  shape.fp8 = Fp8Scaling{};
  const LayerKernels after = layer_kernels(model_of(endless), shape);
  for (const auto way : {&KernelTimes::forward, &KernelTimes::input, &KernelTimes::weight}) {
    for (const auto part :
         {&LayerKernels::qkv, &LayerKernels::projection, &LayerKernels::fc1, &LayerKernels::fc2})
      EXPECT_NEAR((after.*part.*way).seconds / (before.*part.*way).seconds, .5, 1e-3);
    EXPECT_EQ((after.core.*way).seconds, (before.core.*way).seconds);
  }
  EXPECT_EQ(head_kernels(model_of(endless), shape, 51200).forward.seconds,
            head_kernels(model_of(endless), gpt_layer(), 51200).forward.seconds);
}

TEST(LayerKernels, MoveTheBytesOfFp8) {
  DeviceProfile slow = ten();  // 10 GB/s
  slow.peak_tflops = {{"bfloat16", 1e6}, {"float8", 1e6}};
  slow.memory_GBps = 10;
  LayerShape shape = gpt_layer();
  shape.bias = shape.dropout = false;
  const double t = 2048, h = 1024, f = 4096;
  const auto bytes = [&](const Kernels& kernels) { return kernels.seconds * 10e9; };
  for (const bool gathers : {false, true})
    for (const bool transposes : {false, true})
      for (const bool current : {false, true}) {
        SCOPED_TRACE(testing::Message() << gathers << transposes << current);
        shape.own_tokens = gathers ? 512 : 2048;
        shape.fp8 = Fp8Scaling{transposes, current};
        const double own = gathers ? 512 : t, copies = transposes ? 2 : 1,
                     here = gathers ? 1 : copies, max = current ? 2 : 0;
        const LayerKernels layer = layer_kernels(model_of(slow), shape);
        // fc1: the norm reads 2 bytes and writes 1, or 2 and a cast reads them.
        const double product = t * h + h * f + 2 * t * f;
        const double norm = current ? (4 + 2 + 2 + here) * own * h
                                    : (3 + (gathers || !transposes ? 0 : 2)) * own * h;
        const double activation = 4 * t * f;
        EXPECT_NEAR(bytes(layer.fc1.forward), product + norm + activation, 10);
        EXPECT_NEAR(
            bytes(layer.fc1.input),
            t * f + h * f + 2 * t * h + (max + 2 + copies) * t * f + 6 * t * f + 12 * own * h, 10);
        EXPECT_NEAR(bytes(layer.fc1.weight),
                    t * f + t * h + 2 * f * h + (2 + 8) * f * h + 4 * own * h +
                        (gathers && transposes ? 2 * t * h : 0),
                    10);
        EXPECT_NEAR(bytes(layer.fc1.cast), (max + 2 + copies) * h * f, 10);
        // fc2: its input is cast behind the activation, the gradient before the gather.
        EXPECT_NEAR(bytes(layer.fc2.forward),
                    t * f + h * f + 2 * t * h + (max + 2 + copies) * t * f + 6 * own * h, 10);
        EXPECT_NEAR(bytes(layer.fc2.input), t * h + h * f + 2 * t * f + (max + 2 + here) * own * h,
                    10);
        EXPECT_NEAR(
            bytes(layer.fc2.weight),
            t * f + t * h + 2 * f * h + (2 + 8) * f * h + (gathers && transposes ? 2 * t * h : 0),
            10);
      }
}

// A cast sums a bias's gradient, but not before a gather or beside the search of the largest
// element.
TEST(LayerKernels, CastsSumTheGradientsOfBiases) {
  DeviceProfile device = ten();
  device.peak_tflops["float8"] = 2 * kPeakTflops;
  const auto launches = [&](bool bias, Fp8Scaling scaling, std::uint64_t own_tokens) {
    LayerShape shape = gpt_layer();
    shape.bias = bias;
    shape.fp8 = scaling;
    shape.own_tokens = own_tokens;
    const LayerKernels layer = layer_kernels(model_of(device), shape);
    return std::pair(layer.fc1.weight.launches, layer.fc2.weight.launches);
  };
  const auto more = [&](Fp8Scaling scaling, std::uint64_t own_tokens) {
    const auto with = launches(true, scaling, own_tokens),
               without = launches(false, scaling, own_tokens);
    return std::pair(with.first - without.first, with.second - without.second);
  };
  EXPECT_EQ(more({true, false}, 2048), std::pair(0, 0));
  EXPECT_EQ(more({true, false}, 512), std::pair(0, 1));
  EXPECT_EQ(more({true, true}, 2048), std::pair(1, 1));
}

TEST(LayerKernels, SoftmaxIsFusedForBatchesOfFourMatrices) {
  const KernelModel device = model_of(ten());
  LayerShape shape = gpt_layer();
  const int fused = layer_kernels(device, shape).core.forward.launches;
  shape.tokens = shape.own_tokens = 1024;
  shape.heads = 2;
  EXPECT_EQ(layer_kernels(device, shape).core.forward.launches, fused + 4);
  shape.fused_attention = true;
  EXPECT_EQ(layer_kernels(device, shape).core.forward.launches, 1);
}

TEST(LayerKernels, FusedAttentionSparesMemoryAndTheMaskedHalf) {
  const KernelModel device = model_of(ten());
  LayerShape shape = gpt_layer();
  const Kernels unfused = layer_kernels(device, shape).core.forward;
  shape.fused_attention = true;
  EXPECT_LT(layer_kernels(device, shape).core.forward.seconds, unfused.seconds / 2);
}

TEST(LayerKernels, SequenceParallelismDividesNormsOnly) {
  const KernelModel device = model_of(ten());
  LayerShape shape = gpt_layer();
  const LayerKernels whole = layer_kernels(device, shape);
  shape.own_tokens /= 8;
  const LayerKernels part = layer_kernels(device, shape);
  EXPECT_LT(part.qkv.forward.seconds, whole.qkv.forward.seconds);
  EXPECT_EQ(part.core.forward.seconds, whole.core.forward.seconds);
}

TEST(LayerKernels, AProductThatAddsGradientsSavesAKernelUnlessItWaitsForTheBuffer) {
  const KernelModel device = model_of(ten());
  LayerShape shape = gpt_layer();
  const Kernels apart = layer_kernels(device, shape).fc1.weight;
  shape.fused_accumulation = true;
  const Kernels fused = layer_kernels(device, shape).fc1.weight;
  EXPECT_EQ(fused.launches, apart.launches - 1);
  const double buffer = (2 + 2 * 4) * 1024. * 4096;
  EXPECT_NEAR(apart.seconds - fused.seconds, device.memory(buffer).seconds, 1e-12);
  // With few tokens and a slow memory the product's time is that of its buffer.
  DeviceProfile slow = ten();
  slow.memory_GBps = 100;
  const KernelModel waits = model_of(slow);
  shape.tokens = shape.own_tokens = 16;
  shape.queries = shape.keys = 16;
  shape.bias = false;
  const Kernels moved = layer_kernels(waits, shape).fc2.weight;
  EXPECT_NEAR(moved.seconds, waits.memory(2 * 16 * (1024. + 4096) + 8 * 1024. * 4096).seconds,
              1e-12);
}

std::string small_gpt(const std::string& device, const std::string& more = "") {
  return "schema: ghostrank/job/1\nmodel: gpt2\ndevice: " + device +
         "\nprecision: {parameters: bf16, gradients: bf16}\n"
         "cluster: {nodes: 1, gpus_per_node: 4, nics_per_node: 1}\n"
         "parallel: {framework: megatron, pp: 2, tp: 2, global_batch: 8" +
         more + "}\n";
}

const std::vector<std::string>& streams_of(const Workload& workload) {
  return workload.roles.at(0).iterations.at(0).stream_names;
}

TEST(Launches, AreAStreamOnlyWhereTheHostHoldsUpTheGpu) {
  const auto has_host = [](const std::string& host_us, const std::string& more = "") {
    const std::string device = "{base: a100-sxm-80gb, kernels: {host_us: " + host_us + "}}";
    const auto streams = streams_of(plan_workload(load_text(small_gpt(device, more)).spec));
    return std::find(streams.begin(), streams.end(), "host") != streams.end();
  };
  EXPECT_TRUE(has_host("60"));
  EXPECT_FALSE(has_host("0.001"));
  EXPECT_TRUE(has_host("0.001", ", blocking_wait: true"));
  EXPECT_FALSE(has_host("0", ", blocking_wait: true"));
}

TEST(Calibration, IsThatOfTheDeviceOnlyWhereItsKernelsAreUsed) {
  const auto of = [](const std::string& text) { return compute_calibration(load_text(text).spec); };
  EXPECT_EQ(of(small_gpt("a100-sxm-80gb")), Calibration::fitted);
  EXPECT_EQ(of(small_gpt("h200-sxm")), Calibration::assumed);
  EXPECT_EQ(of(small_gpt("{base: a100-sxm-80gb, multiprocessors: 0}")), Calibration::assumed);
  const std::string ddp = "schema: ghostrank/job/1\ncluster: {nodes: 2}\n";
  EXPECT_EQ(of(ddp + "model: resnet50\ndevice: a100-sxm-80gb\n"), Calibration::assumed);
  EXPECT_EQ(of(ddp + "model: {kind: layers, layers: [{parameters: [8], forward_us: 1}]}\n"),
            Calibration::measured);
}

TEST(Calibration, HoldsForTheNumbersThatWereFitted) {
  const auto device = [](const std::string& text) {
    return load_text(small_gpt(text)).spec.device;
  };
  for (const char* other : {"kernels: {matmul: 0.3}", "memory_GBps: 500", "multiprocessors: 40",
                            "peak_tflops: {bf16: 500}"}) {
    const DeviceProfile changed = device("{base: h100-sxm, " + std::string(other) + "}");
    EXPECT_EQ(changed.calibration, Calibration::assumed) << other;
    EXPECT_EQ(changed.step_time_error, 0) << other;
    EXPECT_EQ(changed.step_time_error_others, 0) << other;
  }
  for (const char* other : {"memory_bytes: 0", "name: ours", "efficiency: 0.5"}) {
    const DeviceProfile same = device("{base: h100-sxm, " + std::string(other) + "}");
    EXPECT_EQ(same.calibration, Calibration::fitted) << other;
    EXPECT_EQ(same.step_time_error, 0.06) << other;
    EXPECT_EQ(same.step_time_error_others, 0.1) << other;
  }
  const DeviceProfile again =
      device("{base: h100-sxm, kernels: {matmul: 0.3}, calibration: fitted}");
  EXPECT_EQ(again.calibration, Calibration::fitted);
  EXPECT_EQ(again.step_time_error, 0);
}

TEST(Calibration, HoldsForTypesOfTheSamePeak) {
  const auto of = [](const std::string& type) {
    std::string job = small_gpt("h100-sxm");
    job.replace(job.find("{parameters: bf16"), 17, "{parameters: " + type);
    return compute_calibration(load_text(job).spec);
  };
  EXPECT_EQ(of("bf16"), Calibration::fitted);
  EXPECT_EQ(of("fp16"), Calibration::fitted);
  EXPECT_EQ(of("fp32"), Calibration::assumed);
}

TEST(Calibration, CountsCompressionWhereItsCostsAreOfTheDevice) {
  const auto of = [](const std::string& device, const std::string& compression) {
    return compute_calibration(load_text("model: gpt2\ndevice: " + device +
                                         "\nprecision: {parameters: bf16, gradients: bf16}\n"
                                         "cluster: {nodes: 2}\ncompression: {" +
                                         compression + "}\n")
                                   .spec);
  };
  const std::string head = "method,elements,compress_ns,decompress_ns";
  const auto table = [&](const std::string& columns, const std::string& device) {
    return "method: topk, costs: \"" + head + columns + "\\ntopk,1000,1,1" + device + "\\n\"";
  };
  EXPECT_EQ(of("h100-sxm", "method: none"), Calibration::fitted);
  EXPECT_EQ(of("h100-sxm", "method: topk"), Calibration::assumed);
  EXPECT_EQ(of("h100-sxm", "method: topk, costs: h200-pytorch"), Calibration::assumed);
  EXPECT_EQ(of("h200-measured", "method: topk, costs: h200-pytorch"), Calibration::measured);
  EXPECT_EQ(of("h200-measured", "method: topk, costs: h200-pytorch, memory: residual"),
            Calibration::assumed);
  EXPECT_EQ(of("h100-sxm", table("", "")), Calibration::fitted);
  EXPECT_EQ(of("h100-sxm", table(",device", ",NVIDIA H100")), Calibration::fitted);
  EXPECT_EQ(of("h100-sxm", table(",device", ",NVIDIA A100")), Calibration::assumed);
}

TEST(Device, KernelsNeedTheMemorysBandwidth) {
  EXPECT_NE(load_error(small_gpt("{peak_tflops: {bf16: 100}, multiprocessors: 10}"))
                .find("a device with multiprocessors needs its memory_GBps"),
            std::string::npos);
  EXPECT_NE(load_error(small_gpt("{base: a100-sxm-80gb, kernels: {matmul: 1.2}}"))
                .find("write a number from 0.001 to 1"),
            std::string::npos);
}

// ---- The bubble ----

Pipeline pipeline_of(const char* schedule, int stages, int chunks, int micro_batches) {
  Pipeline pipeline;
  pipeline.schedule = schedule;
  pipeline.stages = stages;
  pipeline.chunks = chunks;
  pipeline.micro_batches = micro_batches;
  return pipeline;
}

TEST(PipelineTime, IsTheClosedFormForEvenParts) {
  const auto time = [](int, Pass pass) -> Picoseconds { return pass == Pass::forward ? 10 : 20; };
  for (const int stages : {1, 2, 4, 8})
    for (const int rounds : {1, 2, 5}) {
      const int micro_batches = rounds * stages;
      EXPECT_EQ(pipeline_time(pipeline_of("1f1b", stages, 1, micro_batches), time),
                (micro_batches + stages - 1) * 30);
      if (stages == 1) continue;
      EXPECT_EQ(pipeline_time(pipeline_of("interleaved", stages, 2, micro_batches), time),
                (2 * micro_batches + stages - 1) * 30);
    }
}

// What is computed again makes input gradients longer than weight gradients, so these fill less.
TEST(PipelineTime, ABubbleIsToldWhereItDoesNotDependOnThePasses) {
  const auto time = [](int, Pass pass) -> Picoseconds {
    return pass == Pass::backward ? 30 : pass == Pass::input_backward ? 20 : 10;
  };
  for (const int chunks : {1, 2}) {
    const Pipeline pipeline = pipeline_of(chunks > 1 ? "interleaved" : "1f1b", 4, chunks, 16);
    const auto compute = static_cast<double>(16 * chunks * 40);
    EXPECT_DOUBLE_EQ(*pipeline_bubble(pipeline),
                     static_cast<double>(pipeline_time(pipeline, time)) / compute - 1);
  }
  const Pipeline filled = pipeline_of("zb-h1", 4, 1, 16);
  EXPECT_EQ(pipeline_time(filled, time), 16 * 40 + 3 * 20);  // a third of F + I + W is 13
  EXPECT_FALSE(pipeline_bubble(filled));
}

TEST(PipelineTime, ASlowPartHoldsUpAllOthers) {
  const auto time = [](int part, Pass) -> Picoseconds { return part == 3 ? 20 : 10; };
  const Picoseconds even = (16 + 3) * 20, slow = 16 * 40;
  const Picoseconds whole = pipeline_time(pipeline_of("1f1b", 4, 1, 16), time);
  EXPECT_GT(whole, slow);
  EXPECT_GT(whole, even);
  EXPECT_EQ(whole, 16 * 40 + 3 * 20);  // the last stage never waits once it has begun
}

TEST(PipelineTime, APlanIsBoundedByIt) {
  const Workload workload = plan_workload(load_text(small_gpt("h100-sxm")).spec);
  Picoseconds busiest = 0;
  for (const Role& role : workload.roles) {
    Picoseconds compute = 0;
    for (const Op& op : role.iterations.at(0).streams.at(0))
      if (op.kind == Op::Kind::compute) compute += op.duration;
    busiest = std::max(busiest, compute);
  }
  EXPECT_GT(workload.least, busiest);  // a bubble of one pass in eight
  EXPECT_LT(workload.least, 2 * busiest);
}

}  // namespace
}  // namespace ghostrank
