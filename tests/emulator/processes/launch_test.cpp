// The command under launchers, from start to end. mpirun of Open MPI tells each process its rank
// and process 0's address over PMIx: no MASTER_ADDR, no port. (srun: tests/network.)
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "emulator/control/control.h"
#include "emulator/control/meet.h"
#include "emulator/control/world_pmix.h"
#include "profiles/error.h"
#include "tests/shell.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using test::Outcome;
using test::shell;

// Launchers end a step by signals and look at the exit statuses of its processes.
TEST(Signal, EndsAProcessThatStillWaitsForOthers) {
  const std::string job = ::testing::TempDir() + "ghostrank_signal.yaml";
  std::ofstream(job) << "schema: ghostrank/job/1\nmodel: {kind: layers, layers: [{parameters: "
                        "[10]}]}\ncluster: {nodes: 2}\nfabric: {kind: ofi}\n";
  for (const auto& [name, number] : {std::pair{"INT", SIGINT}, std::pair{"TERM", SIGTERM}}) {
    const Outcome outcome = shell("RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
                                  std::to_string(20000 + getpid() % 10000) +
                                  " "
                                  "timeout --preserve-status -s " +
                                  std::string(name) + " 2 env --default-signal=INT " +
                                  GHOSTRANK_BINARY + " run " + job);
    EXPECT_EQ(outcome.status, 128 + number) << outcome.text;
    EXPECT_EQ(outcome.text, "");
  }
  std::filesystem::remove(job);
}

