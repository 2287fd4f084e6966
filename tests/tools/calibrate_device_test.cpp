// `ghostrank calibrate device` with a library that makes up a GPU, and with traces of PyTorch.
#include <cmath>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "profiles/device/kernels/demand.h"
#include "profiles/device/kernels/kernels.h"
#include "profiles/error.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"
#include "tests/variable.h"
#include "tools/calibrate/kernel_measurement.h"
#include "tools/calibrate/kineto_kernels.h"
#include "tools/calibrate/measured_device.h"
#include "tools/calibrate/nsys_kernels.h"
#include "tools/calibrate/product_names.h"
#include "tools/calibrate/vtrain_kernels.h"
#include "tools/verbs/calibrate/calibrate.h"

#ifdef GHOSTRANK_WITH_SQLITE3
#include "tests/trace/sqlite_text.h"
#endif

namespace ghostrank {
namespace {

int calibrate(std::vector<std::string> more) {
  const test::Variable library("GHOSTRANK_CUDA_LIBRARY", FAKE_CUDA_LIBRARY);
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

// Seconds of a product on the GPU that tests/tools/fake_cuda.cpp makes up.
double made_up(const ProductShape& s) {
  const double waves = std::ceil(s.batch * std::ceil(s.m / 128) * std::ceil(s.n / 256) / 132);
  return 2e-6 + waves * 2 * 128 * 256 * (s.k + 128) / (.75 * 800e12 / 132);
}

TEST(CalibrateDevice, TakesPublishedNumbersOfTheSameGpuOnly) {
  EXPECT_EQ(published_profile("NVIDIA H200"), "h200-sxm");
  EXPECT_EQ(published_profile("NVIDIA B200"), "b200-sxm");
  EXPECT_EQ(published_profile("Tesla V100-SXM2-16GB"), "v100-sxm2");
  EXPECT_EQ(published_profile("NVIDIA H200 NVL"), "");
  EXPECT_EQ(published_profile("NVIDIA GH200 480GB"), "");
  EXPECT_EQ(published_profile("NVIDIA GB200"), "");
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
  const test::Variable name("FAKE_CUDA_NAME", "NVIDIA Z1");
  const std::string out = folder.path("mine.yaml");
  ASSERT_EQ(calibrate({"--name", "z1", "-o", out}), 0);
  EXPECT_NE(test::read_file(out).find("# Peaks: assumed"), std::string::npos);
  const DeviceProfile device = test::load_text(gpt_on(out)).spec.device;
  EXPECT_EQ(device.name, "z1");
  EXPECT_NEAR(device.peak_tflops.at("bfloat16"), .75 * 800, .05 * 800);
  EXPECT_NEAR(device.memory_GBps, 2 * 2619e6 * 5120 / 8 * 1e-9, 1);
  EXPECT_EQ(device.multiprocessors, 132);
}

// A base that is a file is not named, but written out.
TEST(CalibrateDevice, KeepsTheNumbersOfItsBase) {
  const test::Folder folder;
  const std::string base = folder.write(
      "base.yaml", "{base: h100-sxm, name: base, efficiency: 0.62, source: 'a \"sheet\"'}");
  const std::string out = folder.path("mine.yaml");
  ASSERT_EQ(calibrate({"--base", base, "--name", "rack 7: #2", "-o", out}), 0);
  const DeviceProfile device = test::load_text(gpt_on(out)).spec.device;
  EXPECT_EQ(device.name, "rack 7: #2");
  EXPECT_EQ(device.efficiency, .62);
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
            }).find("give the published profile of the same GPU"),
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

TEST(KinetoKernels, AreOfOneDevice) {
  const test::Folder folder;
  const std::string text =
      trace(op(1, "aten::mm", "[[64, 64], [64, 64]]", "[" + kBf16 + ", " + kBf16 + "]") +
            kernel(1, 100, 20));
  std::string other = text;
  other.replace(other.find("H100"), 4, "A100");
  const std::vector<std::string> paths{folder.write("a.json", text), folder.write("b.json", other)};
  EXPECT_EQ(read_kineto_kernels({paths[0], paths[0]}).gpu, "NVIDIA H100");
  EXPECT_NE(test::error_of([&] {
              read_kineto_kernels(paths);
            }).find("b.json: kernels of 'NVIDIA A100', and of 'NVIDIA H100' before"),
            std::string::npos);
}

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
            // Three gaps of 1 us between kernels; the others, of 3 us and more, do not count.
            kernel(1, 100, 20) + kernel(1, 121, 30) + kernel(2, 152, 40) + kernel(3, 193, 9) +
            kernel(4, 300, 5, "layer_norm_grad_input_kernel") +
            kernel(4, 400, 7, "GammaBetaBackward") + kernel(5, 500, 11) + kernel(5, 600, 13) +
            kernel(6, 700, 1) + kernel(99, 800, 1)));
  const RecordedKernels found = read_kineto_kernels({path});
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

  for (const char* idle : {"--types=bf16", "--gpu=1", "--seconds=1", "--rest=2"})
    EXPECT_NE(test::error_of([&] {
                calibrate({"--kineto", path, "--base", "h100-sxm", idle});
              }).find("is of kernels that are measured"),
              std::string::npos)
        << idle;
  EXPECT_NE(test::error_of([&] {
              calibrate({"--kineto", path, "--base", "h100-sxm", "-s", "run.seed=2"});
            }).find("give --job or --model"),
            std::string::npos);
  const std::string out = folder.path("mine.yaml");
  ASSERT_EQ(calibrate({"--kineto", path, "--base", "h100-sxm", "-o", out}), 0);
  const KernelModel model(test::load_text(gpt_on(out)).spec.device, DataType::bfloat16);
  EXPECT_NEAR(model.fused_attention(attention, 2).seconds, 10e-6, 1e-9);
}

