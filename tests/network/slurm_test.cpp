// The command under srun of a real Slurm, on two nodes with their own hostnames and networks.
#include "tests/lab/slurm.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "emulator/control/world_pmix.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::Lab;
using testing::read_file;

constexpr int kNodes = 2;
constexpr char kCommand[] = GHOSTRANK_BINARY " run ";

// One Slurm for all tests, because it takes seconds to start.
class Srun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!Lab::possible() || !testing::Slurm::missing().empty()) return;
    lab = std::make_unique<Lab>(kNodes);
    slurm = std::make_unique<testing::Slurm>(*lab, kNodes);
  }
  static void TearDownTestSuite() {
    slurm.reset();
    lab.reset();
  }
  void SetUp() override {
    if (!Lab::possible()) GTEST_SKIP() << "needs root and network namespaces";
    if (!slurm) GTEST_SKIP() << "not installed: " << testing::Slurm::missing();
  }
  static void need_pmix() {
    if (pmix_version().empty()) GTEST_SKIP() << "built without PMIx";
  }

  // A verified job of four nodes whose iterations all send the same bytes.
  static std::string write_job(const std::string& rest = "") {
    return lab->write_job(
        "model: {kind: layers, dtype: int32, layers: [{parameters: [30000], forward_us: 100, "
        "backward_us: 100}]}\n"
        "collectives: {library: nccl-2.28}\n"
        "scale: {dilation: 10}\n"
        "run: {iterations: 2, warmup: 3, probe_ms: 0, verify: true}\n" +
        rest);
  }
  // Exit status of `command`, run on the first node.
  static int play(const std::string& command) {
    const pid_t pid = lab->start(slurm->at(0, command), "said");
    const int status = lab->finish(pid, std::chrono::seconds(60));
    if (status < 0) lab->stop(pid);
    return status;
  }
  static std::string said() { return read_file(lab->file("said")); }
  static std::string result_flags() {
    return " --quiet --allow-unfaithful --json " + lab->file("result.json");
  }
  static json result() { return json::parse(read_file(lab->file("result.json")), nullptr, false); }

  inline static std::unique_ptr<Lab> lab;
  inline static std::unique_ptr<testing::Slurm> slurm;
};

// One process on each of these nodes, in this order, played the job, sent the bytes that its plan
// says between each pair of NICs, and computed correct sums.
void expect_played_as_planned(const json& result, const json& plan,
                              const std::vector<std::string>& nodes) {
  ASSERT_TRUE(result.is_object());
  ASSERT_EQ(result["hosts"].size(), nodes.size());
  for (std::size_t h = 0; h < nodes.size(); ++h)
    EXPECT_EQ(result["hosts"][h]["hostname"], nodes[h]);
  ASSERT_GT(plan["traffic"]["pairs"].size(), 0u);
  EXPECT_EQ(result["traffic"]["pairs"], plan["traffic"]["pairs"]);
  EXPECT_GT(result["verify"]["checked_elements"].get<long>(), 0);
  EXPECT_EQ(result["verify"]["wrong_elements"].get<long>(), 0);
}

json plan_of(Lab& lab, const std::string& job) {
  const std::string file = lab.file("plan.json");
  EXPECT_EQ(testing::shell(std::string(GHOSTRANK_BINARY) + " plan " + job + " --json " + file), 0);
  return json::parse(read_file(file), nullptr, false);
}

TEST_F(Srun, PlainPlaysAJobOnTwoNodesThatMeetOnTheFirst) {
  const std::string job = write_job();
  ASSERT_EQ(play("srun -N2 -n2 " + (kCommand + job) + result_flags()), 0) << said();
  expect_played_as_planned(result(), plan_of(*lab, job), {"s1", "s2"});
}

TEST_F(Srun, OverPmixTwoNodesFindEachOtherWithoutAnAddress) {
  need_pmix();
  if (IsSkipped()) return;
  const std::string job = write_job();
  ASSERT_EQ(play("srun --mpi=pmix -N2 -n2 " + (kCommand + job) + result_flags()), 0) << said();
  expect_played_as_planned(result(), plan_of(*lab, job), {"s1", "s2"});
}

