// The policy behind `scale.dilation: auto`, against simulated machines that map a dilation to a
// fidelity.
#include "emulator/warmup.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

// A simulated machine by its loads at dilation 1. Busy time and waiting for a core are proportional
// to the work per second, which falls with dilation; lateness falls faster.
struct Machine {
  double busy = 0.01, late = 1e-4, waits = 0, others_take = 0;
  double step_seconds = 0.02;

  Fidelity at(double dilation) const {
    Fidelity f;
    f.loop_busy = std::min(1.0, busy / dilation);
    f.critical_lateness = late / (dilation * dilation);
    f.run_queue_wait = others_take + waits / dilation;
    f.faithful = f.loop_busy <= 0.8 && f.critical_lateness <= 0.01 && f.run_queue_wait <= 0.01;
    if (!f.faithful) f.reason = "does not keep up";
    return f;
  }
};

struct Found {
  std::vector<WarmUp> played;
  double dilation = 0;
  // Whether a warm-up was faithful at `dilation` or at most 20 % below it.
  bool faithful_there() const {
    return std::any_of(played.begin(), played.end(), [&](const WarmUp& w) {
      return w.dilation <= dilation && 1.25 * w.dilation >= dilation && w.fidelity.faithful;
    });
  }
};

using Answer = std::function<Fidelity(double dilation, std::size_t time)>;

Found find(double first, const RunWindow& window, double step_seconds, const Answer& answer) {
  Found found;
  double dilation = first;
  int iterations = window.warmup;
  for (;;) {
    found.played.push_back(
        {dilation, iterations, step_seconds, answer(dilation, found.played.size())});
    const NextPlay next = after_warm_ups(found.played, window);
    found.dilation = next.dilation;
    if (!next.again || found.played.size() > 100) return found;
    EXPECT_GE(next.iterations, window.warmup);
    dilation = next.dilation;
    iterations = next.iterations;
  }
}

Found find(double first, const RunWindow& window, const Machine& machine) {
  return find(first, window, machine.step_seconds,
              [&](double dilation, std::size_t) { return machine.at(dilation); });
}

const RunWindow kFewSeconds{1, 5, 3, 1, false, true};

TEST(AutoDilation, EndsWhereAWarmUpWasFaithfulAfterAFewWarmUps) {
  for (const double first : {1.0, 3.0, 20.0, 500.0})
    for (const double busy : {0.01, 0.5, 3.0, 30.0})
      for (const double late : {1e-4, 0.02, 0.5, 20.0})
        for (const double waits : {0.0, 0.05, 0.4}) {
          const Machine machine{busy, late, waits};
          const Found found = find(first, kFewSeconds, machine);
          EXPECT_LE(found.played.size(), kMostWarmUps);
          EXPECT_TRUE(found.faithful_there())
              << first << " " << busy << " " << late << " " << waits << " -> " << found.dilation;
        }
}

TEST(AutoDilation, SpeedsUpWhereThereIsALotOfRoom) {
  EXPECT_EQ(find(20, kFewSeconds, Machine{}).dilation, 1);
  const double found = find(64, kFewSeconds, Machine{.busy = 4}).dilation;
  EXPECT_GE(found, 5);
  EXPECT_LE(found, 16);
}

TEST(AutoDilation, GoesBackUpWhereASmallerDilationWasNotFaithful) {
  // Bursts that fail completely at half the dilation, without any sign before.
  const Found found = find(20, kFewSeconds, 0.02, [](double dilation, std::size_t) {
    return Machine{.busy = 1, .late = dilation < 20 ? 10.0 : 1e-4}.at(dilation);
  });
  EXPECT_GE(found.dilation, 20);
  EXPECT_LE(found.dilation, 22);
  EXPECT_TRUE(found.faithful_there());
  EXPECT_LT(found.played.back().dilation, 20);
}

// Bursts fail all at once below some dilation, and nothing above it tells where that is.
TEST(AutoDilation, EndsCloseAboveTheLeastDilationThatKeepsUp) {
  for (const double least : {1.0, 1.3, 2.5, 9.5, 23.0, 70.0, 300.0})
    for (const double first : {1.0, 4.0, 9.0, 32.0, 400.0}) {
      const Found found = find(first, kFewSeconds, 0.002, [&](double dilation, std::size_t) {
        return Machine{.busy = 0.4, .late = dilation < least ? 0.6 * dilation * dilation : 0}.at(
            dilation);
      });
      EXPECT_GE(found.dilation, least) << first;
      EXPECT_LE(found.dilation, 1.5 * least) << first;
      EXPECT_LE(found.played.size(), kMostWarmUps);
    }
}

