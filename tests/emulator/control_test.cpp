// The control plane between real processes on this host: meeting, exchange, stop, loss.
#include "emulator/control/control.h"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <signal.h>
#include <thread>

#include <gtest/gtest.h>

#include "emulator/control/frames.h"
#include "profiles/error.h"
#include "tests/emulator/processes.h"

namespace ghostrank {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::expect_all_ok;
using testing::free_port;
using testing::local_world;
using testing::Outcome;
using testing::run_processes;
using testing::run_worlds;
using ::testing::Test;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Connects to the meeting as a stranger to the job. Retries until somebody listens.
int knock(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < 500; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    close(fd);
    std::this_thread::sleep_for(5ms);
  }
  return -1;
}

void say(int fd, const std::string& bytes) {
  EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

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

// ---- exchange

std::string exchange(const World& world) {
  const auto control = Control::meet(world);
  for (int round = 0; round < 50; ++round) {
    const auto blob = [&](int r) {
      // Sizes from 0 to more than a socket buffer holds.
      const std::size_t bytes = round == 7 ? 3u << 20 : static_cast<std::size_t>(round * r);
      return std::to_string(r) + ":" + std::string(bytes, static_cast<char>('a' + r));
    };
    const auto all = control->all_gather(blob(world.rank));
    EXPECT_EQ(all.size(), static_cast<std::size_t>(world.size));
    for (int r = 0; r < static_cast<int>(all.size()); ++r)
      EXPECT_EQ(all[static_cast<std::size_t>(r)], blob(r)) << "round " << round;
  }
  EXPECT_EQ(control->stop(), Stop::none);
  EXPECT_EQ(control->clock_offset_ns(), 0);
  control->close();
  return "";
}

TEST(AllGather, GivesEverybodysBlobToEverybodyInEveryRound) {
  for (const int size : {2, 4}) expect_all_ok(run_processes(size, exchange));
}

TEST(AllGather, NeedsNoSocketForOneProcess) {
  const auto control = Control::meet(World{});
  EXPECT_EQ(control->all_gather("me"), std::vector<std::string>{"me"});
  control->publish("result");
  EXPECT_EQ(control->take_published().size(), 1u);
  control->fail("no reason");
  EXPECT_TRUE(control->all_gather("me").empty());
  EXPECT_EQ(control->stop_reason(), "no reason");
  control->close();
}

TEST(Publish, ReachesProcessZeroCompletelyAndInOrder) {
  expect_all_ok(run_processes(4, [](const World& world) {
    const auto control = Control::meet(world);
    for (int i = 0; i < 100; ++i) control->publish(std::to_string(i));
    control->all_gather("");  // messages published before a barrier arrive before it ends
    if (world.rank == 0) {
      std::vector<int> next(4, 0);
      for (const auto& [rank, blob] : control->take_published())
        EXPECT_EQ(blob, std::to_string(next[static_cast<std::size_t>(rank)]++));
      EXPECT_EQ(next, std::vector<int>(4, 100));
    }
    EXPECT_TRUE(control->take_published().empty());
    control->close();
    return "";
  }));
}

// ---- bounds

constexpr std::size_t kBlob = 8u << 20;
constexpr int kTooMany = 40;  // of them: 320 MiB

TEST(Publish, EndsTheRunWhenProcessZeroDoesNotFetch) {
  const auto outcomes = run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    const std::string blob(kBlob, 'b');
    for (int i = 0; i < kTooMany && control->stop() == Stop::none; ++i) {
      if (world.rank == 1) control->publish(blob);
      control->all_gather("");
    }
    EXPECT_EQ(control->stop(), Stop::failed);
    const std::string reason = control->stop_reason();
    // The messages taken until then are there.
    EXPECT_EQ(control->take_published().size(),
              world.rank == 0 ? kMaxPublishedBytes / kBlob - 1 : 0);
    control->close();
    return reason;
  });
  expect_all_ok(outcomes);
  for (const Outcome& o : outcomes)
    EXPECT_EQ(o.said, "host 0 (" + this_hostname() +
                          ") does not fetch what is published: more than 256 MiB wait there");
}

TEST(Publish, GoesOnAsLongAsProcessZeroFetches) {
  const auto control = Control::meet(World{});
  for (int i = 0; i < kTooMany; ++i) {
    control->publish(std::string(kBlob, 'b'));
    ASSERT_EQ(control->take_published().size(), 1u);
  }
  EXPECT_EQ(control->stop(), Stop::none) << control->stop_reason();
  control->close();
}

// Lets two processes tell each other their progress, beside the control plane. Made before the
// fork.
class Steps {
 public:
  Steps() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0); }
  ~Steps() {
    for (const int fd : ends_) close(fd);
  }
  void tell(int rank) const { say(ends_[rank], "."); }
  void wait(int rank) const {
    char step = 0;
    EXPECT_EQ(recv(ends_[rank], &step, 1, 0), 1);
  }

 private:
  int ends_[2];
};

