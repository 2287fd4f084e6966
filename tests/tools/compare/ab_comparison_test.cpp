#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/shell.h"
#include "tests/tools/sample.h"
#include "tools/compare/ab/bundle.h"
#include "tools/compare/ab/comparison.h"
#include "tools/compare/ab/statistics.h"

namespace ghostrank {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

AbRun run_of(std::size_t variant, std::size_t block, double step) {
  AbRun run;
  run.variant = variant;
  run.block = block;
  run.step_seconds = step;
  run.iterations = 5;
  run.bytes = 3000;
  run.messages = 12;
  run.busiest_nic_bytes = variant == 0 ? 1500 : 1000;
  run.nic_bps = 1e9;
  run.transport = "tcp-cubic (net)";
  run.fabric = "ofi";
  run.faithful = true;
  run.bottleneck = "link";
  return run;
}

// Ten blocks of a around 1 s and b around 0.7 s.
AbComparison comparison() {
  AbComparison c;
  c.version = "9.8.7";
  c.job = "job";
  c.argv = {"ghostrank", "compare"};
  c.common = {"run.jitter=0.1"};
  c.variants = {{"a", {"collectives.allreduce=ring"}}, {"b", {"collectives.allreduce=switchml"}}};
  c.seed = 3;
  for (std::size_t block = 0; block < 10; ++block) {
    const double drift = 0.001 * static_cast<double>((block * 7) % 10);
    c.runs.push_back(run_of(1, block, 0.7 - drift));
    c.runs.push_back(run_of(0, block, 1 + drift));
  }
  return c;
}

TEST(AbSettings, AreSeparatedBySpacesOrCommasBeforeKeys) {
  EXPECT_THAT(parse_settings("--a", "x.y=1 z=two"), ElementsAre("x.y=1", "z=two"));
  EXPECT_THAT(parse_settings("--a", "x=1,z=2, w=3 "), ElementsAre("x=1", "z=2", "w=3"));
  EXPECT_THAT(parse_settings("--a", "x={k: [1, 2], v: a b},y=1"),
              ElementsAre("x={k: [1, 2], v: a b}", "y=1"));
  EXPECT_THAT(parse_settings("--a", "cores=0-3,8 y='p q=1'"),
              ElementsAre("cores=0-3,8", "y='p q=1'"));
  EXPECT_THAT(parse_settings("--a", "x="), ElementsAre("x="));
  EXPECT_THROW(parse_settings("--a", "ring"), Error);
  EXPECT_THROW(parse_settings("--a", "=ring"), Error);
}

TEST(AbVariants, HaveNamesOfTheirOwn) {
  const Variant v = parse_variant("big:cluster.nodes=4 run.jitter=0.1");
  EXPECT_EQ(v.name, "big");
  EXPECT_THAT(v.settings, ElementsAre("cluster.nodes=4", "run.jitter=0.1"));
  EXPECT_TRUE(parse_variant("base:").settings.empty());
  for (const char* bad : {"", "big", ":x=1", "a/b:x=1", "-x:y=1", "big:ring"})
    EXPECT_THROW(parse_variant(bad), Error) << bad;
  EXPECT_THROW(check_variants({}), Error);
  EXPECT_THROW(check_variants({v}), Error);
  EXPECT_THROW(check_variants({v, v}), Error);
  check_variants({v, {"other", v.settings}});  // an A/A comparison is one, too
}

TEST(AbConditions, AreReadOrRefused) {
  EXPECT_DOUBLE_EQ(parse_until("ci<1%"), 0.01);
  EXPECT_DOUBLE_EQ(parse_until("ci<0.02"), 0.02);
  for (const char* bad : {"", "ci", "ci<", "ci<0", "ci<-1%", "ci>1%", "ci<x", "1%"})
    EXPECT_THROW(parse_until(bad), Error) << bad;
  EXPECT_DOUBLE_EQ(parse_margin("1%"), 0.01);
  for (const char* bad : {"", "-1%", "x", "100%"}) EXPECT_THROW(parse_margin(bad), Error) << bad;
  const std::vector<Variant> variants{{"a", {}}, {"b", {}}};
  const RatioExpectation e = parse_ratio_expectation("b/a<0.6", variants);
  EXPECT_EQ(e.of, 1u);
  EXPECT_EQ(e.to, 0u);
  EXPECT_TRUE(e.below);
  EXPECT_DOUBLE_EQ(e.bound, 0.6);
  for (const char* bad : {"", "b<0.6", "b/a", "b/a<", "b/c<1", "/a<1", "b<1/a"})
    EXPECT_THROW(parse_ratio_expectation(bad, variants), Error) << bad;
}

TEST(AbSummary, HasTheRatioOfMediansAndItsVerdict) {
  const AbSummary s = summarize(comparison());
  EXPECT_EQ(s.blocks, 10u);
  ASSERT_EQ(s.ratios.size(), 1u);
  EXPECT_DOUBLE_EQ(s.ratios[0].step.value, 0.6955 / 1.0045);
  EXPECT_EQ(s.ratios[0].judgement.verdict, Verdict::faster);
  EXPECT_DOUBLE_EQ(*s.ratios[0].bounds.payload, 1.5);
  EXPECT_FALSE(s.ratios[0].bounds.wire);
  EXPECT_DOUBLE_EQ(ratio_between(s, 0, 1), 1.0045 / 0.6955);
  EXPECT_LT(widest(s), 0.01);
}

TEST(AbSummary, LeavesOutABlockThatIsNotWhole) {
  AbComparison c = comparison();
  c.runs.pop_back();
  const AbSummary s = summarize(c);
  EXPECT_EQ(s.blocks, 9u);
  EXPECT_EQ(s.variants[1].runs, 9u);
  c.runs = {run_of(1, 0, 0.7)};
  const AbSummary none = summarize(c);
  EXPECT_EQ(none.blocks, 0u);
  EXPECT_THAT(ab_text(c, none, Paint{}), HasSubstr("no whole block"));
  EXPECT_FALSE(Json::parse(ab_json(c, none)).at("variants")[1].contains("step_time"));
}

TEST(AbSummary, ConcludesNothingFromAnUnfaithfulRun) {
  AbComparison c = comparison();
  c.runs[4].faithful = false;
  c.runs[4].reason = "waiting for a core 17 %";
  const AbSummary s = summarize(c);
  EXPECT_FALSE(s.faithful);
  EXPECT_EQ(s.ratios[0].judgement.verdict, Verdict::inconclusive);
  const std::string text = ab_text(c, s, Paint{});
  EXPECT_THAT(text, HasSubstr("NOT faithful"));
  EXPECT_THAT(text, HasSubstr("1 of 10 runs of b (waiting for a core 17 %)"));
  EXPECT_THAT(text, Not(HasSubstr("is faster")));
}

TEST(AbSummary, CountsOfRetriedRunsNothingButTheirNumber) {
  AbComparison c = comparison();
  AbRun disturbed = run_of(1, 2, 7);
  disturbed.faithful = false;
  disturbed.retried = true;
  c.runs.insert(c.runs.begin() + 4, disturbed);
  const AbSummary s = summarize(c), undisturbed = summarize(comparison());
  EXPECT_TRUE(s.faithful);
  EXPECT_EQ(s.blocks, 10u);
  EXPECT_EQ(s.variants[1].retried, 1u);
  EXPECT_EQ(s.variants[0].retried, 0u);
  EXPECT_EQ(s.variants[1].samples, undisturbed.variants[1].samples);
  EXPECT_EQ(s.ratios[0].judgement.verdict, Verdict::faster);
  EXPECT_THAT(ab_text(c, s, Paint{}), HasSubstr("1 run not faithful"));
  EXPECT_EQ(ab_svg(c, s), ab_svg(comparison(), undisturbed));
  EXPECT_EQ(Json::parse(ab_json(c, s))["variants"][1]["retried_runs"], 1);
  const std::string csv = ab_csv(c);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 22);
}

