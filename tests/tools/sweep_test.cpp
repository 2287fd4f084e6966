// A sweep's grid, its CSV and the rows that it resumes from one, its picture and its table.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/layers_job.h"
#include "tests/profiles/support.h"
#include "tests/shell.h"
#include "tests/tools/sample.h"
#include "tools/report/job_hash.h"
#include "tools/sweep/rows.h"
#include "tools/text/csv.h"

namespace ghostrank {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SweepGrid, HasEveryCombinationTheLastKeyFastest) {
  const SweepGrid grid = parse_grid("a.b=1, 2;c={x: 1, y: [2, 3]},'p,q';");
  ASSERT_EQ(grid.points(), 4u);
  EXPECT_THAT(grid.values(0), ElementsAre("1", "{x: 1, y: [2, 3]}"));
  EXPECT_THAT(grid.values(1), ElementsAre("1", "'p,q'"));
  EXPECT_THAT(grid.values(2), ElementsAre("2", "{x: 1, y: [2, 3]}"));
  EXPECT_THAT(grid.values(3), ElementsAre("2", "'p,q'"));
}

TEST(SweepGrid, RefusesWhatItCannotMean) {
  const auto refused = [](const std::string& text) {
    return test::error_of([&] { parse_grid(text); });
  };
  EXPECT_THAT(refused(""), HasSubstr("names no key"));
  EXPECT_THAT(refused("a"), HasSubstr("'a' is no key=value,value"));
  EXPECT_THAT(refused("a=1,,2"), HasSubstr("empty value"));
  EXPECT_THAT(refused("a=1,1"), HasSubstr("value 1 twice"));
  EXPECT_THAT(refused("a=1;a=2"), HasSubstr("a is named twice"));
  EXPECT_THAT(refused("a={x: 1,2"), HasSubstr("open bracket"));
}

Sweep sample() {
  Sweep sweep{"job", parse_grid("k=x,'a,\"b'"), {}};
  sweep.rows.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    SweepRow& row = sweep.rows[i];
    row = {
        true,        0.1 + static_cast<double>(i),    1e9, 7, 0.05, 0.0475, 1234.5, "modelled", "1",
        "0.1.0 abc", job_hash(std::to_string(i), {}), ""};
  }
  return sweep;
}

Sweep unplayed(const Sweep& sweep) {
  Sweep fresh = sweep;
  for (SweepRow& row : fresh.rows) {
    const SweepRow kept = row;
    row = {};
    row.seed = kept.seed, row.version = kept.version, row.config_hash = kept.config_hash;
  }
  return fresh;
}

class SweepFile : public testing::Test {
 protected:
  SweepFile()
      : path_(testing::TempDir() + "ghostrank-sweep-test-" + std::to_string(getpid()) + ".csv") {}
  ~SweepFile() override { std::filesystem::remove(path_); }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  const std::string path_;
};

TEST_F(SweepFile, IsReadBackAsItWasWritten) {
  const Sweep sweep = sample();
  write(sweep_csv(sweep));
  Sweep again = unplayed(sweep);
  EXPECT_EQ(resume(again, path_), 2u);
  EXPECT_EQ(sweep_csv(again), sweep_csv(sweep));
  EXPECT_THAT(sweep_csv(sweep), HasSubstr("\nx,0.1,1e+09,7,0.05,0.0475,modelled,1,0.1.0 abc,"));
}

TEST_F(SweepFile, OfAnotherConfigurationSeedOrVersionOrWithAnErrorIsPlayedAgain) {
  Sweep sweep = sample();
  sweep.rows[1].error = "no, \"sorry\"";
  write(sweep_csv(sweep));
  Sweep same = unplayed(sweep);
  EXPECT_EQ(resume(same, path_), 1u);
  EXPECT_TRUE(same.rows[0].good());
  EXPECT_FALSE(same.rows[1].played);
  for (std::string SweepRow::*member :
       {&SweepRow::config_hash, &SweepRow::seed, &SweepRow::version}) {
    Sweep other = unplayed(sweep);
    other.rows[0].*member = "other";
    EXPECT_EQ(resume(other, path_), 0u);
  }
}

TEST_F(SweepFile, ThatWasCutOffLosesItsLastRowOnly) {
  const std::string whole = sweep_csv(sample());
  write(whole.substr(0, whole.size() - 30));
  Sweep again = unplayed(sample());
  EXPECT_EQ(resume(again, path_), 1u);
}

