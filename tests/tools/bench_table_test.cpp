// The output of `ghostrank bench` for a collective, read as scripts read nccl-tests.
#include <regex>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "tests/tools/sample.h"
#include "tools/verbs/bench/table.h"

namespace ghostrank {
namespace {

BenchRow row_of(std::uint64_t size, double seconds) {
  BenchRow row;
  row.size = {size, size / 4};
  row.seconds = seconds;
  row.iterations = 20;
  row.messages = 112;
  row.bytes = 3670016;
  row.fidelity.faithful = true;
  add_bandwidths(Func::all_reduce, 8, row);
  return row;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

TEST(BenchSizes, GrowByTheFactorOrElseByTheStepUpToTheLast) {
  EXPECT_EQ(sizes_of({8, 100, 2, 1}), (std::vector<std::uint64_t>{8, 16, 32, 64}));
  EXPECT_EQ(sizes_of({100, 400, 1, 100}), (std::vector<std::uint64_t>{100, 200, 300, 400}));
  EXPECT_EQ(sizes_of({64, 64, 1, 0}), (std::vector<std::uint64_t>{64}));
  EXPECT_THROW(sizes_of({64, 8, 2, 1}), Error);
  EXPECT_THROW(sizes_of({0, 1u << 30, 1, 1}), Error);
}

TEST(BenchSizes, ABufferOfOneBlockPerRankIsCutToWholeSixteenBytesPerBlock) {
  // 1000 bytes are 250 floats, 31 for each of 8 ranks, 28 when blocks are multiples of 4 floats.
  const BenchSize gathered = bench_size(Func::all_gather, 1000, 4, 8);
  EXPECT_EQ(gathered.count, 28u);
  EXPECT_EQ(gathered.size, 28u * 8 * 4);
  const BenchSize tiny = bench_size(Func::all_to_all, 64, 4, 8);
  EXPECT_EQ(tiny.count, 0u);
  EXPECT_EQ(tiny.size, 0u);
  const BenchSize reduced = bench_size(Func::all_reduce, 1001, 4, 8);
  EXPECT_EQ(reduced.count, 250u);
  EXPECT_EQ(reduced.size, 1000u);
}

TEST(BenchNames, OfNcclTestsAndOursAreTheSameCollective) {
  for (const char* name : {"all_reduce_perf", "all_reduce", "AllReduce", "allreduce"})
    EXPECT_EQ(bench_func(name), Func::all_reduce) << name;
  EXPECT_EQ(bench_func("alltoall_perf"), Func::all_to_all);
  EXPECT_EQ(bench_func("sendrecv_perf"), Func::send_recv);
  EXPECT_EQ(bench_func("reduce_scatter"), Func::reduce_scatter);
  EXPECT_THROW(bench_func("hypercube_perf"), Error);
}

TEST(BenchNumbers, KeepTwoDecimalsAsLongAsTheyFit) {
  EXPECT_EQ(fitted(0, 6), "0.00");
  EXPECT_EQ(fitted(28.004, 7), "28.00");
  EXPECT_EQ(fitted(9999.994, 7), "9999.99");
  EXPECT_EQ(fitted(12345.67, 7), "12345.7");
  EXPECT_EQ(fitted(1234567, 7), "1234567");
  EXPECT_EQ(fitted(12345678, 7), "1.2e+07");
  EXPECT_EQ(fitted(1234567, 6), "1e+06");
  for (double value = 0.001; value < 1e12; value *= 1.37) {
    EXPECT_LE(fitted(value, 7).size(), 7u) << value;
    EXPECT_LE(fitted(value, 6).size(), 6u) << value;
    EXPECT_NEAR(std::stod(fitted(value, 7)), value, std::max(0.005, value * 0.06)) << value;
  }
}

TEST(BenchTable, ARowHasTheThirteenColumnsOfNcclTests) {
  const BenchHead head;
  BenchRow row = row_of(1 << 20, 64.702e-6);
  row.wrong = 0;
  const std::regex pattern(
      R"(^\s*(\d+)\s+(\d+)\s+(\w+)\s+(\w+)\s+(-?\d+)\s+([\d.e+]+)\s+([\d.]+)\s+([\d.]+)\s+(\d+|N/A))"
      R"(\s+([\d.e+]+)\s+([\d.]+)\s+([\d.]+)\s+(\d+|N/A)\s*$)");
  std::string line = bench_row(head, row);
  line.pop_back();
  std::smatch found;
  ASSERT_TRUE(std::regex_match(line, found, pattern)) << line;
  EXPECT_EQ(found[1], "1048576");
  EXPECT_EQ(found[2], "262144");
  EXPECT_EQ(found[3], "float");
  EXPECT_EQ(found[4], "sum");
  EXPECT_EQ(found[5], "-1");
  EXPECT_EQ(found[6], "64.70");
  EXPECT_EQ(found[7], "16.21");  // 1048576 B / 64.702 us
  EXPECT_EQ(found[8], "28.36");  // times 2 * 7 / 8
  EXPECT_EQ(found[9], "0");
  EXPECT_EQ(words_of(bench_row(head, row_of(8, 1e-6))).back(), "N/A");
}

TEST(BenchTable, FitsIntoEightyColumnsWhereTheTerminalIsNarrow) {
  BenchHead head;
  head.narrow = true;
  std::istringstream all(bench_header(head));
  std::string line, names;
  while (std::getline(all, line))
    if (line.find("algbw") != std::string::npos) names = line;
  EXPECT_EQ(words_of(names), (std::vector<std::string>{"#", "size", "count", "type", "time",
                                                       "algbw", "busbw", "#wrong"}));
  const std::string row = bench_row(head, row_of(1024, 1e-4));
  EXPECT_EQ(words_of(row).size(), 7u);
  EXPECT_EQ(row.find('\n'), names.size());
  EXPECT_LE(names.size(), 80u);
}

TEST(BenchTable, OnlyCommentsStandBesideTheRows) {
  const BenchHead head;
  BenchRow late = row_of(4096, 1e-3);
  late.fidelity.faithful = false;
  late.fidelity.reason = "loop busy 93 % (at most 80 %)";
  late.iterations = 3;
  const std::string text = bench_header(head) + bench_row(head, late) + bench_footer(head, {late});
  std::istringstream lines(text);
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    EXPECT_EQ(words_of(line).size(), 13u) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 1);
  EXPECT_NE(text.find("#   ^ NOT faithful: loop busy 93 %"), std::string::npos);
  EXPECT_NE(text.find("#   ^ 3 iters"), std::string::npos);
}

TEST(BenchTable, PerIterationStatisticsAddFourColumnsToEachHalfAndATimestampTwoWords) {
  BenchHead head;
  head.per_iteration = head.timestamps = true;
  head.skipped = 1;
  BenchRow row = row_of(1 << 20, 2e-6);
  row.each = {9e-6, 1e-6, 3e-6, 2e-6};
  row.timestamp = "2026-07-05 12:00:00";
  const std::vector<std::string> words = words_of(bench_row(head, row));
  ASSERT_EQ(words.size(), 13u + 8 + 2);
  EXPECT_EQ((std::vector<std::string>(words.begin() + 9, words.begin() + 13)),
            (std::vector<std::string>{"1.00", "3.00", "3.00", "40.82"}));
  EXPECT_EQ(words[21] + " " + words[22], row.timestamp);
  EXPECT_NE(bench_header(head).find("summary skips first 1 iterations"), std::string::npos);
}

// One late iteration makes the maximum, p99 and variation unsure, but not the minimum.
TEST(BenchTable, LeavesOutStatisticsThatThisMachinePutOff) {
  BenchHead head;
  head.per_iteration = true;
  BenchRow row = row_of(1 << 20, 2e-6);
  row.each = {2e-6, 2e-6, 4e-6, 2e-6};
  row.late = {0, 1e-9, 1e-6, 0};
  const std::string text = bench_row(head, row);
  const std::vector<std::string> words = words_of(text.substr(0, text.find('\n')));
  ASSERT_EQ(words.size(), 13u + 8);
  EXPECT_EQ((std::vector<std::string>(words.begin() + 9, words.begin() + 13)),
            (std::vector<std::string>{"2.00", "N/A", "N/A", "N/A"}));
  EXPECT_NE(text.find("put them off by so much: i_max (33.3 %), i_p99 (33.3 %), i_cv% (19.2 %)\n"),
            std::string::npos)
      << text;
  head.skipped = 3;  // the late one, too
  const std::vector<std::string> rest = words_of(bench_row(head, row));
  ASSERT_EQ(rest.size(), 13u + 8);
  EXPECT_EQ((std::vector<std::string>(rest.begin() + 9, rest.begin() + 13)),
            (std::vector<std::string>{"2.00", "2.00", "2.00", "0.00"}));
  EXPECT_EQ(bench_row(head, row).find("left out"), std::string::npos);
}

// The median of these calls is what it was; their mean is what the table shows.
TEST(BenchTable, IsNotFaithfulWhereLateCallsPutTheMeanOff) {
  BenchRow row = row_of(1 << 20, 1.75e-6);
  row.each = {1e-6, 1e-6, 4e-6, 1e-6};
  row.late = {0, 0, 3e-6, 0};
  judge_mean(row);
  EXPECT_EQ(unfaithful_reason({row}), "late calls put the mean off by 75 % (at most 1 %)");
  EXPECT_NE(bench_row({}, row).find("#   ^ NOT faithful: late calls"), std::string::npos);
  BenchIdentity identity;
  identity.config_json = "{}";
  const auto json = nlohmann::json::parse(bench_json(identity, {}, {row}));
  EXPECT_FALSE(json["results"][0]["ghostrank"]["faithful"].get<bool>());
  BenchRow busy = row_of(1 << 20, 1e-6);
  busy.fidelity.faithful = false;
  busy.fidelity.reason = "loop busy 93 % (at most 80 %)";
  busy.each = {1e-6};
  busy.late = {1e-6};
  judge_mean(busy);
  EXPECT_EQ(busy.fidelity.reason,
            "loop busy 93 % (at most 80 %); late calls put the mean off by an unknown share "
            "(at most 1 %)");
  BenchRow good = row_of(1 << 20, 1e-6);
  good.each = {1e-6, 1e-6};
  judge_mean(good);  // virtual time has no lateness
  good.late = {0, 1e-8};
  judge_mean(good);
  EXPECT_EQ(unfaithful_reason({good}), "");
}

// A size with many messages plays fewer iterations than -n asks for, so -K may skip all of them.
TEST(BenchTable, ShowsNoStatisticsWhereEveryIterationIsSkipped) {
  BenchHead head;
  head.per_iteration = true;
  head.skipped = 2;
  BenchRow row = row_of(1 << 20, 2e-6);
  row.each = {2e-6, 3e-6};
  row.iterations = 2;
  const std::string text = bench_row(head, row);
  const std::vector<std::string> words = words_of(text.substr(0, text.find('\n')));
  ASSERT_EQ(words.size(), 13u + 8);
  EXPECT_EQ((std::vector<std::string>(words.begin() + 9, words.begin() + 13)),
            std::vector<std::string>(4, "N/A"));
  BenchIdentity identity;
  identity.config_json = "{}";
  const auto json = nlohmann::json::parse(bench_json(identity, head, {row}))["results"][0];
  EXPECT_TRUE(json["in_place_per_iter"]["min_us"].is_null());
  EXPECT_EQ(json["in_place_per_iter"]["times_us"].size(), 2u);
  EXPECT_TRUE(json["ghostrank"]["errors"].is_null());
}

TEST(IterationStats, AreThoseOfNcclTests) {
  std::vector<double> hundred;
  for (int i = 200; i > 0; --i) hundred.push_back(i);
  const IterationStats stats = iteration_stats(hundred);
  EXPECT_EQ(stats.min, 1);
  EXPECT_EQ(stats.max, 200);
  EXPECT_EQ(stats.p50, 101);  // the upper one of an even number
  EXPECT_EQ(stats.p95, 190);
  EXPECT_EQ(stats.p99, 198);
  EXPECT_DOUBLE_EQ(stats.mean, 100.5);
  EXPECT_NEAR(stats.stdev, 57.734, 1e-3);
  EXPECT_EQ(iteration_stats({}).max, 0);
}

TEST(BenchCalls, OfAllTypesOperationsAndRootsComeInTheOrderOfNcclTests) {
  const auto calls = bench_calls(Func::reduce, 2, "half", "all", "all");
  ASSERT_EQ(calls.size(), 6u * 2);
  EXPECT_EQ(calls[1].redop, "sum");
  EXPECT_EQ(calls[1].root, 1);
  EXPECT_EQ(calls[2].redop, "prod");
  EXPECT_EQ(bench_calls(Func::all_reduce, 2, "all", "sum", "all").size(), 12u);
  EXPECT_EQ(bench_calls(Func::all_gather, 2, "float", "all", "1").size(), 1u);
  EXPECT_THROW(bench_calls(Func::reduce, 2, "float", "sum", "2"), Error);
  EXPECT_THROW(bench_calls(Func::reduce, 2, "float", "xor", "0"), Error);
  EXPECT_THROW(bench_calls(Func::reduce, 2, "float64", "sum", "0"), Error);
}

TEST(BenchTable, TheFooterSumsWrongElementsAndAveragesBusBandwidth) {
  const BenchHead head;
  std::vector<BenchRow> rows{row_of(1 << 20, 64.702e-6), row_of(1 << 20, 32.351e-6)};
  rows[0].wrong = 0;
  rows[1].wrong = 3;
  const std::string text = bench_footer(head, rows);
  std::smatch found;
  ASSERT_TRUE(
      std::regex_search(text, found, std::regex(R"(# Out of bounds values : (\d+) (\w+))")));
  EXPECT_EQ(found[1], "3");
  EXPECT_EQ(found[2], "FAILED");
  ASSERT_TRUE(std::regex_search(text, found, std::regex(R"(# Avg bus bandwidth\s*:\s*([\d.]+))")));
  EXPECT_NEAR(std::stod(found[1]), (28.36 + 56.72) / 2, 0.01);
}

TEST(BenchTable, ADemandedBandwidthIsMetUpToATenth) {
  const std::vector<BenchRow> rows{row_of(1 << 20, 64.702e-6)};  // 28.36 GB/s
  BenchHead head;
  EXPECT_FALSE(fast_enough(head, rows).has_value());
  EXPECT_NE(bench_footer(head, rows).find("bandwidth    : 28.3609 \n"), std::string::npos)
      << bench_footer(head, rows);
  head.demanded_GBps = 31;
  EXPECT_EQ(fast_enough(head, rows), true);
  EXPECT_NE(bench_footer(head, rows).find("bandwidth    : 28.3609 OK\n"), std::string::npos);
  head.demanded_GBps = 32;
  EXPECT_EQ(fast_enough(head, rows), false);
  EXPECT_NE(bench_footer(head, rows).find("bandwidth    : 28.3609 FAILED\n"), std::string::npos);
}

TEST(BenchTable, RedopAndRootAreShownWhereThereAreSome) {
  const BenchCall call{"float", "sum", 3};
  EXPECT_EQ(shown_root(Func::all_reduce, call), -1);
  EXPECT_EQ(shown_root(Func::broadcast, call), 3);
  EXPECT_EQ(shown_redop(Func::broadcast, call), "none");
  EXPECT_EQ(shown_redop(Func::reduce, call), "sum");
}

TEST(BenchBandwidth, FollowsTheFactorOfEachCollective) {
  const auto factor = [](Func func) {
    BenchRow row;
    row.size.size = 1'000'000;
    row.seconds = 1e-3;
    add_bandwidths(func, 4, row);
    EXPECT_DOUBLE_EQ(row.algbw_GBps, 1);
    return row.busbw_GBps;
  };
  EXPECT_DOUBLE_EQ(factor(Func::all_reduce), 1.5);
  for (Func func :
       {Func::all_gather, Func::reduce_scatter, Func::all_to_all, Func::gather, Func::scatter})
    EXPECT_DOUBLE_EQ(factor(func), 0.75);
  for (Func func : {Func::broadcast, Func::reduce, Func::send_recv})
    EXPECT_DOUBLE_EQ(factor(func), 1);
}

TEST(BenchJson, HasTheKeysAndFormsOfNcclTests) {
  BenchHead head;
  head.sizes = {8, 64, 2, 1 << 20};
  BenchRow row = row_of(64, 2e-6);
  row.wrong = 0;
  BenchIdentity identity;
  identity.argv = {"ghostrank", "bench"};
  identity.library = "nccl-2.30";
  identity.config_json = "{\"run\": {\"seed\": 1}}";
  const auto json = nlohmann::json::parse(bench_json(identity, head, {row}));
  for (const char* key : {"version", "start_time", "args", "env", "nccl_version", "config",
                          "results", "out_of_bounds", "average_bus_bandwidth", "errors"})
    EXPECT_TRUE(json.contains(key)) << key;
  const auto& result = json["results"][0];
  EXPECT_EQ(result["size"], 64);
  EXPECT_EQ(result["count"], 16);
  EXPECT_EQ(result["root"], "    -1");
  EXPECT_DOUBLE_EQ(result["out_of_place"]["time"].get<double>(), 2);
  EXPECT_DOUBLE_EQ(result["in_place"]["alg_bw"].get<double>(), 0.032);
  EXPECT_DOUBLE_EQ(result["in_place"]["bus_bw"].get<double>(), 0.056);
  EXPECT_EQ(result["out_of_place"]["nwrong"], 0.0);
  EXPECT_EQ(json["out_of_bounds"]["okay"], "true");
  EXPECT_EQ(json["config"]["step_factor"], 2);
}

TEST(BenchJson, SaysAsTheFooterDoesThatTheRunWasStopped) {
  BenchHead head;
  BenchIdentity identity;
  identity.config_json = "{}";
  const std::vector<BenchRow> rows{row_of(64, 2e-6)};
  EXPECT_TRUE(nlohmann::json::parse(bench_json(identity, head, rows))["errors"].empty());
  head.interrupted = "host 1 (b) was lost";
  const std::string why = "INCOMPLETE: 1 row measured; host 1 (b) was lost";
  EXPECT_EQ(nlohmann::json::parse(bench_json(identity, head, rows))["errors"][0], why);
  EXPECT_NE(bench_footer(head, rows).find("# " + why + "\n"), std::string::npos);
}

TEST(BenchJson, HasEveryIterationWhereAskedFor) {
  BenchHead head;
  head.per_iteration = true;
  head.aggregated = 3;
  BenchRow row = row_of(64, 2e-6);
  row.each = {1e-6, 3e-6};
  row.late = {0, 1e-6};
  BenchIdentity identity;
  identity.config_json = "{}";
  const auto json = nlohmann::json::parse(bench_json(identity, head, {row}));
  const auto& each = json["results"][0]["in_place_per_iter"];
  EXPECT_EQ(each["times_us"], (std::vector<double>{1, 3}));
  EXPECT_DOUBLE_EQ(each["avg_us"].get<double>(), 2);
  const auto& errors = json["results"][0]["ghostrank"]["errors"];
  EXPECT_EQ(errors["min_us"], 0.0);
  EXPECT_NEAR(errors["max_us"].get<double>(), 0.5, 1e-9);
  EXPECT_EQ(json["config"]["per_iter_timing"], "true");
  EXPECT_EQ(json["config"]["aggregated_iterations"], 3);
}

TEST(BenchCsv, HasOneLinePerRowAndNothingWhereNothingWasChecked) {
  const std::string text = bench_csv(BenchHead{}, {row_of(1 << 20, 64.702e-6)});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_NE(text.find("\n1048576,262144,float,sum,-1,64.702,"), std::string::npos);
  EXPECT_NE(text.find(",,20,1,112,3670016,true\n"), std::string::npos);
  BenchRow large = row_of(1ull << 34, 0.515);
  large.bytes = 103079215104;
  EXPECT_NE(bench_csv(BenchHead{}, {large}).find(",112,103079215104,true\n"), std::string::npos);
}

}  // namespace
}  // namespace ghostrank
