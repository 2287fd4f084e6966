// The profiler plugin, called as NCCL calls it but without NCCL, by every version of its interface;
// what it writes is imported and played.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/capture/nccl/interface.h"
#include "profiles/capture/nccl/recorder.h"
#include "tests/profiles/support.h"
#include "tests/shell.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;
namespace nccl = nccl_profiler;
using nlohmann::json;

// Where a compiler puts the fields of NCCL 2.30's own headers (x86-64, aarch64).
static_assert(sizeof(nccl::PluginV1) == 48 && offsetof(nccl::PluginV6, finalize) == 40);
static_assert(offsetof(nccl::v1::Event, coll.func) == 48);
static_assert(offsetof(nccl::v1::Event, coll.type) == 84);
static_assert(offsetof(nccl::v1::Event, coll.algorithm) == 106);
static_assert(offsetof(nccl::v1::Event, p2p.peer) == 72);
static_assert(offsetof(nccl::v1::Event, proxy.is_send) == 44);
static_assert(offsetof(nccl::v3::Event, coll.algorithm) == 104);
static_assert(offsetof(nccl::v5::Event, coll.func) == 32);
static_assert(offsetof(nccl::v5::Event, coll.type) == 72);
static_assert(offsetof(nccl::v5::Event, coll.algorithm) == 88);
static_assert(offsetof(nccl::v5::Event, p2p.peer) == 56);
static_assert(offsetof(nccl::v5::Event, kernel.timer) == 32);
static_assert(offsetof(nccl::v6::Event, copy_engine.type) == 72);

std::vector<json> lines_of(const fs::path& file) {
  std::vector<json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

std::vector<fs::path> files_in(const test::Folder& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder.path(""))) files.push_back(entry.path());
  return files;
}

class NcclPlugin : public testing::TestWithParam<int> {
 protected:
  static constexpr int kRanks = 4;
  void play(const std::string& variables = "") {
    for (int rank = 0; rank < kRanks; ++rank) {
      const test::Outcome outcome = test::shell(
          "GHOSTRANK_PROFILER_DIR='" + folder_.path("") + "' " + variables +
          GHOSTRANK_NCCL_HOST " " GHOSTRANK_NCCL_PLUGIN " " + std::to_string(GetParam()) + " " +
          std::to_string(rank) + " " + std::to_string(kRanks));
      ASSERT_EQ(outcome.status, 0) << outcome.text;
      EXPECT_EQ(outcome.text, "");
    }
    files_ = files_in(folder_);
    ASSERT_EQ(files_.size(), std::size_t{kRanks});
  }
  bool told() const { return GetParam() >= 4; }     // NCCL says how large a communicator is
  bool kernels() const { return GetParam() >= 3; }  // NCCL says when kernels run

  test::Folder folder_;
  std::vector<fs::path> files_;
};

TEST_P(NcclPlugin, WritesWhatImportReads) {
  play();
  if (HasFatalFailure()) return;
  std::string line =
      GHOSTRANK_BINARY " profile import --json - -o '" + folder_.path("p.yaml") + "'";
  for (const fs::path& file : files_) line += " '" + file.string() + "'";
  const test::Outcome outcome = test::shell(line + " 2>/dev/null");
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  const json found = json::parse(outcome.text);
  EXPECT_EQ(found["ranks"], kRanks);
  EXPECT_EQ(found["ops"]["allreduce"], 3 * kRanks) << found.dump(1);
  EXPECT_EQ(found["ops"]["all_gather"], 3 * kRanks);
  EXPECT_EQ(found["ops"]["send"], 3 * kRanks);
  EXPECT_EQ(found["ops"]["recv"], 3 * kRanks);
  EXPECT_EQ(found["bytes"]["allreduce"], 3 * kRanks * (4 << 20));
  EXPECT_EQ(found["bytes"]["send"], 3 * kRanks * 1000);
  const test::Outcome played = test::shell(GHOSTRANK_BINARY " run '" + folder_.path("p.yaml") +
                                           "' -s fabric.kind=virtual -s cluster.nodes=1 -s "
                                           "cluster.gpus_per_node=4 -s run.iterations=1 -q");
  EXPECT_EQ(played.status, 0) << played.text;
}

TEST_P(NcclPlugin, SaysWhatEveryCallWas) {
  play();
  if (HasFatalFailure()) return;
  int calls = 0, messages = 0, proxies = 0, foreign = 0;
  std::int64_t last = 0;
  for (const json& line : lines_of(files_.front())) {
    if (line.contains("proxy_trace")) {
      const json& op = line["proxy_trace"];
      if (op.contains("pid")) {
        EXPECT_EQ(op["pid"], 1);
        ++foreign;
        continue;
      }
      ++proxies;
      const bool reduce = op["of"] == "AllReduce";
      EXPECT_EQ(op["bytes"], reduce ? 2100 : 1000) << op.dump();
      EXPECT_EQ(op["messages"].size(), reduce ? 3u : 1u);
      EXPECT_EQ(op["channel"], 1);
      EXPECT_EQ(op["send"], true);
      if (told()) {
        EXPECT_EQ(op["messages"][0]["bytes"], reduce ? 700 : 1000);
      }
      continue;
    }
    const bool p2p = line.contains("p2p_perf");
    const json& call = line[p2p ? "p2p_perf" : "coll_perf"];
    (p2p ? messages : calls)++;
    EXPECT_EQ(line["header"]["n_ranks"], told() ? (p2p ? 2 : kRanks) : 0);
    const json& times = call["event_trace_ts"];
    ASSERT_EQ(times.contains("kernel_events"), kernels());
    if (!p2p && call["coll"] == "AllReduce") {
      EXPECT_EQ(call["coll_algo"], "RING");
      EXPECT_EQ(call["coll_proto"], "SIMPLE");
      EXPECT_EQ(call["channels"], 2);
      EXPECT_EQ(line["header"]["comm_name"], "world");
    }
    if (!kernels()) continue;
    const json& events = times["kernel_events"];
    EXPECT_EQ(events.size(), p2p ? 1u : 2u);
    const std::int64_t start = events[0]["kernel_start_ts"], stop = events[0]["kernel_stop_ts"];
    EXPECT_GE(stop - start, 2000) << "a kernel takes 2 ms";
    // Kernels of both communicators run one after the other. A start may be up to 1 ms too early,
    // as the lag of the GPU's timer is not yet known at the first call.
    EXPECT_GT(start + 1000, last);
    if (told()) last = stop;
    EXPECT_LE(std::abs(start - times[p2p ? "p2p_start_ts" : "coll_start_ts"].get<std::int64_t>()),
              60'000'000);
  }
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(messages, 6);
  EXPECT_EQ(proxies, 6);
  EXPECT_EQ(foreign, 3);
}

