// What limits a step, from results whose figures say so.
#include "tools/diagnosis/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/sample.h"
#include "tools/diagnosis/setting.h"
#include "tools/report/json/json.h"

namespace ghostrank {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kConfig[] =
    R"({"cluster": {"nodes": 2, "nics_per_node": 1, "nic": {"rate": "8Gbps"}},
  "fabric": {"kind": "virtual", "framing": "none"}})";

// A step of a second in virtual time, on four ranks of two nodes.
Result run_of(double compute, double exposed, double bubble) {
  Result r = test::sample();
  r.config_json = kConfig;
  r.nics_per_node = 1;
  r.iterations = {{1, compute, exposed, bubble}};
  r.deterministic = true;
  r.fidelity = {};
  r.fidelity.modelled = r.fidelity.faithful = true;
  r.collectives.clear();
  r.nics.clear();
  r.pairs.clear();
  return r;
}

Diagnosis diagnosed(const Result& result) {
  return diagnose(stored_run(SortedJson::parse(result_json(result)), "r.json"));
}

std::vector<std::string> keys(const Diagnosis& d) {
  std::vector<std::string> list;
  for (const Cause& cause : d.findings) list.push_back(cause.key);
  return list;
}

const Cause& cause(const Diagnosis& d, const std::string& key) {
  for (const Cause& one : d.findings)
    if (one.key == key) return one;
  ADD_FAILURE() << "no " << key;
  static const Cause none;
  return none;
}

TEST(Diagnosis, OrdersPartsOfTheStepByTheirSeconds) {
  const Diagnosis d = diagnosed(run_of(0.2, 0.5, 0.3));
  EXPECT_THAT(keys(d), ElementsAre("exposed_comm", "bubble", "compute"));
  EXPECT_EQ(d.step, 1);
  EXPECT_EQ(d.bottleneck, "latency");
  EXPECT_EQ(d.nothing, "");
}

TEST(Diagnosis, SaysThatNothingButComputeLimitsAStep) {
  const Diagnosis d = diagnosed(run_of(0.995, 0.005, 0));
  EXPECT_THAT(keys(d), ElementsAre("compute"));
  EXPECT_EQ(d.bottleneck, "compute");
  EXPECT_THAT(d.nothing, HasSubstr("nothing but compute"));
}

TEST(Diagnosis, OfNoIterationSaysNothing) {
  Result result = run_of(1, 0, 0);
  result.iterations.clear();
  const Diagnosis d = diagnosed(result);
  EXPECT_THAT(keys(d), IsEmpty());
  EXPECT_FALSE(d.step);
  EXPECT_EQ(d.nothing, "nothing: no iteration was completed");
}

TEST(Diagnosis, NamesANicThatIsBusyAllTheTime) {
  Result result = run_of(0.5, 0.5, 0);
  result.nics = {{Nic(0), 100'000'000, 950'000'000, 1, 1}, {Nic(1), 950'000'000, 1, 1, 1}};
  const Diagnosis d = diagnosed(result);
  const Cause& nic = cause(d, "nic");
  EXPECT_EQ(nic.what, "busiest NIC, n0.nic0");
  EXPECT_DOUBLE_EQ(nic.seconds, 0.95);  // 950 MB at 1 GB/s
  EXPECT_FALSE(nic.at_most);
  EXPECT_THAT(nic.figures.front(), HasSubstr("receives 906 MiB at 8 Gb/s: busy 95 %"));
  EXPECT_EQ(d.bottleneck, "link");
  EXPECT_EQ(d.findings.front().key, "nic");
}

TEST(Diagnosis, LetsANicExplainNoMoreThanRanksWaitFor) {
  Result result = run_of(0.9, 0.1, 0);
  result.nics = {{Nic(0), 500'000'000, 0, 1, 0}, {Nic(1), 0, 500'000'000, 0, 1}};
  const Cause& nic = cause(diagnosed(result), "nic");
  EXPECT_DOUBLE_EQ(nic.seconds, 0.1);
  EXPECT_TRUE(nic.at_most);
}