// A process of a job, started as from a terminal. It may be interrupted from its first moment on:
// the constructor returns when the kernel has put ghostrank in the place of this program.
class Started {
 public:
  Started(const std::string& job, int rank, int port)
      : Started(job, {"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                      "MASTER_PORT=" + std::to_string(port)}) {}
  Started(const std::string& job, const std::vector<std::string>& variables) {
    int closed_by_exec[2];
    if (pipe2(closed_by_exec, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    process_ = fork();
    if (process_ < 0) throw std::runtime_error("fork failed");  // kill(-1) would signal everything
    if (process_ == 0) {
      std::signal(SIGINT, SIG_DFL);
      for (const std::string& variable : variables) putenv(const_cast<char*>(variable.c_str()));
      execl(GHOSTRANK_BINARY, GHOSTRANK_BINARY, "run", job.c_str(), "--quiet", nullptr);
      _exit(127);
    }
    close(closed_by_exec[1]);
    char nothing = 0;
    if (read(closed_by_exec[0], &nothing, 1) != 0) throw std::runtime_error("no end of a pipe");
    close(closed_by_exec[0]);
  }
  void signal(int number) const { kill(process_, number); }
  // The status as a shell gives it: 128 plus the signal's number if a signal ended the process.
  int status() const {
    int status = 0;
    waitpid(process_, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t process_;
};

// A terminal signals all processes at once, whatever they are doing. The test stops them first, so
// that none sees the other end before it has its own signal, however busy the machine is.
TEST(Signal, AtAnyMomentOfTheStartGivesItsStatus) {
  const std::string job = ::testing::TempDir() + "ghostrank_signal_early.yaml";
  std::ofstream(job) << "schema: ghostrank/job/1\nmodel: {kind: layers, layers: [{parameters: "
                        "[1000], forward_us: 20000}]}\ncluster: {nodes: 2, gpus_per_node: 1, "
                        "nics_per_node: 1}\nfabric: {kind: ofi}\nscale: {dilation: 1}\n"
                        "run: {iterations: 100000}\n";
  for (int i = 0; i < 10; ++i) {
    const int port = 30000 + (getpid() * 10 + i) % 2000;
    const Started processes[] = {{job, 0, port}, {job, 1, port}};
    std::this_thread::sleep_for(std::chrono::milliseconds(100 * i));
    for (const int number : {SIGSTOP, SIGINT, SIGCONT})
      for (const Started& process : processes) process.signal(number);
    EXPECT_EQ(processes[0].status(), 130) << i;
    EXPECT_EQ(processes[1].status(), 130) << i;
  }
  std::filesystem::remove(job);
}

// Before main() the kernel's default ends it, which a shell shows alike.
TEST(Signal, InTheFirstMillisecondsOfAProcessGivesItsStatus) {
  const std::string job = ::testing::TempDir() + "ghostrank_signal_first.yaml";
  for (const char* kind : {"ofi", "virtual"}) {
    std::ofstream(job) << "schema: ghostrank/job/1\nmodel: {kind: layers, layers: [{parameters: "
                          "[1000], forward_us: 20000}]}\ncluster: {nodes: 2, gpus_per_node: 1, "
                          "nics_per_node: 1}\nfabric: {kind: "
                       << kind << "}\nscale: {dilation: 1}\nrun: {iterations: 1000000}\n";
    for (const int after_us : {0, 500, 1000, 2000, 3000, 5000, 8000, 12000, 20000, 40000})
      for (const int number : {SIGINT, SIGTERM}) {
        const Started process(job, {});
        std::this_thread::sleep_for(std::chrono::microseconds(after_us));
        process.signal(number);
        EXPECT_EQ(process.status(), 128 + number) << kind << " after " << after_us << " us";
      }
  }
  std::filesystem::remove(job);
}

// When a terminal closes, its shell and the kernel both send SIGHUP; timeout, too, sends it twice.
TEST(Signal, OfAClosedTerminalKeepsTheResults) {
  const std::string job = ::testing::TempDir() + "ghostrank_hang_up.yaml",
                    json_file = job + ".json";
  std::ofstream(job) << "schema: ghostrank/job/1\nmodel: {kind: layers, layers: [{parameters: "
                        "[1000], forward_us: 20000}]}\ncluster: {nodes: 2}\nscale: {dilation: 1}\n";
  const std::string run = GHOSTRANK_BINARY " run " + job + " --quiet --allow-unfaithful --json " +
                          json_file + " -s run.iterations=";
  const Outcome stopped = shell("timeout --preserve-status -s HUP 2 " + run + "100000");
  EXPECT_EQ(stopped.status, 129) << stopped.text;
  const json result = json::parse(std::ifstream(json_file));
  EXPECT_GT(result["iterations"].size(), 0u);
  const Outcome detached = shell("trap '' HUP; " + run +
                                 "50 & process=$!; sleep 0.7; kill -HUP $process; wait $process");
  EXPECT_EQ(detached.status, 0) << detached.text;
  std::filesystem::remove(json_file);
  std::filesystem::remove(job);
}

// The signal comes again with every second of processor time.
TEST(Signal, OfALimitOfProcessorTimeKeepsTheResults) {
  const std::string job = ::testing::TempDir() + "ghostrank_cpu_limit.yaml",
                    json_file = job + ".json";
  std::ofstream(job) << "schema: ghostrank/job/1\nmodel: {kind: layers, layers: [{parameters: "
                        "[100000], forward_us: 100}]}\ncluster: {nodes: 16}\n"
                        "fabric: {kind: virtual}\nrun: {iterations: 1000000}\n";
  const Outcome stopped =
      shell("ulimit -S -t 1; " GHOSTRANK_BINARY " run " + job + " --quiet --json " + json_file);
  EXPECT_EQ(stopped.status, 128 + SIGXCPU) << stopped.text;
  const json result = json::parse(std::ifstream(json_file), nullptr, false);
  EXPECT_GT(result.value("iterations", json::array()).size(), 0u) << stopped.text;
  std::filesystem::remove(json_file);
  std::filesystem::remove(job);
}

TEST(AStackThatIsTooSmall, IsAnErrorOfTheEnvironment) {
  const Outcome outcome = shell("ulimit -S -s 64; " GHOSTRANK_BINARY " --version");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.text.find("the stack is limited to 64 KiB"), std::string::npos) << outcome.text;
}

TEST(Signal, OfAClosedTerminalKeepsTheRunsOfCompareAndTheRowsOfSweep) {
  const std::string job = ::testing::TempDir() + "ghostrank_hang_up_of_many.yaml",
                    json_file = job + ".json";
  std::ofstream(job) << "schema: ghostrank/job/1\nmodel: {kind: layers, layers: [{parameters: "
                        "[1000], forward_us: 20000}]}\ncluster: {nodes: 2}\nscale: {dilation: 1}\n"
                        "run: {iterations: 10, warmup: 0}\n";
  const auto stopped = [&](const std::string& words, const char* kept) {
    std::filesystem::remove(json_file);
    const Outcome outcome = shell("timeout --preserve-status -s HUP 3 " GHOSTRANK_BINARY " " +
                                  words + " --quiet --allow-unfaithful --json " + json_file);
    EXPECT_EQ(outcome.status, 129) << outcome.text;
    const json result = json::parse(std::ifstream(json_file), nullptr, false);
    EXPECT_GT(result.value(kept, json::array()).size(), 0u) << words << outcome.text;
  };
  stopped(
      "compare " + job + " --runs 1000 --a cluster.nic.latency_us=2 --b cluster.nic.latency_us=3",
      "runs");
  stopped("sweep " + job + " --grid 'run.seed=1,2;run.iterations=10,1000000'", "rows");
  std::filesystem::remove(json_file);
  std::filesystem::remove(job);
}

// Even one process alone must check the network part of its job.
TEST(OneProcessOfAJobOverLibfabric, HasAProviderAndAnAddressThatThereAre) {
  const std::string job = ::testing::TempDir() + "ghostrank_alone.yaml";
  std::ofstream(job) << "schema: ghostrank/job/1\nmodel: {kind: layers, layers: [{parameters: "
                        "[10]}]}\nfabric: {kind: ofi}\nrun: {iterations: 1}\n";
  const std::string run = GHOSTRANK_BINARY " run " + job + " --quiet --allow-unfaithful";
  EXPECT_EQ(shell(run).status, 0);
  EXPECT_EQ(shell(run + " -s fabric.bind=127.0.0.1").status, 0);
  for (const char* wrong : {"fabric.provider=infinitesimal", "fabric.bind=203.0.113.7",
                            "hosts='[{name: localhost, nics: [{device: nowhere9}]}]'"}) {
    const Outcome outcome = shell(run + " -s " + wrong);
    EXPECT_EQ(outcome.status, 3) << wrong << ": " << outcome.text;
  }
  std::filesystem::remove(job);
}

// script(1) stands in for the terminal.
// Two processes of a job over loopback, with the same flags and some of their own, which may end
// with redirections. Returns process 0's outcome, and process 1's in `other`.
Outcome play_two(const std::string& flags, const std::string& zero, const std::string& one,
                 Outcome& other) {
  static int port = 32000 + getpid() % 500;
  ++port;
  const auto command = [&](int rank, const std::string& own) {
    return "RANK=" + std::to_string(rank) +
           " WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(port) +
           " timeout 60 " GHOSTRANK_BINARY " " + flags + " " + own;
  };
  std::thread second([&] { other = shell(command(1, one)); });
  const Outcome outcome = shell(command(0, zero));
  second.join();
  return outcome;
}

TEST(ABench, OfOtherCallsOnAnotherProcessIsRefused) {
  const std::string common = "--ranks 4 --fabric ofi -b 4K -n 2";
  const auto refused = [&](const std::string& zero, const std::string& one) {
    Outcome other;
    const Outcome outcome = play_two("bench " + common, zero, one, other);
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_EQ(other.status, 2) << other.text;
    return outcome.text;
  };
  EXPECT_NE(refused("reduce_scatter", "all_gather").find("all_gather, there reduce_scatter"),
            std::string::npos);
  EXPECT_NE(refused("all_reduce -o max", "all_reduce").find("-o is sum, there max"),
            std::string::npos);
  EXPECT_NE(refused("pairs", "incast").find("incast, there pairs"), std::string::npos);
}

// This test stands for a program of the same version whose commit is another one.
TEST(AnotherCommit, IsRefusedBeforeItPlays) {
  if (shell(GHOSTRANK_BINARY " --version").text.find("commit unknown") != std::string::npos)
    GTEST_SKIP() << "built without git";
  World world;
  world.build = build_of(world) + " 0123456789ab";
  world.rank = 1;
  world.size = 2;
  world.master_port = 20000 + getpid() % 10000;
  world.timeout = std::chrono::seconds(10);
  std::thread first([&] {
    shell("GHOSTRANK_TIMEOUT_S=5 RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
          std::to_string(world.master_port) +
          " timeout 10 " GHOSTRANK_BINARY " bench pairs --ranks 2 --fabric ofi");
  });
  std::string refused = "met";
  try {
    Control::meet(world)->close();
  } catch (const Error& error) {
    refused = error.what();
  }
  first.join();
  EXPECT_NE(refused.find("; install the same ghostrank everywhere"), std::string::npos) << refused;
}

class TwoProcesses : public ::testing::Test {
 protected:
  TwoProcesses() {
    std::ofstream(job_) << "schema: ghostrank/job/1\nmodel: {kind: layers, layers: [{parameters: "
                           "[10]}]}\ncluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1}\n"
                           "fabric: {kind: ofi}\nscale: {dilation: 20}\nrun: {iterations: 2}\n";
  }
  ~TwoProcesses() override {
    std::filesystem::remove(job_);
    std::filesystem::remove(file_);
  }
  json written() const { return json::parse(std::ifstream(file_)); }

  const std::string job_ = ::testing::TempDir() + "ghostrank_two_processes.yaml";
  const std::string file_ = ::testing::TempDir() + "ghostrank_two_processes.json";
  const std::string run_ = "run " + job_ + " --allow-unfaithful";
};

// Descriptors 0 to 2 would be those of the job's sockets.
TEST_F(TwoProcesses, PlayThoughOneHasNoStandardDescriptors) {
  Outcome other;
  const Outcome outcome = play_two(run_, "--json " + file_ + " <&- >&- 2>&-", "", other);
  EXPECT_EQ(outcome.status, 3);  // its table cannot be written
  EXPECT_EQ(other.status, 0) << other.text;
  EXPECT_EQ(written()["iterations"].size(), 2u);
}

TEST_F(TwoProcesses, TraceTheRanksThatProcessZeroNames) {
  Outcome other;
  const Outcome outcome =
      play_two(run_ + " --quiet", "--trace " + file_ + " --trace-ranks 1-3", "", other);
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  const json trace = written();
  std::set<std::string> threads;
  for (const json& event : trace["traceEvents"])
    if (event["name"] == "thread_name") threads.insert(event["args"]["name"].get<std::string>());
  for (const char* rank : {"rank 1 compute", "rank 2 compute", "rank 3 compute"})
    EXPECT_TRUE(threads.contains(rank)) << rank;
  EXPECT_FALSE(threads.contains("rank 0 compute"));
}

TEST_F(TwoProcesses, EndTogetherWhereOneCannotWriteItsFiles) {
  Outcome other;
  const Outcome outcome = play_two(run_, "--json /proc/nowhere/x", "", other);
  EXPECT_EQ(outcome.status, 3) << outcome.text;
  EXPECT_EQ(other.status, 3) << other.text;
  EXPECT_NE(other.text.find("cannot write /proc/nowhere/x"), std::string::npos) << other.text;
}

// Each process has a copy of its own of the job and of the command line.
TEST_F(TwoProcesses, EndAtOnceWhereOneHasAMistake) {
  const auto ends = [&](const std::string& common, const std::string& zero, const std::string& one,
                        int status, int status_of_one, const char* why) {
    const auto began = std::chrono::steady_clock::now();
    Outcome other;
    const Outcome outcome = play_two(common, zero, one, other);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15)) << common;
    EXPECT_EQ(outcome.status, status) << outcome.text;
    EXPECT_EQ(other.status, status_of_one) << other.text;
    EXPECT_NE(outcome.text.find(why), std::string::npos) << outcome.text;
    EXPECT_NE(other.text.find(why), std::string::npos) << other.text;
  };
  ends(run_, "", "-s run.iteration=3", 3, 2, "did you mean run.iterations?");
  ends(run_, "-s run.iteration=3", "", 2, 3, "did you mean run.iterations?");
  ends(run_, "-s run.iteration=3", "-s run.iteration=3", 2, 2, "did you mean run.iterations?");
  const std::string bench = "bench all_reduce --ranks 4 --fabric ofi -b 4K -n 2 --allow-unfaithful";
  ends(bench, "--json /proc/nowhere/x", "", 3, 3, "cannot write /proc/nowhere/x");
  ends(bench, "", "-s run.iteration=3", 3, 2, "did you mean run.iterations?");
  ends("bench pairs --ranks 4 --fabric ofi -b 4K -n 2 --allow-unfaithful", "--svg /proc/nowhere/x",
       "", 3, 3, "cannot write /proc/nowhere/x");
}

TEST(ATerminal, ShowsTheErrorOnALineOfItsOwn) {
  if (shell("script --version").status != 0) GTEST_SKIP() << "no script(1)";
  const std::string job = ::testing::TempDir() + "ghostrank_waiting.yaml";
  std::ofstream(job) << "schema: ghostrank/job/1\nmodel: {kind: layers, layers: [{parameters: "
                        "[10]}]}\ncluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n"
                        "fabric: {kind: ofi}\nrun: {iterations: 1}\n";
  const auto alone = [&](int rank, const char* flags) {
    return shell("RANK=" + std::to_string(rank) +
                 " WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
                 std::to_string(30000 + getpid() % 2000) +
                 " GHOSTRANK_TIMEOUT_S=2 script -qec '" GHOSTRANK_BINARY " run " + job + flags +
                 "' /dev/null");
  };
  const std::string said = alone(0, "").text;
  EXPECT_NE(said.find("waiting at 127.0.0.1:"), std::string::npos) << said;
  EXPECT_NE(said.find("\r\033[Kghostrank: "), std::string::npos) << said;
  for (const int rank : {0, 1}) {
    const Outcome mistaken = alone(rank, " -s run.iteration=3");
    EXPECT_EQ(mistaken.status, 2);
    EXPECT_NE(mistaken.text.find("did you mean run.iterations?\r\n"
                                 "waiting up to 2 s to tell the other processes (Ctrl-C"),
              std::string::npos)
        << mistaken.text;
  }
  std::filesystem::remove(job);
}

// The provider would crash on four random datagrams.
TEST(AnUnsafeProvider, IsNotOffered) {
  if (shell(GHOSTRANK_BINARY " doctor").text.find("udp;ofi_rxd") == std::string::npos)
    GTEST_SKIP() << "libfabric has none here";
  EXPECT_NE(
      shell(GHOSTRANK_BINARY " doctor | grep udp.ofi_rxd").text.find("not offered: a few stray"),
      std::string::npos);
  const std::string job = ::testing::TempDir() + "ghostrank_unsafe.yaml";
  std::ofstream(job) << "schema: ghostrank/job/1\nmodel: {kind: layers, layers: [{parameters: "
                        "[10]}]}\nfabric: {kind: ofi}\nrun: {iterations: 1}\n";
  for (const char* name : {"udp", "'udp;ofi_rxd'"}) {
    const Outcome outcome = shell(GHOSTRANK_BINARY " run " + job + " -s fabric.provider=" + name);
    EXPECT_EQ(outcome.status, 3) << outcome.text;
    EXPECT_NE(outcome.text.find("is not offered"), std::string::npos) << outcome.text;
  }
  std::filesystem::remove(job);
}

TEST(AProviderThatDiedOnce, SaysSo) {
  const std::string said = shell(GHOSTRANK_BINARY " doctor | grep 'tcp;ofi_rxm  '").text;
  if (said.empty()) GTEST_SKIP() << "libfabric has none here";
  EXPECT_NE(said.find("may end a process that was stopped for a minute"), std::string::npos);
}

class Mpirun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (pmix_version().empty()) GTEST_SKIP() << "built without PMIx";
    if (shell("mpirun --version").text.find("Open MPI") == std::string::npos)
      GTEST_SKIP() << "no mpirun of Open MPI";
    folder_ = ::testing::TempDir() + "ghostrank_launch_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    std::ofstream(job()) << "schema: ghostrank/job/1\n"
                            "model: {kind: layers, dtype: int32, layers: [{parameters: [30000], "
                            "forward_us: 100, backward_us: 100}]}\n"
                            "cluster: {nodes: 4, gpus_per_node: 2, nics_per_node: 1}\n"
                            "fabric: {kind: ofi}\n"
                            "scale: {dilation: 10}\n"
                            "run: {iterations: 2, warmup: 0, probe_ms: 0, verify: true}\n";
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string job() const { return folder_ + "/job.yaml"; }
  std::string result_file() const { return folder_ + "/result.json"; }
  json result() const {
    std::ifstream in(result_file());
    return json::parse(in, nullptr, false);
  }
  // Removes the variables of a launcher around this test. For OMPI_MCA_rtc see
  // tests/network/capture_test.cpp.
  Outcome run(int processes, const std::string& before, const std::string& arguments = "") const {
    return start(processes, before, "run " + job() + " " + arguments);
  }
  Outcome start(int processes, const std::string& before, const std::string& command) const {
    return shell(
        "env -u RANK -u WORLD_SIZE -u MASTER_ADDR -u MASTER_PORT OMPI_ALLOW_RUN_AS_ROOT=1 "
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rtc=^hwloc timeout 60 mpirun --oversubscribe "
        "--bind-to "
        "none -n " +
        std::to_string(processes) + " env " + before + " " + GHOSTRANK_BINARY + " " + command +
        " --quiet --allow-unfaithful --json " + result_file());
  }

 private:
  std::string folder_;
};

TEST_F(Mpirun, StartsAJobWithoutSayingWhereProcessZeroIs) {
  for (const int processes : {2, 4}) {
    const Outcome outcome = run(processes, "");
    ASSERT_EQ(outcome.status, 0) << outcome.text;
    const json r = result();
    EXPECT_EQ(r["hosts"].size(), static_cast<std::size_t>(processes));
    EXPECT_EQ(r["iterations"].size(), 2u);
    EXPECT_GT(r["verify"]["checked_elements"].get<long>(), 0);
    EXPECT_EQ(r["verify"]["wrong_elements"].get<long>(), 0);
  }
}

TEST_F(Mpirun, OfOneProcessIsARunAlone) {
  const Outcome outcome = run(1, "", "-s fabric.kind=memory");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(result()["hosts"].size(), 1u);
}

TEST_F(Mpirun, MeetsAtTheInterfaceOrAddressThatTheUserChooses) {
  EXPECT_EQ(run(2, "GHOSTRANK_ADDRESS=lo").status, 0);
  EXPECT_EQ(run(2, "GHOSTRANK_ADDRESS=127.0.0.1").status, 0);
}

// Ranks 0 and 1 are in one process, 2 and 3 in the other.
TEST_F(Mpirun, PatternsAreOfTheFlowsThatReachTheNetwork) {
  const std::string flags = " --ranks 4 --fabric ofi --dilation 1 -n 2 -b 64K";
  ASSERT_EQ(start(2, "", "bench pairs" + flags).status, 0);
  std::set<std::pair<int, int>> pairs;
  const json of_pairs = result();
  for (const json& row : of_pairs["rows"]) {
    pairs.emplace(row["src"].get<int>(), row["dst"].get<int>());
    EXPECT_GT(row["GBps"].get<double>(), 0);
    EXPECT_GT(row["latency_us"].get<double>(), 0);
  }
  EXPECT_EQ(pairs, (std::set<std::pair<int, int>>{
                       {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 0}, {2, 1}, {3, 0}, {3, 1}}));

  ASSERT_EQ(start(2, "", "bench incast" + flags).status, 0);
  const json fan_ins = result()["rows"];
  ASSERT_EQ(fan_ins.size(), 2u);
  EXPECT_EQ(fan_ins[1]["fan_in"], 2);

  ASSERT_EQ(start(2, "", "bench permutation" + flags).status, 0);
  const json of_flows = result();
  EXPECT_FALSE(of_flows["flows"].empty());
  for (const json& flow : of_flows["flows"])
    EXPECT_NE(flow["src"].get<int>() / 2, flow["dst"].get<int>() / 2) << flow;
}

TEST_F(Mpirun, SaysWhyProcessZeroCannotListenWhicheverProcessEndsFirst) {
  const Outcome outcome = run(2, "GHOSTRANK_ADDRESS=nowhere9");
  EXPECT_EQ(outcome.status, 3) << outcome.text;
  // mpirun ends the other process as soon as one has ended, so one may say nothing.
  const std::string problem =
      "GHOSTRANK_ADDRESS: 'nowhere9' is neither an interface nor an address of this host; there "
      "are ";
  EXPECT_NE(outcome.text.find(problem), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace ghostrank
