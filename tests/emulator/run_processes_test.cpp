// Whole jobs as several processes over libfabric on loopback: real data, the same ledger as on
// other fabrics, and the death, failure and interruption of a process.
#include <chrono>
#include <cstdio>
#include <optional>
#include <signal.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "profiles/load/load.h"
#include "tests/algorithms/support.h"
#include "tests/emulator/processes.h"
#include "tests/emulator/support.h"
#include "tests/emulator/throwing.h"

namespace ghostrank {
namespace {

using std::chrono::steady_clock;
using testing::ledger_text;
using testing::SmallJob;

SmallJob every_collective(FabricKind kind, DataType type) {
  SmallJob job(4, 2, kind);
  job.spec.run.verify = true;
  job.spec.run.iterations = 2;
  job.spec.run.warmup = 1;
  job.compute(100 * kPicosPerMicro)
      .collective(Func::all_reduce, 100'003, type)
      .collective(Func::reduce_scatter, 1001, type)
      .collective(Func::all_gather, 777, type)
      .collective(Func::broadcast, 500'000, type, 3)
      .collective(Func::reduce, 4096, type, 5)
      .collective(Func::all_to_all, 333, type)
      .collective(Func::barrier, 0, type);
  return job;
}

struct Case {
  const char* provider;
  int processes;
  int shards;
};

class OverLibfabric : public ::testing::TestWithParam<Case> {};

TEST_P(OverLibfabric, RealDataIsReducedRightAndTheLedgerIsTheSameEverywhere) {
  const Case& c = GetParam();
  for (DataType type :
       {DataType::int32, DataType::float32, DataType::bfloat16, DataType::int64, DataType::uint8}) {
    const std::string expected =
        ledger_text(every_collective(FabricKind::virtual_time, type).run());
    EXPECT_EQ(ledger_text(every_collective(FabricKind::memory, type).run()), expected);
    SmallJob job = every_collective(FabricKind::ofi, type);
    job.spec.fabric.provider = c.provider;
    job.spec.run.shards = c.shards;
    const auto outcomes = testing::run_processes(
        c.processes,
        [&](const World& world) {
          const auto control = Control::meet(world);
          const Result result = job.run(*control);
          EXPECT_EQ(result.interrupted, "");
          if (world.rank == 0) {
            EXPECT_EQ(result.iterations.size(), 2u);
            EXPECT_EQ(result.verify->wrong_elements, 0u);
            EXPECT_EQ(result.verify->checked_elements,
                      2u * (8u * (100'003u + 1001u + 8u * 777u + 500'000u + 8u * 333u) + 4096u));
            EXPECT_EQ(result.hosts.size(), static_cast<std::size_t>(c.processes));
          }
          control->close();
          return ledger_text(result);
        },
        std::chrono::seconds(60));
    testing::expect_all_ok(outcomes);
    EXPECT_EQ(outcomes[0].said, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Loopback, OverLibfabric,
                         ::testing::Values(Case{"net", 2, 1}, Case{"net", 4, 1}, Case{"net", 2, 2},
                                           Case{"tcp;ofi_rxm", 2, 1}, Case{"sockets", 2, 1}));

// Plays two processes: every result is right, and `elements` elements are compared.
void expect_reduced_right(const SmallJob& job, std::uint64_t elements) {
  const auto outcomes = testing::run_processes(2, [&](const World& world) {
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    if (world.rank == 0) {
      EXPECT_EQ(result.verify->checked_elements, elements);
      EXPECT_EQ(result.verify->wrong_elements, 0u);
    }
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
}

// Two processes of two ranks each; a third has the servers.
TEST(OverLibfabric, AgentsSumRealDataWithTheirHelpersOnAHostOfTheirOwn) {
  for (const char* scheme : {"at-server", "in-packets"}) {
    for (const FlowKind flows : {FlowKind::process, FlowKind::nic, FlowKind::connection}) {
      SCOPED_TRACE(scheme);
      Algorithms algorithms;
      algorithms.load_plugin(GHOSTRANK_AGENTS_PLUGIN, ".");
      SmallJob job(2, 2, FabricKind::ofi);
      job.spec.collectives.own = std::make_shared<const Algorithms>(std::move(algorithms));
      job.spec.collectives.algorithm(Func::all_reduce) = std::string("test/") + scheme;
      job.spec.cluster.servers.count = 1;
      job.spec.cluster.nic.rate_bps = 1e9;
      job.spec.fabric.flows = flows;
      job.spec.fabric.packets.loss = 0.05;
      job.spec.run.verify = true;
      job.spec.run.warmup = 1;
      job.spec.run.iterations = 3;
      job.collective(Func::all_reduce, 5003).compute(kPicosPerMicro).collective(Func::broadcast, 9);
      const auto outcomes = testing::run_processes(3, [&](const World& world) {
        const auto control = Control::meet(world);
        const Result result = job.run(*control);
        EXPECT_EQ(result.interrupted, "");
        EXPECT_EQ(result.iterations.size(), 3u * (world.rank == 0));
        if (world.rank == 0) {
          EXPECT_EQ(result.verify->checked_elements, 3u * 4u * 5012u);
          EXPECT_EQ(result.verify->wrong_elements, 0u);
        }
        control->close();
        return ledger_text(result);
      });
      testing::expect_all_ok(outcomes);
      if (std::string(scheme) == "in-packets") continue;  // retransmits late packets
      job.spec.fabric.kind = FabricKind::virtual_time;
      job.spec.dilation = 0;
      EXPECT_EQ(outcomes[0].said, ledger_text(job.run()));
    }
  }
}

TEST(OverLibfabric, LinksOfTheClusterAreRecordedAndTheRunSaysSo) {
  SmallJob job(4, 1, FabricKind::ofi);
  job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
  job.spec.cluster.topology.oversubscription = 100;
  job.collective(Func::all_reduce, 1000);
  const auto outcomes = testing::run_processes(2, [&](const World& world) {
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    control->close();
    std::string said = result.network ? "links " : "no links ";
    for (const std::string& note : result.notes)
      if (note.starts_with("cluster.topology is recorded")) said += "noted";
    return said;
  });
  testing::expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[0].said, "no links noted");
}

TEST(OverLibfabric, CreditsAndSlicesTravelToo) {
  SmallJob job(2, 2, FabricKind::ofi);
  job.spec.run.verify = true;
  job.spec.collectives.slice_bytes = 64 << 10;
  job.spec.collectives.credits = 4;
  job.collective(Func::all_reduce, 2'000'000).collective(Func::all_to_all, 50'000);
  expect_reduced_right(job, 4u * (2'000'000u + 4u * 50'000u));
}

// Channels share NICs whose turns are often late; waiting messages keep their places.
TEST(OverLibfabric, MessagesThatWaitForTheirTurnAreReducedRight) {
  SmallJob job(4, 2, FabricKind::ofi);
  job.spec.cluster.nic.rate_bps = 10'000'000'000;
  job.spec.dilation = 10;
  job.spec.run.verify = true;
  job.spec.run.iterations = 500;
  job.spec.collectives.library = "nccl-2.28";
  job.compute(100 * kPicosPerMicro).collective(Func::all_reduce, 30'000, DataType::int32);
  expect_reduced_right(job, 500u * 8u * 30'000u);
}

// As in virtual time, a root that has posted its sends goes on while slices wait for their turn at
// a slow NIC. The last slice begins a second after the first.
TEST(OverLibfabric, ASenderDoesNotWaitForItsTurnAtTheNic) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.dilation = 1;
    job.spec.cluster.nic.rate_bps = 1'048'576;
    job.spec.collectives.slice_bytes = 64 << 10;
    job.collective(Func::broadcast, 3 * (16 << 10)).compute(kPicosPerMilli);
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    if (world.rank == 0) {
      EXPECT_NEAR(result.iterations[0].seconds, 1.5, 0.3);
      EXPECT_LT(result.fidelity.lateness_us_max, 0.5e6);
    }
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
}

// A million messages that nothing paces: few of them may be in memory, even at the start of the
// segment, when nothing may leave yet.
TEST(OverLibfabric, ASenderWithoutARateHasFewMessagesUnderWay) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "resident memory is the sanitizer's";
#endif
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.cluster.nic = {0, 0};
    job.spec.collectives.slice_bytes = 64;
    job.spec.fabric.frame_bytes = 64 << 10;
    job.collective(Func::broadcast, 1'000'000 * 16);
    const auto most_resident = [] {
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      return usage.ru_maxrss;
    };
    const long before = most_resident();
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    if (world.rank == 0) {
      EXPECT_EQ(result.messages_per_iteration, 1'000'000);
    }
    EXPECT_LT(most_resident() - before, 64 << 10) << "KiB";
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
}

// A job long enough for a test to disturb it.
SmallJob long_job() {
  SmallJob job(2, 1, FabricKind::ofi);
  job.spec.dilation = 1;
  job.spec.run.iterations = 1000;
  job.compute(20 * kPicosPerMilli).collective(Func::all_reduce, 1000);
  return job;
}

// Calls `act` on process 0 at the end of iteration `when`, by default the tenth.
struct AtTheTenth : Observer {
  std::function<void()> act;
  int when;
  explicit AtTheTenth(std::function<void()> what, int index = 9)
      : act(std::move(what)), when(index) {}
  void on_iteration(int index, const IterationReport&) override {
    if (index == when) act();
  }
};

TEST(OverLibfabric, AProcessThatDiesEndsTheRunSoonAndWhatWasDoneIsKept) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const auto outcomes = testing::run_processes(2, [&](const World& world) -> std::string {
    const auto control = Control::meet(world);
    if (world.rank == 1) {
      std::thread([&] {
        char now = 0;
        if (read(pipe_ends[0], &now, 1) == 1) raise(SIGKILL);
      }).detach();
    }
    steady_clock::time_point died{};
    AtTheTenth observer([&] {
      died = steady_clock::now();
      EXPECT_EQ(write(pipe_ends[1], "x", 1), 1);
    });
    const Result result = long_job().run(*control, &observer);
    EXPECT_LT(steady_clock::now() - died, std::chrono::seconds(3));
    EXPECT_GE(result.iterations.size(), 10u);
    EXPECT_LT(result.iterations.size(), 500u);
    EXPECT_EQ(control->stop(), Stop::peer_lost);
    return result.interrupted;
  });
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  EXPECT_TRUE(outcomes[0].ok) << outcomes[0].said;
  EXPECT_NE(outcomes[0].said.find("lost"), std::string::npos) << outcomes[0].said;
  EXPECT_EQ(outcomes[1].signal, SIGKILL);
}

TEST(OverLibfabric, AnExceptionOnOneHostEndsTheRunOnAllNamingIt) {
  for (const int shards : {1, 2}) {
    const auto outcomes = testing::run_processes(2, [&](const World& world) {
      SmallJob job = testing::throwing_job(FabricKind::ofi, testing::Throws::halfway);
      job.spec.run.shards = shards;
      const auto control = Control::meet(world);
      const Result result = job.run(*control);
      EXPECT_EQ(control->stop(), Stop::failed);
      EXPECT_EQ(result.iterations.size(), world.rank == 0 ? 1u : 0u);
      control->close();
      return result.interrupted;
    });
    testing::expect_all_ok(outcomes);
    for (const auto& o : outcomes) {
      EXPECT_NE(o.said.find("host 1 ("), std::string::npos) << o.said;
      EXPECT_NE(o.said.find("no step 300"), std::string::npos) << o.said;
    }
  }
}

TEST(OverLibfabric, AnInterruptStopsEveryHostWithinASecond) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    steady_clock::time_point asked{};
    AtTheTenth observer([&] {
      asked = steady_clock::now();
      control->request_stop(Stop::interrupted);
    });
    const Result result = long_job().run(*control, &observer);
    if (world.rank == 0) {
      EXPECT_LT(steady_clock::now() - asked, std::chrono::seconds(1));
      EXPECT_GE(result.iterations.size(), 10u);
    }
    EXPECT_EQ(control->stop(), Stop::interrupted);
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
}

TEST(OverLibfabric, AStallEndsTheRunNamingWhoWaitsForWhom) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.run.stall_timeout_s = 0.5;
    Op recv;
    recv.kind = Op::Kind::recv;
    recv.peer = 1;
    recv.count = 1;
    job.program().streams[0] = {recv};
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    EXPECT_EQ(control->stop(), Stop::failed);
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
  EXPECT_NE(outcomes[0].said.find("stalled"), std::string::npos) << outcomes[0].said;
  EXPECT_NE(outcomes[0].said.find("waits for rank"), std::string::npos) << outcomes[0].said;
}

// Stops this process when `begin` is readable. Then resumes it after 2 s, or kills it when `end` is
// readable. It forks a process for that, because a stopped one can do nothing.
void stop_me(int begin, std::optional<int> end) {
  const pid_t me = getpid();
  if (fork() != 0) return;
  char now = 0;
  if (read(begin, &now, 1) != 1) _exit(1);
  kill(me, SIGSTOP);
  if (end && read(*end, &now, 1) >= 0) kill(me, SIGKILL);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  kill(me, SIGCONT);
  _exit(0);
}

TEST(OverLibfabric, AProcessThatWasStoppedForTwoSecondsIsReportedAsAStall) {
  for (const int stopped : {0, 1}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const auto outcomes = testing::run_processes(2, [&](const World& world) {
      if (world.rank == stopped) stop_me(ends[0], std::nullopt);
      const auto control = Control::meet(world);
      AtTheTenth observer([&] { EXPECT_EQ(write(ends[1], "x", 1), 1); });
      SmallJob job = long_job();
      job.spec.run.iterations = 50;
      const Result result = job.run(*control, &observer);
      if (world.rank == 0) {
        EXPECT_EQ(result.iterations.size(), 50u);
        EXPECT_EQ(result.stalls.size(), 1u);
        if (result.stalls.empty()) return std::string("no stall");
        const StallReport& stall = result.stalls[0];
        EXPECT_GT(stall.seconds, 1.5);
        EXPECT_LT(stall.seconds, 4);
        EXPECT_EQ(stall.wall_seconds, stall.seconds);  // dilation 1
        EXPECT_GT(stall.start_s, 0.2);
        EXPECT_EQ(stall.iterations.size(), 1u);
        EXPECT_GE(stall.iterations.at(0), 9);
        EXPECT_GT(result.iterations.at(static_cast<std::size_t>(stall.iterations[0])).seconds, 1.5);
      }
      control->close();
      return result.interrupted;
    });
    close(ends[0]);
    close(ends[1]);
    testing::expect_all_ok(outcomes);
    EXPECT_EQ(outcomes[0].said, "");
  }
}

TEST(OverLibfabric, ProcessesAgreeOnHowLongToMeasure) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.dilation = 20;
    job.spec.run.warmup = 1;
    job.spec.run.iterations = 2;
    job.spec.run.min_seconds = 0.5;
    job.compute(kPicosPerMilli).collective(Func::all_reduce, 1000);
    const Result result = job.run(*control);
    EXPECT_EQ(result.interrupted, "");
    if (world.rank == 0) {
      EXPECT_EQ(std::ssize(result.iterations), result.iterations_asked);
    }
    control->close();
    return std::to_string(result.iterations_asked);
  });
  testing::expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[0].said, outcomes[1].said);
  EXPECT_GT(std::stoi(outcomes[0].said), 2);
}

TEST(OverLibfabric, AStallOfTheWarmUpIsANote) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto outcomes = testing::run_processes(2, [&](const World& world) {
    if (world.rank == 1) stop_me(ends[0], std::nullopt);
    const auto control = Control::meet(world);
    AtTheTenth observer([&] { EXPECT_EQ(write(ends[1], "x", 1), 1); }, -10);
    SmallJob job = long_job();
    job.spec.run.warmup = 20;
    job.spec.run.iterations = 5;
    const Result result = job.run(*control, &observer);
    control->close();
    if (world.rank != 0) return std::string();
    EXPECT_TRUE(result.stalls.empty());
    std::string notes;
    for (const std::string& note : result.notes) notes += note + "\n";
    return notes;
  });
  close(ends[0]);
  close(ends[1]);
  testing::expect_all_ok(outcomes);
  // "warm-up: nothing moved for 2.1 s from 0.6 s after its start, wall; iteration 10"
  double length = 0, start = 0;
  int iteration = -1;
  const std::size_t note = outcomes[0].said.find("warm-up: ");
  ASSERT_NE(note, std::string::npos) << outcomes[0].said;
  ASSERT_EQ(std::sscanf(outcomes[0].said.c_str() + note,
                        "warm-up: nothing moved for %lf s from %lf s after its start, wall; "
                        "iteration %d",
                        &length, &start, &iteration),
            3)
      << outcomes[0].said;
  EXPECT_GT(length, 1.5);
  EXPECT_LT(length, 4);
  EXPECT_GE(start, 0.1);
  EXPECT_GE(iteration, 9);
  EXPECT_LT(iteration, 20);
}

TEST(OverLibfabric, AProcessThatIsStoppedForGoodEndsTheRunWithinTheStallTimeout) {
  int begin[2], end[2];
  ASSERT_EQ(pipe(begin), 0);
  ASSERT_EQ(pipe(end), 0);
  const auto outcomes = testing::run_processes(2, [&](const World& world) {
    if (world.rank == 1) stop_me(begin[0], end[0]);
    const auto control = Control::meet(world);
    steady_clock::time_point stopped{};
    AtTheTenth observer([&] {
      stopped = steady_clock::now();
      EXPECT_EQ(write(begin[1], "x", 1), 1);
    });
    SmallJob job = long_job();
    job.spec.run.stall_timeout_s = 3;
    const Result result = job.run(*control, &observer);
    EXPECT_LT(steady_clock::now() - stopped, std::chrono::milliseconds(4500));
    EXPECT_EQ(control->stop(), Stop::failed);
    EXPECT_GE(result.iterations.size(), 10u);
    EXPECT_EQ(result.stalls.size(), 1u);
    control->close();
    EXPECT_EQ(write(end[1], "x", 1), 1);
    return result.interrupted;
  });
  for (const int fd : {begin[0], begin[1], end[0], end[1]}) close(fd);
  EXPECT_TRUE(outcomes[0].ok) << outcomes[0].said;
  EXPECT_EQ(outcomes[1].signal, SIGKILL);
  for (const char* part :
       {"stalled for 3.", "rank 0 on host 0 in allreduce #", "'op'", "of group all (",
        "waits for rank 1 on host 1", "host 1 is not heard of"})
    EXPECT_NE(outcomes[0].said.find(part), std::string::npos) << part << ": " << outcomes[0].said;
}

// Host 1 computes for 3 s while host 0 waits for it.
TEST(OverLibfabric, ALongDelayIsNoStall) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.dilation = 1;
    job.spec.run.stall_timeout_s = 1;
    job.workload.roles.push_back(job.workload.roles[0]);
    job.workload.role_of[1] = 1;
    job.collective(Func::all_reduce, 1000);
    Op op;
    op.duration = 3'000 * kPicosPerMilli;
    job.workload.roles[1].iterations[0].streams[0] = {op, job.program().streams[0][0]};
    const Result result = job.run(*control);
    EXPECT_TRUE(result.stalls.empty());
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[0].said, "");
}

