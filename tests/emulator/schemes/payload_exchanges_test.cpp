// How payloads are exchanged: GRACE's communicators with their bytes on the wire, and PyTorch's
// communication hooks with theirs per bucket, all with real payloads.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/load/load.h"
#include "profiles/load/program_file.h"
#include "profiles/model/model.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/layers_job.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using testing::play;

// 8,021 gradients on six ranks, which 6 does not divide.
std::string one_tensor_job(const std::string& more) {
  return test::text_of({.layers = {{"[3000, 20, 5001]"}}, .nodes = 6}) +
         "run: {iterations: 2, verify: true}\n" + more;
}

TEST(PayloadExchanges, GiveTheSumWithinItsErrorOnEveryFabric) {
  for (const char* kind : {"memory", "virtual"})
    for (const char* how :
         {"method: topk, communicator: broadcast", "method: dgc, communicator: broadcast",
          "method: signsgd, communicator: broadcast, merge: tensor",
          "method: qsgd, communicator: all_to_all", "method: terngrad, communicator: all_to_all",
          "method: natural, communicator: all_to_all, merge: tensor",
          "method: onebit, communicator: all_to_all", "method: bf16",
          "method: powersgd, merge: matrices, rank: 2",
          "method: sidco-e, communicator: broadcast, memory: residual",
          "method: powersgd, merge: matrices, memory: powersgd"})
      for (const char* tensors : {"", "tensors: {density: 0.1, block: 100}\n"}) {
        if (*tensors != 0 && std::string(kind) == "memory") continue;
        SCOPED_TRACE(std::string(kind) + " " + how + " " + tensors);
        const Result result = play(test::load_text(one_tensor_job(
            std::string("fabric: {kind: ") + kind +
            "}\nscale: {dilation: " + (std::string(kind) == "memory" ? "2" : "auto") +
            "}\ncompression: {" + how + "}\n" + tensors)));
        EXPECT_EQ(result.interrupted, "");
        EXPECT_GT(result.verify->checked_elements, 2u * 6 * 8021);
        EXPECT_EQ(result.verify->wrong_elements, 0u);
      }
}

// The start and end of a rank's calls of an exchange, in order.
std::vector<std::pair<Picoseconds, Picoseconds>> calls_of(const std::string& library,
                                                          const std::string& compression) {
  const LoadedJob loaded =
      test::load_text(test::text_of({.layers = {{"[3000, 20, 5001]"}}, .nodes = 4}) +
                      "run: {warmup: 0, iterations: 1, verify: true}\nfabric: {kind: "
                      "virtual}\ncollectives: {library: " +
                      library + "}\ncompression: {" + compression + "}\n");
  RunOptions options;
  options.trace_ranks = {WorldRank(0)};
  const auto control = Control::meet(World{});
  Observer nobody;
  const Result result = run_job(loaded, plan_workload(loaded.spec), *control, options, nobody);
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  std::vector<std::pair<Picoseconds, Picoseconds>> calls;
  for (const Span& span : result.spans)
    if (span.kind == 1) calls.emplace_back(span.start, span.start + span.duration);
  std::sort(calls.begin(), calls.end());
  return calls;
}

// A second factor follows from the sum of the first, and payloads have the lengths exchanged
// before: also where a library's stream runs two calls at a time, as Gloo's.
TEST(PayloadExchanges, OfTwoCallsMakeThemOneAfterTheOther) {
  for (const char* library : {"gloo", "nccl-2.28"})
    for (const char* how :
         {"method: powersgd, memory: powersgd", "method: dgc, memory: dgc, ratio: 0.1"}) {
      SCOPED_TRACE(std::string(library) + " " + how);
      const auto times = calls_of(library, how);
      ASSERT_EQ(times.size(), 2u);
      EXPECT_GE(times[1].first, times[0].second);
    }
}

double bytes_of(const Result& result) {
  double bytes = 0;
  for (const PairTraffic& pair : result.pairs) bytes += pair.bytes;
  return bytes;
}