// No reader would take the profile.
TEST(KinetoKernels, MustBePossibleOnTheBase) {
  const test::Folder folder;
  const std::string out = folder.path("mine.yaml");
  const auto refused = [&](double micros, const std::string& base) {
    folder.write("t.json", trace(op(1, "aten::mm", "[[4096, 4096], [4096, 4096]]",
                                    "[" + kBf16 + ", " + kBf16 + "]",
                                    R"(, "Input Strides": [[4096, 1], [1, 4096]])") +
                                 kernel(1, 100, micros)));
    return test::error_of([&] {
      calibrate({"--kineto", folder.path("t.json"), "--base", base, "-o", out});
    });
  };
  EXPECT_EQ(refused(250, "v100-sxm2"),
            "a product of 4096 x 4096 x 4096 in bf16: the device 'v100-sxm2' has no peak_tflops "
            "for bf16; give the --base of the GPU that ran it");
  EXPECT_EQ(refused(90, "h200-sxm"),
            "a product of 4096 x 4096 x 4096 in bf16 would reach 1527 TFLOP/s, and the device "
            "'h200-sxm' has a peak of 989; give the --base of the GPU that ran it");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(KinetoKernels, SetThePaceOfProductsMeasuredAlone) {
  KernelTables recorded, tables;
  for (double m = 1024; m <= 1024 * 10; m += 1024) {
    tables.products.push_back({{m, 1024, 1024}, m * 1e-9});
    if (m <= 1024 * 9) recorded.products.push_back({{m, 1024, 1024}, 1.1 * m * 1e-9});
  }
  recorded.products[3].seconds *= 2;  // an outlier
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

// ---- Names of products ----

TEST(ProductNames, SayTheTypeAndHowOperandsLie) {
  const auto named = [](const char* kernel, OperandType type, Operands operands) {
    const ProductName name = product_name(kernel);
    EXPECT_TRUE(name.is_product) << kernel;
    EXPECT_EQ(name.type, type) << kernel;
    EXPECT_EQ(name.operands, operands) << kernel;
  };
  named("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn", OperandType::fp16,
        Operands::input);
  named("ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn", OperandType::bf16,
        Operands::forward);
  named("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT", OperandType::bf16, Operands::weight);
  named("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)",
        OperandType::fp32, Operands::input);
  EXPECT_TRUE(product_name("void cublasLt::splitKreduce_kernel<32, 16, int>").adds_parts);
  EXPECT_FALSE(product_name("pytorch_flash::flash_fwd_kernel<cutlass::bfloat16_t>").is_product);
  EXPECT_FALSE(product_name("vectorized_elementwise_kernel").is_product);
}

// ---- vTrain ----

// A layer that is 64 wide, of 2 heads, one sample of 16 tokens.
const std::string kTiny =
    "model: {kind: transformer, architecture: gpt2, layers: 2, hidden: 64, heads: 2, ffn: 256, "
    "sequence: 16, vocabulary: 512}\ndevice: a100-sxm-80gb\n"
    "precision: {parameters: fp16, gradients: fp16}\ncluster: {nodes: 1, gpus_per_node: 1}\n"
    "parallel: {framework: megatron, attention: unfused}\n";

class VtrainFile {
 public:
  void mark(const std::string& text) { add("0,TIMESTAMP,\"" + text + "\""); }
  // A launch and its kernel, which takes `micros` microseconds.
  void kernel(const std::string& name, int micros) {
    ++launches_;
    add("10,RUNTIME,211,1,2," + std::to_string(launches_));
    add(std::to_string(micros * 1000) + ",KERNEL,\"" + name + "\",0,1,7,8,1,1,128,1,1," +
        std::to_string(launches_));
    at_ += micros * 1000;
  }
  const std::string& text() const { return text_; }

 private:
  void add(const std::string& rest) { text_ += std::to_string(at_ += 10) + "," + rest + "\n"; }
  std::string text_;
  long at_ = 0;
  int launches_ = 0;
};

// In launch order, the products take 100, 200, 300, ... us.
std::string tiny_trace(const char* first_product = "ampere_fp16_s16816gemm_fp16_64x64_tn") {
  VtrainFile file;
  int number = 0;
  const auto product = [&](const char* layout) {
    file.kernel("ampere_fp16_s16816gemm_fp16_64x64_" + std::string(layout), 100 * ++number);
  };
  file.mark("forward start embeddings");
  file.kernel("gather, of rows", 3);
  file.mark("forward end embeddings");
  file.mark("forward start transformer");
  file.kernel("void cuApplyLayerNorm<c10::Half, float>", 5);
  file.kernel(first_product, 100 * ++number);
  product("tn");
  file.kernel("scaled_upper_triang_masked_softmax_warp_forward", 7);
  product("nn");
  for (int i = 0; i < 3; ++i) product("tn");
  file.kernel("splitKreduce_kernel", 50);
  file.mark("forward end transformer");
  file.mark("backward start transformer");
  for (const char* letters : {"nt nn", "nn nt", "nn nt", "tn nt", "nn nt", "nn nt"}) {
    product(std::string(letters, 2).c_str());
    product(letters + 3);
  }
  file.kernel("scaled_upper_triang_masked_softmax_warp_backward", 9);
  file.mark("backward end transformer");
  return file.text();
}

TEST(VtrainKernels, TakeTheirSizesFromTheJob) {
  const test::Folder folder;
  const std::string trace = folder.write("trace_64_1_1", tiny_trace());
  const LoadedJob job = test::load_text(kTiny);
  const RecordedKernels found = read_vtrain_kernels({trace}, job.spec);
  const auto micros = [&](double m, double n, double k, double batch, Operands operands) {
    for (const MeasuredProduct& one : found.tables.products)
      if (one.shape == ProductShape{m, n, k, batch, OperandType::fp16, operands})
        return one.seconds * 1e6;
    return -1.;
  };
  EXPECT_NEAR(micros(16, 192, 64, 1, Operands::forward), 100, 1);
  EXPECT_NEAR(micros(16, 16, 32, 2, Operands::forward), (200 + 1300) / 2., 1);  // and backward
  EXPECT_NEAR(micros(16, 32, 16, 2, Operands::input), (300 + 1500) / 2., 1);
  EXPECT_NEAR(micros(16, 64, 256, 1, Operands::forward), 600 + 50, 1);  // with the sum of its parts
  // Backward starts at the last linear layer, here with its weight's gradient before its input's.
  EXPECT_NEAR(micros(64, 256, 16, 1, Operands::weight), 700, 1);
  EXPECT_NEAR(micros(16, 256, 64, 1, Operands::input), 800, 1);
  EXPECT_NEAR(micros(192, 64, 16, 1, Operands::weight), 1800, 1);
  const auto moved = [&](MemoryKernel kind, double bytes) {
    for (const MeasuredTransfer& one : found.tables.transfers)
      if (one.kind == kind && one.bytes == bytes) return one.seconds * 1e6;
    return -1.;
  };
  EXPECT_NEAR(moved(MemoryKernel::norm, 2 * 2 * 16 * 64), 5, 1);
  EXPECT_NEAR(moved(MemoryKernel::softmax, 2 * 2 * 2 * 16 * 16), 7, 1);
  EXPECT_NEAR(moved(MemoryKernel::softmax, 3 * 2 * 2 * 16 * 16), 9, 1);
  EXPECT_EQ(found.left_out.at("kernels outside the layer"), 1u);

  // The job's own layer then takes what was recorded.
  folder.write("job.yaml", kTiny);
  const std::string out = folder.path("mine.yaml");
  ASSERT_EQ(calibrate({"--vtrain", trace, "--job", folder.path("job.yaml"), "--base",
                       "a100-sxm-80gb", "-o", out}),
            0);
  std::string mine = kTiny;
  mine.replace(mine.find("a100-sxm-80gb"), 13, out);
  const KernelModel model(test::load_text(mine).spec.device, DataType::float16);
  EXPECT_NEAR(model.product(16, 192, 64, 1, 2).seconds, 100e-6, 1e-6);
}

TEST(VtrainKernels, RefuseHolesAndOtherLayers) {
  const test::Folder folder;
  const LoadedJob job = test::load_text(kTiny);
  const auto refused = [&](const std::string& text, const std::string& from = "",
                           const std::string& to = "") {
    std::string damaged = text;
    if (!from.empty()) damaged.replace(damaged.find(from), from.size(), to);
    folder.write("t", damaged);
    return test::error_of([&] { read_vtrain_kernels({folder.path("t")}, job.spec); });
  };
  const auto says = [](const std::string& error, const char* what) {
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  says(refused("1,2\n"), "t:1:1: the line is no event");
  says(refused(tiny_trace(), ",0,1,7,8,1,1,128,1,1,1\n", ",0,1,7,8,1,1,128,1,1\n"),
       "t:3:1: the line has 13 fields and KERNEL needs 14");
  says(refused(tiny_trace(), "10,RUNTIME", "x,RUNTIME"), "t:2:1: the duration is 'x'");
  says(refused(tiny_trace(), "\"gather, of rows\"", "\"gather"), "t:3:1: a quote is not closed");
  says(refused(tiny_trace("hgemm_nt")), "t:9:1: 'hgemm_nt' does not read its operands");
  says(refused(tiny_trace("plain")), "the layer's forward has 5 products and the job's has 6");
  says(refused(tiny_trace(), "start transformer", "start trunk"), "has 0 products");
  says(refused("1,1,MEMCPY,1,0,1,7,1\n"), "no kernel was launched between");
  const LoadedJob fused = test::load_text(kTiny, {"parallel.attention=fused"});
  says(test::error_of([&] { read_vtrain_kernels({folder.path("t")}, fused.spec); }),
       "set parallel.attention: unfused");
  says(test::error_of([&] {
         calibrate({"--vtrain", folder.path("t"), "--base", "a100-sxm-80gb"});
       }),
       "give one --job");
}

// ---- nsys ----

#ifdef GHOSTRANK_WITH_SQLITE3

std::string nsys_export(const std::string& ranges) {
  return R"(CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE TARGET_INFO_GPU (name TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, globalPid INTEGER, correlationId INTEGER, demangledName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, globalTid INTEGER, correlationId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0');
INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA H100');
INSERT INTO StringIds VALUES
  (1, 'ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn'), (2, 'splitKreduce_kernel'),
  (3, 'vectorized_layer_norm_kernel<c10::BFloat16, float>'), (4, 'flash_fwd_kernel'),
  (5, 'aten::addmm, seq = 7, op_id = 3, sizes = [[3072], [4096, 1024], [1024, 3072], [], []], input_op_ids = [(1,0)]');
)" + ranges +
         R"(INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
  (1010, 16777217, 1), (1020, 16777217, 2), (1060, 16777217, 3), (1060, 16777218, 4), (2000, 16777217, 5),
  (1030, 16777217, NULL), (1040, NULL, 6);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
  (5000, 25000, 0, 7, 16777216, 1, 1), (25500, 26500, 0, 7, 16777216, 2, 2),
  (27000, 31000, 0, 7, 16777216, 3, 3), (60000, 61000, 0, 7, 16777216, 4, 3),
  (90000, 91000, 0, 7, 16777216, 5, 4);
)";
}

const std::string kRanges = R"(INSERT INTO NVTX_EVENTS VALUES
  (1000, 1050, NULL, 5, 16777217),
  (900, 1100, 'aten::linear, sizes = [[4, 1024, 1024], [3072, 1024], [3072]]', NULL, 16777217),
  (1055, 1070, 'aten::native_layer_norm, seq = 8, op_id = 4, sizes = [[4096, 1024], [], [1024], [1024], []]', NULL, 16777217),
  (1200, NULL, 'aten::mm, sizes = [[1], [1]]', NULL, 16777217);
)";

