// Lines over a socket, and the runner's control line, which uses them: neither ever blocks.
#include "switch/lines.h"

#include <array>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch/dpdk/control.h"

namespace ghostrank::switchml {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::StartsWith;

// Both ends of a line: ours, and the other side's, which sends and receives when the test wants it.
class Lines : public testing::Test {
 protected:
  Lines() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()), 0); }
  ~Lines() override {
    close(ends_[0]);
    leave();
  }
  int ours() const { return ends_[0]; }
  void say(const std::string& text) const {
    ASSERT_EQ(send(ends_[1], text.data(), text.size(), MSG_NOSIGNAL), std::ssize(text));
  }
  void leave() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  std::string heard() const {
    std::string all;
    std::array<char, 65536> buffer;
    for (ssize_t n; (n = recv(ends_[1], buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0;)
      all.append(buffer.data(), static_cast<std::size_t>(n));
    return all;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

bool readable(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

TEST_F(Lines, AreWholeHoweverTheyCome) {
  LineSocket lines(ours(), 8);
  EXPECT_TRUE(lines.receive()) << "nothing has come; nothing is waited for";
  EXPECT_EQ(lines.next(), std::nullopt);
  for (const char* piece : {"on", "e\ntw", "o\n\nthre"}) {
    say(piece);
    EXPECT_TRUE(lines.receive());
  }
  EXPECT_EQ(lines.next(), "one");
  EXPECT_EQ(lines.next(), "two");
  EXPECT_EQ(lines.next(), "");
  EXPECT_EQ(lines.next(), std::nullopt);
  leave();
  EXPECT_FALSE(lines.receive());
  EXPECT_EQ(lines.rest(), "thre");
  EXPECT_FALSE(lines.overlong());
}

TEST_F(Lines, HaveABound) {
  for (const char* end : {"", "\n"}) {
    LineSocket lines(ours(), 8);
    say(std::string("12345678\n123456789") + end);
    EXPECT_TRUE(lines.receive());
    EXPECT_EQ(lines.next(), "12345678");
    EXPECT_EQ(lines.next(), std::nullopt);
    EXPECT_TRUE(lines.overlong());
    EXPECT_EQ(lines.next(), std::nullopt);
  }
}

TEST_F(Lines, LeaveAsTheyAreTaken) {
  LineSocket lines(ours(), 8);
  const std::string large(4 << 20, 'x');
  EXPECT_TRUE(lines.say(large));
  EXPECT_GT(lines.unsent_bytes(), 0u);
  std::string all;
  for (int i = 0; i < 1000 && lines.unsent_bytes() > 0; ++i) {
    all += heard();
    EXPECT_TRUE(lines.flush());
  }
  EXPECT_EQ(all + heard(), large + "\n");
  leave();
  EXPECT_FALSE(lines.say("x"));
}

class RunnerControl : public Lines {
 protected:
  std::vector<std::string> obeyed_;
  std::string counters_ = "{}";
  bool stopped_ = false;
  dpdk::Control control_{ours(),
                         [this](const std::vector<std::string>& lines) {
                           if (lines.at(0) == "bad") throw std::runtime_error("'bad' is wrong");
                           obeyed_ = lines;
                         },
                         [this] { return counters_; }, [this] { stopped_ = true; }};
};

TEST_F(RunnerControl, CarriesOutWholeCommitsOnly) {
  control_.serve();
  say("table a\ntable");
  control_.serve();
  say(" b\ncomm");
  control_.serve();
  EXPECT_TRUE(obeyed_.empty());
  say("it\nbad\ncommit\ncounters\n");
  EXPECT_TRUE(readable(control_.fd()));
  control_.serve();
  EXPECT_THAT(obeyed_, ElementsAre("table a", "table b"));
  EXPECT_EQ(heard(), "ok\nerror 'bad' is wrong\n{}\n");
  EXPECT_FALSE(readable(control_.fd()));
  EXPECT_FALSE(stopped_);
  say("stop\n");
  control_.serve();
  EXPECT_EQ(heard(), "ok\n");
  EXPECT_TRUE(stopped_);
}

TEST_F(RunnerControl, GoesOnWhileItsAnswerIsNotTaken) {
  counters_ = std::string(4 << 20, '7');
  say("counters\ntable a\ncommit\n");
  control_.serve();  // returns although the other side does not read
  control_.serve();
  EXPECT_FALSE(readable(control_.fd())) << "it does not spin until there is room";
  EXPECT_TRUE(obeyed_.empty()) << "the next request has its turn after the answer";
  std::string all;
  for (int i = 0; i < 1000 && !all.ends_with("ok\n"); ++i) {
    all += heard();
    EXPECT_TRUE(readable(control_.fd()) || all.ends_with("ok\n")) << "there is room";
    control_.serve();
  }
  EXPECT_EQ(all.size(), counters_.size() + 4);
  EXPECT_THAT(all, EndsWith("7\nok\n"));
  EXPECT_THAT(obeyed_, ElementsAre("table a"));
  EXPECT_FALSE(stopped_);
}

TEST_F(RunnerControl, EndsTheRunnerWhenNobodyIsThere) {
  leave();
  EXPECT_TRUE(readable(control_.fd()));
  control_.serve();
  EXPECT_TRUE(stopped_);
}

TEST_F(RunnerControl, EndsTheRunnerAfterARequestWithoutEnd) {
  const std::string piece(dpdk::Control::kMostLine / 2, 'x');
  for (int i = 0; i < 2; ++i) {
    say(piece);
    control_.serve();
  }
  EXPECT_FALSE(stopped_);
  say("x");
  control_.serve();
  EXPECT_TRUE(stopped_);
}

TEST_F(RunnerControl, RefusesMoreCommandsThanItKeeps) {
  const std::string command(dpdk::Control::kMostLine, 'x');
  for (std::size_t bytes = 0; bytes <= dpdk::Control::kMostCommands; bytes += command.size()) {
    say(command + "\n");
    while (readable(control_.fd())) control_.serve();
  }
  say("commit\ntable a\ncommit\n");
  control_.serve();
  const std::string said = heard();
  EXPECT_THAT(said, StartsWith("error 67174400 bytes of commands at once; at most 67108864"));
  EXPECT_THAT(said, EndsWith("\nok\n"));
  EXPECT_THAT(obeyed_, ElementsAre("table a"));
  EXPECT_FALSE(stopped_);
}

}  // namespace
}  // namespace ghostrank::switchml
