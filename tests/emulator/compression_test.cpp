// Jobs that compress gradients: the bytes exchanged, real payloads on every fabric, the time of
// compression, and the tensors that are not compressed.
#include <gtest/gtest.h>

#include "emulator/control/control.h"
#include "emulator/engine.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/load/program_file.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/support.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

std::string job(const std::string& more, const std::string& framework = "ddp") {
  return "schema: ghostrank/job/1\n"
         "model:\n"
         "  kind: layers\n"
         "  name: small\n"
         "  dtype: float32\n"
         "  layers:\n"
         "    - {name: a, parameters: [3000, 20], forward_us: 10, backward_us: 10}\n"
         "    - {name: b, parameters: [5000], forward_us: 10, backward_us: 10}\n"
         "cluster: {nodes: 3, gpus_per_node: 2, nics_per_node: 1}\n"
         "run: {iterations: 2, verify: true}\n"
         "parallel: {framework: " +
         framework + "}\n" + more;
}

Result play(const LoadedJob& loaded) {
  const auto control = Control::meet(World{});
  Observer nobody;
  return run_job(loaded, plan_workload(loaded.spec), *control, {}, nobody);
}

TEST(Compression, OfEveryMethodGivesTheSumWithinItsErrorOnEveryFabric) {
  for (const char* kind : {"memory", "virtual"})
    for (const char* method : {"fp16", "topk", "topk, ratio: 0.2"})
      for (const char* tensors : {"", "tensors: {density: 0.1, block: 100}\n"})
        for (const char* framework : {"ddp", "horovod", "wfbp", "mgwfbp"}) {
          SCOPED_TRACE(std::string(kind) + " " + method + " " + framework + " " + tensors);
          const Result result = play(test::load_text(
              job(std::string("fabric: {kind: ") + kind +
                      "}\nscale: {dilation: " + (std::string(kind) == "memory" ? "50" : "auto") +
                      "}\ncompression: {method: " + method + "}\n" + tensors,
                  framework)));
          EXPECT_EQ(result.interrupted, "");
          EXPECT_GT(result.verify->checked_elements, 2u * 6 * 8020);
          EXPECT_EQ(result.verify->wrong_elements, 0u);
        }
}

// A buffer of 8,020 elements becomes as many halves, or 80 values and indices.
TEST(Compression, ExchangesPayloadsInPlaceOfGradients) {
  const auto traffic = [](const std::string& compression) {
    const LoadedJob loaded = test::load_text(job(compression));
    return plan_traffic(loaded.spec, plan_workload(loaded.spec));
  };
  const auto buffer = [](const TrafficPlan& plan, const std::string& op) {
    std::uint64_t bytes = 0;
    for (const CollectiveTraffic& row : plan.collectives)
      if (row.op == op) bytes += row.buffer_bytes;
    return bytes;
  };
  EXPECT_EQ(buffer(traffic(""), "allreduce"), 4u * 8020);
  const TrafficPlan half = traffic("compression: {method: fp16}\n");
  EXPECT_EQ(buffer(half, "allreduce"), 2u * 8020);
  const TrafficPlan top = traffic("compression: {method: topk}\n");
  EXPECT_EQ(buffer(top, "allreduce"), 0u);
  EXPECT_EQ(buffer(top, "all_gather"), 6u * 8 * 80);
}

TEST(Compression, CostsWhatTheMethodSaysAndIsInTheResult) {
  const auto step = [](const std::string& compression) {
    return play(test::load_text(job("fabric: {kind: virtual}\n" + compression),
                                {"cluster.nic.rate=0", "cluster.nic.latency_us=0",
                                 "cluster.intra_node.rate=0", "cluster.intra_node.latency_us=0"}));
  };
  const Result none = step(""), top = step("compression: {method: topk, ratio: 0.1}\n");
  const Compressor& method = compressors()[1];
  ASSERT_EQ(method.name, "topk");
  const double cost = method.cost.tensor_us * 7 +
                      8020e-3 * (method.cost.compress_ns + 6 * method.cost.decompress_ns);
  EXPECT_NEAR(top.iterations.back().seconds - none.iterations.back().seconds, cost * 1e-6, 1e-9);
  EXPECT_FALSE(none.compression.has_value());
  ASSERT_TRUE(top.compression.has_value());
  EXPECT_EQ(top.compression->method, "topk");
  EXPECT_EQ(top.compression->payload_bytes, 8u * 802);
  EXPECT_EQ(top.compression->ratio_target, 0.1);
  EXPECT_DOUBLE_EQ(top.compression->ratio_mean, 0.1);
}

TEST(Compression, IsPlayedFromProgramsAsItWasPlanned) {
  const LoadedJob planned =
      test::load_text(job("fabric: {kind: virtual}\ncompression: {method: topk, ratio: 0.2}\n"));
  const Workload workload = plan_workload(planned.spec);
  for (const ProgramForm form : {ProgramForm::yaml, ProgramForm::json}) {
    const LoadedJob again = test::load_text(program_job(planned, workload, form));
    EXPECT_EQ(plan_workload(again.spec).compressed, workload.compressed);
    const Result result = play(again);
    EXPECT_EQ(result.verify->checked_elements, play(planned).verify->checked_elements);
    EXPECT_EQ(result.verify->wrong_elements, 0u);
  }
}

std::string refused(const std::string& more, const std::string& framework = "ddp") {
  const std::string error =
      test::error_of([&] { plan_workload(test::load_text(job(more, framework)).spec); });
  return error.empty() ? error : error.substr(error.find("job.yaml"));
}

TEST(Compression, ThatDoesNotComposeIsRefusedWithWhatDoes) {
  EXPECT_EQ(refused("compression: {method: top}\n"),
            "job.yaml:12:23: compression.method is 'top'; did you mean topk?");
  EXPECT_EQ(refused("compression: {method: topk, communicator: all_reduce}\n"),
            "job.yaml:12:43: compression.communicator: payloads of topk cannot be added up, and so "
            "are gathered; use all_gather or auto");
  EXPECT_EQ(refused("compression: {method: fp16, communicator: all_gather}\n"),
            "job.yaml:12:43: compression.communicator: payloads of fp16 are added up, and so "
            "all-reduced; use all_reduce or auto");
  EXPECT_EQ(refused("compression: {method: topk, ratio: 0}\n"),
            "job.yaml:12:36: compression.ratio is '0'; write a number from 1e-09 to 1");
  EXPECT_EQ(refused("compression: {method: topk}\n", "zero2"),
            "job.yaml:12:23: topk does not go with framework zero2, which scatters sums of "
            "gradients or reduces parts of them: payloads are of whole tensors; use "
            "parallel.framework=ddp, horovod, wfbp or mgwfbp, or compression.method=none");
  EXPECT_EQ(refused("compression: {method: topk}\nprecision: {gradients: int32}\n"),
            "job.yaml:13:24: gradients of int32 cannot be compressed; use fp32 or bf16, or "
            "compression.method=none");
}

}  // namespace
}  // namespace ghostrank
