// A device from measured steps: the fit finds the numbers that made the steps; each held-out step
// is predicted by a fit without it; runs that cannot support a profile are refused or noted.
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "profiles/device/compute.h"
#include "profiles/median.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"
#include "tools/calibrate/device_fit.h"
#include "tools/calibrate/measured_runs.h"
#include "tools/quiet_play.h"
#include "tools/verbs/calibrate/calibrate.h"

namespace ghostrank {
namespace {

const char* const kGptJob =
    "schema: ghostrank/job/1\n"
    "model: {kind: transformer, name: gpt, architecture: gpt2, layers: 8, hidden: 1024, heads: 16, "
    "ffn: 4096, sequence: 1024, vocabulary: 50304, tied_embeddings: true, "
    "position_embeddings: learned, norm: layernorm, bias: true}\n"
    "device: h100-sxm\nprecision: {parameters: bf16, gradients: fp32}\n"
    "cluster: {nodes: 2, gpus_per_node: 4, nics_per_node: 4, nic: {rate: 200Gbps, latency_us: 2}, "
    "intra_node: {rate: 2400Gbps, latency_us: 1}}\n"
    "collectives: {library: nccl-2.28}\n"
    "parallel: {framework: megatron, global_batch: 64, attention: unfused}\n";
const std::vector<std::string> kPlans{
    "tp=1 pp=1 micro_batch=1", "tp=1 pp=1 micro_batch=4", "tp=2 pp=1 micro_batch=1",
    "tp=2 pp=2 micro_batch=2", "tp=4 pp=1 micro_batch=2", "tp=4 pp=2 micro_batch=4",
    "tp=1 pp=4 micro_batch=2", "tp=2 pp=2 micro_batch=8", "tp=1 pp=2 micro_batch=1"};

std::string csv_of(const std::vector<std::string>& plans, const std::vector<double>& seconds) {
  std::string text = "job,plan,seconds\n";
  for (std::size_t i = 0; i < plans.size(); ++i)
    text += "job.yaml," + plans[i] + "," + std::to_string(seconds[i]) + "\n";
  return text;
}

std::vector<MeasuredRun> read(const test::Folder& folder, const std::string& csv,
                              const std::vector<std::string>& overrides = {}) {
  return read_measured_runs(folder.write("runs.csv", csv), "", overrides);
}

// Step seconds of these plans on a device with these settings, multiplied by `times`; empty: by 1.
std::vector<double> steps_on(const test::Folder& folder, const std::vector<std::string>& settings,
                             const std::vector<double>& times,
                             const std::vector<std::string>& plans = kPlans) {
  std::vector<double> steps;
  const auto runs = read(folder, csv_of(plans, std::vector<double>(plans.size(), 1)), settings);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Result result = play_quietly(runs[i].job, plan_workload(runs[i].job.spec));
    steps.push_back(result.iterations.back().seconds * (times.empty() ? 1 : times[i]));
  }
  return steps;
}

bool has(const std::vector<std::string>& notes, const std::string& part) {
  for (const std::string& note : notes)
    if (note.find(part) != std::string::npos) return true;
  return false;
}

TEST(CalibrateSteps, FindsTheNumbersThatMadeTheSteps) {
  const test::Folder folder;
  folder.write("job.yaml", kGptJob);
  const auto steps =
      steps_on(folder, {"device.kernels.matmul=0.5", "device.kernels.memory=0.4"}, {});
  auto runs = read(folder, csv_of(kPlans, steps));
  const DeviceFit found = fit_device(runs, true);
  EXPECT_NEAR(found.device.kernels.matmul, .5, .005);
  EXPECT_NEAR(found.device.kernels.memory, .4, .004);
  EXPECT_EQ(found.device.kernels.host_us, 0);
  EXPECT_LT(found.fit.worst, .005);
  EXPECT_FALSE(found.by_flops);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_TRUE(has(found.notes, "9 different jobs are few"));

  // The profile plays what was fitted, and says how well.
  folder.write("ours.yaml", device_yaml(found, "runs.csv", runs.size()));
  const auto again = read(folder, csv_of(kPlans, steps), {"device=" + folder.path("ours.yaml")});
  const JobSpec& spec = again.front().job.spec;
  EXPECT_EQ(spec.device.calibration, Calibration::fitted);
  EXPECT_EQ(compute_calibration(spec), Calibration::fitted);
  EXPECT_EQ(spec.device.calibrated_type, OperandType::bf16);
  EXPECT_NEAR(spec.device.kernels.memory, found.device.kernels.memory, 1e-4);
  EXPECT_EQ(spec.device.peak_tflops.at("bfloat16"), 989);
  EXPECT_LE(spec.device.step_time_error, .01);
}

const std::vector<std::string> kBatches{"micro_batch=1", "micro_batch=2", "micro_batch=3",
                                        "micro_batch=4", "micro_batch=6", "micro_batch=8"};

std::string job_of(const std::string& parallel) {
  const std::string job = kGptJob;
  return job.substr(0, job.find("parallel:")) + "parallel: " + parallel + "\n";
}

// bf16 and fp16 have one peak on this device.
TEST(CalibrateSteps, HoldsForTypesOfThePeakOfItsRuns) {
  const test::Folder folder;
  const std::string job = job_of("{framework: megatron, attention: unfused}");
  std::string half = job;
  half.replace(half.find("bf16"), 4, "fp16");
  folder.write("job.yaml", job);
  folder.write("half.yaml", half);
  const auto steps = steps_on(folder, {"device.kernels.matmul=0.5"}, {}, kBatches);
  std::string csv = csv_of(kBatches, steps);
  csv.replace(csv.rfind("job.yaml"), 3, "half");
  auto runs = read(folder, csv);
  EXPECT_EQ(fit_device(runs, false).device.calibrated_type, OperandType::bf16);
}

// Their first step is unlike the others: DDP has its final buckets only behind it.
TEST(CalibrateSteps, FitsToStepsThatGoOn) {
  for (const char* framework : {"ddp", "zero1"}) {
    const test::Folder folder;
    folder.write("job.yaml", job_of("{framework: " + std::string(framework) + "}"));
    const auto steps =
        steps_on(folder, {"device.kernels.matmul=0.5", "device.kernels.memory=0.4"}, {}, kBatches);
    auto runs = read(folder, csv_of(kBatches, steps));
    const DeviceFit found = fit_device(runs, true);
    EXPECT_NEAR(found.device.kernels.matmul, .5, .005) << framework;
    EXPECT_NEAR(found.device.kernels.memory, .4, .004) << framework;
    EXPECT_LT(found.fit.worst, .002) << framework;
  }
}

// The profile has no tables, so the fit must not use them, either.
TEST(CalibrateSteps, LeavesMeasuredKernelsOut) {
  const test::Folder folder;
  folder.write("job.yaml", job_of("{framework: ddp}"));
  const std::vector<std::string> measured{"device={base: h200-measured, name: 'rack 7: #2'}"};
  const auto steps = steps_on(folder, measured, {}, kBatches);
  auto runs = read(folder, csv_of(kBatches, steps), measured);
  const DeviceFit found = fit_device(runs, true);
  EXPECT_TRUE(has(found.notes, "the measured kernels of rack 7: #2 are left out"))
      << ::testing::PrintToString(found.notes);
  const std::string ours = folder.write("ours.yaml", device_yaml(found, "runs.csv", runs.size()));
  const DeviceProfile device =
      read(folder, csv_of(kBatches, steps), {"device=" + ours}).front().job.spec.device;
  EXPECT_EQ(device.name, "rack 7: #2");
  EXPECT_EQ(device.peak_tflops, found.device.peak_tflops);  // of float8, too
  const auto again = steps_on(folder, {"device=" + ours}, {}, kBatches);
  for (std::size_t r = 0; r < again.size(); ++r)
    EXPECT_NEAR(again[r] / found.fit.predicted[r], 1, .01) << r;
}

TEST(CalibrateSteps, SaysWhichRunContradictsTheOthers) {
  const test::Folder folder;
  folder.write("job.yaml", kGptJob);
  std::vector<double> off(kPlans.size(), 1);
  off[4] = 1.6;
  auto runs = read(folder, csv_of(kPlans, steps_on(folder, {}, off)));
  const DeviceFit found = fit_device(runs, false);
  EXPECT_TRUE(has(found.notes, "line 6 contradicts the others"))
      << ::testing::PrintToString(found.notes);
  EXPECT_GT(found.fit.worst, .3);
  EXPECT_GT(found.device.step_time_error, .04);
}

// The fit ends at a bound: first of the host's launch time, then of the share of peak FLOP/s.
TEST(CalibrateSteps, SaysWhetherRunsAreFasterOrSlowerThanTheDeviceCanBe) {
  const test::Folder folder;
  folder.write("job.yaml", kGptJob);
  const auto notes_of = [&](const std::string& setting, double times) {
    const auto steps = steps_on(folder, {setting}, std::vector<double>(kPlans.size(), times));
    auto runs = read(folder, csv_of(kPlans, steps), {"device.kernels.host_us=100"});
    return fit_device(runs, false).notes;
  };
  const auto slow = notes_of("device.kernels.host_us=9000", 1);
  EXPECT_TRUE(has(slow, "kernels.host_us ends at its bound, 1000: the runs are slower"))
      << ::testing::PrintToString(slow);
  const auto fast = notes_of("device.kernels.matmul=0.9", .1);
  EXPECT_TRUE(has(fast, "kernels.matmul ends at its bound, 1: the runs are faster"))
      << ::testing::PrintToString(fast);
}

TEST(CalibrateSteps, FitsTheEfficiencyWhereModelsAreComputedByFlops) {
  const test::Folder folder;
  folder.write("job.yaml", kGptJob);
  const std::vector<std::string> flops{"device={base: h100-sxm, multiprocessors: 0}"};
  auto with = flops;
  with.emplace_back("device.efficiency=0.3");
  const auto steps = steps_on(folder, with, {});
  auto runs = read(folder, csv_of(kPlans, steps), flops);
  const DeviceFit found = fit_device(runs, false);
  EXPECT_TRUE(found.by_flops);
  EXPECT_NEAR(found.device.efficiency, .3, .003);
  folder.write("ours.yaml", device_yaml(found, "runs.csv", runs.size()));
  const auto again = read(folder, csv_of(kPlans, steps), {"device=" + folder.path("ours.yaml")});
  EXPECT_EQ(compute_calibration(again.front().job.spec), Calibration::fitted);
}

TEST(CalibrateSteps, ReadsWhatSpreadsheetsWrite) {
  const test::Folder folder;
  folder.write("job.yaml", kGptJob);
  const auto runs = read(folder, "\xEF\xBB\xBFjob,plan,seconds\r\njob.yaml,\"tp=2 pp=1\",2.5\r\n");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].seconds, 2.5);
}