TEST_F(SweepFile, OfAnotherSweepIsRefused) {
  write("k,other\n1,2\n");
  Sweep sweep = unplayed(sample());
  const std::string error = test::error_of([&] { resume(sweep, path_); });
  EXPECT_THAT(error, HasSubstr("is not of this sweep"));
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  write("");
  EXPECT_EQ(resume(sweep, path_), 0u);
  std::filesystem::remove(path_);
  EXPECT_EQ(resume(sweep, path_), 0u);
  EXPECT_THAT(test::error_of([&] { resume(sweep, "/proc/self/mem"); }),  // no page at address 0
              HasSubstr("cannot be read, and its rows would be lost"));
}

TEST_F(SweepFile, WithAPointThatTheGridLacksIsRefusedBeforeItIsLost) {
  Sweep sweep = sample();
  write(sweep_csv(sweep));
  sweep = unplayed(sweep);
  sweep.grid.axes.back().values.back() = "other";
  EXPECT_THAT(test::error_of([&] { resume(sweep, path_); }),
              HasSubstr("a point that this grid does not have"));
}

TEST(SweepCommand, RefusesWhatAMappingOfItsGridTakesThePlaceOf) {
  const auto refused = [](const std::string& flags) {
    return test::shell(GHOSTRANK_BINARY " sweep " GHOSTRANK_TRANSCRIPTS "/small.yaml --dry-run " +
                       flags)
        .text;
  };
  EXPECT_THAT(
      refused("-s cluster.nic.rate=5Gbps --grid 'cluster.nic={latency_us: 3},{rate: 1Gbps}'"),
      HasSubstr("the grid's cluster.nic takes the place of -s cluster.nic.rate"));
  EXPECT_THAT(refused("--seed 4 --grid 'run={seed: 1},{seed: 2}'"),
              HasSubstr("--seed and run.seed of the grid both say the seed"));
  EXPECT_THAT(refused("--grid 'cluster={nodes: 2},{nodes: 4};cluster.nodes=2,4'"),
              HasSubstr("--grid: cluster.nodes takes the place of cluster.nodes in cluster; "));
}

TEST(SweepCommand, PlaysTheOtherPointsWhereAValueIsNoYaml) {
  const test::Outcome sweep =
      test::shell(GHOSTRANK_BINARY " sweep " GHOSTRANK_TRANSCRIPTS
                                   "/small.yaml -s fabric.kind=virtual --quiet --csv -"
                                   " --grid 'cluster.nodes=2,a: b: c' 2>&1");
  EXPECT_EQ(sweep.status, 1);
  EXPECT_THAT(sweep.text, HasSubstr("a: b: c: -s 'cluster.nodes=a: b: c': not valid YAML"));
  EXPECT_THAT(sweep.text, HasSubstr("\n2,"));
}

// A pipe has nothing to go on from, and cannot be written again after each run.
TEST(SweepCommand, WritesItsRowsToAPipeOnceAndFailsOnAFullDevice) {
  const std::string sweep = "timeout 60 " GHOSTRANK_BINARY " sweep " GHOSTRANK_TRANSCRIPTS
                            "/small.yaml -s fabric.kind=virtual --quiet"
                            " --grid 'collectives.channels=1,2' --csv /dev/";
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(test::shell(sweep + "stdout | cat").text), 3);
  const test::Outcome full = test::shell(sweep + "full");
  EXPECT_EQ(full.status, 3);
  EXPECT_EQ(full.text,
            "ghostrank: cannot write /dev/full: No space left on device; choose another file\n");
}

// A run that can write nothing, as on a full disk, leaves no words of its own.
TEST(SweepCommand, AndCompareSayOfWhatARunWithoutWordsMayHaveDied) {
  const std::string job = GHOSTRANK_TRANSCRIPTS "/small.yaml --quiet";
  const std::string why = "it ended without a word: it was killed, or there is no room in ";
  const test::Outcome sweep = test::shell("ulimit -f 0; " GHOSTRANK_BINARY " sweep " + job +
                                          " --grid 'collectives.channels=1'");
  EXPECT_EQ(sweep.status, 1);
  EXPECT_THAT(sweep.text, HasSubstr(why));
  const test::Outcome compare = test::shell("ulimit -f 0; " GHOSTRANK_BINARY " compare " + job +
                                            " --a collectives.channels=1"
                                            " --b collectives.channels=2");
  EXPECT_EQ(compare.status, 3);
  EXPECT_THAT(compare.text, HasSubstr(why));
}

