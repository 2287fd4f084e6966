// The tracing plugin, called as NCCL would but without NCCL; and the comparison, on traces made
// from our own schedules, intact and damaged.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/nccl_trace/compare.h"
#include "tests/nccl_trace/net_v8.h"

namespace ghostrank::nccl_trace {
namespace {

constexpr int kRanks = 4;
constexpr char kRing[] =
    R"({"library": "nccl-2.28", "algorithm": "ring", "protocol": "Simple", "channels": 2, )"
    R"("calls": [{"func": "allreduce", "count": 100000}]})";

// The trace that the plugin would have written on `rank`, had NCCL followed our schedules.
std::string made_up(const std::string& mark, GroupRank rank) {
  const auto sent = scheduled(parse_launch(mark, kRanks), rank);
  std::ostringstream text;
  text << "rank " << rank << " of " << kRanks << "\n";
  int number = 0;
  for (const auto& [peer, messages] : sent) {
    text << "connect " << number << " " << peer.target << " " << peer.nic << "\nsend " << number
         << " 12345\n";
    ++number;
  }
  text << "mark " << mark << "\n";
  number = 0;
  for (const auto& [peer, messages] : sent) {
    for (const std::uint64_t bytes : messages) text << "send " << number << " " << bytes << "\n";
    ++number;
  }
  text << "mark end\n";
  if (number > 0) text << "send 0 99\n";
  return text.str();
}

std::vector<RankTrace> traces_of(const std::vector<std::string>& texts) {
  std::vector<RankTrace> traces;
  for (const std::string& text : texts) {
    std::istringstream in(text);
    traces.push_back(read_trace(in, "trace." + std::to_string(traces.size())));
  }
  return traces;
}

std::vector<std::string> all_ranks(const std::string& mark = kRing) {
  std::vector<std::string> texts;
  for (GroupRank r = 0; r < kRanks; ++r) texts.push_back(made_up(mark, r));
  return texts;
}

TEST(NcclTrace, OfOurOwnSchedulesIsEqual) {
  for (const std::string& mark : {
           std::string(kRing),
           std::string(R"({"library": "nccl-2.28", "algorithm": "tree", "protocol": "LL128",
               "channels": 4, "calls": [{"func": "allreduce", "count": 50001}]})"),
           std::string(R"({"library": "nccl-2.28", "algorithm": "pat", "protocol": "Simple",
               "channels": 1, "calls": [{"func": "reduce_scatter", "count": 3}]})"),
           std::string(R"({"library": "nccl-2.30", "algorithm": "auto",
               "calls": [{"func": "broadcast", "count": 77, "element_bytes": 8, "root": 3}]})"),
           std::string(R"({"library": "nccl-2.28", "algorithm": "auto", "channels": 2,
               "calls": [{"func": "send_recv", "count": 70000, "root": 2, "target": 1}]})"),
           std::string(R"({"library": "nccl-2.28", "algorithm": "auto", "channels": 2,
               "calls": [{"func": "all_to_all_v", "counts": [1, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                          12, 13, 14, 15, 100000]}]})"),
           std::string(R"({"library": "nccl-2.28", "algorithm": "ring", "channels": 4,
               "calls": [{"func": "all_gather", "count": 100000},
                         {"func": "all_gather", "count": 7}]})"),
       }) {
    std::string line = mark;
    std::erase(line, '\n');
    const auto verdicts = compare(traces_of(all_ranks(line)));
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].difference, "") << line;
  }
}

// A channel sends all of one call before any of the next, in NCCL's order: the smaller call first.
TEST(NcclTrace, OfAGroupHasTheSmallerCallFirst) {
  const std::string mark =
      R"({"library": "nccl-2.28", "algorithm": "ring", "protocol": "Simple", "channels": 1, )"
      R"("calls": [{"func": "all_gather", "count": 1000}, {"func": "all_gather", "count": 10}]})";
  const auto sent = scheduled(parse_launch(mark, kRanks), 0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent.begin()->second.front(), 40u);
  EXPECT_EQ(std::ranges::count(sent.begin()->second, 4000u), kRanks - 1);
}

