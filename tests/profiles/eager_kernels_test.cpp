// Kernels of PyTorch's layers: their number, compared with PyTorch's profiles, the bytes that they
// move, and the times that planners make of them.
#include <gtest/gtest.h>

#include "profiles/device/compute.h"
#include "profiles/device/kernels/eager.h"
#include "profiles/planners/plan.h"
#include "profiles/planners/shared/data_parallel.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::load_text;

// Memory of 1 TB/s; products and starts take no time worth mentioning.
KernelModel model() {
  DeviceProfile device;
  device.multiprocessors = 100;
  device.memory_GBps = 1000;
  device.peak_tflops = {{"bfloat16", 1e9}};
  return {device, DataType::bfloat16};
}

EagerShape gpt() {
  EagerShape shape;
  LayerShape& l = shape.layer;
  l.tokens = l.own_tokens = 8 * 1024;
  l.hidden = l.query = l.key = 1024;
  l.ffn = 4096;
  l.heads = 16;
  l.head_width = 64;
  l.queries = l.keys = 1024;
  l.bias = l.dropout = true;
  shape.merged_qkv = true;
  return shape;
}

EagerShape llama() {
  EagerShape shape = gpt();
  LayerShape& l = shape.layer;
  l.key = 256;
  l.bias = l.dropout = false;
  l.gated = l.rotary = true;
  shape.merged_qkv = false;
  return shape;
}

EagerShape mixed(EagerShape shape) {
  shape.stored = 4;
  return shape;
}

int forward(const KernelTimes& times) { return times.forward.launches; }
int backward(const KernelTimes& times) { return times.input.launches + times.weight.launches; }

// Counted in profiles of PyTorch 2.11 on an H200, without the clearing of workspaces; attention,
// whose backward has up to six kernels, counts as one.
TEST(EagerKernels, AreAsManyAsInAProfile) {
  struct Row {
    EagerShape shape;
    int forward, backward;
  };
  EagerShape calm = gpt();
  calm.layer.dropout = false;
  for (const Row& row : {Row{gpt(), 12, 23}, Row{mixed(calm), 20, 33}, Row{llama(), 20, 35},
                         Row{mixed(llama()), 32, 49}}) {
    const KernelTimes layer = eager_layer(model(), row.shape);
    EXPECT_EQ(forward(layer), row.forward);
    EXPECT_EQ(backward(layer), row.backward);
  }
}

TEST(EagerKernels, OfCompiledLayersAreFewerAndMoveLess) {
  for (EagerShape shape : {gpt(), llama(), mixed(llama())}) {
    const KernelTimes plain = eager_layer(model(), shape);
    shape.compiled = true;
    const KernelTimes fused = eager_layer(model(), shape);
    EXPECT_LT(forward(fused), forward(plain));
    EXPECT_LT(backward(fused), backward(plain));
    EXPECT_LT(fused.forward.seconds, plain.forward.seconds);
    EXPECT_LT(fused.input.seconds + fused.weight.seconds,
              plain.input.seconds + plain.weight.seconds);
  }
}

TEST(EagerKernels, OfAnOptimizerTouchEveryElementOnceOrOperationByOperation) {
  EagerOptimizer step{1e9, 2, true, false, false};
  EXPECT_NEAR(eager_optimizer(model(), step).seconds, 7 * 2e9 / 1e12, 1e-9);
  step.foreach = true;
  EXPECT_NEAR(eager_optimizer(model(), step).seconds, 20 * 2e9 / 1e12, 1e-9);
  EXPECT_EQ(eager_optimizer(model(), step).launches, 8);
  step.clips = true;
  EXPECT_EQ(eager_optimizer(model(), step).launches, 10);
}

// ---- What planners make of them ----

