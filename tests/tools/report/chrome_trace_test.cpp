#include "tools/report/pictures/chrome_trace.h"

#include <array>
#include <set>
#include <zlib.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "tests/tools/sample.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using test::contents;
using test::Scratch;

Workload two_streams() {
  Workload w;
  w.ranks = 4;
  Program program;
  program.stream_names = {"compute", "nccl"};
  program.streams.resize(2);
  w.roles = {{"worker", {program}}};
  w.role_of.assign(4, 0);
  return w;
}

Result with_spans() {
  Result result = test::sample();
  result.spans = {
      {WorldRank(0), Host(0), 0, 0, "forward", 1, 2'500'000, 0, 0, {}, 0},
      {WorldRank(3), Host(1), 1, 1, "bucket \"1\"", 2'000'000, 3'000'001, 4096, 0, {}, 0},
      {WorldRank(3), Host(1), 1, 3, "wait", 9'000'000, 1, 0, 0, {}, 0}};
  return result;
}

std::vector<json> events(const json& trace, const std::string& phase) {
  std::vector<json> list;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) list.push_back(event);
  }
  return list;
}

TEST(ChromeTrace, HasOneEventPerSpanInMicroseconds) {
  const Scratch scratch;
  write_chrome_trace(scratch / "t.json", with_spans(), two_streams());
  const std::vector<json> spans = events(json::parse(contents(scratch / "t.json")), "X");
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0]["name"], "forward");
  EXPECT_EQ(spans[0]["cat"], "compute");
  EXPECT_DOUBLE_EQ(spans[0]["ts"], 1e-6);
  EXPECT_DOUBLE_EQ(spans[0]["dur"], 2.5);
  EXPECT_EQ(spans[1]["name"], "bucket \"1\"");
  EXPECT_EQ(spans[1]["pid"], 1);
  EXPECT_EQ(spans[1]["args"]["bytes"], 4096);
  EXPECT_FALSE(spans[2].contains("args"));
}

// Each tensor with stages has a process of its own, after the processes of the hosts, with a thread
// for each part of the tensor.
TEST(ChromeTrace, GivesEachTensorWithStagesAProcess) {
  const Scratch scratch;
  Result result = with_spans();
  for (const char* tensor : {"conv1 0", "fc 0"})
    for (std::uint32_t part = 0; part < 2; ++part) {
      Span stage{WorldRank(3), Host(1), 1, 4, "PUSH", 2'000'000, 500, 0, 0, tensor, part};
      result.spans.push_back(stage);
    }
  write_chrome_trace(scratch / "t.json", result, two_streams());
  const json trace = json::parse(contents(scratch / "t.json"));
  const std::vector<json> spans = events(trace, "X");
  ASSERT_EQ(spans.size(), 7u);
  const int hosts = static_cast<int>(result.hosts.size());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(spans[3 + i]["name"], "PUSH");
    EXPECT_EQ(spans[3 + i]["cat"], "stage");
    EXPECT_EQ(spans[3 + i]["pid"], hosts + i / 2);
    EXPECT_EQ(spans[3 + i]["tid"], i % 2);
  }
  std::vector<std::string> names;
  for (const json& event : events(trace, "M"))
    if (event["pid"] >= hosts) names.push_back(event["args"]["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"rank 3 conv1 0", "part 0", "part 1", "rank 3 fc 0",
                                             "part 0", "part 1"}));
}

TEST(ChromeTrace, NamesHostsAndStreamsOnce) {
  const Scratch scratch;
  write_chrome_trace(scratch / "t.json", with_spans(), two_streams());
  const json trace = json::parse(contents(scratch / "t.json"));
  std::vector<std::string> names;
  for (const json& event : events(trace, "M")) names.push_back(event["args"]["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"host 0 alpha", "host 1 beta", "rank 0 compute",
                                             "rank 3 nccl"}));
  const std::vector<json> spans = events(trace, "X");
  EXPECT_EQ(spans[1]["tid"], spans[2]["tid"]);
  EXPECT_NE(spans[0]["tid"], spans[1]["tid"]);
}

TEST(ChromeTrace, ShowsEventsOfTheJobOverAllThreads) {
  const Scratch scratch;
  Result result = with_spans();
  result.events = {{1.5e-6, std::nullopt, 0, "mark", "spine3-down"}};
  write_chrome_trace(scratch / "t.json", result, two_streams());
  const json trace = json::parse(contents(scratch / "t.json"));
  EXPECT_EQ(events(trace, "i"), std::vector<json>{(json{{"name", "spine3-down"},
                                                        {"cat", "mark"},
                                                        {"ph", "i"},
                                                        {"s", "g"},
                                                        {"pid", 0},
                                                        {"tid", 0},
                                                        {"ts", 1.5}})});
}

// A trace's ranks may have more streams than any plan's.
TEST(ChromeTrace, GivesEveryStreamOfEveryRankAThread) {
  const Scratch scratch;
  Result result = test::sample();
  for (int rank = 0; rank < 2; ++rank)
    for (int stream = 0; stream < 250; ++stream)
      result.spans.push_back(
          {WorldRank(rank), Host(0), static_cast<std::uint8_t>(stream), 0, "f", 1, 1, 0, 0, {}, 0});
  write_chrome_trace(scratch / "t.json", result, two_streams());
  std::set<int> threads;
  for (const json& span : events(json::parse(contents(scratch / "t.json")), "X"))
    threads.insert(span["tid"].get<int>());
  EXPECT_EQ(threads.size(), 500u);
}

TEST(ChromeTrace, IsCompressedWhenItsNameSaysSo) {
  const Scratch scratch;
  write_chrome_trace(scratch / "t.json", with_spans(), two_streams());
  write_chrome_trace(scratch / "t.json.gz", with_spans(), two_streams());
  EXPECT_EQ(contents(scratch / "t.json.gz").substr(0, 2), "\x1f\x8b");
  gzFile file = gzopen((scratch / "t.json.gz").c_str(), "rb");
  std::array<char, 65536> text{};
  const int size = gzread(file, text.data(), text.size());
  gzclose(file);
  EXPECT_EQ(std::string(text.data(), static_cast<std::size_t>(size)), contents(scratch / "t.json"));
}

TEST(ChromeTrace, ThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(write_chrome_trace("/nowhere/t.json", with_spans(), two_streams()), Error);
}

}  // namespace
}  // namespace ghostrank