TEST(CalibrateSteps, SkipsCommentsWhateverTheyHoldAndBlanksAroundCells) {
  const test::Folder folder;
  folder.write("job.yaml", kGptJob);
  const auto runs = read(folder,
                         "# all in the 19\" rack\njob, plan, seconds\n"
                         "job.yaml, tp=2 pp=1, 2.5\n# of the 5\" disk\n"
                         "job.yaml,\"tp=1 pp=1\" , 3.5\n# and the other 5\" disk\n"
                         "job.yaml\t,tp=1 pp=2,4.5\n");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[1].seconds, 3.5);
  EXPECT_EQ(runs[1].lines, std::vector<int>{5});
  EXPECT_EQ(runs[2].lines, std::vector<int>{7});
}

TEST(CalibrateSteps, WritesTheProfileThoughTheJsonCannotBeWritten) {
  const test::Folder folder;
  folder.write("job.yaml", kGptJob);
  const std::vector<std::string> plans(kPlans.begin(), kPlans.begin() + 5);
  const std::string csv = folder.write("runs.csv", csv_of(plans, {.07, .06, .09, .09, .1}));
  EXPECT_EQ(verb_calibrate({"ghostrank", "calibrate", "--from", csv, "--estimate", "--json",
                            "/dev/full", "-o", folder.path("ours.yaml")}),
            3);
  EXPECT_TRUE(std::filesystem::exists(folder.path("ours.yaml")));
}

