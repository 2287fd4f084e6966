// Measured kernels of a device profile: the rows that their tables may have, and the times that
// they predict for sizes that nobody measured.
#include <cmath>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include "profiles/device/compute.h"
#include "profiles/device/kernels/kernels.h"
#include "profiles/device/kernels/measured.h"
#include "profiles/device/kernels/tables.h"
#include "tests/profiles/support.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

using test::load_error;
using test::load_text;

constexpr double kPeak = 900e12;

DeviceProfile bare() {
  DeviceProfile device;
  device.multiprocessors = 100;
  device.memory_GBps = 3000;
  device.peak_tflops = {{"bfloat16", kPeak * 1e-12}};
  device.kernels = {.5, .5, 1, 0};
  return device;
}

KernelModel with(KernelTables tables) {
  DeviceProfile device = bare();
  device.measured = std::make_shared<const MeasuredKernels>(std::move(tables), device);
  return {device, DataType::bfloat16};
}

// Seconds on a GPU without tiles: k costs 96 more, and a ratio m / n of 16 costs 14 % more.
double truth(const ProductShape& s) {
  const double oblong = std::abs(std::log(s.m / s.n));
  return 3e-6 + 2 * s.m * s.n * (s.k + 96) * (1 + .05 * oblong) / (.7 * kPeak);
}

KernelTables grid() {
  KernelTables tables;
  for (double m = 1024; m <= 16384; m *= 2)
    for (double n = 1024; n <= 16384; n *= 2)
      for (double k = 1024; k <= 16384; k *= 2) {
        const ProductShape shape{m, n, k};
        tables.products.push_back({shape, truth(shape)});
      }
  return tables;
}

TEST(MeasuredKernels, TakeTheirOwnTime) {
  const KernelModel model = with(grid());
  EXPECT_EQ(model.product(1024, 4096, 2048, 1, 2).seconds, truth({1024, 4096, 2048}));
  EXPECT_EQ(model.product(1024, 4096, 2048, 1, 2).launches, 1);
  // Another layout of the operands was not measured.
  EXPECT_NE(model.product(1024, 4096, 2048, 1, 2, Operands::weight).seconds,
            truth({1024, 4096, 2048}));
}

TEST(MeasuredKernels, PredictSizesBetweenBetterThanTheFormula) {
  const KernelModel model = with(grid()), formula(bare(), DataType::bfloat16);
  for (const ProductShape& s : {ProductShape{3072, 3072, 3072}, ProductShape{12288, 1536, 6144},
                                ProductShape{2048, 12288, 1536}}) {
    const auto off = [&](const KernelModel& by) {
      return std::abs(by.product(s.m, s.n, s.k, 1, 2).seconds / truth(s) - 1);
    };
    EXPECT_LT(off(model), .1) << s.m;
    EXPECT_GT(off(formula), .15) << s.m;
  }
  EXPECT_LT(held_out_error(grid(), bare()), .06);
}

// Four times as many products take about four times as long, not sixteen times.
TEST(MeasuredKernels, AreHeldOutInTimeThatGrowsWithTheirNumber) {
  const auto seconds = [](int products) {
    KernelTables tables;
    for (int i = 0; i < products; ++i) {
      const ProductShape shape{1024. + 8 * i, 4096, 4096};
      tables.products.push_back({shape, truth(shape)});
    }
    const std::clock_t begin = std::clock();  // processor time
    EXPECT_LT(held_out_error(tables, bare()), .05);
    return static_cast<double>(std::clock() - begin);
  };
  EXPECT_LT(seconds(160), 8 * seconds(40));
}

