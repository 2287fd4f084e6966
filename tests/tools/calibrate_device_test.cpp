// `ghostrank calibrate device` with a library that makes up a GPU, and with traces of PyTorch.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "profiles/device/kernel_demand.h"
#include "profiles/device/kernels.h"
#include "profiles/error.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"
#include "tools/calibrate/kernel_measurement.h"
#include "tools/calibrate/kineto_kernels.h"
#include "tools/verbs/calibrate.h"

namespace ghostrank {
namespace {

int calibrate(std::vector<std::string> more) {
  const test::Environment library("GHOSTRANK_CUDA_LIBRARY", FAKE_CUDA_LIBRARY);
  Argv argv{"ghostrank", "device"};
  argv.insert(argv.end(), more.begin(), more.end());
  testing::internal::CaptureStderr();
  int status = -1;
  try {
    status = calibrate_device(argv);
  } catch (...) {
    testing::internal::GetCapturedStderr();
    throw;
  }
  std::fputs(testing::internal::GetCapturedStderr().c_str(), stdout);
  return status;
}

constexpr const char* kGpt =
    "{kind: transformer, architecture: gpt2, layers: 2, hidden: 1536, heads: 12, ffn: 6144, "
    "sequence: 1024, vocabulary: 50304}";

std::string gpt_on(const std::string& device, const char* type = "bf16") {
  return "model: " + std::string(kGpt) + "\ndevice: " + device +
         "\nprecision: {parameters: " + type + ", gradients: " + type +
         "}\ncluster: {nodes: 1, gpus_per_node: 1}\n";
}

// Of tests/tools/fake_cuda.cpp.
double made_up(const ProductShape& s) {
  const double waves = std::ceil(s.batch * std::ceil(s.m / 128) * std::ceil(s.n / 256) / 132);
  return 2e-6 + waves * 2 * 128 * 256 * (s.k + 128) / (.75 * 800e12 / 132);
}

TEST(CalibrateDevice, MeasuresWhatTheJobAsksForAndPredictsTheRest) {
  const test::Folder folder;
  folder.write("job.yaml", gpt_on("h100-sxm"));
  const std::string out = folder.path("mine.yaml");
  ASSERT_EQ(calibrate({"--job", folder.path("job.yaml"), "--grid", "-o", out}), 0);
  const std::string text = test::read_file(out);
  EXPECT_NE(text.find("base: h100-sxm\n"), std::string::npos);
  EXPECT_NE(text.find("NVIDIA H100 80GB HBM3, driver 580.1, CUDA 13.0, cuBLASLt 13.1"),
            std::string::npos);
  EXPECT_NE(text.find("ran at 1755 to 1755 MHz"), std::string::npos);

  const LoadedJob job = test::load_text(gpt_on(out));
  const DeviceProfile& device = job.spec.device;
  EXPECT_EQ(device.calibration, Calibration::measured);
  EXPECT_LT(device.kernel_error, .1);
  EXPECT_NEAR(device.kernels.matmul, .75 * 800 / 989, .05);
  const KernelModel model(device, DataType::bfloat16);
  const KernelDemand demand = demand_of(job, 132);
  EXPECT_GT(demand.products.size(), 12u);
  EXPECT_EQ(demand.attention.size(), 2u);
  for (const ProductShape& s : demand.products) {
    const double seconds = model.product(s.m, s.n, s.k, s.batch, 2, s.operands).seconds;
    EXPECT_NEAR(seconds / made_up(s), 1, 1e-4) << s.m << " x " << s.n << " x " << s.k;
  }
  const ProductShape unseen{3072, 3072, 3072, 1, OperandType::bf16, Operands::forward};
  EXPECT_NEAR(model.product(3072, 3072, 3072, 1, 2).seconds / made_up(unseen), 1, .15);
  EXPECT_NEAR(model.memory(3e9).seconds, 2e-6 + 3e9 / 2e12, 1e-6);
}

TEST(CalibrateDevice, LeavesOutWhatTheGpuLacks) {
  const test::Folder folder;
  folder.write("job.yaml", gpt_on("h100-sxm"));
  const std::string out = folder.path("mine.yaml");
  testing::internal::CaptureStdout();
  ASSERT_EQ(calibrate({"--job", folder.path("job.yaml"), "--types", "tf32", "-o", out}), 0);
  EXPECT_NE(testing::internal::GetCapturedStdout().find(
                "note: not measured: 1024 x 6144 x 1536: there is no such product"),
            std::string::npos);
  const std::string text = test::read_file(out);
  EXPECT_NE(text.find("tf32,forward,1024,4608,1536,1,"), std::string::npos);
  EXPECT_EQ(text.find("tf32,forward,1024,6144,1536,1,"), std::string::npos);
  EXPECT_EQ(text.find("bf16"), std::string::npos);
}

TEST(CalibrateDevice, TakesTheBestRatesForPeaksThatNobodyPublished) {
  const test::Folder folder;
  const test::Environment name("FAKE_CUDA_NAME", "NVIDIA Z1");
  const std::string out = folder.path("mine.yaml");
  ASSERT_EQ(calibrate({"--name", "z1", "-o", out}), 0);
  EXPECT_NE(test::read_file(out).find("# Peaks: assumed"), std::string::npos);
  const DeviceProfile device = test::load_text(gpt_on(out)).spec.device;
  EXPECT_EQ(device.name, "z1");
  EXPECT_NEAR(device.peak_tflops.at("bfloat16"), .75 * 800, .05 * 800);
  EXPECT_NEAR(device.memory_GBps, 2 * 2619e6 * 5120 / 8 * 1e-9, 1);
  EXPECT_EQ(device.multiprocessors, 132);
}

TEST(CalibrateDevice, MeasuresAModelWithoutAJob) {
  const test::Folder folder;
  const std::string out = folder.path("mine.yaml");
  ASSERT_EQ(calibrate({"--model", "gpt2", "-s", "parallel.micro_batch=3", "-o", out}), 0);
  EXPECT_NE(test::read_file(out).find("bf16,forward,3072,3072,768,1,"), std::string::npos);
}

TEST(CalibrateDevice, SaysWhyThereIsNothingToMeasure) {
  const test::Folder folder;
  try {
    calibrate({"--gpu", "1"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 3);
    EXPECT_NE(std::string(e.what()).find("there is no GPU 1 among 1; measure on"),
              std::string::npos);
  }
  EXPECT_NE(test::error_of([] {
              calibrate({"--model", "resnet50"});
            }).find("this model is not computed kernel by kernel"),
            std::string::npos);
  folder.write("t.json", "{\"traceEvents\": []}");
  EXPECT_NE(test::error_of([&] {
              calibrate({"--kineto", folder.path("t.json")});
            }).find("give --base with the published profile"),
            std::string::npos);
}

// ---- Traces ----

std::string op(int number, const std::string& name, const std::string& dims,
               const std::string& types, const std::string& more = "") {
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "ts": 1, "dur": 1, "args": )" +
         R"({"External id": )" + std::to_string(number) + R"(, "Input Dims": )" + dims +
         R"(, "Input type": )" + types + more + "}},\n";
}

std::string kernel(int number, double start, double duration, const std::string& name = "k") {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "ts": )" +
         std::to_string(start) + R"(, "dur": )" + std::to_string(duration) +
         R"(, "args": {"stream": 7, "External id": )" + std::to_string(number) + "}},\n";
}

std::string trace(const std::string& events) {
  return R"({"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": [)"
         "\n" +
         events +
         R"({"ph": "M", "name": "end", "ts": 0, "args": {}}]})"
         "\n";
}

const std::string kBf16 = "\"c10::BFloat16\"";

TEST(KinetoKernels, BelongToTheirOpsShapes) {
  const test::Folder folder;
  const std::string heads = "[4, 16, 1024, 64]";
  const std::string two = "[" + kBf16 + ", " + kBf16 + ", " + kBf16 + "]";
  const std::string path = folder.write(
      "t.json",
      trace(op(1, "aten::mm", "[[4096, 1024], [1024, 3072]]", two,
               R"(, "Input Strides": [[1024, 1], [1, 1024]])") +
            op(2, "aten::mm", "[[1024, 4096], [4096, 3072]]", two,
               R"(, "Input Strides": [[1, 1024], [3072, 1]])") +
            op(3, "aten::_scaled_dot_product_flash_attention",
               "[" + heads + ", " + heads + ", " + heads + ", [], []]", two,
               R"(, "Concrete Inputs": ["", "", "", "0.", "True"])") +
            op(4, "aten::native_layer_norm_backward", "[[4096, 1024], [4096, 1024]]", two) +
            op(5, "aten::_fused_adamw_", "[[[1000, 10], [5]], [[1000, 10], [5]]]",
               R"([["float", "float"], ["float", "float"]])") +
            op(6, "aten::add", "[[4096, 1024], [1024]]", two) +  // broadcast
            // One microsecond between kernels, in three of five gaps.
            kernel(1, 100, 20) + kernel(1, 121, 30) + kernel(2, 152, 40) + kernel(3, 193, 9) +
            kernel(4, 300, 5, "layer_norm_grad_input_kernel") +
            kernel(4, 400, 7, "GammaBetaBackward") + kernel(5, 500, 11) + kernel(5, 600, 13) +
            kernel(6, 700, 1) + kernel(99, 800, 1)));
  const KinetoKernels found = read_kineto_kernels({path});
  EXPECT_EQ(found.gpu, "NVIDIA H100");
  ASSERT_EQ(found.tables.products.size(), 2u);
  const MeasuredProduct &weight = found.tables.products[0], &forward = found.tables.products[1];
  EXPECT_EQ(forward.shape,
            (ProductShape{4096, 3072, 1024, 1, OperandType::bf16, Operands::forward}));
  EXPECT_NEAR(forward.seconds, (20 + 30 + 2) * 1e-6, 1e-12);  // split over k: two kernels
  EXPECT_EQ(weight.shape, (ProductShape{1024, 3072, 4096, 1, OperandType::bf16, Operands::weight}));
  ASSERT_EQ(found.tables.attention.size(), 1u);
  const FusedAttention attention{4, 16, 16, 1024, 1024, 64, true, false};
  EXPECT_EQ(found.tables.attention[0].shape, attention);
  EXPECT_NEAR(found.tables.attention[0].seconds, 10e-6, 1e-12);
  const auto moved = [&](MemoryKernel kind) {
    for (const MeasuredTransfer& one : found.tables.transfers)
      if (one.kind == kind) return std::pair(one.bytes, one.seconds * 1e6);
    return std::pair(0., 0.);
  };
  EXPECT_EQ(moved(MemoryKernel::norm_backward).first, 3. * 2 * 4096 * 1024);
  EXPECT_NEAR(moved(MemoryKernel::norm_backward).second, 6, 1e-9);
  EXPECT_EQ(moved(MemoryKernel::column_sum).first, 2. * 2 * 4096 * 1024);
  EXPECT_EQ(moved(MemoryKernel::optimizer).first, 7. * 4 * 10'005);
  EXPECT_NEAR(moved(MemoryKernel::optimizer).second, 11 + 13 + 2, 1e-9);
  EXPECT_EQ(moved(MemoryKernel::elementwise).first, 0);
  EXPECT_EQ(found.left_out.at("kernels of ops that are not looked up"), 1u);
  EXPECT_EQ(found.left_out.at("kernels without an op that has shapes"), 1u);

  const std::string out = folder.path("mine.yaml");
  ASSERT_EQ(calibrate({"--kineto", path, "--base", "h100-sxm", "-o", out}), 0);
  const KernelModel model(test::load_text(gpt_on(out)).spec.device, DataType::bfloat16);
  EXPECT_NEAR(model.fused_attention(attention, 2).seconds, 10e-6, 1e-9);
}

TEST(KinetoKernels, SetThePaceOfProductsMeasuredAlone) {
  KernelTables recorded, tables;
  for (double m = 1024; m <= 1024 * 10; m += 1024) {
    tables.products.push_back({{m, 1024, 1024}, m * 1e-9});
    if (m <= 1024 * 9) recorded.products.push_back({{m, 1024, 1024}, 1.1 * m * 1e-9});
  }
  recorded.products[3].seconds *= 2;  // one that nothing explains
  const TrainingPace pace = add_recorded(recorded, tables);
  EXPECT_NEAR(pace.slower, 1.1, 1e-9);
  EXPECT_EQ(pace.sizes, 9u);
  ASSERT_EQ(tables.products.size(), 10u);
  EXPECT_NEAR(tables.products[3].seconds, 2 * 1.1 * 4096e-9, 1e-12);
  EXPECT_NEAR(tables.products[9].seconds, 1.1 * 10240e-9, 1e-12);  // not recorded
  recorded.products.resize(7);
  EXPECT_EQ(add_recorded(recorded, tables).slower, 1);  // too few to say
}

TEST(KinetoKernels, ReplaceKindsButTheCurveOfCopies) {
  KernelTables recorded, tables;
  tables.transfers = {{MemoryKernel::elementwise, 1e6, 1e-6}, {MemoryKernel::optimizer, 1e6, 1e-6}};
  recorded.transfers = {{MemoryKernel::elementwise, 2e6, 5e-6},
                        {MemoryKernel::optimizer, 3e6, 4e-6}};
  add_recorded(recorded, tables);
  ASSERT_EQ(tables.transfers.size(), 2u);
  EXPECT_EQ(tables.transfers[0].bytes, 1e6);
  EXPECT_EQ(tables.transfers[1].bytes, 3e6);
  tables.transfers.clear();
  add_recorded(recorded, tables);
  EXPECT_EQ(tables.transfers.size(), 2u);
}

TEST(KinetoKernels, NeedShapes) {
  const test::Folder folder;
  const auto refused = [&](const std::string& text) {
    folder.write("t.json", text);
    return test::error_of([&] { read_kineto_kernels({folder.path("t.json")}); });
  };
  EXPECT_NE(refused(trace("")).find("there are no kernels of a device"), std::string::npos);
  EXPECT_NE(refused(trace(kernel(1, 1, 1))).find("record with record_shapes=True"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