// A file's rows stand behind what stdout has already.
TEST(SweepCommand, WritesItsRowsToAFileThatIsStdout) {
  const test::Scratch scratch;
  test::put(scratch / "out", "earlier\n");
  EXPECT_EQ(
      test::shell(GHOSTRANK_BINARY " sweep " GHOSTRANK_TRANSCRIPTS
                                   "/small.yaml -s fabric.kind=virtual --quiet -j 1"
                                   " --grid 'collectives.channels=1,2' --csv /dev/stdout >> " +
                  (scratch / "out"))
          .status,
      0);
  const std::string text = test::contents(scratch / "out");
  EXPECT_EQ(text.find("earlier\ncollectives.channels,"), 0u) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
}

// As where the job's file is edited while its sweep plays.
TEST(SweepCommand, TakesNoFiguresOfAnotherJob) {
  const test::Scratch scratch;
  const std::string job = scratch / "job.yaml", result = scratch / "r.json",
                    csv = scratch / "rows.csv";
  test::LayersJob layers{{{"[3000]"}}, 2};
  test::put(job, test::text_of(layers) + "fabric: {kind: virtual}\n");
  ASSERT_EQ(
      test::shell(GHOSTRANK_BINARY " sweep " + job + " --grid run.seed=1 -q --csv " + csv).status,
      0);
  ASSERT_EQ(
      test::shell(GHOSTRANK_BINARY " run " + job + " -s run.seed=1 -q --json " + result).status, 0);
  Sweep sweep{"job", parse_grid("run.seed=1"), {SweepRow{}}};
  const auto records = csv_records(test::contents(csv));
  sweep.rows[0].config_hash = records.at(1).cells.at(9);
  read_figures(sweep.rows[0], result);
  EXPECT_TRUE(sweep.rows[0].good()) << sweep.rows[0].error;
  ASSERT_EQ(test::shell(GHOSTRANK_BINARY " run " + job +
                        " -s run.seed=1 -s cluster.nic.rate=1Gbps -q --json " + result)
                .status,
            0);
  read_figures(sweep.rows[0], result);
  EXPECT_THAT(sweep.rows[0].error, HasSubstr("another job than the sweep has loaded"));
}

TEST(SweepCommand, PlaysItsPointsAgainWhenTheProgramsFileHasChanged) {
  const test::Scratch scratch;
  const auto program = [&](const std::string& time) {
    test::put(scratch / "step.yaml",
              "program:\n  ranks: 2\n  groups: {}\n  roles:\n    - name: all\n      ranks: 0-1\n"
              "      iterations:\n        - compute: |\n            compute " +
                  time + "\n");
  };
  test::put(scratch / "job.yaml",
            "schema: ghostrank/job/1\ncluster: {nodes: 2, gpus_per_node: 1}\ntrace: step.yaml\n"
            "fabric: {kind: virtual}\n");
  const std::string sweep = GHOSTRANK_BINARY " sweep " + (scratch / "job.yaml") +
                            " --grid 'run.iterations=1' --quiet --csv " + (scratch / "rows.csv");
  program("1000000000");
  EXPECT_EQ(test::shell(sweep).text, "");
  EXPECT_THAT(test::contents(scratch / "rows.csv"), HasSubstr("\n1,0.001,"));
  program("2000000000");
  EXPECT_EQ(test::shell(sweep).text, "");
  EXPECT_THAT(test::contents(scratch / "rows.csv"), HasSubstr("\n1,0.002,"));
}

TEST(SweepPicture, HasADotForEveryPointThatWasPlayed) {
  Sweep sweep{"job", parse_grid("method=none,topk;rate=1Gbps,10Gbps,25Gbps"), {}};
  sweep.rows.resize(6);
  for (std::size_t i = 0; i < 5; ++i) sweep.rows[i].played = true, sweep.rows[i].step_seconds = 1;
  sweep.rows[3].error = "failed";
  const std::string svg = sweep_svg(sweep);
  std::size_t dots = 0;
  for (std::size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at) ++dots;
  EXPECT_EQ(dots, 4u);
  for (const char* name : {"none", "topk", "1Gbps", "25Gbps", "step time"})
    EXPECT_THAT(svg, HasSubstr(name));
  const std::string text = sweep_text(sweep);
  EXPECT_THAT(text, HasSubstr("step time by method and rate"));
  EXPECT_THAT(text, HasSubstr("topk    error"));
}

}  // namespace
}  // namespace ghostrank