TEST(NcclTrace, HasTheMessagesOfTwoChannelsOfARing) {
  const auto traces = traces_of(all_ranks());
  ASSERT_EQ(traces[0].launches.size(), 1u);
  const auto& sent = traces[0].launches[0].sent;
  ASSERT_EQ(sent.size(), 2u);
  std::uint64_t bytes = 0;
  for (const auto& [peer, messages] : sent) {
    EXPECT_EQ(peer.target, 1);
    for (const std::uint64_t b : messages) bytes += b;
  }
  EXPECT_EQ(bytes, 2u * (kRanks - 1) * 400'000 / kRanks);
}

TEST(NcclTrace, AMessageOfAnotherSizeIsNamedWithItsRank) {
  auto texts = all_ranks();
  const std::size_t at = texts[2].rfind("send 1 ");
  texts[2].replace(at, texts[2].find('\n', at) - at, "send 1 7");
  const auto verdicts = compare(traces_of(texts));
  EXPECT_EQ(verdicts[0].difference.substr(0, 26), "rank 2 to rank 3 by NIC 0:")
      << verdicts[0].difference;
  EXPECT_NE(verdicts[0].difference.find("has 7 bytes, ours "), std::string::npos)
      << verdicts[0].difference;
}

TEST(NcclTrace, AMessageTooManyIsSeen) {
  auto texts = all_ranks();
  texts[0].insert(texts[0].find("mark end"), "send 0 0\n");
  EXPECT_NE(compare(traces_of(texts))[0].difference.find("ours ends after "), std::string::npos);
}

// The text of the error that `action` throws; "" when it throws none.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(NcclTrace, OfAnotherJobIsRefused) {
  auto texts = all_ranks();
  texts.pop_back();
  EXPECT_EQ(error_of([&] { compare(traces_of(texts)); }),
            "a trace is of a job of 4 ranks, but there are 3 traces");
  texts.push_back(made_up(kRing, 0));
  EXPECT_EQ(error_of([&] { compare(traces_of(texts)); }), "two traces are of rank 0");
  EXPECT_EQ(error_of([] { traces_of({"rank 0 of 1\nmark {}\nmark {}\n"}); }),
            "trace.0:3: a launch begins inside another");
  EXPECT_EQ(error_of([] { traces_of({"rank 0 of 1\nsend 0 5\n"}); }),
            "trace.0:2: it was never connected");
}

TEST(NcclTrace, OfALaunchThatWeCannotPlaySaysWhy) {
  const std::string mark = R"({"library": "nccl-2.28", "algorithm": "tree", "channels": 2, )"
                           R"("calls": [{"func": "all_gather", "count": 5}]})";
  std::vector<std::string> texts;
  for (GroupRank r = 0; r < kRanks; ++r)
    texts.push_back("rank " + std::to_string(r) + " of 4\nmark " + mark + "\nmark end\n");
  EXPECT_EQ(compare(traces_of(texts))[0].difference,
            "we refuse it: there is no tree for all_gather in nccl-2.28");
}

// A set that hangs is killed, and its traces still say what was equal until then.
TEST(NcclTrace, ThatBreaksOffIsComparedAsFarAsItGoes) {
  const auto whole = all_ranks();
  auto texts = whole;
  for (std::string& text : texts) text += std::string("mark ") + kRing + "\nsend 0 1";
  auto verdicts = compare(traces_of(texts));
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].difference, "");
  EXPECT_EQ(verdicts[1].difference, "it did not end");
  // One rank had finished it.
  texts[1] += "\nmark end\n";
  verdicts = compare(traces_of(texts));
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[1].difference, "it did not end");
}

TEST(NcclTrace, AMarkThatIsNoLaunchIsRefusedByItsText) {
  for (const auto& [mark, why] : {
           std::pair{"{}", "key 'library' not found"},
           {"end of it", "parse error"},
           {R"({"library": "nccl-2.28", "algorithm": "ring", "calls": []})", "it has no calls"},
           {R"({"library": "nccl-2.28", "algorithm": "ring", "calls": [{"func": "sum"}]})",
            "there is no function 'sum'"},
           {R"({"library": "nccl-2.28", "algorithm": "ring", "protocol": "TCP",
               "calls": [{"func": "allreduce"}]})",
            "there is no such protocol"},
       }) {
    const std::string error = error_of([&, line = mark] { parse_launch(line, kRanks); });
    EXPECT_TRUE(error.starts_with("the mark " + std::string(mark) + " describes no launch: "))
        << error;
    EXPECT_NE(error.find(why), std::string::npos) << error;
  }
}

