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

}  // namespace
}  // namespace ghostrank
