// Messages that no process of the same job would send: each ends the run with an error that
// describes it.
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/shard/shard.h"
#include "emulator/traffic/flows.h"
#include "tests/emulator/fabric/fabric_double.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

// Delivers one message, then nothing.
class OneMessage final : public testing::FabricDouble {
 public:
  explicit OneMessage(const Header& header) { message_.header = header; }
  int poll(std::vector<Message>& arrived) override {
    if (std::exchange(gone_, true)) return 0;
    arrived.push_back(std::move(message_));
    return 1;
  }

 private:
  Message message_;
  bool gone_ = false;
};

// The error of process 0 (of two, one rank each) about a message that arrives while it waits for
// its peer, or while it still computes.
std::string said_about(const Header& header, Picoseconds computes = 0) {
  testing::SmallJob job(2, 1, FabricKind::ofi);
  job.spec.collectives.channels = 2;
  if (computes > 0) job.compute(computes);
  job.collective(Func::all_reduce, 1000);
  OneMessage fabric(header);
  return testing::play_first_of_two_hosts(job, fabric);
}

Header expected_header() {
  Header h;
  h.group = 0;
  h.sequence = 0;
  h.source = 1;
  h.target = 0;
  h.bytes = 1000;  // a piece of a channel's half
  return h;
}

TEST(Strays, AMessageOfAnotherLengthEndsTheRun) {
  Header h = expected_header();
  h.bytes = 17;
  EXPECT_NE(said_about(h).find("got 17 bytes where its schedule expects 1000"), std::string::npos);
}

TEST(Strays, AMessageOnAChannelThatTheCollectiveHasNotEndsTheRun) {
  Header h = expected_header();
  h.channel = 7;
  EXPECT_NE(said_about(h).find("came on channel 7, which the collective does not have"),
            std::string::npos);
}

TEST(Strays, AMessageOfAGroupOrRankThatTheJobHasNotEndsTheRun) {
  Header h = expected_header();
  h.group = 1000;
  EXPECT_NE(said_about(h).find("of group 1000, which this job does not have"), std::string::npos);
  h = expected_header();
  h.source = 2;
  EXPECT_NE(said_about(h).find("came from rank 2 of group 0"), std::string::npos);
  h.source = -1;
  EXPECT_NE(said_about(h).find("came from rank -1 of group 0"), std::string::npos);
}

TEST(Strays, APermissionThatNobodyNeedsEndsTheRun) {
  Header h = expected_header();
  h.kind = MessageKind::permission;
  h.bytes = 0;
  const std::string wrong = "a permission from rank 1 of group 0 came for a call that needs none";
  EXPECT_NE(said_about(h).find(wrong), std::string::npos);
  EXPECT_NE(said_about(h, 20 * kPicosPerMilli).find(wrong), std::string::npos);
}

TEST(Strays, AMessageForARankOrByANicOfOthersEndsTheRun) {
  Header h = expected_header();
  h.target = 1;
  EXPECT_NE(said_about(h).find("a message for rank 1 came to host 0"), std::string::npos);
  h = expected_header();
  h.nic = 200;
  EXPECT_NE(said_about(h).find("a message came for NIC 199"), std::string::npos);
}

// The error of process 0, whose node plays a call as one delay, about a message for that call. With
// `sends`, the call's flight had actors before, of a transfer.
std::string said_inside_a_node(MessageKind kind, const char* library, bool sends) {
  testing::SmallJob job(2, 2, FabricKind::ofi);
  job.spec.collectives.library = library;
  job.workload.groups = {{0, {WorldRank(0), WorldRank(1)}}, {0, {WorldRank(2), WorldRank(3)}}};
  job.workload.roles.push_back(job.workload.roles[0]);
  for (const int rank : {0, 1}) {
    OpList& ops = job.workload.roles[rank].iterations[0].streams[0];
    Op transfer{.kind = rank == 0 ? Op::Kind::send : Op::Kind::recv, .func = Func::send_recv};
    transfer.peer = rank == 0 ? 1 : -1;
    transfer.count = 1;
    if (sends) ops.push_back(transfer);
    if (rank == 1) ops.push_back({.duration = 50 * kPicosPerMilli});
    ops.push_back({.kind = Op::Kind::collective, .func = Func::all_reduce, .count = 1000});
    job.workload.role_of[WorldRank(rank)] = job.workload.role_of[WorldRank(2 + rank)] =
        static_cast<std::uint16_t>(rank);
  }
  Header h = expected_header();
  h.kind = kind;
  h.bytes = 4;
  h.start = 10 * kPicosPerMilli;  // rank 0 waits for rank 1
  OneMessage fabric(h);
  return testing::play_first_of_two_hosts(job, fabric);
}

TEST(Strays, AMessageOfACallThatSendsNoneEndsTheRun) {
  for (const bool sends : {false, true}) {
    EXPECT_NE(said_inside_a_node(MessageKind::data, "generic", sends).find("came on channel 0"),
              std::string::npos);
    EXPECT_NE(said_inside_a_node(MessageKind::permission, "generic", sends).find("came for a call"),
              std::string::npos);
    EXPECT_EQ(said_inside_a_node(MessageKind::credit, "generic", sends), "");
  }
}

}  // namespace
}  // namespace ghostrank