TEST(MeasuredKernels, SayLessOfSizesFarAway) {
  KernelTables tables;
  // The second takes three times what the first predicts for it.
  tables.products = {{{4096, 4096, 4096}, truth({4096, 4096, 4096})},
                     {{4096, 4096, 8192}, 3 * truth({4096, 4096, 8192})}};
  const KernelModel model = with(tables);
  const auto slower = [&](double size) {
    return model.product(4096, 4096, 8192 * size, 1, 2).seconds /
           model.product(4096, 4096, 8192 * size * 64, 1, 2).seconds * 64;
  };
  EXPECT_GT(slower(1), 1.1);             // near the slow one
  EXPECT_NEAR(slower(1 << 14), 1, .05);  // both far away from it
}

TEST(MeasuredKernels, MoveBytesAlongTheMeasuredCurve) {
  KernelTables tables;
  tables.transfers = {{MemoryKernel::elementwise, 1e6, 4e-6},
                      {MemoryKernel::elementwise, 1e8, 50e-6},
                      {MemoryKernel::norm, 1e8, 75e-6}};
  const KernelModel model = with(tables);
  const auto micros = [&](double bytes, MemoryKernel kind) {
    return model.memory(bytes, kind).seconds * 1e6;
  };
  EXPECT_NEAR(micros(1e3, MemoryKernel::elementwise), 4, 1e-9);
  EXPECT_NEAR(micros(50.5e6, MemoryKernel::elementwise), 27, 1e-9);
  EXPECT_NEAR(micros(4e8, MemoryKernel::elementwise), 200, 1e-9);
  EXPECT_NEAR(micros(1e6, MemoryKernel::norm), 6, 1e-9);
  EXPECT_NEAR(micros(4e8, MemoryKernel::norm), 300, 1e-9);
  EXPECT_NEAR(micros(1e8, MemoryKernel::softmax), 50, 1e-9);
  tables.transfers.push_back({MemoryKernel::norm, 1e4, 4e-6});
  EXPECT_NEAR(with(tables).memory(1e6, MemoryKernel::norm).seconds * 1e6, 4 * 1.25, 1e-9);
}

TEST(MeasuredKernels, AttentionKeepsTheRateOfItsNeighbours) {
  KernelTables tables;
  const FusedAttention small{4, 16, 16, 1024, 1024, 64}, large{4, 16, 16, 4096, 4096, 64};
  const auto rate = [](const FusedAttention& a, double seconds) { return a.flops() / seconds; };
  tables.attention = {{small, OperandType::bf16, small.flops() / 200e12},
                      {large, OperandType::bf16, large.flops() / 400e12}};
  const KernelModel model = with(tables);
  EXPECT_NEAR(rate(small, model.fused_attention(small, 2).seconds), 200e12, 1e9);
  FusedAttention between = small;
  between.queries = between.keys = 2048;
  EXPECT_NEAR(rate(between, model.fused_attention(between, 2).seconds), 290e12, 40e12);
}

// ---- Tables ----

std::string device_with(const std::string& tables) {
  return "model: gpt2\nprecision: {parameters: bf16, gradients: bf16}\n"
         "cluster: {nodes: 1, gpus_per_node: 1}\ndevice:\n  base: h100-sxm\n  kernels:\n" +
         tables;
}

std::string products(const std::string& rows, const char* head = "type,operands,m,n,k,batch,us") {
  return device_with("    products: |\n      " + std::string(head) + "\n      " + rows + "\n");
}

TEST(KernelTables, AreReadFromTheProfileAndFromAFile) {
  const test::Folder folder;
  folder.write("rows.csv", "# our own\ntype,operands,m,n,k,us\nbf16,forward,64,128,256,7\n");
  folder.write("devices/mine.yaml",
               "base: h100-sxm\nkernels: {products: ../rows.csv}\ncalibration: measured\n");
  const test::Variable profiles("GHOSTRANK_PROFILES", folder.path(""));
  const LoadedJob job = load_text("model: gpt2\ndevice: mine\ncluster: {nodes: 1}\n");
  const LoadedJob in_place = load_text(products("bf16,forward,64,128,256,1,7"));
  for (const LoadedJob* one : {&job, &in_place}) {
    ASSERT_NE(one->spec.device.measured, nullptr);
    const KernelModel model(one->spec.device, DataType::bfloat16);
    EXPECT_NEAR(model.product(64, 128, 256, 1, 2).seconds, 7e-6, 1e-12);
  }
  // A result holds the table itself.
  folder.write("again.json", job.config_json);
  const LoadedJob again = load_job(folder.path("again.json"), {});
  EXPECT_EQ(products_csv(again.spec.device.measured->tables()),
            "type,operands,m,n,k,batch,us\nbf16,forward,64,128,256,1,7\n");
}