TEST_F(Srun, OverPmixTwoTasksOfANodeMeetToo) {
  need_pmix();
  if (IsSkipped()) return;
  const std::string job = write_job();
  ASSERT_EQ(play("srun --mpi=pmix -N1 -n2 " + (kCommand + job) + result_flags()), 0) << said();
  expect_played_as_planned(result(), plan_of(*lab, job), {"s1", "s1"});
}

// srun sorts the nodes; the printed line must keep the order of the job's hosts.
TEST_F(Srun, TakesTheLineThatTheJobPrintsForItsHosts) {
  const std::string job = write_job("hosts: [{name: s2}, {name: s1}]\n");
  ASSERT_EQ(play((kCommand + job) + result_flags() + " --print-launch srun"), 0) << said();
  std::ofstream(lab->file("line")) << said();
  for (const std::string mpi : {"none", "pmix"}) {
    if (mpi == "pmix" && pmix_version().empty()) continue;
    ASSERT_EQ(play("env SLURM_MPI_TYPE=" + mpi + " sh line"), 0) << said();
    expect_played_as_planned(result(), plan_of(*lab, job), {"s2", "s1"});
    std::filesystem::remove(lab->file("result.json"));
  }
}

// Slurm says SLURM_PROCID=0 and SLURM_NTASKS=2 there, too.
TEST_F(Srun, IsNotAwaitedByOneProcessInABatchScriptOfTwoTasks) {
  std::ofstream(lab->file("batch")) << "#!/bin/sh\n" << kCommand << write_job() << result_flags();
  ASSERT_EQ(play("sbatch --quiet --wait -N2 -n2 --output=batch.said batch"), 0)
      << said() << read_file(lab->file("batch.said"));
  EXPECT_EQ(result()["hosts"].size(), 1u);
}

TEST_F(Srun, RefusesNodesThatAreNotTheJobsHosts) {
  const std::string job = write_job("hosts: [{name: s2}, {name: s1}]\n");
  EXPECT_EQ(play("srun -N2 -n2 " + (kCommand + job)), 3);
  EXPECT_NE(said().find("process 0 runs on s2, but it was started on s1"), std::string::npos)
      << said();
}

// A killed rank ends its step on all nodes, and Slurm reports it.
TEST_F(Srun, AFailingRankEndsTheStep) {
  const std::string job = lab->write_job(
      "model: {kind: layers, layers: [{parameters: [100000], forward_us: 20000, backward_us: "
      "20000}]}\n"
      "scale: {dilation: 1}\n"
      "run: {iterations: 3000, warmup: 0, probe_ms: 0}\n");
  // The second task kills itself once process 0 has written iterations. `exec` replaces the shell
  // by the command, so $$ stays its process id.
  const std::string partial = lab->file("result.json.partial.jsonl");
  std::ofstream(lab->file("task")) << "if [ $SLURM_PROCID = 1 ]; then\n"
                                      "  (until [ \"$(wc -l < "
                                   << partial
                                   << ")\" -ge 5 ]; do sleep 0.1; done; kill -KILL $$)&\n"
                                      "fi 2> /dev/null\n"
                                      "exec "
                                   << kCommand << job << result_flags() << "\n";
  for (const std::string mpi : {"none", "pmix"}) {
    if (mpi == "pmix" && pmix_version().empty()) continue;
    EXPECT_EQ(play("srun --mpi=" + mpi + " -N2 -n2 sh task"), 128 + SIGKILL) << said();
    EXPECT_NE(said().find("task 1: Killed"), std::string::npos) << said();
    // Slurm may end the step before it forwards the first task's output, but the result file has
    // the reason.
    const json partly = result();
    ASSERT_TRUE(partly.is_object());
    EXPECT_NE(partly["interrupted"].dump().find("(s2) was lost"), std::string::npos) << said();
    EXPECT_GE(partly["iterations"].size(), 3u);
    EXPECT_LT(partly["iterations"].size(), 3000u);
    for (int i = 0; i < 100 && !slurm->queue().empty(); ++i)  // Slurm ends the job later
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(slurm->queue(), "");
    std::filesystem::remove(lab->file("result.json"));
  }
}

}  // namespace
}  // namespace ghostrank
