// Streams that outlive their iteration, against closed forms: C of compute, and K of communication
// that runs under the next step's compute.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "tests/emulator/shard/carried_job.h"

namespace ghostrank {
namespace {

using testing::carried_job;
using testing::CarriedStep;
using testing::SmallJob;

constexpr std::uint64_t kCount = 40'000;
constexpr auto kVirtual = FabricKind::virtual_time;

// A ring of four: six hops of a quarter each.
constexpr double kRing = 6 * (5e-6 + 10'000 * 4 * 8 / 100e9);

// Seconds of one all-reduce alone.
double communication() {
  SmallJob job = carried_job(kVirtual, {0, 0, kCount});
  const double alone = job.run().iterations.at(0).seconds;
  EXPECT_NEAR(alone, kRing, kRing * 1e-3);
  return alone;
}

std::vector<IterationReport> played(SmallJob job, int warmup, int iterations) {
  job.spec.run.warmup = warmup;
  job.spec.run.iterations = iterations;
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  EXPECT_EQ(result.iterations.size(), static_cast<std::size_t>(iterations));
  return result.iterations;
}

void expect_steps(const std::vector<IterationReport>& steps, double first, double middle,
                  double last, double compute) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double expected = i == 0 ? first : i + 1 < steps.size() ? middle : last;
    EXPECT_NEAR(steps[i].seconds, expected, 1e-11) << i;
    EXPECT_NEAR(steps[i].rank_seconds, expected, 1e-11) << i;
    EXPECT_NEAR(steps[i].compute_seconds, compute, 1e-11) << i;
    EXPECT_NEAR(steps[i].exposed_comm_seconds, expected - compute, 1e-11) << i;
    EXPECT_EQ(steps[i].bubble_seconds, 0);
  }
}

TEST(Carried, AStepThatWaitsForNothingTakesTheLongerOfComputeAndCommunication) {
  const double k = communication();
  for (const Picoseconds picos : {10, 40, 70, 200}) {
    const Picoseconds compute = picos * kPicosPerMicro;
    CarriedStep step{0, compute, kCount};
    step.waits = false;
    const double c = seconds(compute), longer = std::max(c, k);
    expect_steps(played(carried_job(kVirtual, step), 2, 6), c, longer, longer + k, c);
  }
}

TEST(Carried, AWaitBeforeTheBackwardPassOverlapsTheForwardPassAlone) {
  const double k = communication();
  for (const Picoseconds picos : {10, 40, 70, 200}) {
    const Picoseconds forward = picos * kPicosPerMicro, backward = 30 * kPicosPerMicro;
    const double f = seconds(forward), b = seconds(backward), step = std::max(f, k) + b;
    expect_steps(played(carried_job(kVirtual, {forward, backward, kCount}), 0, 5), f + b, step,
                 step + k, f + b);
  }
}

// As DeAR: a call of the step's own that nothing waits for, and one that the next step waits for. A
// step computes, waits for both, and unpacks on the stream of the first.
TEST(Carried, TheEndOfAStepWaitsForItsOwnStreamsToo) {
  const double k = communication();
  const Picoseconds compute = 20 * kPicosPerMicro, unpack = 7 * kPicosPerMicro;
  for (const bool carries : {false, true}) {
    ProgramBuilder out({"compute", "scatter", "gather"});
    if (carries) out.outlives(2);
    const std::uint32_t gathered = carries ? out.carried_event() : 0;
    if (carries) out.wait_previous(0, gathered);
    out.compute(0, "step", compute);
    out.after(1, 0);
    out.collective(1, "scatter", Func::all_reduce, 0, DataType::float32, kCount);
    out.compute(1, "unpack", unpack);
    if (carries) {
      out.after(2, 1);
      out.collective(2, "gather", Func::all_reduce, 1, DataType::float32, kCount);
      out.record(2, gathered);
    }
    SmallJob job = carried_job(kVirtual, {});
    job.workload.group_names.push_back("gather");
    job.workload.groups.push_back({1, job.workload.groups[0].members});
    job.program() = out.take();
    check_workload(job.workload);
    const std::vector<IterationReport> steps = played(job, 0, 4);
    const double own = seconds(compute) + k + seconds(unpack);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double before = carries && i > 0 ? k : 0, after = carries && i == 3 ? k : 0;
      EXPECT_NEAR(steps[i].seconds, before + own + after, 1e-11) << carries << i;
      // The last call of all ends the last step, and nothing is computed behind it.
      const Picoseconds computed = after > 0 ? compute : compute + unpack;
      EXPECT_NEAR(steps[i].compute_seconds, seconds(computed), 1e-11) << carries << i;
      EXPECT_NEAR(steps[i].exposed_comm_seconds, steps[i].seconds - seconds(computed), 1e-11)
          << carries << i;
    }
  }
}