TEST(AbSummary, PlaysADeterministicVariantOnce) {
  AbComparison c = comparison();
  std::erase_if(c.runs, [](const AbRun& run) { return run.variant == 0 && run.block > 0; });
  c.runs[1].deterministic = c.runs[1].modelled = true;  // a's only one
  const AbSummary mixed = summarize(c);
  EXPECT_EQ(mixed.blocks, 10u);
  EXPECT_EQ(mixed.variants[0].runs, 1u);
  EXPECT_FALSE(mixed.variants[0].ci95);
  EXPECT_TRUE(mixed.ratios[0].step.ci95);
  c.runs.erase(c.runs.begin() + 2, c.runs.end());
  c.runs[0].deterministic = true;
  const AbSummary exact = summarize(c);
  EXPECT_TRUE(exact.deterministic);
  EXPECT_FALSE(exact.ratios[0].step.ci95);
  EXPECT_EQ(exact.ratios[0].judgement.verdict, Verdict::faster);
  EXPECT_EQ(widest(exact), 0);
}

TEST(AbSummary, SaysWhetherTransportsAreEqual) {
  AbComparison c = comparison();
  EXPECT_THAT(ab_text(c, summarize(c), Paint{}), HasSubstr("equal: tcp-cubic (net)"));
  for (AbRun& run : c.runs)
    if (run.variant == 1) run.transport = "UDP";
  EXPECT_THAT(ab_text(c, summarize(c), Paint{}), HasSubstr("NOT equal"));
}