std::string job(const std::string& gradients, const std::string& parallel,
                const std::string& device = "h100-sxm",
                const std::string& model = "{base: gpt2, layers: 2}") {
  return "schema: ghostrank/job/1\nmodel: " + model + "\ndevice: " + device +
         "\nprecision: {parameters: bf16, gradients: " + gradients +
         "}\ncluster: {nodes: 1, gpus_per_node: 2, nics_per_node: 1}\nparallel: {" + parallel +
         "}\n";
}

StepTimes times(const std::string& text) { return step_times(load_text(text).spec); }

TEST(EagerKernels, AutocastCastsAndACompilerFuses) {
  const StepTimes mixed = times(job("fp32", "micro_batch: 8")),
                  plain = times(job("bf16", "micro_batch: 8")),
                  fused = times(job("bf16", "micro_batch: 8, compile: true"));
  EXPECT_GT(mixed.layers[1].forward, plain.layers[1].forward);
  EXPECT_GT(plain.layers[1].forward, fused.layers[1].forward);
  EXPECT_EQ(plain.layers.back().forward, fused.layers.back().forward);  // the head is not compiled
  EXPECT_EQ(plain.optimizer, fused.optimizer);
}

TEST(EagerKernels, ThePlansOptimizerIsItsFrameworks) {
  const auto optimizer = [](const std::string& parallel) {
    return times(job("fp32", parallel)).optimizer;
  };
  const std::string fused = ", optimizer_implementation: fused",
                    foreach = ", optimizer_implementation: foreach";
  EXPECT_GT(optimizer("framework: ddp"), 2 * optimizer("framework: ddp" + fused));
  EXPECT_EQ(optimizer("framework: ddp"), optimizer("framework: ddp" + foreach));
  EXPECT_EQ(optimizer("framework: torchtitan"), optimizer("framework: torchtitan" + fused));
  // Shards are fp32 and their gradients are clipped.
  EXPECT_GT(optimizer("framework: fsdp" + fused), optimizer("framework: ddp" + fused));
}