TEST_P(NcclPlugin, LeavesMessagesOutOnRequest) {
  play("GHOSTRANK_PROFILER_STEPS=0 ");
  if (HasFatalFailure()) return;
  int proxies = 0;
  for (const json& line : lines_of(files_.front()))
    if (line.contains("proxy_trace")) {
      ++proxies;
      EXPECT_FALSE(line["proxy_trace"].contains("messages"));
    }
  EXPECT_GT(proxies, 0);
}

INSTANTIATE_TEST_SUITE_P(Versions, NcclPlugin, testing::Range(1, 7));

TEST(NcclRecorder, WritesTheOldestOfTooManyCallsAndIgnoresWhatComesAfter) {
  const test::Folder folder;
  nccl::Handle first = 0;
  {
    nccl::Recorder recorder(folder.path(""));
    ASSERT_TRUE(recorder.works());
    const nccl::Handle comm = recorder.add_comm({7, "c", 1, 1, 0});
    nccl::CallFacts facts;
    facts.func = "AllReduce";
    facts.channels = 1;
    for (std::size_t i = 0; i <= nccl::Recorder::kMostCalls; ++i) {
      facts.number = i;
      const nccl::Handle call = recorder.start_call(comm, facts);
      recorder.stop(call);
      if (i == 0) first = call;
    }
    EXPECT_EQ(recorder.start_kernel(first, 0, 1), 0u) << "its call is written";
    recorder.stop(first);
    EXPECT_EQ(recorder.start_call(99999, facts), 0u);
  }
  const std::vector<fs::path> files = files_in(folder);
  ASSERT_EQ(files.size(), 1u);
  const std::vector<json> lines = lines_of(files[0]);
  ASSERT_EQ(lines.size(), nccl::Recorder::kMostCalls + 1);
  for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i]["coll_perf"]["coll_sn"], i);
}

// NCCL starts the calls of a group within a microsecond; readers order them by these times.
TEST(NcclRecorder, GivesEveryCallALaterTime) {
  const test::Folder folder;
  nccl::Recorder recorder(folder.path(""));
  const nccl::Handle comm = recorder.add_comm({7, "c", 1, 1, 0});
  for (const char* func : {"ReduceScatter", "AllReduce", "Broadcast", "AllGather"})
    for (int i = 0; i < 100; ++i) {
      nccl::CallFacts facts;
      facts.func = func;
      recorder.start_call(comm, facts);
    }
  recorder.close();
  std::int64_t last = 0;
  for (const json& line : lines_of(files_in(folder).at(0))) {
    const std::int64_t start = line["coll_perf"]["event_trace_ts"]["coll_start_ts"];
    EXPECT_GT(start, last);
    last = start;
  }
}

TEST(NcclRecorder, WritesWhatIsOpenWhenItIsClosedAndIgnoresWhatComesAfter) {
  const test::Folder folder;
  nccl::Recorder recorder(folder.path(""));
  ASSERT_TRUE(recorder.works());
  const nccl::Handle comm = recorder.add_comm({7, "c", 1, 1, 0});
  nccl::CallFacts facts;
  facts.func = "AllReduce";
  const nccl::Handle call = recorder.start_call(comm, facts);
  const nccl::Handle proxy = recorder.start_proxy(comm, call, {});
  recorder.close();
  EXPECT_FALSE(recorder.works());
  EXPECT_EQ(recorder.start_call(comm, facts), 0u);
  recorder.stop(proxy);
  recorder.stop(call);
  const std::vector<fs::path> files = files_in(folder);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(lines_of(files[0]).size(), 2u) << "the call and its proxy operation";
}

TEST(NcclRecorder, MakesItsFolder) {
  const test::Folder folder;
  const nccl::Recorder recorder(folder.path("runs/calls"));
  EXPECT_TRUE(recorder.works());
}

TEST(NcclRecorder, SaysWhereItCannotWrite) {
  const test::Outcome outcome =
      test::shell("GHOSTRANK_PROFILER_DIR=/dev/null/calls " GHOSTRANK_NCCL_HOST
                  " " GHOSTRANK_NCCL_PLUGIN " 6 0 1");
  EXPECT_EQ(outcome.status, 1) << "init() fails, so NCCL goes on without the plugin";
  EXPECT_NE(outcome.text.find("/dev/null/calls/nccl-"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace ghostrank