TEST(KernelTables, GroundJobsOfTheirTypeOnly) {
  const auto grounds = [](const std::string& job) {
    return compute_calibration(load_text(job).spec);
  };
  const std::string bf16 = products("bf16,forward,64,128,256,1,7") + "  calibration: measured\n";
  std::string fp16 = bf16;
  fp16.replace(fp16.find("bf16,forward"), 4, "fp16");
  EXPECT_EQ(grounds(bf16), Calibration::measured);
  EXPECT_EQ(grounds(fp16), Calibration::assumed);
}

TEST(KernelTables, RefuseHolesAndNonsense) {
  const auto refused = [](const std::string& job, const std::string& part) {
    const std::string error = load_error(job);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  refused(products("bf16,forward,64,128,256,1"),
          "job.yaml:9:1: kernels.products: the row has no us; every measured kernel needs it");
  refused(products("bf16,forward,64,,256,1,7"), "the row has no n");
  refused(products("bf16,forward,64,128,256,1,0"), "us is '0'; write a number above 0");
  refused(products("bf16,forward,64,128,256,1,nan"), "us is 'nan'");
  refused(products("bf16,forward,64.5,128,256,1,7"), "m is '64.5'; write an integer");
  refused(products("int4,forward,64,128,256,1,7"), "type is 'int4'; allowed: bf16, fp16");
  refused(products("bf16,both,64,128,256,1,7"), "operands is 'both'; allowed: forward, input");
  refused(products("bf16,forward,8192,8192,8192,1,0.7"), "more than the device's peak of 989");
  std::string older = products("fp8,forward,64,128,256,1,7");
  older.replace(older.find("h100-sxm"), 8, "a100-sxm-80gb");
  refused(older, "the device has no peak_tflops for fp8; add");
  refused(products("bf16,forward,64,128,256,1,7\n      bf16,forward,64,128,256,1,8"),
          "job.yaml:10:1: kernels.products: a second row of the same size");
  refused(products("bf16,forward,64,128,1,7", "type,operands,m,n,batch,us"),
          "job.yaml:8:1: kernels.products: no column is named k");
  refused(device_with("    transfers: |\n      kind,bytes,us\n      copy,1,1\n"),
          "kind is 'copy'; allowed: elementwise, mixed");
  refused(device_with(
              "    attention: |\n      type,direction,causal,batch,heads,queries,keys,width,us\n"
              "      bf16,forward,maybe,1,1,1,1,64,5\n"),
          "causal is 'maybe'; allowed: yes, no");
  refused(device_with("    products: nowhere.csv\n"),
          "there is no table of kernels 'nowhere.csv'; check the path");
  refused(products("bf16,forward,64,128,256,1,7") + "  multiprocessors: 0\n",
          "measured kernels need the device's multiprocessors");

  const test::Folder folder;
  folder.write("mine.yaml", "base: h100-sxm\nkernels: {products: rows.csv}\n");
  folder.write("rows.csv", "type,operands,m,n,k,us\n\nbf16,forward,64,128,256\n");
  const std::string error =
      load_error("model: gpt2\ncluster: {nodes: 1}\ndevice: " + folder.path("mine.yaml") + "\n");
  EXPECT_NE(error.find("rows.csv:3:1: kernels.products: the row has no us"), std::string::npos)
      << error;
}

}  // namespace
}  // namespace ghostrank
