// Jobs that compress gradients: the bytes exchanged, real payloads on every fabric, the time of
// compression, and the tensors that are not compressed.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "emulator/traffic/tensor_use.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/load/program_file.h"
#include "profiles/planners/compression/times.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/emulator/support.h"
#include "tests/layers_job.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using testing::play;

std::string verified_job(const std::string& more, const std::string& framework = "ddp") {
  return test::text_of({.layers = {{"[3000, 20]"}, {"[5000]"}},
                        .nodes = 3,
                        .gpus_per_node = 2,
                        .parallel = "framework: " + framework}) +
         "run: {iterations: 2, verify: true}\n" + more;
}

// The path of a file with this text.
std::string table_file(const std::string& text) {
  const std::string path =
      ::testing::TempDir() + "ghostrank_costs_" + std::to_string(getpid()) + ".csv";
  std::ofstream(path) << text;
  return path;
}

TEST(Compression, OfEveryMethodGivesTheSumWithinItsErrorOnEveryFabric) {
  for (const char* kind : {"memory", "virtual"})
    for (const char* method : {"fp16",
                               "topk",
                               "topk, ratio: 0.2",
                               "randomk",
                               "qsgd",
                               "terngrad",
                               "signsgd",
                               "onebit",
                               "natural",
                               "8bit",
                               "sketch",
                               "efsignsgd",
                               "signum",
                               "powersgd, rank: 2",
                               "dgc",
                               "adaq",
                               "threshold, threshold: 0.002",
                               "inceptionn",
                               "redsync",
                               "gaussian_ksgd",
                               "sidco-e",
                               "sidco-p",
                               "sidco-gp, stages: 2",
                               "dithering, quantum: 4",
                               "dithering, quantum: 5, partition: natural, normalize: l2"})
      for (const char* tensors : {"", "tensors: {density: 0.1, block: 100}\n"})
        for (const char* framework : {"ddp", "horovod", "wfbp", "mgwfbp"}) {
          // Every method on one fabric with one framework; a few of them everywhere.
          const std::string name = method;
          const bool everywhere = name.starts_with("fp16") || name.starts_with("topk") ||
                                  name.starts_with("powersgd") || name == "dgc";
          if (!everywhere &&
              (std::string(kind) == "memory" || *tensors != 0 || std::string(framework) != "ddp"))
            continue;
          SCOPED_TRACE(std::string(kind) + " " + method + " " + framework + " " + tensors);
          const Result result = play(test::load_text(verified_job(
              std::string("fabric: {kind: ") + kind +
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
    const LoadedJob loaded = test::load_text(verified_job(compression));
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

// Also where the payloads of some steps are twice as long as those of others.
TEST(Compression, IsPlannedWithTheMeanOfItsSteps) {
  for (const char* differ :
       {"method: threshold, threshold: 0.003}\ntensors: {drift: {scale: 0.8}}\n",
        "method: dgc, ratio: 0.1, memory: dgc}\n"}) {
    SCOPED_TRACE(differ);
    const LoadedJob loaded = test::load_text(
        verified_job(std::string("fabric: {kind: virtual}\ncompression: {") + differ),
        {"run.verify=false", "run.warmup=2", "run.iterations=6"});
    const Workload workload = plan_workload(loaded.spec);
    const TrafficPlan mean = mean_traffic(loaded.spec, workload);
    const Result result = play(loaded, workload);
    double bytes = 0, messages = 0;
    for (const PairTraffic& pair : mean.pairs) bytes += pair.bytes, messages += pair.messages;
    EXPECT_DOUBLE_EQ(bytes, result.wire_bytes_per_iteration);
    EXPECT_DOUBLE_EQ(messages, result.messages_per_iteration);
    EXPECT_EQ(mean.wire_bytes, static_cast<std::uint64_t>(std::llround(bytes)));
    EXPECT_NE(mean.wire_bytes, plan_traffic(loaded.spec, workload).wire_bytes);
    double slowest = 0;
    for (const IterationReport& i : result.iterations) slowest = std::max(slowest, i.seconds);
    EXPECT_LE(mean.step_seconds_at_least, slowest);
  }
}

TEST(Compression, CostsWhatTheMethodSaysAndIsInTheResult) {
  const auto step = [](const std::string& compression) {
    return play(test::load_text(verified_job("fabric: {kind: virtual}\n" + compression),
                                {"cluster.nic.rate=0", "cluster.nic.latency_us=0",
                                 "cluster.intra_node.rate=0", "cluster.intra_node.latency_us=0"}));
  };
  const Result none = step(""), top = step("compression: {method: topk, ratio: 0.1}\n");
  const Compressor& method = compressors()[1];
  ASSERT_EQ(method.name, "topk");
  const double cost = method.cost.compress_us + 6 * method.cost.decompress_us +
                      8020e-3 * (method.cost.compress_ns + 6 * method.cost.decompress_ns);
  EXPECT_NEAR(top.iterations.back().seconds - none.iterations.back().seconds, cost * 1e-6, 1e-9);
  EXPECT_FALSE(none.compression.has_value());
  ASSERT_TRUE(top.compression.has_value());
  EXPECT_EQ(top.compression->method, "topk");
  EXPECT_EQ(top.compression->payload_bytes, 8u * 802);
  EXPECT_EQ(top.compression->ratio_target, 0.1);
  EXPECT_DOUBLE_EQ(top.compression->ratio_mean, 0.1);
}

// A table in place of the built-in costs: between its sizes time grows evenly, beyond them an
// element takes as long as there. The tensors have 3,000, 20 and 5,000 elements.
TEST(Compression, CostsWhatAMeasuredTableSays) {
  const std::string table = table_file(
      "method,elements,payload_bytes,compress_ns,decompress_ns,copy_ns,bound,cpu\n"
      "topk,1000,80,3,2,0.1,compute,\"a, b\"\n"
      "qsgd,1000,1000,900,900,0.1,compute,\"a, b\"\n"
      "topk,4000,320,1,1,0.1,compute,\"a, b\"\n");
  const auto step = [](const std::string& compression) {
    return play(test::load_text(
                    verified_job(
                        "fabric: {kind: virtual}\ncompression: {method: topk, merge: tensor" +
                        compression + "}\n"),
                    {"cluster.nic.rate=0", "cluster.nic.latency_us=0", "cluster.intra_node.rate=0",
                     "cluster.intra_node.latency_us=0"}))
        .iterations.back()
        .seconds;
  };
  const std::string measured = ", costs: " + table;
  const Compressor& method = compressors()[1];
  const double built_in = 3 * (method.cost.compress_us + 6 * method.cost.decompress_us) +
                          8020e-3 * (method.cost.compress_ns + 6 * method.cost.decompress_ns);
  // Nanoseconds: 3,000 elements lie two thirds of the way from 3,000 to 4,000, and from 2,000.
  const double compress = (3000 + 1000 * 2 / 3.) + 20 * 3 + 5000 * 1,
               decompress = (2000 + 2000 * 2 / 3.) + 20 * 2 + 5000 * 1;
  EXPECT_NEAR(step(measured) - step(""), 1e-9 * (compress + 6 * decompress) - 1e-6 * built_in,
              1e-11);
  // Payloads are 8 bytes for each of 30, 1 and 50 elements.
  EXPECT_NEAR(step(", gather_us: 7, gather_ns: 2") - step(""), 3 * 7e-6 + 5 * 8 * 81 * 2e-9, 1e-11);
}

TEST(Compression, OfAnUnusableTableIsRefusedWithItsPlace) {
  const auto refused = [](const std::string& text, const std::string& method) {
    const std::string costs = text.empty() ? "nonesuch.csv" : table_file(text);
    return test::error_of([&] {
      test::load_text(
          verified_job("compression: {method: " + method + ", costs: " + costs + "}\n"));
    });
  };
  const auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  const std::string head = "method,elements,compress_ns,decompress_ns\n";
  expect(refused("", "topk"), "there is no such file");
  expect(refused("topk,1,1,1\n", "topk"), ":1:1: the head has no method");
  expect(refused(head + "topk,1000,-1,1\n", "topk"), ":2:1: 'topk,1000,-1,1' is no row");
  expect(refused(head + "topk,1000,nan,1\n", "topk"), "is no row");
  expect(refused(head + "topk,0,1,1\n", "topk"), "is no row");
  expect(refused(head + "topk,1000,1,1\n", "qsgd"), "has no row of 'qsgd'; measure it by");
}

// Of every method but BytePS's own, which no GPU has run. A small tensor takes as long as the host
// needs to launch kernels, a large one is passed through the device's memory.
TEST(Compression, CostsWhatAShippedTableSays) {
  const auto at = [](std::string_view method, std::uint64_t elements) {
    const LoadedJob loaded = test::load_text(
        verified_job("compression: {method: " + std::string(method) + ", costs: h200-pytorch}\n"));
    return compression_time(*loaded.spec.compression, elements);
  };
  for (const Compressor& method : compressors()) {
    SCOPED_TRACE(method.name);
    if (method.name == "dithering") continue;
    const CompressionTime small = at(method.name, 1'000'000), large = at(method.name, 26'000'000);
    EXPECT_GT(small.compress_ns, 5'000);
    EXPECT_GT(large.compress_ns, 30'000);
    EXPECT_GT(large.decompress_ns, small.decompress_ns);
  }
  EXPECT_NE(test::error_of([&] { at("dithering", 1); }).find("has no row of 'dithering'"),
            std::string::npos);
  EXPECT_NE(test::error_of([] {
              test::load_text(verified_job("compression: {method: topk, costs: h2}\n"));
            }).find("write v100, h200-pytorch, or the path"),
            std::string::npos);
}

TEST(Compression, IsPlayedFromProgramsAsItWasPlanned) {
  const LoadedJob planned = test::load_text(
      verified_job("fabric: {kind: virtual}\ncompression: {method: topk, ratio: 0.2}\n"));
  const Workload workload = plan_workload(planned.spec);
  for (const ProgramForm form : {ProgramForm::yaml, ProgramForm::json}) {
    const LoadedJob again = test::load_text(program_job(planned, workload, form));
    EXPECT_EQ(plan_workload(again.spec).compressed, workload.compressed);
    const Result result = play(again);
    EXPECT_EQ(result.verify->checked_elements, play(planned).verify->checked_elements);
    EXPECT_EQ(result.verify->wrong_elements, 0u);
  }
}

std::string refused_compression(const std::string& more, const std::string& framework = "ddp") {
  const std::string error =
      test::error_of([&] { plan_workload(test::load_text(verified_job(more, framework)).spec); });
  return error.empty() ? error : error.substr(error.find("job.yaml"));
}

TEST(Compression, ThatDoesNotComposeIsRefusedWithWhatDoes) {
  EXPECT_EQ(refused_compression("compression: {method: top}\n"),
            "job.yaml:12:23: compression.method is 'top'; did you mean topk?");
  EXPECT_EQ(refused_compression("compression: {method: topk, communicator: all_reduce}\n"),
            "job.yaml:12:43: compression.communicator: payloads of topk cannot be added up, and so "
            "are gathered; use all_gather or auto");
  EXPECT_EQ(refused_compression("compression: {method: fp16, communicator: all_gather}\n"),
            "job.yaml:12:43: compression.communicator: payloads of fp16 are added up, and so "
            "all-reduced; use all_reduce or auto");
  EXPECT_EQ(refused_compression("compression: {method: topk, ratio: 0}\n"),
            "job.yaml:12:36: compression.ratio is '0'; write a number from 1e-09 to 1");
  EXPECT_EQ(refused_compression("compression: {method: topk}\n", "zero2"),
            "job.yaml:12:23: topk does not go with framework zero2, which scatters sums of "
            "gradients or reduces parts of them: payloads are of whole tensors; use "
            "parallel.framework=ddp, horovod, wfbp or mgwfbp, or compression.method=none");
  EXPECT_EQ(refused_compression("compression: {method: topk}\nprecision: {gradients: int32}\n"),
            "job.yaml:13:24: gradients of int32 cannot be compressed; use fp32 or bf16, or "
            "compression.method=none");
}

// DDP's first step is one call of all gradients.
TEST(Compression, OfRealDataRefusesMoreElementsThanIndicesCanNumber) {
  const auto planned = [](const std::string& verify) {
    plan_workload(test::load_text("schema: ghostrank/job/1\nmodel: llama3-8b\ndevice: h100-sxm\n"
                                  "cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n"
                                  "parallel: {framework: ddp}\ncompression: {method: topk}\n",
                                  {"device.memory_bytes=0", "run.verify=" + verify})
                      .spec);
  };
  EXPECT_EQ(test::error_of([&] { planned("false"); }), "");
  const std::string refusal = test::error_of([&] { planned("true"); });
  EXPECT_TRUE(
      refusal.ends_with("job.yaml:6:23: topk numbers elements of real data in 32 bits, and a call "
                        "of this job has 8030261248; use another method, or run.verify=false"))
      << refusal;
}
TEST(Compression, OfMatricesRefusesARankLargerThanOne) {
  const std::string error = test::error_of([&] {
    plan_workload(test::load_text("schema: ghostrank/job/1\nmodel: resnet50\ndevice: v100-sxm2\n"
                                  "cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n"
                                  "parallel: {framework: ddp}\n"
                                  "compression: {method: powersgd, rank: 65, merge: tensor}\n")
                      .spec);
  });
  EXPECT_NE(error.find("rank 65 is larger than a matrix of 256 x 64 "), std::string::npos) << error;
  EXPECT_NE(error.find("use at most 64"), std::string::npos) << error;
  EXPECT_EQ(refused_compression("compression: {method: qsgd, merge: model}\n", "horovod"),
            "job.yaml:12:36: only ddp can hold all gradients back for one call; use "
            "parallel.framework=ddp, or compression.merge=bucket");
  EXPECT_EQ(refused_compression("compression: {method: qsgd, merge: tensor}\n", "wfbp"),
            "job.yaml:12:36: framework wfbp merges tensors by a rule of its own; use "
            "parallel.framework=ddp or horovod, or compression.merge=bucket");
}

// Payloads whose size the data decide: every rank's differs, and all of them are near the ratio.
TEST(Compression, SendsWhatTheDrawnGradientsDecide) {
  const LoadedJob loaded = test::load_text(
      "schema: ghostrank/job/1\nmodel: resnet50\ndevice: v100-sxm2\n"
      "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1}\nparallel: {framework: ddp}\n"
      "compression: {method: dgc, ratio: 0.01}\n");
  const Workload workload = plan_workload(loaded.spec);
  ASSERT_FALSE(workload.counts.empty());
  for (const Counts& counts : workload.counts) {
    ASSERT_EQ(counts->size(), 4u);
    EXPECT_FALSE(std::all_of(counts->begin(), counts->end(),
                             [&](std::uint64_t c) { return c == counts->front(); }));
  }
  const auto use = compression_use(loaded.spec, workload, 3);
  ASSERT_TRUE(use.has_value());
  EXPECT_GT(use->ratio_mean, 0.007);
  EXPECT_LT(use->ratio_mean, 0.014);
}

// Bytes of one rank's payloads, tensor by tensor, in a job with this model.
std::uint64_t payload_by_tensor(const std::string& model, const std::string& method) {
  const LoadedJob loaded = test::load_text(
      "schema: ghostrank/job/1\nmodel: " + model +
      "\ndevice: v100-sxm2\ncluster: {nodes: 8, gpus_per_node: 1, nics_per_node: 1}\n"
      "parallel: {framework: ddp, launch: after_backward}\n"
      "compression: {merge: tensor, method: " +
      method + "}\n");
  return compression_use(loaded.spec, plan_workload(loaded.spec), 0)->payload_bytes;
}

// What GRACE measured for its ResNet-50 (1,001 classes, 161 tensors of 25,559,081 parameters) and
// its NCF (10 tensors): the released table's data volumes, to the byte.
TEST(Compression, SendsTheBytesThatGraceMeasured) {
  const std::string resnet = "{base: resnet50, classes: 1001}";
  const std::pair<const char*, std::uint64_t> kResnet[] = {{"signsgd", 25'559'081},
                                                           {"signum", 25'559'081},
                                                           {"natural", 25'559'081},
                                                           {"terngrad", 25'559'725},
                                                           {"8bit", 25'559'725},
                                                           {"efsignsgd", 25'559'725},
                                                           {"qsgd, quantum: 64", 25'559'725},
                                                           {"onebit", 25'560'369},
                                                           {"qsgd, quantum: 128", 51'118'806},
                                                           {"qsgd, quantum: 256", 51'118'806},
                                                           {"sketch, quantiles: 64", 25'600'297},
                                                           {"sketch, quantiles: 128", 25'641'513},
                                                           {"sketch, quantiles: 256", 51'283'026},
                                                           {"randomk, ratio: 0.01", 1'022'132},
                                                           {"randomk, ratio: 0.1", 10'223'308},
                                                           {"randomk, ratio: 0.25", 25'559'080},
                                                           {"randomk, ratio: 0.5", 51'118'160},
                                                           {"topk, ratio: 0.01", 2'044'264},
                                                           {"topk, ratio: 0.1", 20'446'616},
                                                           {"topk, ratio: 0.25", 51'118'160},
                                                           {"topk, ratio: 0.5", 102'236'320}};
  for (const auto& [method, bytes] : kResnet)
    EXPECT_EQ(payload_by_tensor(resnet, method), bytes) << method;
  const std::pair<const char*, std::uint64_t> kNcf[] = {{"signsgd", 31'832'577},
                                                        {"terngrad", 31'832'617},
                                                        {"onebit", 31'832'657},
                                                        {"qsgd, quantum: 128", 63'665'194},
                                                        {"sketch, quantiles: 64", 31'835'137},
                                                        {"sketch, quantiles: 256", 63'675'394},
                                                        {"randomk, ratio: 0.01", 1'273'292},
                                                        {"topk, ratio: 0.01", 2'546'584}};
  for (const auto& [method, bytes] : kNcf)
    EXPECT_EQ(payload_by_tensor("ncf", method), bytes) << method;
  // Of its LSTM only the volume without compression is known.
  EXPECT_EQ(2 * payload_by_tensor("lstm-ptb", "fp16"), 53'100'800u);
}

// Each of P ranks on a node of its own sends 2 (P-1)/P of its payload in a ring all-reduce, and P-1
// payloads in a ring all-gather.
TEST(Compression, PutsOnTheWireWhatItsCommunicatorCosts) {
  for (const char* method : {"fp16", "randomk, ratio: 0.1", "qsgd", "topk, ratio: 0.1", "onebit"}) {
    SCOPED_TRACE(method);
    const Result result = play(test::load_text(
        verified_job(
            "fabric: {kind: virtual}\ncollectives: {allreduce: ring}\ncompression: {method: " +
            std::string(method) + "}\n"),
        {"cluster.nodes=5", "cluster.gpus_per_node=1", "run.warmup=2", "run.verify=false"}));
    double bytes = 0;
    for (const PairTraffic& pair : result.pairs) bytes += pair.bytes;
    const auto payload = static_cast<double>(result.compression->payload_bytes);
    const bool reduced = method[0] == 'f' || method[0] == 'r';
    EXPECT_DOUBLE_EQ(bytes, (reduced ? 2.0 * 4 : 5.0 * 4) * payload);
  }
}

}  // namespace
}  // namespace ghostrank