// Each of P ranks' payload reaches P - 1 others, whether they are broadcast or gathered. All-to-all
// moves the payloads of parts twice: 2 (P-1)/P of them leave every rank.
TEST(PayloadExchanges, PutOnTheWireWhatGraceSaysOfThem) {
  const auto bytes = [](const std::string& method, const std::string& communicator) {
    return play(test::load_text(
        one_tensor_job(
            "fabric: {kind: virtual}\ncollectives: {allreduce: ring}\ncompression: {method: " +
            method + ", communicator: " + communicator + "}\n"),
        {"run.verify=false", "run.warmup=2"}));
  };
  for (const char* method : {"qsgd", "topk, ratio: 0.1", "natural"}) {
    const Result broadcast = bytes(method, "broadcast"), gathered = bytes(method, "all_gather");
    const auto payload = static_cast<double>(gathered.compression->payload_bytes);
    EXPECT_EQ(broadcast.compression->payload_bytes, gathered.compression->payload_bytes);
    EXPECT_EQ(broadcast.compression->ratio_mean, gathered.compression->ratio_mean);
    EXPECT_DOUBLE_EQ(bytes_of(broadcast), 6 * 5 * payload) << method;
    EXPECT_DOUBLE_EQ(bytes_of(gathered), 6 * 5 * payload) << method;
  }
  // A part is 1,337 of 8,022 elements: a byte each, and 4 of the norm.
  for (const auto& [method, part] : {std::pair{"natural", 1337.0}, std::pair{"qsgd", 1341.0}}) {
    const Result parts = bytes(method, "all_to_all");
    EXPECT_EQ(parts.compression->payload_bytes, static_cast<std::uint64_t>(6 * part));
    EXPECT_DOUBLE_EQ(bytes_of(parts), 6 * 2 * 5 * part) << method;
  }
  // Where the data decide, each rank's own size reaches the others, and two lengths of 8 bytes.
  const Result broadcast = bytes("dgc", "broadcast"), gathered = bytes("dgc", "all_gather");
  EXPECT_DOUBLE_EQ(bytes_of(broadcast), bytes_of(gathered));
}

// A method that sums parts rounds twice; its ranks learn all the same. What is broadcast is what is
// gathered, to the last bit.
TEST(PayloadExchanges, AreLearnedFrom) {
  const auto losses = [](const std::string& compression) {
    const Result result = play(test::load_text(
        one_tensor_job("training: {task: logistic}\nfabric: {kind: virtual}\ncompression: {" +
                       compression + "}\n"),
        {"run.iterations=40"}));
    EXPECT_EQ(result.verify->wrong_elements, 0u) << compression;
    return result.training->loss;
  };
  const std::vector<double> none = losses("method: none"),
                            parts = losses("method: qsgd, communicator: all_to_all");
  EXPECT_NEAR(parts.back(), none.back(), 0.02 * none.back());
  EXPECT_NE(parts.back(), losses("method: qsgd").back());
  // Of dgc's payloads some are empty.
  for (const std::string method :
       {"method: topk, memory: residual", "method: dgc, memory: dgc", "method: signsgd"})
    EXPECT_EQ(losses(method + ", communicator: broadcast"), losses(method)) << method;
}

// Elements of the all-reduces of the steady state, in order.
std::vector<std::uint64_t> reduced(const std::string& model, const std::string& compression) {
  const LoadedJob loaded = test::load_text("schema: ghostrank/job/1\nmodel: " + model +
                                           "\ndevice: v100-sxm2\n"
                                           "cluster: {nodes: 8, gpus_per_node: 1, nics_per_node: "
                                           "1}\nprecision: {parameters: fp32, gradients: fp32}\n"
                                           "parallel: {framework: ddp}\ncompression: {" +
                                           compression + "}\n");
  std::vector<std::uint64_t> counts;
  const Workload workload = plan_workload(loaded.spec);
  for (const OpList& stream : workload.roles[0].iterations.back().streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::collective && op.tensor != 0) {
        EXPECT_EQ(op.func, Func::all_reduce);
        counts.push_back(op.count);
      }
  return counts;
}

