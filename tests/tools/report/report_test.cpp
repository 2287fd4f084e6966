#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "tests/layers_job.h"
#include "tests/profiles/support.h"
#include "tests/tools/sample.h"
#include "tools/report/pictures/heat_map.h"
#include "tools/report/plan_report.h"
#include "tools/report/run_report.h"

namespace ghostrank {
namespace {

using test::sample;

TEST(Verdict, StandsFirstAndSaysWhatTheNumbersAreValidFor) {
  EXPECT_EQ(verdict(sample()), "faithful: this machine kept up; valid for bytes, order");
}

TEST(Verdict, GivesTheReasonOfAnUnfaithfulRun) {
  Result result = sample();
  result.fidelity.faithful = false;
  result.fidelity.reason = "loop busy 95 %";
  EXPECT_EQ(verdict(result), "NOT faithful: loop busy 95 %; valid for bytes, order");
}

TEST(Verdict, PutsAnInterruptionAndWrongSumsBeforeEverythingElse) {
  Result result = sample();
  result.verify->wrong_elements = 7;
  EXPECT_EQ(verdict(result), "WRONG: verification found 7 wrong elements");
  result.interrupted = "host 1 (beta) was lost";
  result.iterations_asked = 5;
  EXPECT_EQ(verdict(result), "INCOMPLETE: 3 of 5 iterations; host 1 (beta) was lost");
  result.jobs.resize(2);
  result.jobs[0].name = "a";
  result.jobs[0].iterations.resize(12);
  result.jobs[1].name = "b";
  EXPECT_EQ(verdict(result), "INCOMPLETE: a 12, b 0 iterations; host 1 (beta) was lost");
}

TEST(Verdict, CallsVirtualTimeModelled) {
  Result result = sample();
  result.fidelity.faithful = false;
  result.fidelity.modelled = true;
  EXPECT_EQ(verdict(result).rfind("modelled: virtual time", 0), 0u);
}

TEST(Report, PaintsTheVerdictRedUnlessTheRunWasGood) {
  const auto begins = [](const Result& result, std::string_view colour) {
    return report(LoadedJob{}, result, Paint{true}).starts_with(colour);
  };
  const std::string_view green = "\x1b[1;32m", red = "\x1b[1;31m";
  Result result = sample();
  EXPECT_TRUE(begins(result, green));
  result.fidelity.faithful = false;
  EXPECT_TRUE(begins(result, red));
  result.fidelity.modelled = true;
  EXPECT_TRUE(begins(result, green));
  result.verify->wrong_elements = 7;
  EXPECT_TRUE(begins(result, red));
  result.verify->wrong_elements = 0;
  result.interrupted = "host 1 (beta) was lost";
  EXPECT_TRUE(begins(result, red));
}

TEST(Report, NamesTheBusiestNicAndTheDilation) {
  LoadedJob job;
  job.spec.fabric.kind = FabricKind::ofi;
  const std::string text = report(job, sample(), Paint{});
  EXPECT_EQ(text.rfind("faithful", 0), 0u);
  EXPECT_NE(text.find("2 NICs send 2 KiB on average, the busiest (n0.nic0) 2 KiB"),
            std::string::npos);
  EXPECT_NE(text.find("8 (auto): 1 s of the emulated cluster takes 8 s here"), std::string::npos);
  EXPECT_NE(text.find("ofi: net, tcp-cubic"), std::string::npos);
  EXPECT_NE(text.find("held up while work was due unreadable"), std::string::npos);
}

TEST(Report, LeavesOutFiguresThatTheMachineMayHavePutOff) {
  LoadedJob job;
  job.spec.fabric.kind = FabricKind::memory;
  Result result = sample();
  const std::string before = report(job, result, Paint{});
  EXPECT_EQ(before.find("left out"), std::string::npos);
  EXPECT_NE(before.find("2 ms "), std::string::npos) << before;  // time/call
  result.collectives.at(0).seconds_error = 5.4;
  result.fidelity.figures = {
      {"step_time.median", 0.002}, {"step_time.mean", 0.02}, {"exposed_comm", 0.3}};
  const std::string text = report(job, result, Paint{});
  EXPECT_EQ(text.rfind("faithful", 0), 0u);
  EXPECT_NE(text.find("left out"), std::string::npos) << text;
  EXPECT_NE(text.find("step_time.mean (2 %)"), std::string::npos) << text;
  EXPECT_NE(text.find("time/call of allreduce dp (540 %)"), std::string::npos) << text;
  EXPECT_EQ(text.find("exposed comm "), std::string::npos) << text;
  EXPECT_EQ(text.find("2 ms "), std::string::npos) << text;
  EXPECT_EQ(text.find(", mean "), std::string::npos) << text;
  EXPECT_NE(text.find("1.5 GB/s"), std::string::npos) << text;  // it has its own validity
}

TEST(Report, CountsPacketsWhereSchemesSendThem) {
  const LoadedJob job;
  Result result = sample();
  EXPECT_EQ(report(job, result, Paint{}).find("packets "), std::string::npos);
  result.packets = PacketCounts{.sent = 1000, .received = 985, .lost_on_purpose = 10, .dropped = 5};
  std::string text = report(job, result, Paint{});
  EXPECT_NE(text.find("1,000 sent, 985 received, 10 lost on purpose, 5 dropped by the kernel\n"),
            std::string::npos)
      << text;
  result.packets->doubled_on_purpose = 2;
  result.packets->sent_again = 7;
  result.packets->strays = 3;
  result.packets->unreadable = 1;
  text = report(job, result, Paint{});
  EXPECT_NE(text.find("10 lost on purpose, 7 sent again to the switch, 2 doubled, dropped by the "
                      "kernel: unreadable, 3 strays"),
            std::string::npos)
      << text;
}

TEST(Report, SaysWhatBefellSwitches) {
  const LoadedJob job;
  Result result = sample();
  EXPECT_EQ(report(job, result, Paint{}).find("switch trouble"), std::string::npos);
  result.troubles = SwitchTroubles{.failures = 1, .unheard = 7, .restarts = 2};
  std::string text = report(job, result, Paint{});
  EXPECT_NE(text.find("failed 1 time; 2 agreements to send again\n"), std::string::npos) << text;
  result.troubles->fallbacks = 1;
  result.troubles->first_fallback = 1'500 * kPicosPerMicro;
  result.troubles->ring_calls = 40;
  text = report(job, result, Paint{});
  EXPECT_NE(text.find("again; given up at 1.5 ms, 40 calls without it since\n"), std::string::npos)
      << text;
}

TEST(Report, NamesTheEventsThatHappened) {
  Result result = sample();
  EXPECT_EQ(report(LoadedJob{}, result, Paint{}).find("events"), std::string::npos);
  result.events = {{0.5, std::nullopt, 1, "mark", "x"},
                   {1.5, std::nullopt, std::nullopt, "slow", "rank 7 x 1.5 for 2 s"}};
  const std::string text = report(LoadedJob{}, result, Paint{});
  const auto at = text.find("events ");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_NE(text.find("at 500 ms (iteration 1): mark x\n", at), std::string::npos) << text;
  EXPECT_NE(text.find("at 1.5 s: rank 7 x 1.5 for 2 s\n", at), std::string::npos) << text;
}

TEST(Report, OfADeterministicRunSaysSoInPlaceOfAnInterval) {
  const LoadedJob job;
  Result result = sample();
  EXPECT_NE(report(job, result, Paint{}).find("] (95 %)"), std::string::npos);
  result.deterministic = true;
  std::string text = report(job, result, Paint{});
  EXPECT_EQ(text.find("95 %"), std::string::npos);
  EXPECT_NE(text.find("median 500 ms, mean 500 ms, 3 iterations, cv 20 %, deterministic\n"),
            std::string::npos)
      << text;
  result.iterations.assign(3, {0.5, 0.3, 0.2, 0});
  text = report(job, result, Paint{});
  EXPECT_NE(text.find("median 500 ms, 3 iterations, deterministic\n"), std::string::npos) << text;
}

TEST(Report, SaysHowFarTheComputeModelIsOff) {
  Result result = sample();
  const LoadedJob job;
  const auto text = [&] { return report(job, result, Paint{}); };
  EXPECT_EQ(text().find("compute model"), std::string::npos);
  result.fidelity.model_error = 0.08;
  EXPECT_NE(text().find("± 8 % of the compute model\n"), std::string::npos) << text();
  result.fidelity.model_error = 0;
  result.fidelity.assumed_compute = true;
  EXPECT_NE(text().find("; compute is assumed, not calibrated\n"), std::string::npos) << text();
}

TEST(PlanReport, SaysWhichNumbersAreEstimatesAndHowTheyAreCounted) {
  const auto plan_of = [](const std::string& scheme) {
    const test::LayersJob layers{.layers = {{"[30000]"}}, .nodes = 4};
    const LoadedJob job = test::load_text(text_of(layers) + "collectives: {allreduce: " + scheme +
                                          "}\ntensors: {density: 0.1}\n");
    return plan_facts(job, plan_workload(job.spec));
  };
  const auto says = [&](const std::string& scheme, const std::string& what) {
    const PlanFacts facts = plan_of(scheme);
    const std::string note = "allreduce of dp by " + scheme + ": messages and bytes are " + what;
    EXPECT_NE(plan_text(facts, Paint{}).find("  - " + note), std::string::npos)
        << plan_text(facts, Paint{});
    const auto parsed = nlohmann::json::parse(plan_json(facts));
    EXPECT_EQ(parsed["collectives"][0]["exact"], false);
    EXPECT_EQ(parsed["notes"].back().get<std::string>().rfind(note, 0), 0U);
  };
  says("sharp", "counted as if every communicator had a tree, without its asking for it");
  says("sparcml", "means over the data");
  const PlanFacts exact = plan_of("ring");
  EXPECT_EQ(plan_text(exact, Paint{}).find("messages and bytes are"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(plan_json(exact))["collectives"][0]["exact"], true);
}

// From 0.4 in iteration 0 to 0.1 in iteration 8.
TEST(PlanReport, TellsTheDensityOfTheFirstMeasuredIteration) {
  const test::LayersJob layers{.layers = {{"[30000]"}}, .nodes = 4};
  for (const auto& [warmup, density] : {std::pair{0, 0.4}, {4, 0.2}}) {
    const LoadedJob job = test::load_text(
        text_of(layers) +
            "collectives: {allreduce: sparcml}\n"
            "tensors: {density: 0.4, last_density: 0.1, block: 1}\n",
        {"run.warmup=" + std::to_string(warmup), "run.iterations=" + std::to_string(9 - warmup)});
    const PlanFacts facts = plan_facts(job, plan_workload(job.spec));
    ASSERT_TRUE(facts.tensors.has_value());
    EXPECT_NEAR(facts.tensors->density(), density, 1e-3);
    EXPECT_NEAR(facts.tensors->last_density.value(), 0.1, 1e-4);
  }
}

// A program's own order need not end with the one that most iterations play.
TEST(PlanReport, ShowsTheProgramThatMostIterationsPlay) {
  const auto facts_of = [](const std::string& order) {
    const LoadedJob job = test::load_text(
        "schema: ghostrank/job/1\ncluster: {nodes: 2, gpus_per_node: 1}\nprogram:\n  ranks: 2\n" +
        order +
        "  groups: {dp: [0-1]}\n"
        "  roles:\n"
        "    - name: all\n"
        "      ranks: 0-1\n"
        "      iterations:\n"
        "        - {comm: 'allreduce dp float32 1000'}\n"
        "        - {comm: 'allreduce dp float32 3000'}\n");
    return plan_facts(job, plan_workload(job.spec));
  };
  const auto bytes = [](const PlanFacts& facts) {
    return facts.traffic.collectives.front().buffer_bytes;
  };
  const PlanFacts often = facts_of("  order: [0, 0, 0, 1]\n  cycle: 4\n");
  EXPECT_EQ(bytes(often), 4000u);
  EXPECT_NE(plan_text(often, Paint{})
                .find("every 4 iterations are alike; shown is the step of 3 "
                      "of them\n"),
            std::string::npos)
      << plan_text(often, Paint{});
  EXPECT_EQ(bytes(facts_of("  order: [0, 0, 1, 1]\n  cycle: 4\n")), 12000u);
  EXPECT_EQ(bytes(facts_of("  order: [1, 0]\n  cycle: 1\n")), 4000u);
}

TEST(IterationsCsv, HasOneRowPerMeasuredIteration) {
  EXPECT_EQ(iterations_csv(sample()),
            "job,provider,transport,ranks,dilation,iteration,seconds,compute_seconds,"
            "exposed_comm_seconds,bubble_seconds,faithful\n"
            "job,net,tcp-cubic,4,8,0,0.4,0.3,0.1,0,true\n"
            "job,net,tcp-cubic,4,8,1,0.6,0.3,0.2,0.1,true\n"
            "job,net,tcp-cubic,4,8,2,0.5,0.3,0.2,0,true\n");
}

TEST(IterationsCsv, QuotesTheNameOfAJobThatNeedsIt) {
  Result result = sample();
  result.job_name = "a,b \"c\"";
  EXPECT_NE(iterations_csv(result).find("\n\"a,b \"\"c\"\"\",net,"), std::string::npos);
}

// Delays that jitter shortens are below it.
TEST(PlanReport, SaysThatItsLeastStepIsWithoutJitter) {
  const auto text_of = [](const std::string& jitter) {
    const LoadedJob job = test::load_text(
        "model: gpt2\ndevice: h100-sxm\nprecision: {parameters: bf16}\nrun: {jitter: " + jitter +
        "}\n");
    return plan_text(plan_facts(job, plan_workload(job.spec)), Paint{});
  };
  const std::string even = text_of("0"), jitters = text_of("0.1");
  EXPECT_EQ(even.find("without jitter"), std::string::npos);
  const auto step = jitters.find("step at least"), mfu = jitters.find("MFU at most");
  ASSERT_NE(step, std::string::npos);
  ASSERT_NE(mfu, std::string::npos);
  for (const auto at : {step, mfu}) {
    const std::string line = jitters.substr(at, jitters.find('\n', at) - at);
    EXPECT_TRUE(line.ends_with(" without jitter")) << line;
  }
}

TEST(PlanReport, SaysThatItIsWithoutEvents) {
  const LoadedJob job = test::load_text(
      "model: gpt2\ndevice: h100-sxm\nprecision: {parameters: bf16}\n"
      "events: [{at_s: 0, rank: 0, slow: 2}]\n");
  EXPECT_NE(plan_text(plan_facts(job, plan_workload(job.spec)), Paint{})
                .find("events: times here are without them"),
            std::string::npos);
}

// Nobody waits for traffic beside jobs, however long it takes.
TEST(PlanReport, LeavesTrafficBesideJobsOutOfTheirLeastStep) {
  const auto facts_of = [](const std::string& background) {
    const LoadedJob job = test::load_text(
        "jobs:\n"
        "  - {name: a, file: {model: gpt2}, nodes: 0-1}\n"
        "device: h100-sxm\n"
        "precision: {parameters: bf16}\n"
        "cluster: {nodes: 4, topology: {kind: leaf_spine, leaves: 2, placement: spread}}\n"
        "fabric: {kind: virtual}\n" +
        background);
    return plan_facts(job, plan_workload(job.spec));
  };
  const PlanFacts alone = facts_of(""),
                  beside = facts_of("background: [{pattern: permutation, bytes: 8GiB}]\n");
  EXPECT_EQ(beside.traffic.step_seconds_at_least, alone.traffic.step_seconds_at_least);
  EXPECT_EQ(beside.traffic.compute_seconds, alone.traffic.compute_seconds);
  EXPECT_EQ(beside.traffic.wire_bytes, alone.traffic.wire_bytes + 16 * (8ULL << 30));
}

// 64 packets of 1,034 bytes take 5.3 ms at 100 Mb/s.
TEST(PlanReport, NamesTimeOutsThatAreTooShortForARealSwitch) {
  const auto notes_with = [](const std::string& timeout_us) {
    const LoadedJob job = test::load_text(
        "model: {kind: layers, name: m, layers: [{parameters: [1000000]}]}\n"
        "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 100Mbps}}\n"
        "collectives: {allreduce: switchml}\n"
        "switch: {target: external, address: 10.1.0.9, slots: 64, timeout_us: " +
        timeout_us + "}\nfabric: {kind: packets, colocated: wire}\n");
    std::string text;
    for (const std::string& note : plan_facts(job, plan_workload(job.spec)).notes)
      if (note.starts_with("switch.timeout_us: ")) text += note;
    return text;
  };
  EXPECT_NE(notes_with("5000").find("64 packets of 1034 bytes"), std::string::npos);
  EXPECT_EQ(notes_with("6000"), "");
}

// A row for each link; adjacent bins of one shade are drawn as one shape, idle bins not at all.
TEST(LinkHeatMap, HasARowForEachLink) {
  Result result;
  result.link_history =
      LinkHistory{0.5, 70, {"leaf0-spine0", "spine0-leaf1"}, {{0, 1, 1, 0.5f}, {0.25f, 0, 0, 0}}};
  const std::string svg = link_heat_map(result);
  EXPECT_NE(svg.find("The busiest 2 of 70 links"), std::string::npos);
  EXPECT_NE(svg.find("<title>leaf0-spine0, 500 ms to 1.5 s: 100 %</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>leaf0-spine0, 1.5 s to 2 s: 50 %</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>spine0-leaf1, 0 s to 500 ms: 25 %</title>"), std::string::npos);
  EXPECT_EQ(svg.find("leaf0-spine0, 0 s"), std::string::npos);
}

}  // namespace
}  // namespace ghostrank