// An iteration played alone carries nothing over, because a segment ends when everything rests.
TEST(Carried, TheOnlyStepOfASegmentHasAllOfItsCommunication) {
  const double k = communication();
  const std::vector<IterationReport> steps =
      played(carried_job(kVirtual, {0, 100 * kPicosPerMicro, kCount}), 3, 1);
  EXPECT_NEAR(steps[0].seconds, 1e-4 + k, 1e-11);
  EXPECT_NEAR(steps[0].exposed_comm_seconds, k, 1e-11);
}

// Of two programs in turn only one communicates, so its communication has two iterations' time.
TEST(Carried, IterationsMayDifferInWhatTheyCarryOver) {
  const double k = communication();
  const Picoseconds compute = 20 * kPicosPerMicro;
  CarriedStep busy{0, compute, kCount}, idle{0, compute, 0};
  busy.waits = idle.waits = false;
  idle.workers = 0;
  SmallJob job = carried_job(kVirtual, busy);
  job.workload.roles[0].iterations = {program_of(idle), program_of(busy)};
  job.workload.roles[0].iterations[0].at_once = {1, 1};
  job.workload.order = {0, 1};
  job.workload.cycle = 2;
  check_workload(job.workload);
  const std::vector<IterationReport> steps = played(job, 0, 5);
  const double c = seconds(compute), expected[] = {c, c, k, c, k};
  ASSERT_LT(c, k);
  for (std::size_t i = 0; i < steps.size(); ++i)
    EXPECT_NEAR(steps[i].seconds, expected[i], 1e-11) << i;
}

// The events of three iterations are alive: the copy waits for the event of its own previous
// iteration while the rank has moved on to a later one.
TEST(Carried, AStreamThatIsBehindWaitsForTheIterationBeforeItsOwn) {
  ProgramBuilder out({"compute", "copy", "write"});
  out.outlives(1);
  out.outlives(2);
  const std::uint32_t written = out.carried_event();
  out.compute(0, "step", 10 * kPicosPerMicro);
  out.after(1, 0);
  out.wait_previous(1, written);  // one buffer
  out.compute(1, "copy", 30 * kPicosPerMicro);
  out.after(2, 1);
  out.compute(2, "write", 50 * kPicosPerMicro);
  out.record(2, written);
  SmallJob job(2, 1, kVirtual);
  job.program() = out.take();
  check_workload(job.workload);
  const std::vector<IterationReport> steps = played(job, 0, 6);
  // A copy and its write exclude the next ones, so iteration i + 1 ends with the write of i.
  const double expected[] = {10e-6, 80e-6, 80e-6, 80e-6, 80e-6, 160e-6};
  for (std::size_t i = 0; i < steps.size(); ++i)
    EXPECT_NEAR(steps[i].seconds, expected[i], 1e-11) << i;
}

TEST(Carried, AnyNumberOfShardsPlaysTheSame) {
  for (const std::uint8_t workers : {std::uint8_t{1}, std::uint8_t{2}}) {
    CarriedStep step{20 * kPicosPerMicro, 30 * kPicosPerMicro, kCount};
    step.workers = workers;
    SmallJob job = carried_job(kVirtual, step);
    job.spec.run.jitter = 0.4;
    job.spec.run.warmup = 1;
    job.spec.run.iterations = 8;
    testing::expect_alike_with_shards(job, {2, 4});
  }
}

TEST(Carried, TheLedgerIsThePlan) {
  SmallJob job = carried_job(kVirtual, {0, 10 * kPicosPerMicro, kCount});
  job.spec.run.iterations = 5;
  const Result result = job.run();
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  EXPECT_EQ(result.wire_bytes_per_iteration, static_cast<double>(plan.wire_bytes));
  EXPECT_EQ(result.messages_per_iteration, static_cast<double>(plan.wire_messages));
  EXPECT_TRUE(std::any_of(result.notes.begin(), result.notes.end(), [](const std::string& note) {
    return note.starts_with("streams outlive their iterations");
  }));
}