TEST(OverLibfabric, ProcessesWithDifferentJobsAreRefused) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    const SmallJob small = long_job();
    LoadedJob job;
    job.spec = small.spec;
    job.config_json = world.rank == 0 ? "{\"a\":1}" : "{\"a\":2}";
    Observer nobody;
    try {
      run_job(job, small.workload, *control, {}, nobody);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("ran");
  });
  for (const auto& o : outcomes)
    EXPECT_NE(o.said.find("plays another job than host 0: its job file or flags"),
              std::string::npos)
        << o.said;
}

TEST(OverLibfabric, ProcessesWithDifferentJobsSayWhichKeysDiffer) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    const SmallJob small = long_job();
    LoadedJob job;
    job.spec = small.spec;
    job.config_json = std::to_string(world.rank);
    job.entries = {{"run.seed", "1", "default"},
                   {"run.iterations", world.rank == 0 ? "10" : "20", "-s"}};
    Observer nobody;
    try {
      run_job(job, small.workload, *control, {}, nobody);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("ran");
  });
  for (const auto& o : outcomes)
    EXPECT_NE(o.said.find("plays another job than host 0: run.iterations is 20, there 10; start"),
              std::string::npos)
        << o.said;
}

// An all-reduce, read from a file, whose threadblocks wait for each other.
SmallJob with_file(const std::string& xml) {
  const testing::TemporaryFile file("algo.xml", xml);
  Algorithms algorithms;
  algorithms.load_file("algo.xml", file.folder());
  SmallJob job(2, 2, FabricKind::ofi);
  job.spec.collectives.algorithm(Func::all_reduce) = "algo.xml";
  job.spec.collectives.own = std::make_shared<const Algorithms>(std::move(algorithms));
  job.spec.run.verify = true;
  return job.collective(Func::all_reduce, 50'001);
}

TEST(OverLibfabric, AnMscclFileReducesRealDataRight) {
  expect_reduced_right(with_file(testing::all_pairs_xml(4, true)), 4u * 50'001u);
}

TEST(OverLibfabric, ProcessesWhoseAlgorithmFilesDifferAreRefused) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    const SmallJob job = with_file(testing::fused_ring_xml(4, 1 + world.rank));
    try {
      job.run(*control);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("ran");
  });
  for (const auto& o : outcomes)
    EXPECT_NE(o.said.find("plays another job than host 0: its plugins or algorithm"),
              std::string::npos)
        << o.said;
}

TEST(OverLibfabric, AProviderThatDoesNotExistIsNamedWithTheOnesThatDo) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    SmallJob job = long_job();
    job.spec.fabric.provider = "infinitesimal";
    try {
      job.run(*control);
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), 3);
      return std::string(e.what());
    }
    return std::string("ran");
  });
  EXPECT_NE(outcomes[0].said.find("infinitesimal"), std::string::npos) << outcomes[0].said;
  EXPECT_NE(outcomes[0].said.find("net"), std::string::npos) << outcomes[0].said;
}

TEST(OverLibfabric, VirtualTimeAndMemoryRefuseSeveralProcesses) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    SmallJob job(2, 1, FabricKind::virtual_time);
    job.collective(Func::barrier, 0);
    try {
      job.run(*control);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("ran");
  });
  EXPECT_NE(outcomes[0].said.find("run in one process, here are 2"), std::string::npos)
      << outcomes[0].said;
}

}  // namespace
}  // namespace ghostrank