TEST(CalibrateSteps, IsAskedForByFromAmongItsOptions) {
  const test::Folder folder;
  EXPECT_NE(test::error_of([&] {
              verb_calibrate({"ghostrank", "calibrate", "-o", folder.path("x.yaml"), "--from",
                              folder.path("no.csv")});
            }).find("no.csv"),
            std::string::npos);
}

TEST(CalibrateSteps, RefusesRunsThatGroundNothing) {
  const test::Folder folder;
  folder.write("job.yaml", kGptJob);
  const auto refused = [&](const std::string& csv) {
    return test::error_of([&] {
      auto runs = read(folder, csv);
      fit_device(runs, false);
    });
  };
  const auto expect = [&](const std::string& csv, const std::string& part) {
    const std::string error = refused(csv);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(csv_of({kPlans[0], kPlans[1], kPlans[2], kPlans[3]}, {1, 1, 1, 1}),
         "4 different jobs are too few");
  expect(csv_of(std::vector<std::string>(20, kPlans[0]), std::vector<double>(20, 1)),
         "1 different job is too few");
  expect(csv_of({kPlans[0], kPlans[1], kPlans[0]}, {1, 2, 1.2}),
         "runs.csv:4: contradicts line 2: the same job took 1 s and 1.2 s");
  expect(csv_of({kPlans[0]}, {0}), "runs.csv:2: '0.000000' is no time of a step");
  expect("job,plan\njob.yaml,tp=1\n", "runs.csv:1: one column has to be named seconds");
  expect("plan,seconds\ntp=1,1\n", "no column is named job");
  expect("job,plan,seconds\njob.yaml,1\n", "runs.csv:2: there are 2 cells for 3 columns");
  expect("job,plan,seconds\njob.yaml,tp,1\n", "'tp' is no setting of a plan");
  expect("seconds,job,plan\n1,job.yaml,\"tp=1\n2,job.yaml,tp=2\n",
         "runs.csv:2: a quote is not closed");
  expect("job,parallel.tq,seconds\njob.yaml,2,1\n", "runs.csv:2: ");
  expect("job,device,seconds\njob.yaml,,1\njob.yaml,h200-sxm,1\n",
         "runs.csv:3: the run is on h200-sxm, others on h100-sxm");
  expect("# nothing\n\n", "there are no runs");
}

// Six step times: a slope times x plus a constant, each multiplied by its factor in `added`.
TEST(StepFit, HoldsOutWhatAFitWithoutItPredicts) {
  const std::vector<FitNumber> numbers{{"slope", 1, 1e-3, 1e3, 1}, {"constant", 1, 1e-3, 1e3, 1}};
  const std::vector<double> x{1, 2, 3, 5, 8, 13}, added{1, 1.03, .98, 1.2, 1, .99};
  const auto line = [&](std::size_t row, const std::vector<double>& v) {
    return v[0] * x[row] + v[1];
  };
  std::vector<double> measured;
  for (std::size_t r = 0; r < x.size(); ++r) measured.push_back(added[r] * line(r, {2, 3}));
  const StepFit fit = fit_steps(numbers, measured, line);
  for (std::size_t out = 0; out < x.size(); ++out) {
    std::vector<double> others;
    std::vector<std::size_t> rows;
    for (std::size_t r = 0; r < x.size(); ++r)
      if (r != out) others.push_back(measured[r]), rows.push_back(r);
    const StepFit without = fit_steps(
        numbers, others,
        [&](std::size_t row, const std::vector<double>& v) { return line(rows[row], v); });
    EXPECT_NEAR(fit.held_out[out] / line(out, without.values), 1, .004) << out;
  }
  EXPECT_NEAR(fit.worst,
              fit.held_out[3] / measured[3] < 1 ? 1 - fit.held_out[3] / measured[3]
                                                : fit.held_out[3] / measured[3] - 1,
              1e-12);
}

// Two shares of speeds, of which nearly the same times follow: a whole step from the fit to all
// times overshoots.
TEST(StepFit, HoldsOutWhereTheNumbersNearlyStandForEachOther) {
  const std::vector<FitNumber> numbers{{"product", .7, .05, 1, .7}, {"memory", .7, .05, 1, .7}};
  const std::vector<double> product{20, 19, 27, 28, 29, 33, 38, 29, 27},
      memory{16, 13, 20, 21, 22, 23, 29, 20, 23}, noise{1.04, 1.04, 1, .98, .97, 1, .97, .96, 1.01};
  const auto time = [&](std::size_t row, const std::vector<double>& v) {
    return product[row] / v[0] + memory[row] / v[1];
  };
  std::vector<double> measured;
  for (std::size_t r = 0; r < noise.size(); ++r) measured.push_back(noise[r] * time(r, {.55, .6}));
  const StepFit fit = fit_steps(numbers, measured, time);
  for (std::size_t out = 0; out < noise.size(); ++out) {
    std::vector<double> others;
    std::vector<std::size_t> rows;
    for (std::size_t r = 0; r < noise.size(); ++r)
      if (r != out) others.push_back(measured[r]), rows.push_back(r);
    const StepFit without = fit_steps(
        numbers, others,
        [&](std::size_t row, const std::vector<double>& v) { return time(rows[row], v); });
    EXPECT_NEAR(fit.held_out[out] / time(out, without.values), 1, .01) << out;
  }
}

// Times that all are 1 s at exp(-1.2), with a valley at exp(0.185), which is nearer to the start,
// and a hill between the two.
TEST(StepFit, FindsNumbersBehindAHill) {
  const std::vector<FitNumber> numbers{{"number", std::exp(.5), std::exp(-3), std::exp(3), 1}};
  const auto times = [](std::size_t row, const std::vector<double>& v) {
    const double x = std::log(v[0]), far = std::pow(x + 1.2, 2);
    return std::exp(.1 * static_cast<double>(1 + row) * far * (std::pow(x - .2, 2) + .02));
  };
  const StepFit fit = fit_steps(numbers, {1, 1, 1}, times);
  EXPECT_NEAR(std::log(fit.values[0]), -1.2, .01);
}

TEST(StepFit, TakesNoNumberThatPredictsNothing) {
  const std::vector<FitNumber> numbers{{"slope", 1, 1e-3, 1e3, 1}, {"constant", 1, 1e-6, 1e3, 0}};
  const auto line = [](std::size_t row, const std::vector<double>& v) {
    return v[0] * static_cast<double>(row + 1) + v[1];
  };
  std::vector<double> measured;
  for (std::size_t r = 0; r < 8; ++r)
    measured.push_back(line(r, {2, 0}) * (r % 2 == 0 ? 1.02 : .98));
  EXPECT_EQ(fit_fewest(numbers, measured, line).values.size(), 1u);
  for (std::size_t r = 0; r < 8; ++r) measured[r] = line(r, {2, 5}) * (r % 2 == 0 ? 1.01 : .99);
  EXPECT_EQ(fit_fewest(numbers, measured, line).values.size(), 2u);
}

}  // namespace
}  // namespace ghostrank