// Nothing real depends on when such a job's threads run, as long as they keep up.
TEST(AutoDilation, IsNotSlowerForWaitingThatDoesNoHarm) {
  RunWindow memory = kFewSeconds;
  memory.network = false;
  const Found found = find(1, memory, 0.02, [](double, std::size_t) {
    Fidelity f;
    f.faithful = true;
    f.run_queue_wait = 0.3;
    return f;
  });
  EXPECT_EQ(found.dilation, 1);
}

TEST(AutoDilation, SaysAtOnceThatNoDilationIsFaithful) {
  const std::vector<WarmUp> played{{2, 50, 0.02, Machine{.others_take = 0.2}.at(2)},
                                   {8, 50, 0.02, Machine{.others_take = 0.2}.at(8)}};
  const NextPlay next = after_warm_ups(played, kFewSeconds);
  EXPECT_TRUE(next.hopeless);
  EXPECT_FALSE(next.again);
  EXPECT_NE(next.reason.find("slowing down does not help"), std::string::npos);
}

// As they are written, not 8.700000000000001.
TEST(AutoDilation, TakesDilationsOfTwoDigits) {
  for (const double least : {1.3, 1.9, 3.3, 8.65, 9.95, 87.0, 640.0}) {
    const double found = find(40, kFewSeconds, 0.002, [&](double dilation, std::size_t) {
                           return Machine{.late = dilation < least ? 1e6 : 0}.at(dilation);
                         }).dilation;
    EXPECT_EQ(found, found < 10 ? std::round(10 * found) / 10 : std::round(found)) << least;
  }
}

TEST(AutoDilation, NeverGoesBelowWhatTheWireCarries) {
  RunWindow window = kFewSeconds;
  window.least_dilation = 12;
  EXPECT_EQ(find(12, window, Machine{}).dilation, 12);
  EXPECT_EQ(find(40, window, Machine{}).dilation, 12);
}

TEST(AutoDilation, DoesNotSpeedUpWhatIsOverSoonerThanAnotherWarmUp) {
  const RunWindow one_step{1, 1, 0, 1, false};
  const Machine slow{.busy = 1, .step_seconds = 40};
  const Found found = find(4, one_step, slow);
  EXPECT_EQ(found.played.size(), 1u);
  EXPECT_EQ(found.dilation, 4);
  const RunWindow many_steps{1, 10, 0, 1, false};
  EXPECT_LT(find(4, many_steps, slow).dilation, 4);
}

TEST(AutoDilation, LooksAgainForLongerAfterAShortWarmUp) {
  // Trouble only in the first 20 ms.
  const Found found = find(1, kFewSeconds, 0.02, [](double dilation, std::size_t time) {
    return Machine{.late = time == 0 ? 0.3 : 1e-4}.at(dilation);
  });
  EXPECT_EQ(found.dilation, 1);
  ASSERT_EQ(found.played.size(), 2u);
  EXPECT_GE(found.played[1].wall_seconds(), 1);
  // And the reverse: 20 ms without trouble prove nothing.
  const Found late = find(1, kFewSeconds, 0.02, [](double dilation, std::size_t time) {
    return Machine{.late = time == 0 ? 1e-4 : 0.1}.at(dilation);
  });
  EXPECT_GT(late.dilation, 1);
  EXPECT_TRUE(late.faithful_there());
}

TEST(AutoDilation, DoesNotLookForLongerThanIsMeasured) {
  const RunWindow short_run{1, 5, 0, 1, false};
  const Found found = find(1, short_run, Machine{});
  ASSERT_EQ(found.played.size(), 2u);
  EXPECT_EQ(found.played[1].iterations, 5);
  const RunWindow as_long{5, 5, 0, 1, false};
  EXPECT_EQ(find(1, as_long, Machine{}).played.size(), 1u);
}

TEST(AutoDilation, SlowsDownAfterAWarmUpThatCameClose) {
  const Found found = find(1, kFewSeconds, Machine{.late = 0.009});
  EXPECT_GT(found.dilation, 1);
  EXPECT_LT(found.dilation, 4);
  EXPECT_TRUE(found.faithful_there());
}