// Drives one connection of the plugin from both ends.
class Plugin : public testing::Test {
 protected:
  void SetUp() override {
    static const Folder folder;
    folder_ = folder.name;
    setenv("GHOSTRANK_TRACE", folder_.c_str(), 1);
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "1", 1);
    library_ = dlopen(GHOSTRANK_NCCL_TRACE_PLUGIN, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    net_ = static_cast<const NetPlugin*>(dlsym(library_, "ncclNetPlugin_v8"));
    mark_ = reinterpret_cast<void (*)(const char*)>(dlsym(library_, "ghostrank_trace_mark"));
    ASSERT_NE(net_, nullptr);
    ASSERT_NE(mark_, nullptr);
    ASSERT_EQ(net_->init(nullptr), kSuccess);
    connect();
  }
  void TearDown() override {
    if (net_) {
      net_->close_sender(sender_);
      net_->close_receiver(receiver_);
      net_->close_listener(listener_);
    }
  }

  // Of the whole process: the plugin opens its file once.
  struct Folder {
    std::string name = testing::TempDir() + "ghostrank_nccl_trace-XXXXXX";
    Folder() { EXPECT_NE(mkdtemp(name.data()), nullptr) << name; }
    ~Folder() { std::filesystem::remove_all(name); }
  };

  void connect() {
    char handle[kHandleBytes];
    ASSERT_EQ(net_->listen(0, handle, &listener_), kSuccess);
    ASSERT_EQ(net_->accept(listener_, &receiver_, nullptr), kSuccess);
    EXPECT_EQ(receiver_, nullptr) << "nobody has connected yet";
    for (int i = 0; i < 1000 && !sender_; ++i) net_->connect(0, handle, &sender_, nullptr);
    for (int i = 0; i < 1000 && !receiver_; ++i) net_->accept(listener_, &receiver_, nullptr);
    ASSERT_NE(sender_, nullptr);
    ASSERT_NE(receiver_, nullptr);
  }

  void* send(std::vector<char>& data) {
    void* request = nullptr;
    net_->isend(sender_, data.data(), static_cast<int>(data.size()), 0, nullptr, &request);
    return request;
  }
  void* receive(std::vector<char>& room) {
    void *request = nullptr, *data = room.data(), *region = nullptr;
    int size = static_cast<int>(room.size()), tag = 0;
    net_->irecv(receiver_, 1, &data, &size, &tag, &region, &request);
    return request;
  }

  std::string folder_;
  void* library_ = nullptr;
  const NetPlugin* net_ = nullptr;
  void (*mark_)(const char*) = nullptr;
  void *listener_ = nullptr, *sender_ = nullptr, *receiver_ = nullptr;
};

TEST_F(Plugin, CarriesMessagesInOrderAndWritesThemDown) {
  std::vector<char> large(3'000'000), small(100, 's'), empty;
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i % 251);
  std::vector<std::vector<char>> rooms(3, std::vector<char>(large.size()));
  mark_(kRing);
  std::vector<void*> sends, receives;
  for (auto* message : {&large, &empty, &small}) sends.push_back(send(*message));
  for (auto& room : rooms) receives.push_back(receive(room));
  std::vector<int> sizes(3, -1);
  int left = 6;
  for (long round = 0; left > 0 && round < 10'000'000; ++round) {
    for (std::size_t i = 0; i < 3; ++i) {
      int done = 0;
      if (sends[i] && net_->test(sends[i], &done, nullptr) == kSuccess && done)
        sends[i] = nullptr, --left;
      done = 0;
      if (receives[i] && net_->test(receives[i], &done, &sizes[i]) == kSuccess && done)
        receives[i] = nullptr, --left;
    }
  }
  ASSERT_EQ(left, 0);
  mark_("end");
  EXPECT_EQ(sizes, (std::vector<int>{3'000'000, 0, 100}));
  EXPECT_EQ(std::memcmp(rooms[0].data(), large.data(), large.size()), 0);
  EXPECT_EQ(std::memcmp(rooms[2].data(), small.data(), small.size()), 0);
  std::ifstream in(folder_ + "/trace.0");
  const RankTrace trace = read_trace(in, "trace.0");
  ASSERT_FALSE(trace.launches.empty());  // the last one is this test's
  ASSERT_EQ(trace.launches.back().sent.size(), 1u);
  EXPECT_EQ(trace.launches.back().sent.begin()->second, (Messages{3'000'000, 0, 100}));
}

}  // namespace
}  // namespace ghostrank::nccl_trace