TEST(Diagnosis, KnowsNoRateThatChanges) {
  Result result = run_of(0.5, 0.5, 0);
  result.config_json =
      R"({"cluster": {"nodes": 2, "nics_per_node": 1, "nic": {"rate": "8Gbps", "rates": "a.csv"}}})";
  result.nics = {{Nic(0), 950'000'000, 0, 1, 0}};
  EXPECT_THAT(keys(diagnosed(result)), ElementsAre("compute", "exposed_comm"));
}

TEST(Diagnosis, TellsServersFromRanksAndLeavesSwitchesOut) {
  Result result = run_of(0.5, 0.5, 0);
  result.config_json = R"({"cluster": {"nodes": 2, "nics_per_node": 1, "nic": {"rate": "80Gbps"}},
      "servers": {"count": 1, "placement": "dedicated", "nic": {"rate": "8Gbps"}}})";
  result.nics = {{Nic(0), 100, 0, 1, 0},
                 {Nic(2), 0, 950'000'000, 0, 1},     // the server
                 {Nic(3), 0, 9'500'000'000, 0, 1}};  // a switch
  result.servers = {{"n2", 950'000'000, 0, 0.25, 0}};
  const Diagnosis d = diagnosed(result);
  EXPECT_EQ(cause(d, "server_nic").what, "busiest NIC of servers, n2.nic0");
  EXPECT_DOUBLE_EQ(cause(d, "server_nic").seconds, 0.95);
  EXPECT_DOUBLE_EQ(cause(d, "server_cores").seconds, 0.25);
  EXPECT_EQ(d.bottleneck, "switch");
}

TEST(Diagnosis, TellsAModelledSwitchFromAServer) {
  Result result = run_of(0.5, 0.5, 0);
  result.servers = {{"n2", 0, 0, 0.95, 0}, {"n1", 0, 0, 0.25, 0}};
  const Diagnosis d = diagnosed(result);
  EXPECT_EQ(cause(d, "modelled_switch").what, "busiest modelled switch, n2");
  EXPECT_THAT(cause(d, "modelled_switch").figures.front(),
              HasSubstr("the mean of 2 machines 60 %"));
  EXPECT_EQ(d.bottleneck, "switch");
}

TEST(Diagnosis, SpreadsCallsOverRanksByWhatTheirBandwidthsSay) {
  Result result = run_of(0.5, 0.5, 0);
  // Two communicators of two ranks each make two calls each, which take 0.3 s at the median and
  // 0.2 s on average: busbw = algbw, as 2 (n - 1) / n is 1.
  CollectiveReport call{"allreduce", "dp", "ring", {}, 4, 8e9, 0.3};
  call.algbw_GBps = call.busbw_GBps = 10;
  result.collectives = {call};
  EXPECT_THAT(cause(diagnosed(result), "exposed_comm").figures,
              ElementsAre("allreduce dp (ring): 2 calls of 200 ms on average, 400 ms of a rank's "
                          "step (40 %)",
                          "calls count whether they are overlapped or not"));
  // A broadcast's bandwidth does not tell how many ranks take part.
  result.collectives.front().op = "broadcast";
  EXPECT_EQ(cause(diagnosed(result), "exposed_comm").figures.front(),
            "broadcast dp (ring): median 300 ms a call");
}

TEST(Diagnosis, BlamesTheMachineThatDidNotKeepUp) {
  Result result = run_of(0.5, 0.5, 0);
  result.fidelity.modelled = result.fidelity.faithful = false;
  result.fidelity.critical_lateness = 4;  // of the step without it
  result.fidelity.loop_busy = 0.95;
  result.fidelity.reason = "lateness is 400 % of the step";
  const Diagnosis d = diagnosed(result);
  EXPECT_EQ(d.bottleneck, "host-cpu");
  EXPECT_EQ(d.findings.front().key, "lateness");
  EXPECT_DOUBLE_EQ(d.findings.front().seconds, 0.8);
  EXPECT_THAT(d.findings.front().remedy, HasSubstr("scale.dilation"));
  result.fidelity.throttled = 0.4;
  EXPECT_THAT(diagnosed(result).findings.front().remedy, HasSubstr("quota"));
}

TEST(Diagnosis, BlamesASwitchThatIsAlwaysBusy) {
  Result result = run_of(0.5, 0.5, 0);
  result.fidelity.modelled = false;
  result.played_wall_seconds = 10;
  result.network_switch = SwitchReport{"compiled", "10.0.0.254", 9.5, 0};
  const Diagnosis d = diagnosed(result);
  EXPECT_EQ(d.bottleneck, "host-cpu");
  EXPECT_DOUBLE_EQ(cause(d, "switch").seconds, 0.95);
  result.network_switch->processor_seconds = 5;
  EXPECT_EQ(diagnosed(result).bottleneck, "latency");
}

TEST(Diagnosis, NamesStallsAndStepsThatDiffer) {
  Result result = run_of(1, 0, 0);
  result.deterministic = false;
  result.iterations = {{1, 1, 0, 0}, {1.5, 1, 0, 0}};
  result.stalls = {{0, 0.5, 0, 8, {1}}};
  const Diagnosis d = diagnosed(result);
  EXPECT_DOUBLE_EQ(cause(d, "variation").seconds, 0.25);
  EXPECT_DOUBLE_EQ(cause(d, "stalls").seconds, 0.25);
  EXPECT_THAT(cause(d, "stalls").figures.front(), HasSubstr("nothing moved 1 time, for 8 s"));
}

TEST(Diagnosis, NamesEventsBehindWaitsAndStepsThatDiffer) {
  Result result = run_of(1, 0.5, 0);
  result.iterations = {{1, 0.5, 0.5, 0}, {1.5, 0.5, 1, 0}};
  result.events = {{1, std::nullopt, 1, "slow", "rank 7 x 1.5"}};
  const Diagnosis d = diagnosed(result);
  EXPECT_THAT(cause(d, "exposed_comm").figures,
              Contains("events: from 1 s on rank 7 x 1.5: others wait for it"));
  EXPECT_THAT(cause(d, "variation").figures, Contains("events: at 1 s rank 7 x 1.5"));
}

TEST(Diagnosis, OfSeveralJobsSaysWhatTheyCostEachOther) {
  Result result = run_of(0.5, 0.5, 0);
  result.jobs.resize(2);
  result.jobs[0] = {"a", "0", 2, {{1.5}}, {{1}}};
  result.jobs[1] = {"b", "1", 2, {{1}}, {{1}}};
  const Diagnosis d = diagnosed(result);
  EXPECT_THAT(keys(d), ElementsAre("other_jobs"));
  EXPECT_DOUBLE_EQ(d.findings.front().seconds, 0.5);
  EXPECT_EQ(d.bottleneck, "");
}

TEST(Diagnosis, AsJsonHasEveryFinding) {
  const StoredRun run = stored_run(SortedJson::parse(result_json(run_of(0.2, 0.5, 0.3))), "r.json");
  const Json json = Json::parse(diagnosis_json(run, diagnose(run)));
  EXPECT_EQ(json["schema"], "ghostrank/diagnosis/1");
  EXPECT_EQ(json["bottleneck"], "latency");
  EXPECT_EQ(json["step_seconds"], 1);
  ASSERT_EQ(json["findings"].size(), 3u);
  EXPECT_EQ(json["findings"][0]["finding"], "exposed_comm");
  EXPECT_EQ(json["findings"][0]["seconds"], 0.5);
  EXPECT_EQ(json["findings"][0]["share"], 0.5);
  EXPECT_TRUE(json["nothing"].is_null());
}

// What `compare` says of the same runs; its own tests are those of transcripts.
TEST(Bottleneck, IsCompressionWhereItsCallsTakeHardlyAnyTime) {
  StepLoad load{.seconds = 1, .compute_seconds = 0.5, .waiting_seconds = 0.5, .kept_up = true};
  load.collective_seconds = 0.05;
  EXPECT_EQ(bottleneck_of(load), "latency");
  load.compresses = true;
  EXPECT_EQ(bottleneck_of(load), "compute");
  load.link_busy = 0.4;  // four fifths of what ranks wait for
  EXPECT_EQ(bottleneck_of(load), "link");
  load.helper_busy = 0.95;
  EXPECT_EQ(bottleneck_of(load), "switch");
  load.kept_up = false;
  EXPECT_EQ(bottleneck_of(load), "host-cpu");
}

}  // namespace
}  // namespace ghostrank