// One warm-up in a slow moment must not make the run twice as slow.
TEST(AutoDilation, LooksOnceMoreWhereAWarmUpMissedByLittle) {
  const RunWindow short_run{5, 5, 0, 1, false};
  const auto slow_moment = [](std::size_t when) {
    return [when](double dilation, std::size_t time) {
      return Machine{.late = time == when ? 0.02 : 1e-4}.at(dilation);
    };
  };
  EXPECT_EQ(find(1, short_run, 0.2, slow_moment(0)).dilation, 1);
  const Found always = find(1, short_run, 0.2, [](double dilation, std::size_t) {
    return Machine{.late = 0.02}.at(dilation);
  });
  EXPECT_EQ(always.played[1].dilation, 1);
  EXPECT_GT(always.played[2].dilation, 1);
  EXPECT_GE(always.dilation, std::sqrt(2));
  // A clear miss needs no second look.
  EXPECT_GT(find(1, short_run, Machine{.late = 0.6, .step_seconds = 0.2}).played[1].dilation, 1);
}

// Lateness that falls slowly leaves a wide band in which a warm-up is faithful, but not by much.
TEST(AutoDilation, EndsNearTheLeastWhereLatenessFallsSlowly) {
  for (const double power : {1.0, 2.0})
    for (const double least : {1.2, 2.3, 7.7, 31.0, 190.0})
      for (const double first : {1.0, 4.0, 40.0}) {
        const Found found = find(first, kFewSeconds, 0.002, [&](double dilation, std::size_t) {
          Fidelity f;
          f.critical_lateness = 0.01 * std::pow(least / dilation, power);
          f.faithful = f.critical_lateness <= 0.01;
          return f;
        });
        EXPECT_GE(found.dilation, least) << power << " " << first;
        EXPECT_LE(found.dilation, 1.5 * least) << power << " " << first;
      }
}

TEST(AutoDilation, LearnsFromMeasuredIterationsThatWereNotFaithful) {
  const RunWindow window{1, 5, 0, 1, false};
  const auto look = [](double dilation, double late) {
    return WarmUp{dilation, 5, 0.2, Machine{.late = late * dilation * dilation}.at(dilation)};
  };
  std::vector<WarmUp> played{look(2, 0.6), look(3, 1e-4), look(2.3, 1e-4)};
  EXPECT_FALSE(after_warm_ups(played, window).again);
  const WarmUp measured = look(2.3, 0.013);
  EXPECT_TRUE(measure_again(measured, 1, window));
  played.push_back(measured);
  NextPlay next = after_warm_ups(played, window);  // it may have been a slow moment
  EXPECT_TRUE(next.again);
  EXPECT_EQ(next.dilation, 2.3);
  played.push_back(look(2.3, 0.013));
  next = after_warm_ups(played, window);  // it was not
  EXPECT_GT(next.dilation, 2.3);
  EXPECT_LE(next.dilation, 3);
}

TEST(AutoDilation, MeasuresAgainOnlyWhatIsShortAndItsOwnChoice) {
  const RunWindow window{1, 5, 0, 1, false};
  const Fidelity late = Machine{.late = 0.02}.at(1);
  EXPECT_TRUE(measure_again({1, 5, 0.2, late}, 1, window));
  EXPECT_FALSE(measure_again({1, 5, 0.2, Machine{}.at(1)}, 1, window));
  EXPECT_FALSE(measure_again({1, 500, 0.2, late}, 1, window));
  EXPECT_FALSE(measure_again({1, 5, 0.2, late}, 5, window));
  EXPECT_TRUE(measure_again({1, 5, 2, late}, 3, window));
  EXPECT_FALSE(measure_again({1, 5, 2, late}, 4, window));  // 40 s so far
  EXPECT_FALSE(measure_again({1, 5, 0.2, late}, 1, {1, 5, 0, 1, true}));
}

// A long measurement is not repeated, so it gets some room.
TEST(AutoDilation, LeavesRoomAboveTheLeastWhereMeasuringLastsLong) {
  const auto answer = [](double dilation, std::size_t) {
    return Machine{.late = dilation < 9 ? 60.0 : 1e-4}.at(dilation);
  };
  RunWindow window{1, 5, 0, 1, false};
  const double once = find(9, window, 0.2, answer).dilation;
  window.min_seconds = 600;
  EXPECT_GT(find(9, window, 0.2, answer).dilation, once);
}

TEST(AutoDilation, StopsSlowingDownWhereOthersTakeTheCoresAnyway) {
  const Found found = find(2, kFewSeconds, Machine{.others_take = 0.2});
  EXPECT_EQ(found.dilation, 2);
  EXPECT_LE(found.played.size(), 3u);
}

TEST(AutoDilation, SlowsDownForOthersWhereThatHelpsAndWarmUpsAreShort) {
  const Machine shared{.waits = 0.3};
  EXPECT_TRUE(find(1, kFewSeconds, shared).faithful_there());
  const Machine long_steps{.waits = 0.3, .step_seconds = 4};
  EXPECT_EQ(find(3, {1, 1, 0, 1, false}, long_steps).dilation, 3);
}

