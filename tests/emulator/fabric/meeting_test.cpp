// The meeting of real processes on this host: those who are missing, refused or strangers, and the
// frames of their greetings.
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "emulator/control/control.h"
#include "emulator/control/frames.h"
#include "profiles/error.h"
#include "tests/emulator/fabric/control_support.h"
#include "tests/emulator/processes/processes.h"

namespace ghostrank {
namespace {

using namespace std::chrono_literals;
using testing::contains;
using testing::expect_all_ok;
using testing::free_port;
using testing::knock;
using testing::local_world;
using testing::Outcome;
using testing::run_worlds;
using testing::say;

bool ends(int fd) {  // true when the other side closes without a message
  pollfd p{fd, POLLIN, 0};
  char byte = 0;
  return poll(&p, 1, 3000) == 1 && recv(fd, &byte, 1, 0) <= 0;
}

std::string meeting_error(const World& world) {
  try {
    Control::meet(world)->close();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 3);
    return e.what();
  }
  return "met";
}

TEST(Meeting, NamesThoseWhoDidNotCome) {
  const int port = free_port();
  std::vector<World> worlds{local_world(0, 4, port), local_world(2, 4, port)};
  for (World& w : worlds) w.timeout = 1s;
  const auto outcomes = run_worlds(worlds, meeting_error);
  for (const Outcome& o : outcomes) {
    EXPECT_TRUE(contains(o.said, "ranks 1, 3 of 4 did not come to 127.0.0.1:" +
                                     std::to_string(port) + " within 1 s"))
        << o.said;
  }
}

TEST(Meeting, TellsWhereProcessZeroWasExpected) {
  const int port = free_port();
  World world = local_world(1, 2, port);
  world.timeout = 1s;
  const std::string text = meeting_error(world);
  EXPECT_TRUE(contains(text, "did not meet process 0 at 127.0.0.1:" + std::to_string(port) +
                                 " within 1 s: Connection refused"))
      << text;
}

TEST(Meeting, SaysThatThePortIsTaken) {
  const int port = free_port();
  const int squatter = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(squatter, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(squatter, 1), 0);
  const std::string text = meeting_error(local_world(0, 2, port));
  close(squatter);
  EXPECT_TRUE(contains(text, "cannot listen on 127.0.0.1:" + std::to_string(port))) << text;
  EXPECT_TRUE(contains(text, "GHOSTRANK_PORT")) << text;
}

TEST(Meeting, SaysThatTheAddressIsNotLocal) {
  World world = local_world(0, 2, free_port());
  world.master_address = "192.0.2.77";  // reserved for documentation
  EXPECT_TRUE(contains(meeting_error(world), "MASTER_ADDR must be an address of the host"));
}

TEST(Meeting, RefusesTheWrongOnesWithAReasonAndGoesOn) {
  const int port = free_port();
  const auto wrong = [&](auto change) {
    World w = local_world(1, 3, port);
    change(w);
    return w;
  };
  const std::vector<World> worlds{
      local_world(0, 3, port),
      wrong([](World& w) { w.token = "guess"; }),
      wrong([](World& w) { w.job_id = "another"; }),
      wrong([](World& w) { w.build = "0.0.0"; }),
      wrong([](World& w) { w.size = 2; }),
      local_world(1, 3, port),
      local_world(1, 3, port),
      local_world(2, 3, port),
  };
  const auto outcomes = run_worlds(worlds, [](const World& world) {
    // The wrong ones come first, then rank 1 twice, and the last one late, so that all find a
    // listener.
    if (world.rank == 1 && world.token.empty() && world.job_id == "ghostrank" &&
        world.build.empty() && world.size == 3)
      std::this_thread::sleep_for(300ms);
    if (world.rank == 2) std::this_thread::sleep_for(900ms);
    try {
      const auto control = Control::meet(world);
      EXPECT_EQ(control->strays(), world.rank == 0 ? 5u : 0u);
      EXPECT_EQ(control->all_gather("x").size(), 3u);
      control->close();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("met");
  });
  expect_all_ok(outcomes);
  const auto said = [&](std::size_t i) { return outcomes[i].said; };
  EXPECT_EQ(said(0), "met");
  EXPECT_TRUE(contains(said(1), "token differs")) << said(1);
  EXPECT_TRUE(contains(said(2), "job id differs")) << said(2);
  EXPECT_TRUE(contains(said(3), "build 0.0.0, here")) << said(3);
  EXPECT_TRUE(contains(said(4), "world size 2, here 3")) << said(4);
  const std::string& refused = said(5) == "met" ? outcomes[6].said : outcomes[5].said;
  EXPECT_TRUE(contains(refused, "rank 1 twice")) << refused;
  EXPECT_TRUE((said(5) == "met") != (said(6) == "met"));
  EXPECT_EQ(said(7), "met");
}

TEST(Meeting, IsOfOneCommitWhereTheBuildsNameOne) {
  const auto meet = [](const std::vector<std::string>& builds, const std::vector<int>& ranks) {
    const int port = free_port();
    std::vector<World> worlds;
    for (std::size_t i = 0; i < builds.size(); ++i) {
      worlds.push_back(local_world(ranks[i], 3, port));
      worlds.back().build = builds[i];
    }
    const auto outcomes = run_worlds(worlds, [&builds](const World& world) {
      if (world.rank == 2) std::this_thread::sleep_for(900ms);  // the refused ones come before
      if (world.rank == 1 && world.build == builds[builds.size() - 2])
        std::this_thread::sleep_for(300ms);
      try {
        Control::meet(world)->close();
      } catch (const Error& e) {
        return std::string(e.what());
      }
      return std::string("met");
    });
    expect_all_ok(outcomes);
    return outcomes;
  };
  const auto some =
      meet({"1.2 abc", "1.2 abd", "1.2 ab", "1.3", "1.2", "1.2 abc"}, {0, 1, 1, 1, 1, 2});
  for (const std::size_t i : {1, 2, 3})
    EXPECT_TRUE(contains(some[i].said, ", here 1.2 abc; install the same ghostrank everywhere"))
        << some[i].said;
  for (const std::size_t i : {0, 4, 5}) EXPECT_EQ(some[i].said, "met");
  for (const auto& o : meet({"1.2", "1.2 abc", "1.2"}, {0, 1, 2})) EXPECT_EQ(o.said, "met");
}

TEST(Meeting, IsNotDisturbedByStrangers) {
  const int port = free_port();
  std::vector<World> worlds{local_world(0, 2, port), local_world(1, 2, port)};
  const auto outcomes = run_worlds(worlds, [port](const World& world) {
    std::optional<int> slow;
    if (world.rank == 1) {
      const int garbage = knock(port);
      say(garbage, "GET / HTTP/1.1\r\nHost: here\r\n\r\n");
      EXPECT_TRUE(ends(garbage));
      const int oversized = knock(port);
      say(oversized, std::string("\xff\xff\xff\xff\x01", 5));
      EXPECT_TRUE(ends(oversized));
      const int large = knock(port);  // allowed for later frames, not for a greeting
      say(large, encode(FrameType::hello, std::string(5000, 'x')).substr(0, 100));
      EXPECT_TRUE(ends(large));
      const int cut = knock(port);
      say(cut, encode(FrameType::hello, "cut").substr(0, 6));
      close(cut);
      slow = knock(port);  // sends half a frame and waits
      say(*slow, std::string("\x20\x00", 2));
      for (const int fd : {garbage, oversized, large}) close(fd);
    }
    const auto start = std::chrono::steady_clock::now();
    const auto control = Control::meet(world);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);  // not delayed by the slow one
    // Process 0 may not have noticed the cut and the slow connection by the end of the meeting.
    if (world.rank == 0) {
      EXPECT_GE(control->strays(), 3u);
    } else {
      EXPECT_EQ(control->strays(), 0u);
    }
    EXPECT_EQ(control->all_gather("x").size(), 2u);
    control->close();
    if (slow) close(*slow);
    return "";
  });
  expect_all_ok(outcomes);
}

// An admitted process may still send nonsense: it is lost, by name, and nobody waits for it.
TEST(Meeting, LosesAnAdmittedProcessThatTalksNonsense) {
  const std::string nonsense[] = {
      encode(static_cast<FrameType>(99), "?"),  // no such type
      encode(FrameType::welcome),               // only process 0 sends these
      encode(FrameType::gathered, BlobWriter().put(7u).put("x").bytes()),      // likewise
      encode(FrameType::stop, BlobWriter().put(0u).put("no reason").bytes()),  // no such stop
      encode(FrameType::stop, BlobWriter().put(1u).put(~0u).bytes()),  // text beyond its end
      encode(FrameType::ping, "1"),                                    // too short
      std::string("\xff\xff\xff\xff\x06", 5),
      std::string("\0\0\0\0", 4),  // lengths
  };
  for (const std::string& bytes : nonsense) {
    const int port = free_port();
    std::vector<World> worlds{local_world(0, 2, port), local_world(1, 2, port)};
    for (World& w : worlds) w.build = "alike";
    const auto outcomes = run_worlds(worlds, [&](const World& world) {
      if (world.rank == 1) {
        Hello hello;
        hello.build = world.build;
        hello.job_id = world.job_id;
        hello.hostname = "odd";
        hello.rank = 1;
        hello.size = 2;
        const int fd = knock(port);
        say(fd, encode(hello));
        char word[256];
        EXPECT_GT(recv(fd, word, sizeof word, 0), 0);  // welcome
        say(fd, bytes);
        while (recv(fd, word, sizeof word, 0) > 0) {
        }
        close(fd);
        return std::string();
      }
      const auto control = Control::meet(world);
      const auto start = std::chrono::steady_clock::now();
      const auto once = control->all_gather("x");
      if (!once.empty()) control->all_gather("again");
      EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
      EXPECT_EQ(control->stop(), Stop::peer_lost);
      return control->stop_reason();
    });
    expect_all_ok(outcomes);
    EXPECT_TRUE(contains(outcomes[0].said, "host 1 (odd) was lost: it sent an"))
        << outcomes[0].said;
  }
}

TEST(Meeting, TakesAProcessThatDiedAndCameAgain) {
  const int port = free_port();
  std::vector<World> worlds{local_world(0, 3, port), local_world(1, 3, port),
                            local_world(2, 3, port)};
  for (World& w : worlds) w.build = "alike";
  expect_all_ok(run_worlds(worlds, [port](const World& world) {
    if (world.rank == 1) {
      Hello hello;
      hello.build = world.build;
      const int first = knock(port);
      hello.job_id = world.job_id;
      hello.rank = 1;
      hello.size = 3;
      say(first, encode(hello));
      close(first);
    }
    if (world.rank == 2) std::this_thread::sleep_for(300ms);
    const auto control = Control::meet(world);
    EXPECT_EQ(control->all_gather("x").size(), 3u);
    control->close();
    return "";
  }));
}

// ---- frames

TEST(Frames, SurviveBeingCutAnywhere) {
  Hello hello;
  hello.build = "1.2.3";
  hello.job_id = "job";
  hello.rank = 3;
  hello.size = 8;
  const std::string whole = encode(hello);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    FrameBuffer buffer(kMaxHelloBytes);
    say(ends[0], whole.substr(0, cut));
    EXPECT_TRUE(cut == 0 || buffer.receive(ends[1]));
    EXPECT_FALSE(buffer.next());
    say(ends[0], whole.substr(cut));
    EXPECT_TRUE(buffer.receive(ends[1]));
    const std::optional<Frame> frame = buffer.next();
    ASSERT_TRUE(frame);
    const std::optional<Hello> back = decode_hello(*frame);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->build, "1.2.3");
    EXPECT_EQ(back->rank, 3u);
    close(ends[0]);
    close(ends[1]);
    // A hello with its end missing is not one.
    EXPECT_FALSE(decode_hello({FrameType::hello, whole.substr(5, cut)}) && cut < whole.size() - 5);
  }
}

TEST(Token, ComparesEqualOnlyToItself) {
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("secret", "secret"));
  EXPECT_FALSE(equal_in_constant_time("secret", "secreT"));
  EXPECT_FALSE(equal_in_constant_time("secret", "secretsecret"));
  EXPECT_FALSE(equal_in_constant_time("secretsecret", "secret"));
  EXPECT_FALSE(equal_in_constant_time("", "secret"));
  EXPECT_FALSE(equal_in_constant_time("secret", ""));
}

}  // namespace
}  // namespace ghostrank