TEST(AbJson, HasTheKeysThatScriptsReadAndReadsBack) {
  const AbComparison c = comparison();
  const std::string text = ab_json(c, summarize(c));
  const Json j = Json::parse(text);
  EXPECT_EQ(j["schema"], "ghostrank/compare/1");
  EXPECT_EQ(j["variants"][1]["name"], "b");
  EXPECT_EQ(j["variants"][1]["set"]["collectives.allreduce"], "switchml");
  EXPECT_EQ(j["variants"][1]["runs"], 10);
  EXPECT_EQ(j["variants"][1]["bytes"], 3000);
  EXPECT_EQ(j["variants"][1]["bottleneck"], "link");
  EXPECT_EQ(j["variants"][1]["step_time"]["ci95"].size(), 2u);
  EXPECT_EQ(j["ratios"][0]["of"], "b");
  EXPECT_EQ(j["ratios"][0]["verdict"], "faster");
  EXPECT_EQ(j["bounds"]["payload"], 1.5);
  EXPECT_EQ(j["runs"].size(), 20u);
  const test::Scratch scratch;
  test::put(scratch / "c.json", text);
  const AbComparison again = read_ab_comparison(scratch / "c.json");
  EXPECT_EQ(ab_json(again, summarize(again)), text);
  test::put(scratch / "c.json", "{}");
  EXPECT_THROW(read_ab_comparison(scratch / "c.json"), Error);
}

TEST(AbCsv, HasOneRowForEachRun) {
  const std::string csv = ab_csv(comparison());
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 21);
  EXPECT_THAT(csv, testing::StartsWith("variant,block,seed,file,step_seconds,"));
  EXPECT_THAT(csv, HasSubstr("\n\"b\",0,0,,0.7,"));
}

