// The control plane between real processes on this host: exchange, bounds, clocks, stop, loss.
#include "emulator/control/control.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <signal.h>
#include <thread>

#include <gtest/gtest.h>

#include "emulator/control/frames.h"
#include "tests/emulator/fabric/control_support.h"
#include "tests/emulator/processes/processes.h"

namespace ghostrank {
namespace {

using namespace std::chrono_literals;
using testing::contains;
using testing::eventually;
using testing::expect_all_ok;
using testing::knock;
using testing::Outcome;
using testing::run_processes;
using testing::say;

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
    for (int r = 0; r < std::ssize(all); ++r) EXPECT_EQ(all[r], blob(r)) << "round " << round;
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
        EXPECT_EQ(blob, std::to_string(next[rank]++));
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

// "Kernels" that share a clock: each estimate is close to 0, and exactly 0 only by chance, which
// does not happen to a process three times.
TEST(ClockOffset, IsMeasuredWhereTheKernelsDiffer) {
  std::vector<std::set<std::string>> measured(3);  // by process
  for (int meeting = 0; meeting < 3; ++meeting) {
    const auto outcomes = run_processes(3, [](World world) {
      world.boot_id = "kernel " + std::to_string(world.rank);
      const auto control = Control::meet(world);
      const std::int64_t offset = control->clock_offset_ns();
      EXPECT_LT(std::abs(offset), 2'000'000);
      control->all_gather("");
      control->close();
      return std::to_string(offset);
    });
    expect_all_ok(outcomes);
    for (std::size_t i = 0; i < outcomes.size(); ++i) measured[i].insert(outcomes[i].said);
  }
  const std::set<std::string> nothing{"0"};
  EXPECT_EQ(measured[0], nothing);
  EXPECT_NE(measured[1], nothing);
  EXPECT_NE(measured[2], nothing);
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
      const Outcome& o = outcomes[r];
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

}  // namespace
}  // namespace ghostrank
