// Jobs as two processes over libfabric on loopback while one process dies, fails, is interrupted or
// stalls.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <signal.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "emulator/process_checks.h"
#include "profiles/error.h"
#include "tests/emulator/events.h"
#include "tests/emulator/processes/processes.h"
#include "tests/emulator/shard/throwing.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using std::chrono::steady_clock;
using testing::SmallJob;

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
    EXPECT_TRUE(result.fidelity.valid_for.empty());
    EXPECT_TRUE(std::any_of(result.notes.begin(), result.notes.end(), [](const std::string& note) {
      return note.find("are those of host 0 alone") != std::string::npos;
    }));
    return result.interrupted;
  });
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  EXPECT_TRUE(outcomes[0].ok) << outcomes[0].said;
  EXPECT_NE(outcomes[0].said.find("lost"), std::string::npos) << outcomes[0].said;
  EXPECT_EQ(outcomes[1].signal, SIGKILL);
}

// An event kills process 1 in the eleventh iteration; warm-ups have no events.
TEST(OverLibfabric, AnEventThatKillsAHostEndsTheRunOfTheOthers) {
  for (const int killed : {1, 0}) {
    const auto outcomes = testing::run_processes(2, [&](const World& world) -> std::string {
      const auto control = Control::meet(world);
      SmallJob job = long_job();
      job.spec.run.warmup = 15;
      JobEvent event;
      event.kind = JobEvent::Kind::kill;
      event.host = Host(killed);
      event.at = 210 * kPicosPerMilli;
      testing::with_events(job, {event});
      const Result result = job.run(*control);
      EXPECT_EQ(control->stop(), Stop::peer_lost);
      if (world.rank == 0) {
        EXPECT_GE(result.iterations.size(), 1u);
        EXPECT_LE(result.iterations.size(), 10u);
        EXPECT_EQ(result.events.size(), 1u);
        EXPECT_TRUE(result.fidelity.valid_for.empty());
      }
      return result.interrupted;
    });
    EXPECT_TRUE(outcomes[1 - killed].ok) << outcomes[1 - killed].said;
    EXPECT_NE(outcomes[1 - killed].said.find("lost"), std::string::npos)
        << outcomes[1 - killed].said;
    EXPECT_EQ(outcomes[killed].signal, SIGKILL);
  }
}

TEST(OverLibfabric, ASlowRankIsSlowOnWhicheverHost) {
  const auto outcomes = testing::run_processes(2, [](const World& world) -> std::string {
    SmallJob job = long_job();
    job.spec.run.iterations = 3;
    JobEvent event = testing::slow(1, 2, 0);
    event.iteration = 1;
    event.iterations = 1;
    testing::with_events(job, {event});
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    control->close();
    if (world.rank != 0) return result.interrupted;
    EXPECT_EQ(result.iterations.size(), 3u);
    for (const std::size_t i : {0u, 1u, 2u})
      EXPECT_DOUBLE_EQ(result.iterations.at(i).compute_seconds, i == 1 ? 30e-3 : 20e-3);
    EXPECT_GE(result.iterations.at(1).seconds, 40e-3);
    EXPECT_EQ(result.events.size(), 1u);
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[0].said, "");
}

// Refused before processes meet.
TEST(OverLibfabric, AHostThatIsNotThereCannotBeKilled) {
  SmallJob job = long_job();
  JobEvent event;
  event.kind = JobEvent::Kind::kill;
  event.host = Host(2);
  event.source = "job.yaml:3:9";
  testing::with_events(job, {event});
  job.spec.cluster.nodes = 3;
  EXPECT_NO_THROW(check_spread(job.spec, 3));
  try {
    check_spread(job.spec, 2);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "job.yaml:3:9: events: there is no host 2; the job is played by hosts 0 to 1 "
                 "(WORLD_SIZE)");
  }
}

TEST(OverLibfabric, AnExceptionOnOneHostEndsTheRunOnAllNamingIt) {
  for (const int shards : {1, 2}) {
    const auto outcomes = testing::run_processes(2, [&](const World& world) {
      SmallJob job =
          testing::throwing_job(GHOSTRANK_THROWS_PLUGIN, FabricKind::ofi, testing::Throws::halfway);
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
      // The traffic of both, although no barrier follows a stop.
      EXPECT_EQ(result.pairs.size(), 2u);
      for (const PairTraffic& pair : result.pairs) EXPECT_GT(pair.messages, 0);
      EXPECT_FALSE(result.fidelity.valid_for.empty());
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
        EXPECT_GT(result.iterations.at(stall.iterations[0]).seconds, 1.5);
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
    job.workload.role_of[WorldRank(1)] = 1;
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

}  // namespace
}  // namespace ghostrank