TEST(AutoDilation, PlaysNoOtherLongWarmUpAfterOneThatCameClose) {
  const Found found = find(4, {1, 1, 0, 1, false}, Machine{.late = 0.14, .step_seconds = 4});
  EXPECT_EQ(found.played.size(), 1u);
  EXPECT_GT(found.dilation, 4);
}

TEST(AutoDilation, EndsAfterAFewWarmUpsOnAMachineThatNeverKeepsUp) {
  const Found found = find(1, kFewSeconds, 0.02, [](double dilation, std::size_t time) {
    return Machine{.late = time % 2 == 0 ? 1e9 : 1e7}.at(dilation);
  });
  EXPECT_LE(found.played.size(), kMostWarmUps);
}

TEST(AutoDilation, LeavesADilationOfTheJobAlone) {
  RunWindow window{1, 5, 0, 1, true};
  const Machine late{.late = 0.3};
  EXPECT_EQ(find(3, window, late).played.size(), 1u);
  EXPECT_EQ(find(3, window, late).dilation, 3);
  window.min_seconds = 2;  // then the run looks at steps for a while
  EXPECT_EQ(find(3, window, late).played.size(), 2u);
  EXPECT_EQ(find(3, window, late).dilation, 3);
}

TEST(MeasuredIterations, LastAsLongAsAskedFor) {
  EXPECT_EQ(iterations_to_measure({1, 5, 3, 1, false}, 0.02), 150);
  EXPECT_EQ(iterations_to_measure({1, 5, 3, 1, false}, 0.07), 43);
}