TEST(AbPicture, HasADotForEachRun) {
  const AbComparison c = comparison();
  const std::string svg = ab_svg(c, summarize(c));
  std::size_t dots = 0;
  for (std::size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at) ++dots;
  EXPECT_EQ(dots, 20u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

test::Outcome ghostrank(const std::string& arguments) {
  return test::shell(GHOSTRANK_BINARY " " + arguments);
}

// Whether a process has `text` in its command line.
bool runs_with(const std::string& text) {
  for (const auto& process : std::filesystem::directory_iterator("/proc"))
    if (test::contents((process.path() / "cmdline").string()).find(text) != std::string::npos)
      return true;
  return false;
}

const std::string kSmall = GHOSTRANK_TRANSCRIPTS "/small.yaml";

TEST(AbPlay, PlaysBlocksInMemoryAndKeepsEverythingInTheBundle) {
  const test::Scratch scratch;
  const std::string bundle = scratch / "bundle", json = scratch / "ab.json";
  const auto [status, text] = ghostrank(
      "compare " + kSmall +
      " -s fabric.kind=memory -s run.jitter=0.05 --a collectives.channels=1"
      " --b collectives.channels=2 --runs 2 --retries 0 --seed 40 --allow-unfaithful --bundle " +
      bundle + " --json " + json);
  ASSERT_EQ(status, 0) << text;
  const Json j = Json::parse(test::contents(json));
  EXPECT_EQ(j["blocks"], 2);
  ASSERT_EQ(j["runs"].size(), 4u);
  for (const Json& run : j["runs"]) {
    EXPECT_EQ(run["seed"], 40 + run["block"].get<int>());
    const Json result = Json::parse(test::contents(bundle + "/" + run["file"].get<std::string>()));
    EXPECT_EQ(result["config"]["run"]["seed"], run["seed"]);
    EXPECT_EQ(result["step_time"]["median"], run["step_seconds"]);
    double calls = 0;  // of unequal sizes
    for (const Json& row : result["collectives"])
      if (row["algbw_GBps"].is_number())
        calls += row["bytes"].get<double>() / (row["algbw_GBps"].get<double>() * 1e9);
      else if (row["seconds_median"].is_number())
        calls += row["seconds_median"].get<double>() * row["calls"].get<double>();
    EXPECT_DOUBLE_EQ(run["collective_seconds"].get<double>(), calls);
    EXPECT_EQ(result["config"]["collectives"]["channels"], run["name"] == "a" ? 1 : 2);
  }
  EXPECT_EQ(j["ratios"][0]["verdict"], "inconclusive");  // two runs show nothing
  EXPECT_FALSE(std::filesystem::exists(json + ".partial.jsonl"));

  const std::string picture = test::contents(bundle + "/picture.svg");
  const std::string report = test::contents(bundle + "/report.txt");
  std::filesystem::remove(bundle + "/picture.svg");
  const auto [redrawn, printed] = ghostrank("compare --redraw " + bundle);
  EXPECT_EQ(redrawn, 0) << printed;
  EXPECT_EQ(printed, report);
  EXPECT_EQ(test::contents(bundle + "/picture.svg"), picture);
  const auto [again, refused] =
      ghostrank("compare " + kSmall + " --a run.jitter=0 --b run.jitter=0 --bundle " + bundle);
  EXPECT_EQ(again, 2);
  EXPECT_THAT(refused, HasSubstr("is not empty"));
}

// BytePS's theorem is of whole gradients.
TEST(AbPlay, HoldsBytePSAgainstItsTheoremUnlessItCompresses) {
  const test::Scratch scratch;
  std::ofstream(scratch / "job.yaml") << R"(schema: ghostrank/job/1
model: {kind: layers, name: m, layers: [{name: a, parameters: [100000], forward_us: 1, backward_us: 1}]}
cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}
parallel: {framework: byteps, mode: bound, partition_bytes: 4096}
servers: {placement: mixed}
fabric: {kind: virtual}
)";
  for (const bool compresses : {false, true}) {
    const auto [status, text] =
        ghostrank("compare " + (scratch / "job.yaml") +
                  " --a servers.count=0 --b 'servers.count=1 compression.method=" +
                  (compresses ? "onebit'" : "none'"));
    ASSERT_EQ(status, 0) << text;
    EXPECT_EQ(text.find("BytePS's theorem") == std::string::npos, compresses) << text;
  }
}

// 75,000 messages within 5 ms are more than any machine sources: no run is faithful.
TEST(AbPlay, PlaysRunsAgainThatWereNotFaithfulHalfAsOftenAsRunsWereAskedFor) {
  const test::Scratch scratch;
  const std::string bundle = scratch / "bundle", json = scratch / "ab.json";
  const auto [status, text] =
      ghostrank("compare " + kSmall +
                " -s fabric.kind=memory -s scale.dilation=1 -s collectives.slice=64"
                " --a collectives.channels=1 --b collectives.channels=2 --runs 2 --bundle " +
                bundle + " --json " + json);
  EXPECT_EQ(status, 1) << text;
  EXPECT_THAT(text, HasSubstr("; playing it again"));
  const Json j = Json::parse(test::contents(json));
  EXPECT_EQ(j["blocks"], 2);
  ASSERT_EQ(j["runs"].size(), 6u);
  for (const Json& v : j["variants"]) {
    EXPECT_EQ(v["runs"], 2);
    EXPECT_EQ(v["retried_runs"], 1);
    EXPECT_EQ(v["unfaithful_runs"], 2);
  }
  std::set<std::string> files;
  for (const Json& run : j["runs"]) {
    const auto file = run["file"].get<std::string>();
    EXPECT_TRUE(files.insert(file).second) << file;
    EXPECT_EQ(run["retried"], run["block"] == 0 && !file.starts_with("results/block001.2-"));
    const Json result = Json::parse(test::contents(bundle + "/" + file));
    EXPECT_EQ(result["step_time"]["median"], run["step_seconds"]);
    EXPECT_EQ(result["config"]["run"]["seed"], run["seed"]);
  }
  EXPECT_EQ(j["ratios"][0]["verdict"], "inconclusive");
}