// Plays process 0 by hand: welcomes one process.
int welcome_one(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(listener, 1), 0);
  const int fd = accept(listener, nullptr, nullptr);
  close(listener);
  char hello[kMaxHelloBytes];
  EXPECT_GT(recv(fd, hello, sizeof hello, 0), 0);
  say(fd, encode(Welcome{"deaf", this_boot_id()}));
  return fd;
}

TEST(Publish, EndsTheRunWhenProcessZeroDoesNotRead) {
  const Steps steps;
  const auto outcomes = run_processes(2, [&](const World& world) {
    if (world.rank == 0) {
      const int fd = welcome_one(world.master_port);
      steps.wait(0);
      // Reads late, but not too late: both the messages before the end and the end must arrive.
      FrameBuffer in(kMaxFrameBytes);
      std::size_t published = 0;
      std::string end;
      for (pollfd p{fd, POLLIN, 0}; end.empty() && poll(&p, 1, 5000) == 1 && in.receive(fd);) {
        while (const auto frame = in.next()) {
          published += frame->type == FrameType::publish;
          if (frame->type == FrameType::stop) end = frame->payload;
        }
      }
      EXPECT_GE(published, kMaxUnsentBytes / kBlob - 1);
      EXPECT_LT(published, static_cast<std::size_t>(kTooMany));
      steps.tell(0);
      return end;
    }
    const auto control = Control::meet(world);
    for (int i = 0; i < kTooMany && control->stop() == Stop::none; ++i)
      control->publish(std::string(kBlob, 'b'));
    EXPECT_EQ(control->stop(), Stop::failed);
    steps.tell(1);
    steps.wait(1);
    return control->stop_reason();
  });
  expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[1].said, "host 0 (deaf) does not read: more than 256 MiB wait for it");
  EXPECT_TRUE(contains(outcomes[0].said, outcomes[1].said)) << outcomes[0].said;
}

TEST(AllGather, EndsTheRunWhenSomebodyTakesPartWithoutReading) {
  const Steps steps;
  constexpr int kRounds = 4;
  const auto outcomes = run_processes(2, [&](World world) {
    world.build = "alike";
    if (world.rank == 1) {
      Hello hello;
      hello.build = world.build;
      hello.job_id = world.job_id;
      hello.hostname = "deaf";
      hello.rank = 1;
      hello.size = 2;
      const int fd = knock(world.master_port);
      say(fd, encode(hello));
      for (int round = 0; round < kRounds; ++round) {
        say(fd, encode(FrameType::gather, "x"));
        steps.wait(1);
      }
      return std::string();
    }
    const auto control = Control::meet(world);
    for (int round = 0; round < kRounds; ++round) {
      control->all_gather(std::string(48u << 20, 'b'));  // more than sockets hold
      steps.tell(0);
    }
    EXPECT_EQ(control->stop(), Stop::failed);
    return control->stop_reason();
  });
  expect_all_ok(outcomes);
  EXPECT_TRUE(contains(outcomes[0].said, "host 1 (deaf) does not read: it takes part in an"))
      << outcomes[0].said;
}

// ---- clocks

TEST(ClockOffset, IsMeasuredWhereTheKernelsDiffer) {
  // Two "kernels" that share a clock: the estimate must be close to 0.
  expect_all_ok(run_processes(3, [](World world) {
    world.boot_id = "kernel " + std::to_string(world.rank);
    const auto control = Control::meet(world);
    EXPECT_LT(std::abs(control->clock_offset_ns()), 2'000'000);
    EXPECT_EQ(control->clock_offset_ns() == 0, world.rank == 0);
    control->all_gather("");
    control->close();
    return "";
  }));
}

TEST(ClockOffset, TrustsTheShortestRoundTrip) {
  ClockEstimate estimate;  // this clock is 1000 ns ahead
  estimate.add(2000, 1900, 3000);
  estimate.add(5000, 4050, 5100);
  estimate.add(9000, 8900, 9900);
  EXPECT_EQ(estimate.rounds(), 3);
  EXPECT_EQ(estimate.offset_ns(), 1000);
}

// ---- the end

TEST(Goodbye, MakesExitsInAnyOrderNoLoss) {
  for (const int last : {0, 2}) {
    expect_all_ok(run_processes(3, [last](const World& world) {
      const auto control = Control::meet(world);
      control->all_gather("");
      if (world.rank == last) std::this_thread::sleep_for(200ms);
      EXPECT_EQ(control->stop(), Stop::none) << control->stop_reason();
      control->close();
      EXPECT_EQ(control->stop(), Stop::none) << control->stop_reason();
      return "";
    }));
  }
}

TEST(Goodbye, WhileOthersStillGatherEndsTheirWait) {
  for (const int leaver : {0, 1}) {
    expect_all_ok(run_processes(3, [leaver](const World& world) {
      const auto control = Control::meet(world);
      if (world.rank != leaver) {
        EXPECT_TRUE(control->all_gather("").empty());
        EXPECT_EQ(control->stop(), Stop::failed);
        EXPECT_TRUE(contains(control->stop_reason(), "host " + std::to_string(leaver) + " ("))
            << control->stop_reason();
      }
      control->close();
      return "";
    }));
  }
}