TEST(EagerKernels, TheHostHoldsUpAWholeStepOrNothing) {
  const auto device = [](const char* host_us) {
    return std::string("{base: h100-sxm, kernels: {host_us: ") + host_us + "}}";
  };
  const StepTimes free = times(job("bf16", "micro_batch: 8")),
                  ahead = times(job("bf16", "micro_batch: 8", device("20"))),
                  behind = times(job("bf16", "micro_batch: 8", device("1000")));
  // Four launches of 20 us take longer than looking up rows, but the host runs ahead of the GPU.
  EXPECT_LT(free.layers.front().forward, 80'000'000);
  EXPECT_EQ(free.layers.front().forward, ahead.layers.front().forward);
  EXPECT_EQ(behind.layers.front().forward, 4'000'000'000);  // ps: 2 lookups, their sum, dropout
}

// The program of a steady iteration.
Program steady(const std::string& text) {
  return plan_workload(load_text(text).spec).roles[0].iterations.back();
}

Picoseconds computing(const Program& program, const std::string& what, std::size_t stream = 0) {
  Picoseconds sum = 0;
  for (const Op& op : program.streams[stream])
    if (op.kind == Op::Kind::compute && program.labels[op.label].starts_with(what))
      sum += op.duration;
  return sum;
}

TEST(EagerKernels, DdpCopiesGradientsIntoItsBucketsAndBack) {
  const StepTimes copied = times(job("bf16", "micro_batch: 8")),
                  views = times(job("bf16", "micro_batch: 8, gradient_as_bucket_view: true")),
                  other = times(job("bf16", "framework: horovod, micro_batch: 8"));
  const Model model = test::shipped_model("gpt2");
  const auto tensors = [&](std::size_t layer) { return model.layers[layer].parameters.size(); };
  EXPECT_EQ(copied.copies.size(), tensors(0) + 2 * tensors(1) + tensors(model.layers.size() - 1));
  EXPECT_TRUE(views.copies.empty());
  // Either way the backward copies into buckets. A copy reads and writes 2 bytes of each element.
  EXPECT_EQ(copied.layers.front().backward, views.layers.front().backward);
  const double embedding = 2. * 2 * 768 * 50257 / (3352e9 * .7);
  EXPECT_NEAR(static_cast<double>(copied.copies.front()) * 1e-12, embedding, embedding / 10);
  EXPECT_GT(copied.layers.front().backward - other.layers.front().backward, copied.copies.front());
  // DDP copies gradients out of each bucket after its reduction.
  const Program program = steady(job("bf16", "micro_batch: 8"));
  Picoseconds sum = 0;
  for (const Picoseconds copy : copied.copies) sum += copy;
  EXPECT_EQ(computing(program, "gradients of bucket "), sum);
  EXPECT_EQ(computing(steady(job("bf16", "micro_batch: 8, launch: flat")), "gradients"), sum);
  // A rank alone has no DDP.
  std::string alone = job("bf16", "micro_batch: 8");
  alone.replace(alone.find("gpus_per_node: 2"), 16, "gpus_per_node: 1");
  EXPECT_TRUE(times(alone).copies.empty());
}

// Each of two ranks holds half of every unit, and gathers it for the forward and the backward.
TEST(EagerKernels, FsdpCopiesIntoTheBuffersOfItsCallsAndOutOfThem) {
  const std::string text = job("fp32", "framework: fsdp, micro_batch: 8",
                               "{base: h100-sxm, kernels: {launch_us: 0.001}}");
  const Program program = steady(text);
  const double moved_in_a_second = 3352e9 * .7;
  const auto parameters = static_cast<double>(load_text(text).spec.model->parameters());
  const auto bytes = [&](const std::string& what, std::size_t stream) {
    return static_cast<double>(computing(program, what, stream)) * 1e-12 * moved_in_a_second;
  };
  // FSDP casts fp32 to bf16, then copies; the padding of shards adds a little.
  EXPECT_NEAR(bytes("pack ", 1) / (2 * (4 + 2 + 2 + 2) * parameters / 2), 1, 0.005);
  EXPECT_NEAR(bytes("unpack ", 0) / (2 * (2 + 2) * parameters), 1, 0.005);
  EXPECT_NEAR(bytes("pack gradients of ", 0) / ((2 + 4) * parameters), 1, 0.005);
  // Where FLOPs give the times, copies, norms and sums take none.
  std::string flops =
      job("bf16", "framework: fsdp, micro_batch: 8", "{base: h100-sxm, multiprocessors: 0}");
  EXPECT_EQ(computing(steady(flops), "unpack "), 0);
}

TEST(EagerKernels, OfRotaryPositionsAreThereWherePositionsAreRotary) {
  const auto forward = [](const std::string& positions) {
    const std::string model =
        "{base: llama3.2-1b, layers: 2, sequence: 1024, position_embeddings: " + positions + "}";
    return step_times(load_text(job("bf16", "", "h100-sxm", model)).spec).layers.at(1).forward;
  };
  EXPECT_GT(forward("rope"), forward("none"));
  EXPECT_EQ(forward("learned"), forward("none"));
}

TEST(EagerKernels, WhereThereAreNoneTheirKeysAreNoted) {
  const auto notes = [](const std::string& device, const std::string& model) {
    return load_text(job("bf16", "compile: true, optimizer_implementation: fused", device, model))
        .spec.notes;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(notes("h100-sxm", "gpt2"), Lines{});
  EXPECT_EQ(notes("h100-sxm", "{base: mixtral-8x7b, layers: 2}"),
            Lines{"no effect where compute is not by kernels: parallel.compile"});
  EXPECT_EQ(notes("{base: h100-sxm, multiprocessors: 0}", "gpt2"),
            Lines{"no effect where compute is not by kernels: parallel.compile, "
                  "parallel.optimizer_implementation"});
}

}  // namespace
}  // namespace ghostrank