// ResNet-50's first bucket is the last layer: a bias of 1,000 and a matrix of 1,000 x 2,048.
TEST(CommunicationHooks, SendBucketByBucketWhatPytorchDoes) {
  const std::vector<std::uint64_t> plain = reduced("resnet50", "method: fp16");
  EXPECT_EQ(plain,
            (std::vector<std::uint64_t>{2'049'000, 7'875'584, 6'563'840, 6'637'568, 2'431'040}));
  EXPECT_EQ(reduced("resnet50", "method: bf16"), plain);
  // A square of ceil(sqrt(2,049,000)) = 1,432, and so on; two factors of one column.
  EXPECT_EQ(
      reduced("resnet50", "method: powersgd"),
      (std::vector<std::uint64_t>{1432, 1432, 2807, 2807, 2562, 2562, 2577, 2577, 1560, 1560}));
  for (const std::uint64_t rank : {1, 4}) {
    const std::vector<std::uint64_t> hook =
        reduced("resnet50", "method: powersgd, merge: matrices, rank: " + std::to_string(rank));
    ASSERT_EQ(hook.size(), 15u);
    EXPECT_EQ(hook[0], 1000u);
    EXPECT_EQ(hook[1], 1000 * rank);
    EXPECT_EQ(hook[2], 2048 * rank);
    // All buckets together: what is not worth it, and the factors of the rest.
    std::uint64_t raw = 0, p = 0, q = 0, raw_sum = 0, p_sum = 0, q_sum = 0;
    for (const Layer& layer : test::shipped_model("resnet50").layers)
      for (const ParameterTensor& tensor : layer.parameters) {
        const std::uint64_t n = tensor.first_dimension(), m = tensor.numel / n,
                            r = std::min({rank, n, m});
        const bool worth = m > 1 && (n + m) * r * 2 < n * m;
        raw += worth ? 0 : tensor.numel;
        p += worth ? n * r : 0;
        q += worth ? m * r : 0;
      }
    for (std::size_t b = 0; b < hook.size(); b += 3) {
      raw_sum += hook[b];
      p_sum += hook[b + 1];
      q_sum += hook[b + 2];
    }
    EXPECT_EQ(raw_sum, raw);
    EXPECT_EQ(p_sum, p);
    EXPECT_EQ(q_sum, q);
  }
}

TEST(CommunicationHooks, AreWrittenIntoProgramsAndReadAgain) {
  const LoadedJob planned = test::load_text(one_tensor_job(
      "fabric: {kind: virtual}\ncompression: {method: powersgd, merge: matrices}\n"));
  const Workload workload = plan_workload(planned.spec);
  ASSERT_FALSE(workload.compressed.empty());
  EXPECT_EQ(workload.compressed.front().parts.size(), 3u);
  for (const char* communicator : {"broadcast", "all_to_all"}) {
    const LoadedJob other = test::load_text(
        one_tensor_job("fabric: {kind: virtual}\ncompression: {method: qsgd, communicator: " +
                       std::string(communicator) + "}\n"));
    const LoadedJob again =
        test::load_text(program_job(other, plan_workload(other.spec), ProgramForm::yaml));
    EXPECT_EQ(play(again).verify->wrong_elements, 0u);
    EXPECT_EQ(play(again).verify->checked_elements, play(other).verify->checked_elements);
  }
  const LoadedJob again = test::load_text(program_job(planned, workload, ProgramForm::yaml));
  EXPECT_EQ(plan_workload(again.spec).compressed, workload.compressed);
  EXPECT_EQ(play(again).verify->wrong_elements, 0u);
}

std::string refused(const std::string& compression) {
  const std::string error = test::error_of([&] {
    plan_workload(test::load_text(one_tensor_job("compression: {" + compression + "}\n")).spec);
  });
  return error.empty() ? error : error.substr(error.find("job.yaml"));
}

TEST(PayloadExchanges, ThatDoNotSuitTheMethodAreRefusedWithWhatDoes) {
  EXPECT_EQ(refused("method: fp16, communicator: broadcast"),
            "job.yaml:11:43: compression.communicator: payloads of fp16 are added up, and so "
            "all-reduced; use all_reduce or auto");
  EXPECT_EQ(refused("method: topk, communicator: all_to_all"),
            "job.yaml:11:43: compression.communicator: payloads of topk are elements of the whole "
            "tensor, of which parts would be others; all_to_all is for methods that send every "
            "element, as qsgd, terngrad or natural; use all_gather, broadcast or auto");
  EXPECT_NE(refused("method: signsgd, communicator: all_to_all").find("are votes, whose sum is"),
            std::string::npos);
  EXPECT_NE(refused("method: qsgd, communicator: all_to_all, memory: residual")
                .find("all_to_all compresses sums once more"),
            std::string::npos);
  EXPECT_NE(refused("method: topk, merge: matrices").find("matrices is what DDP's powerSGD_hook"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