TEST(RequestStop, FromASignalReachesEverybodyWithinASecond) {
  for (const int interrupted : {0, 2}) {
    expect_all_ok(run_processes(3, [interrupted](const World& world) {
      static Control* handled = nullptr;
      const auto control = Control::meet(world);
      handled = control.get();
      std::atomic<int> woken = 0;
      control->on_stop([&] { ++woken; });
      signal(SIGTERM, [](int) { handled->request_stop(Stop::interrupted); });
      control->all_gather("");
      const auto start = std::chrono::steady_clock::now();
      if (world.rank == interrupted) raise(SIGTERM);
      EXPECT_TRUE(control->all_gather("").empty());  // blocks until the signal has come
      EXPECT_EQ(control->stop(), Stop::interrupted);
      EXPECT_TRUE(eventually([&] { return woken > 0; }, 1000ms));
      EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
      const std::string expected = "interrupted on host " + std::to_string(interrupted) + " (";
      EXPECT_TRUE(eventually([&] { return contains(control->stop_reason(), expected); }, 1000ms))
          << control->stop_reason();
      control->close();
      EXPECT_EQ(woken, 1);
      return "";
    }));
  }
}

TEST(RequestStop, WakesASingleProcessToo) {
  expect_all_ok(run_processes(1, [](const World& world) {
    const auto control = Control::meet(world);
    std::atomic<int> woken = 0;
    control->on_stop([&] { ++woken; });
    control->request_stop(Stop::interrupted);
    EXPECT_TRUE(eventually([&] { return woken > 0; }, 1000ms));
    control->on_stop({});
    EXPECT_EQ(woken, 1);
    return "";
  }));
}

TEST(Fail, TellsEverybodyWhoAndWhy) {
  expect_all_ok(run_processes(3, [](const World& world) {
    const auto control = Control::meet(world);
    if (world.rank == 1) control->fail("rank 17 has a wrong sum");
    EXPECT_TRUE(eventually([&] { return control->stop() == Stop::failed; }, 1000ms));
    EXPECT_TRUE(contains(control->stop_reason(), "host 1 (")) << control->stop_reason();
    EXPECT_TRUE(contains(control->stop_reason(), "rank 17 has a wrong sum"));
    control->all_gather("");
    control->close();
    return "";
  }));
}

TEST(LostPeer, KilledIsNamedEverywhereWithinTwoSeconds) {
  for (const int victim : {0, 1, 3}) {
    const auto outcomes = run_processes(4, [victim](const World& world) {
      const auto control = Control::meet(world);
      control->all_gather("");
      if (world.rank == victim) kill(getpid(), SIGKILL);
      const auto start = std::chrono::steady_clock::now();
      EXPECT_TRUE(control->all_gather("").empty());
      EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
      EXPECT_EQ(control->stop(), Stop::peer_lost);
      const std::string reason = control->stop_reason();
      control->close();
      return reason;
    });
    for (int r = 0; r < 4; ++r) {
      const Outcome& o = outcomes[static_cast<std::size_t>(r)];
      if (r == victim) {
        EXPECT_EQ(o.signal, SIGKILL);
        continue;
      }
      EXPECT_TRUE(o.ok) << o.said;
      EXPECT_TRUE(contains(
          o.said, "host " + std::to_string(victim) + " (" + this_hostname() + ") was lost"))
          << o.said;
    }
  }
}

TEST(LostPeer, IsOneThatFellSilentToo) {
  const auto outcomes = run_processes(3, [](World world) {
    world.silence = 2s;
    const auto control = Control::meet(world);
    const auto pids = control->all_gather(std::to_string(getpid()));
    if (world.rank == 1) {
      raise(SIGSTOP);
      return std::string();
    }
    EXPECT_TRUE(control->all_gather("").empty());
    const std::string reason = control->stop_reason();
    control->close();
    if (world.rank == 0) kill(std::stoi(pids[1]), SIGCONT);
    return reason;
  });
  for (const std::size_t r : {0u, 2u}) {
    EXPECT_TRUE(outcomes[r].ok);
    EXPECT_TRUE(contains(outcomes[r].said, "was lost: nothing heard for 2 s")) << outcomes[r].said;
  }
}

// ---- the meeting

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
    EXPECT_GE(control->strays(), world.rank == 0 ? 3u : 0u);
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
      encode(static_cast<FrameType>(99), "?"),                        // no such type
      encode(FrameType::welcome),                                     // only process 0 sends these
      encode(FrameType::gathered, Writer().u32(7).text("x").take()),  // likewise
      encode(FrameType::stop, Writer().u32(0).text("no reason").take()),  // no such stop
      encode(FrameType::stop, Writer().u32(1).u32(~0u).take()),           // text beyond its end
      encode(FrameType::ping, "1"),                                       // too short
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