std::vector<Span> spans_of(SmallJob job, std::uint8_t stream) {
  RunOptions options;
  options.trace_ranks = {WorldRank(0)};
  options.max_spans = 1000;
  const auto control = Control::meet(World{});
  std::vector<Span> spans = job.run(*control, nullptr, options).spans;
  std::erase_if(spans, [&](const Span& s) { return s.stream != stream; });
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.start < b.start; });
  return spans;
}

TEST(Carried, SpansLieUnderTheNextStepWithTheNamesOfTheirOwn) {
  CarriedStep step{0, 20 * kPicosPerMicro, kCount};
  step.waits = false;
  SmallJob job = carried_job(kVirtual, step);
  std::vector<Program>& programs = job.workload.roles[0].iterations;
  programs.insert(programs.begin(), programs[0]);
  programs[0].labels = {"forward", "first backward", "first gradients"};
  programs[1].labels = {"forward", "backward", "gradients"};
  job.spec.run.iterations = 3;
  const std::vector<Span> calls = spans_of(job, 1), steps = spans_of(job, 0);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].label, "first gradients");
  EXPECT_EQ(calls[1].label, "gradients");
  EXPECT_EQ(calls[0].start, 20 * kPicosPerMicro);
  for (std::size_t i = 1; i < calls.size(); ++i)
    EXPECT_EQ(calls[i].start, calls[i - 1].start + calls[i - 1].duration);
  // By iteration: a compute; a compute and a wait; a compute and the wait for the end of all.
  std::vector<std::string> labels;
  for (const Span& s : steps) labels.push_back(s.label);
  EXPECT_EQ(labels,
            (std::vector<std::string>{"first backward", "backward", "wait", "backward", "wait"}));
  EXPECT_EQ(steps[3].start, calls[0].start + calls[0].duration);
}

// A delay is drawn for its own iteration, not for the one that the rank has reached meanwhile.
TEST(Carried, JitterDoesNotDependOnWhoIsBehind) {
  std::vector<Picoseconds> durations[2];
  for (const bool behind : {false, true}) {
    ProgramBuilder out({"compute", "copy"});
    out.outlives(1);
    out.compute(0, "step", (behind ? 1 : 1000) * kPicosPerMicro);
    for (int i = 0; i < 4; ++i) out.compute(1, "copy", 50 * kPicosPerMicro);
    SmallJob job(2, 1, kVirtual);
    job.program() = out.take();
    job.spec.run.jitter = 0.2;
    job.spec.run.iterations = 6;
    for (const Span& s : spans_of(job, 1)) durations[behind].push_back(s.duration);
  }
  EXPECT_EQ(durations[0].size(), 24u);
  EXPECT_EQ(durations[0], durations[1]);
}

TEST(Carried, ADeadlockNamesTheEventOfTheIterationBefore) {
  SmallJob job = carried_job(kVirtual, {0, 10 * kPicosPerMicro, kCount});
  for (Program& program : job.workload.roles[0].iterations) {  // skips the check of programs
    OpList ops;
    for (const Op& op : program.streams[1])
      if (op.kind != Op::Kind::record) ops.push_back(op);
    program.streams[1] = ops;
  }
  job.spec.run.iterations = 3;
  const Result result = job.run();
  EXPECT_NE(result.interrupted.find(
                "deadlock: rank 0 on host 0 waits for event 0 of the iteration before"),
            std::string::npos)
      << result.interrupted;
  EXPECT_EQ(result.iterations.size(), 1u);
}

TEST(Carried, RealDataIsReducedRightInMemory) {
  for (const int shards : {1, 2, 4}) {
    for (const bool waits : {false, true}) {
      CarriedStep step{20 * kPicosPerMicro, 20 * kPicosPerMicro, 5003};
      step.waits = waits;
      step.workers = shards == 2 ? 2 : 1;
      SmallJob job = carried_job(FabricKind::memory, step);
      job.spec.run.shards = shards;
      job.spec.run.verify = true;
      job.spec.run.warmup = 2;
      job.spec.run.iterations = 6;
      job.spec.collectives.credits = 2;
      job.spec.collectives.slice_bytes = 512;
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      EXPECT_EQ(result.iterations.size(), 6u);
      EXPECT_EQ(result.verify->wrong_elements, 0u);
      EXPECT_EQ(result.verify->checked_elements, 6u * 4u * 5003u * step.workers);
    }
  }
}

}  // namespace
}  // namespace ghostrank
