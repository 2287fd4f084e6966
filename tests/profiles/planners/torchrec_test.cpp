// DLRM under TorchRec against closed forms.
#include "profiles/planners/torchrec.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::CallSums;

struct DlrmJob {
  std::string model = "dlrm-dcnv2";
  int ranks = 8;
  int batch = 16;
  std::string more, precision = "bf16", device = "{base: h100-sxm, memory_bytes: 0}";

  Workload workload() const {
    return plan_workload(
        test::load_text("model: " + model + "\ndevice: " + device + "\nprecision: {parameters: " +
                        precision + "}\ncluster: {nodes: " + std::to_string(ranks) +
                        ", gpus_per_node: 1, nics_per_node: 1}\nparallel: {framework: torchrec, "
                        "micro_batch: " +
                        std::to_string(batch) + more + "}\n")
            .spec);
  }
};

// Elements that each all_to_all_v of a group moves between different ranks, in program order.
std::vector<std::uint64_t> travelling(const Workload& workload, const std::string& group) {
  std::vector<std::uint64_t> out;
  for (const auto& stream : workload.roles[0].iterations[0].streams)
    for (const Op& op : stream) {
      if (op.kind != Op::Kind::collective || op.func != Func::all_to_all_v) continue;
      if (workload.group_names[op.group] != group) continue;
      const auto n = static_cast<std::size_t>(workload.ranks);
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
          if (i != j) sum += (*workload.counts[op.counts])[i * n + j];
      out.push_back(sum);
    }
  return out;
}

TEST(Dlrm, HasTheParametersOfItsBenchmark) {
  const Model dcn = test::shipped_model("dlrm-dcnv2"), dot = test::shipped_model("dlrm-criteo");
  constexpr std::uint64_t kRows = 204184588, kIn = 27 * 128;
  const std::uint64_t bottom = 13 * 512 + 512 + 512 * 256 + 256 + 256 * 128 + 128;
  const auto top = [](std::uint64_t in) {
    return in * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 512 + 512 + 512 * 256 + 256 + 256 + 1;
  };
  EXPECT_EQ(dcn.parameters(), kRows * 128 + bottom + 3 * (2 * kIn * 512 + kIn) + top(kIn));
  EXPECT_EQ(dot.parameters(), kRows * 128 + bottom + top(128 + 27 * 26 / 2));
}

// Every pooled row goes to its sample's rank, and its gradient comes back, unless the row is there
// already: (n-1)/n of the rows of 26 tables. Each sample has 214 ids.
TEST(Torchrec, ExchangesRowsOfWholeTables) {
  for (const int ranks : {2, 7, 8, 64})
    for (const char* placement : {"greedy", "random"}) {
      const DlrmJob plan{
          .ranks = ranks, .batch = 10, .more = std::string(", table_placement: ") + placement};
      const Workload workload = plan.workload();
      const auto others = static_cast<std::uint64_t>(ranks - 1);
      const std::uint64_t rows = others * 10 * 26 * 128;
      EXPECT_EQ(travelling(workload, "embeddings"), (std::vector<std::uint64_t>{rows, rows}));
      EXPECT_EQ(travelling(workload, "ids"),
                (std::vector<std::uint64_t>{others * 10 * 26, others * 10 * 214}));
      for (const Role& role : workload.roles) EXPECT_TRUE(test::streams_end(role.iterations[0]));
    }
}

// Six tables have more than a million rows (3,067,956 and five of 40 million) and are split; 20
// stay whole.
TEST(Torchrec, ReducesAndScattersTheRowsOfSplitTables) {
  for (const int ranks : {4, 6, 32}) {
    const Workload workload =
        DlrmJob{.ranks = ranks, .batch = 12, .more = ", row_wise_above: 1000000"}.workload();
    const Program& program = workload.roles[0].iterations[0];
    const auto n = static_cast<std::uint64_t>(ranks);
    CallSums split = test::sums_of(program, workload, "embeddings");
    EXPECT_EQ(split.bytes[Func::reduce_scatter], 12 * 128 * 6 * 2u);  // bf16, a rank's share
    EXPECT_EQ(split.bytes[Func::all_gather], 12 * 128 * 6 * 2u);
    EXPECT_EQ(travelling(workload, "embeddings")[0], (n - 1) * 12 * 20 * 128);
    // Counts of ids go to every rank for each of the six, and to one rank for a whole table.
    EXPECT_EQ(travelling(workload, "ids")[0], (n - 1) * 12 * (20 + n * 6));
    // No id is lost: 214 per sample, including those that stay.
    int calls = 0;
    for (const Op& op : program.streams[3]) {
      if (op.kind != Op::Kind::collective || program.labels[op.label] != "ids") continue;
      const auto& list = *workload.counts[op.counts];
      EXPECT_EQ(std::accumulate(list.begin(), list.end(), std::uint64_t{0}), n * 12 * 214);
      ++calls;
    }
    EXPECT_EQ(calls, 1);
  }
}