TEST(NsysKernels, BelongToTheInnermostRangeOfTheirThread) {
  const test::Folder folder;
  const std::string path = folder.path("report.sqlite");
  ASSERT_EQ(test::write_sqlite(path, nsys_export(kRanges)), "");
  const RecordedKernels found = read_nsys_kernels({path});
  EXPECT_EQ(found.gpu, "NVIDIA H100");
  ASSERT_EQ(found.tables.products.size(), 1u);
  EXPECT_EQ(found.tables.products[0].shape,
            (ProductShape{4096, 3072, 1024, 1, OperandType::bf16, Operands::forward}));
  EXPECT_NEAR(found.tables.products[0].seconds, (20 + 1 + 2 * .5) * 1e-6, 1e-12);
  ASSERT_EQ(found.tables.transfers.size(), 1u);
  const MeasuredTransfer& norm = found.tables.transfers[0];
  EXPECT_EQ(norm.kind, MemoryKernel::norm);
  EXPECT_EQ(norm.bytes, 2. * 2 * 4096 * 1024);
  EXPECT_EQ(norm.element, 2);
  EXPECT_NEAR(norm.seconds, 4.5e-6, 1e-12);
  // One of another thread, and one outside of all ranges.
  EXPECT_EQ(found.left_out.at("kernels without an op that has shapes"), 2u);

  const std::string out = folder.path("mine.yaml");
  ASSERT_EQ(calibrate({"--nsys", path, "--base", "h100-sxm", "-o", out}), 0);
  const KernelModel model(test::load_text(gpt_on(out)).spec.device, DataType::bfloat16);
  EXPECT_NEAR(model.product(4096, 3072, 1024, 1, 2).seconds, 22e-6, 1e-9);
}

TEST(NsysKernels, NeedRangesWithSizes) {
  const test::Folder folder;
  const auto refused = [&](const std::string& sql) {
    test::write_sqlite(folder.path("r.sqlite"), sql);
    return test::error_of([&] { read_nsys_kernels({folder.path("r.sqlite")}); });
  };
  EXPECT_NE(refused(nsys_export("")).find("emit_nvtx(record_shapes=True)"), std::string::npos);
  std::string damaged = kRanges;
  damaged.replace(damaged.find("(1000, 1050"), 11, "(1000, 950");
  EXPECT_NE(refused(nsys_export(damaged)).find("NVTX_EVENTS row 1"), std::string::npos);
  std::string old = nsys_export(kRanges);
  old.replace(old.find("3.25.0"), 6, "2.9.0");
  EXPECT_NE(refused(old).find("3.24 and 3.25 are"), std::string::npos);
}

#endif

}  // namespace
}  // namespace ghostrank