TEST(AbPlay, DrawsTheSameJitterForAllVariantsOfABlock) {
  const test::Scratch scratch;
  const std::string json = scratch / "ab.json";
  const auto [status, text] = ghostrank("compare " + kSmall +
                                        " -s run.jitter=0.2 --a collectives.channels=2"
                                        " --b collectives.channels=2 --runs 6 --quiet --json " +
                                        json);
  ASSERT_EQ(status, 0) << text;
  const Json j = Json::parse(test::contents(json));
  EXPECT_EQ(j["blocks"], 6);
  std::map<int, std::vector<double>> blocks;
  for (const Json& run : j["runs"]) blocks[run["block"]].push_back(run["step_seconds"]);
  for (const auto& [block, steps] : blocks) EXPECT_EQ(steps[0], steps[1]) << block;
  EXPECT_NE(blocks[0][0], blocks[1][0]);
  EXPECT_EQ(j["ratios"][0]["verdict"], "inconclusive");
}

// The job's file is edited after the first run; runs that play the new one count for nothing.
TEST(AbPlay, EndsWhereTheJobHasChanged) {
  const test::Scratch scratch;
  const std::string json = scratch / "ab.json", job = scratch / "job.yaml";
  test::put(job, test::contents(kSmall));
  const std::string command = GHOSTRANK_BINARY " compare " + job +
                              " -s fabric.kind=memory --a collectives.channels=1"
                              " --b collectives.channels=2 --runs 100 --retries 0"
                              " --allow-unfaithful --json " +
                              json;
  const test::Outcome outcome =
      test::shell(command + " >" + (scratch / "out.txt") + " 2>&1 & pid=$!; while [ ! -s " + json +
                  ".partial.jsonl ] && kill -0 $pid 2>/dev/null; do sleep 0.1; done; echo 'scale: "
                  "{dilation: 2}' >> " +
                  job + "; wait $pid");
  const std::string text = test::contents(scratch / "out.txt");
  EXPECT_EQ(outcome.status, 1) << text;
  EXPECT_THAT(text, HasSubstr(" played another job than the comparison has loaded: "));
  const Json j = Json::parse(test::contents(json));
  EXPECT_THAT(j["interrupted"].get<std::string>(), HasSubstr("another job"));
  EXPECT_GE(j["runs"].size(), 1u);
  EXPECT_LT(j["runs"].size(), 200u);
}

TEST(AbPlay, KeepsWholeBlocksAndEndsItsRunsWhenInterrupted) {
  const test::Scratch scratch;
  const std::string json = scratch / "ab.json", bundle = scratch / "bundle";
  ASSERT_EQ(order_in_block(2, 0, 2), (std::vector<std::size_t>{0, 1}));
  // Seed 2 plays a first, then b, which never ends by itself. The signal comes when a has ended; it
  // is repeated, as the shell does not say when the command has seen it.
  const std::string command = GHOSTRANK_BINARY " compare " + kSmall +
                              " -s fabric.kind=memory --a run.iterations=1 --b "
                              "run.iterations=1000000 --runs 8 --retries 0 --seed 2"
                              " --bundle " +
                              bundle + " --json " + json;
  const test::Outcome outcome =
      test::shell(command + " >" + (scratch / "out.txt") + " 2>&1 & pid=$!; while [ ! -s " + json +
                  ".partial.jsonl ] && kill -0 $pid 2>/dev/null; do sleep 0.1; done; "
                  "while kill -INT $pid 2>/dev/null; do sleep 3; done; wait $pid");
  EXPECT_EQ(outcome.status, 130) << test::contents(scratch / "out.txt");
  const Json j = Json::parse(test::contents(json));
  EXPECT_THAT(j["interrupted"].get<std::string>(), HasSubstr("interrupted in run 1 of b"));
  ASSERT_EQ(j["runs"].size(), 1u);
  EXPECT_EQ(j["runs"][0]["name"], "a");
  EXPECT_FALSE(runs_with(bundle));  // each run has it in the name of its result
}

}  // namespace
}  // namespace ghostrank