TEST(MeasuredIterations, AreNoFewerThanAskedFor) {
  EXPECT_EQ(iterations_to_measure({1, 5, 3, 1, false}, 2), 5);
  EXPECT_EQ(iterations_to_measure({1, 5, 0, 1, false}, 1e-6), 5);
  EXPECT_EQ(iterations_to_measure({1, 5, 3, 1, false}, 0), 5);
  EXPECT_EQ(iterations_to_measure({1, 5, 1e6, 1, false}, 1e-6), 100'000);
}

// Records the phases that a run plays, in order.
class Plays final : public Observer {
 public:
  void on_play(int iterations, bool measured) override { plays.emplace_back(iterations, measured); }
  std::vector<std::pair<int, bool>> plays;
};

testing::SmallJob steps_of_a_millisecond(FabricKind kind) {
  testing::SmallJob job(2, 1, kind);
  job.spec.dilation = kind == FabricKind::virtual_time ? 0 : 20;
  job.spec.run.warmup = 1;
  job.spec.run.iterations = 3;
  job.spec.run.jitter = 0.5;
  job.compute(kPicosPerMilli);
  return job;
}

TEST(ARun, LastsAsLongAsTheJobAsks) {
  testing::SmallJob job = steps_of_a_millisecond(FabricKind::memory);
  job.spec.run.jitter = 0;
  job.spec.run.min_seconds = 0.39;  // at 20 ms each
  Plays plays;
  const Result result = job.run(&plays);
  EXPECT_EQ(result.iterations.size(), 20u);
  EXPECT_EQ(result.iterations_asked, 20);
  const std::vector<std::pair<int, bool>> expected{{1, false}, {20, false}, {20, true}};
  EXPECT_EQ(plays.plays, expected);
}

TEST(ARun, KeepsToItsIterationsWhereTheyLastLongEnoughOrTimeIsVirtual) {
  testing::SmallJob job = steps_of_a_millisecond(FabricKind::memory);
  job.spec.run.min_seconds = 0.01;
  EXPECT_EQ(job.run().iterations.size(), 3u);
  job = steps_of_a_millisecond(FabricKind::virtual_time);
  job.spec.run.min_seconds = 100;
  EXPECT_EQ(job.run().iterations.size(), 3u);
}

TEST(ARun, WithoutWarmUpTakesTheLeastTimeThatAStepCanTake) {
  testing::SmallJob job = steps_of_a_millisecond(FabricKind::memory);
  job.spec.run.jitter = 0;
  job.spec.run.warmup = 0;
  job.spec.run.min_seconds = 0.39;
  EXPECT_EQ(job.run().iterations.size(), 20u);
}

// The first iteration of DDP, for example, has no overlap, so it says nothing about the others.
TEST(ARun, LooksAtEveryProgramThatItWillMeasureBeforeItSettles) {
  testing::SmallJob job = steps_of_a_millisecond(FabricKind::memory);
  job.spec.run.jitter = 0;
  job.spec.run.iterations = 1;
  job.spec.dilation = 0;
  job.program().streams[0] = {};
  job.compute(510 * kPicosPerMilli);  // as long as a look takes
  std::vector<Program>& iterations = job.workload.roles[0].iterations;
  iterations.push_back(iterations.front());
  Plays plays;
  job.run(&plays);
  ASSERT_GE(plays.plays.size(), 3u);  // one look at each program; a busy machine takes more
  EXPECT_EQ(plays.plays.back(), std::pair(1, true));
  plays.plays.pop_back();
  for (const auto& look : plays.plays) EXPECT_EQ(look, std::pair(1, false));
}

// Stops this process for 150 ms while it measures for the first time. It forks a process for that,
// because a stopped one can do nothing.
class StopsOnce final : public Observer {
 public:
  ~StopsOnce() override {
    if (stops_ > 0) waitpid(stops_, nullptr, 0);
  }
  void on_play(int, bool measures) override {
    measured += measures;
    if (!measures || stops_ != 0) return;
    const pid_t me = getpid();
    stops_ = fork();
    if (stops_ != 0) return;
    usleep(20'000);
    kill(me, SIGSTOP);
    usleep(150'000);
    kill(me, SIGCONT);
    _exit(0);
  }
  int measured = 0;

 private:
  pid_t stops_ = 0;
};

TEST(ARun, MeasuresAgainWhatWasNotFaithfulAndSaysSo) {
  testing::SmallJob job(2, 1, FabricKind::memory);
  job.spec.run.warmup = 1;
  job.spec.run.iterations = 1;
  for (int i = 0; i < 20; ++i) job.compute(4 * kPicosPerMilli).collective(Func::all_reduce, 10);
  StopsOnce at_fixed;
  job.spec.dilation = 1;
  EXPECT_FALSE(job.run(&at_fixed).fidelity.faithful);
  EXPECT_EQ(at_fixed.measured, 1);  // the job's own choice
  StopsOnce at_auto;
  job.spec.dilation = 0;
  const Result result = job.run(&at_auto);
  EXPECT_GE(at_auto.measured, 2);
  EXPECT_EQ(result.iterations.size(), 1u);
  EXPECT_TRUE(std::any_of(result.notes.begin(), result.notes.end(), [](const std::string& note) {
    return note.starts_with("measured again, because at dilation ");
  }));
}

// Stops the run as soon as anything is played after the first measurement.
class EndsAfterMeasuring final : public Observer {
 public:
  explicit EndsAfterMeasuring(Control& control) : control_(control) {}
  void on_play(int iterations, bool measures) override {
    if (stops_.measured > 0) control_.request_stop(Stop::interrupted);
    stops_.on_play(iterations, measures);
  }

 private:
  Control& control_;
  StopsOnce stops_;
};

TEST(ARun, KeepsWhatWasMeasuredWhereItIsStoppedBeforeItIsMeasuredAgain) {
  testing::SmallJob job(2, 1, FabricKind::memory);
  job.spec.run.warmup = 1;
  job.spec.run.iterations = 2;
  job.spec.dilation = 0;
  for (int i = 0; i < 20; ++i) job.compute(4 * kPicosPerMilli).collective(Func::all_reduce, 10);
  const auto control = Control::meet(World{});
  EndsAfterMeasuring observer(*control);
  const Result result = job.run(*control, &observer);
  ASSERT_EQ(control->stop(), Stop::interrupted);
  EXPECT_EQ(result.iterations.size(), 2u);
  EXPECT_EQ(result.iterations_asked, 2);
  EXPECT_FALSE(result.collectives.empty());
  EXPECT_FALSE(result.fidelity.faithful);
  EXPECT_EQ(result.interrupted, control->stop_reason());
  EXPECT_TRUE(std::any_of(result.notes.begin(), result.notes.end(), [](const std::string& note) {
    return note.starts_with("stopped while it was measured again");
  }));
}

// The delays are the same, because they are drawn by the iteration's number.
TEST(ARun, MeasuresTheSameIterationsHoweverManyWarmUpsItTook) {
  testing::SmallJob job = steps_of_a_millisecond(FabricKind::memory);
  job.spec.run.min_seconds = 0.2;
  Plays plays;
  const Result here = job.run(&plays);
  EXPECT_GT(plays.plays.size(), 2u);
  const Result modelled = steps_of_a_millisecond(FabricKind::virtual_time).run();
  ASSERT_EQ(modelled.iterations.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(here.iterations.at(i).seconds, modelled.iterations[i].seconds) << i;
}

}  // namespace
}  // namespace ghostrank