TEST(Torchrec, ReducesDenseGradientsInBucketsBesideTheBackward) {
  const Workload workload = DlrmJob{}.workload();
  const Program& program = workload.roles[0].iterations[0];
  const Model model = test::shipped_model("dlrm-dcnv2");
  const std::uint64_t dense = model.parameters() - 204184588ULL * 128;
  CallSums sums = test::sums_of(program, workload, "dp");
  EXPECT_EQ(sums.bytes[Func::all_reduce], dense * 4);
  EXPECT_EQ(sums.calls[Func::all_reduce], 4u);  // 1 MiB, then 25 MiB each: 64 MB of gradients
  EXPECT_EQ(workload.samples_per_iteration, 8 * 16);
}

TEST(TablePlacement, GivesTheNextTableToWhoHasLeastToDo) {
  const Recommendation model{false, 4, {{10, 1}, {20, 5}, {30, 3}, {40, 3}, {1000, 9}}, 1};
  ParallelPlan parallel;
  EXPECT_EQ(place_tables(model, 2, parallel, 1), (std::vector<int>{0, 1, 1, 1, 0}));
  parallel.row_wise_above = 999;
  EXPECT_EQ(place_tables(model, 2, parallel, 1), (std::vector<int>{0, 0, 1, 1, kRowWise}));
}

TEST(TablePlacement, IsDrawnFromTheSeed) {
  const Recommendation model = *test::shipped_model("dlrm-dcnv2").recommendation;
  ParallelPlan parallel;
  parallel.random_tables = true;
  EXPECT_EQ(place_tables(model, 16, parallel, 1), place_tables(model, 16, parallel, 1));
  EXPECT_NE(place_tables(model, 16, parallel, 1), place_tables(model, 16, parallel, 2));
  const std::vector<int> drawn = place_tables(model, 16, parallel, 3);
  EXPECT_GT(std::set<int>(drawn.begin(), drawn.end()).size(), 8u);
}

// A lookup takes the time to read its rows; ranks that look up equally many share a role.
TEST(Torchrec, TakesTimeForEveryRowLookedUp) {
  const Workload workload = DlrmJob{.ranks = 2}.workload();
  ASSERT_EQ(workload.roles.size(), 1u);  // 107 ids each
  const Op& lookup = workload.roles[0].iterations[0].streams[0][0];
  const double seconds = 32.0 * 107 * 128 * 4 / 3.35e12;
  EXPECT_NEAR(static_cast<double>(lookup.duration) * 1e-12, seconds, seconds * 0.01);
  EXPECT_GT(DlrmJob{.ranks = 16}.workload().roles.size(), 4u);
}

TEST(Torchrec, RefusesWhatDoesNotFit) {
  const auto error = [](const DlrmJob& plan) { return test::error_of([&] { plan.workload(); }); };
  EXPECT_NE(error({.ranks = 1, .device = "h100-sxm"})
                .find("rank 0 has tables of 105 GB and the device h100-sxm has 86 GB; use "
                      "parallel.row_wise_above=39999999 or more GPUs"),
            std::string::npos);
  EXPECT_NE(error({.model = "gpt2"}).find("and gpt2 is none; use dlrm-dcnv2"), std::string::npos);
  EXPECT_NE(test::load_error("model: dlrm-criteo\ndevice: h100-sxm\nparallel: {framework: fsdp}\n")
                .find("use parallel.framework=torchrec"),
            std::string::npos);
  EXPECT_NE(test::load_error("model: {base: dlrm-criteo, bottom: [512, 64]}\ndevice: h100-sxm\n")
                .find("the bottom ends with 64 but embeddings are 128 wide"),
            std::string::npos);
  EXPECT_NE(test::load_error("model: {base: dlrm-criteo, lookups: [1, 2]}\ndevice: h100-sxm\n")
                .find("there are 2 lookups but 26 tables"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
