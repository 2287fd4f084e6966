// The compiled switch on real interfaces: four namespaces with a veth pair each, whose other ends
// the switch holds. Workers are packet sockets of this process. Skipped without root.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "switch/ports/live.h"
#include "tests/switch/namespaces.h"

namespace ghostrank::switchml {
namespace {

TEST(SwitchOnInterfaces, SumsForFourWorkersInNamespaces) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
  const Namespaces net;
  if (!net.made()) GTEST_SKIP() << "network namespaces cannot be made here";
  CompiledSwitch sw(plan_of({job_of(kWorkers, 256)}, kWorkers));
  std::atomic<bool> stop{false}, started{false};
  const int bell = eventfd(1, EFD_CLOEXEC);  // rings at once
  const Watch watch{bell, [&] {
                      eventfd_t rung = 0;
                      eventfd_read(bell, &rung);
                      started = true;
                    }};
  std::vector<PortName> ports;
  for (int w = 0; w < kWorkers; ++w) ports.push_back({"p" + std::to_string(w), {}, {}});
  std::thread at_work([&] {
    net.inside(-1, [&] {
      switchml::run(sw, *open_interfaces(ports), {watch}, stop);
      return 0;
    });
  });
  std::array<int, kWorkers> fd{};
  for (int w = 0; w < kWorkers; ++w) fd[w] = net.inside(w, packet_socket);

  while (!started) std::this_thread::sleep_for(std::chrono::milliseconds(1));

  constexpr int kRounds = 200;
  int answered = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int w = 0; w < kWorkers; ++w) {
      const Bytes frame = chunk(w, round % 4, round / 4 % 2, 1000 * round + w, 256);
      ASSERT_EQ(write(fd[w], frame.data(), frame.size()), std::ssize(frame));
    }
    for (int w = 0; w < kWorkers; ++w) {
      const Bytes result = receive(fd[w]);
      ASSERT_EQ(result.size(), frame_bytes(256)) << "round " << round << ", worker " << w;
      for (int i = 0; i < 256; ++i) ASSERT_EQ(element(result, i), 4 * (1000 * round + i) + 6);
      ++answered;
    }
  }
  stop = true;
  at_work.join();
  for (const int f : fd) close(f);
  close(bell);
  EXPECT_EQ(answered, kWorkers * kRounds);
  EXPECT_EQ(sw.counters("a")->broadcasts, static_cast<std::uint64_t>(kRounds));
}

// A socket hears no other interface, not even between its creation and its binding.
TEST(SwitchOnInterfaces, HearNothingOfOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
  const Namespaces net;
  if (!net.made()) GTEST_SKIP() << "network namespaces cannot be made here";
  const int fd = net.inside(1, packet_socket);
  const Bytes frame = chunk(1, 0, 0, 0, 64);
  std::atomic<bool> stop{false};
  std::thread elsewhere([&] {
    while (!stop) EXPECT_EQ(write(fd, frame.data(), frame.size()), std::ssize(frame));
  });
  int heard = 0;
  for (int times = 0; times < 30; ++times) {
    const auto ports = net.inside(-1, [] { return open_interfaces({{"p0", {}, {}}}); });
    Arrival arrival;
    while (ports->next(arrival)) ++heard;
  }
  stop = true;
  elsewhere.join();
  close(fd);
  EXPECT_EQ(heard, 0);
}

// An interface that is down is not gone: it may come up again.
TEST(SwitchOnInterfaces, EndWithTheNameOfOneThatIsGone) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
  const Namespaces net;
  if (!net.made()) GTEST_SKIP() << "network namespaces cannot be made here";
  const auto ports = net.inside(-1, [] {
    return open_interfaces({{"p0", {}, {}}, {"p1", {}, {}}});
  });
  const int fd = net.inside(1, packet_socket);
  const Bytes frame = chunk(1, 0, 0, 0, 64);
  Arrival arrival;
  ASSERT_EQ(write(fd, frame.data(), frame.size()), std::ssize(frame));
  close(fd);
  ASSERT_TRUE(shell("ip -n " + net.name(-1) + " link set p1 down"));
  int arrived = 0;  // also after the kernel said that the interface is down
  for (int tries = 0; tries < 2 * 2; ++tries)
    while (ports->next(arrival)) ++arrived;
  EXPECT_GE(arrived, 1);
  ASSERT_TRUE(shell("ip -n " + net.name(-1) + " link del p1"));
  try {
    for (int naps = 0; naps < 1000; ++naps) {
      ports->next(arrival);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FAIL() << "nobody noticed";
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("interface 'p1' is gone"), std::string::npos)
        << error.what();
  }
}

// The kernel says once that an interface went down, to whoever asks first: here to a send.
TEST(SwitchOnInterfaces, EndAlsoIfASendHeardOfIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
  const Namespaces net;
  if (!net.made()) GTEST_SKIP() << "network namespaces cannot be made here";
  const auto ports = net.inside(-1, [] {
    return open_interfaces({{"p0", {}, {}}, {"p1", {}, {}}});
  });
  Arrival arrival;
  ASSERT_TRUE(shell("ip -n " + net.name(-1) + " link del p1"));
  std::memset(ports->frame(1, 64), 0, 64);
  ports->flush();
  EXPECT_THROW(
      for (int naps = 0; naps < 1000; ++naps) {
        ports->next(arrival);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      std::system_error);
}

// The kernel takes the tag out of a frame that arrives, and tells it beside.
TEST(SwitchOnInterfaces, LeaveFramesTheirVlanTags) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
  const Namespaces net;
  if (!net.made()) GTEST_SKIP() << "network namespaces cannot be made here";
  const auto ports = net.inside(-1, [] { return open_interfaces({{"p0", {}, {}}}); });
  const int fd = net.inside(0, packet_socket);
  const Bytes plain = chunk(0, 0, 0, 0, 64);
  for (const std::uint16_t kind : {std::uint16_t{0x8100}, std::uint16_t{0x88a8}}) {
    Bytes tagged = plain;
    Bytes tag(4);
    store16(tag.data(), kind);
    store16(tag.data() + 2, 0x6005);
    tagged.insert(tagged.begin() + 12, tag.begin(), tag.end());
    for (const Bytes& frame : {tagged, plain}) {
      ASSERT_EQ(write(fd, frame.data(), frame.size()), std::ssize(frame));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      int alike = 0;
      for (Arrival arrival; ports->next(arrival);)
        alike += std::ranges::equal(arrival.frame, frame) ? 1 : 0;
      EXPECT_EQ(alike, 1) << std::hex << kind << ", " << frame.size();
    }
  }
  close(fd);
}

// The frames behind one that the interface does not take still leave.
TEST(SwitchOnInterfaces, DropAFrameThatIsTooLongAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
  const Namespaces net;
  if (!net.made()) GTEST_SKIP() << "network namespaces cannot be made here";
  const auto ports = net.inside(-1, [] { return open_interfaces({{"p0", {}, {}}}); });
  const int fd = net.inside(0, packet_socket);
  const Bytes frame = chunk(0, 0, 0, 0, 64);
  const auto send = [&](std::size_t bytes) {
    std::byte* const room = ports->frame(0, bytes);
    std::memset(room, 0, bytes);
    std::memcpy(room, frame.data(), frame.size());
  };
  for (const std::size_t bytes : {frame.size(), std::size_t{5000}, frame.size(), std::size_t{5000}})
    send(bytes);
  ports->flush();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(receive(fd), frame) << i;
  EXPECT_TRUE(receive(fd, 100).empty());
  close(fd);
}

TEST(SwitchOnInterfaces, DealsSlotsOutToCores) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
  const Namespaces net;
  if (!net.made()) GTEST_SKIP() << "network namespaces cannot be made here";
  constexpr int kShards = 3, kSlots = 30;
  const auto shards = net.inside(-1, [] {
    return open_interfaces({{"p0", {}, {}}, {"p1", {}, {}}}, kShards);
  });
  const int fd = net.inside(1, packet_socket);
  for (int slot = 0; slot < kSlots; ++slot) {
    for (const int set : {0, 1}) {
      const Bytes frame = chunk(1, slot, set, 0, 64);
      ASSERT_EQ(write(fd, frame.data(), frame.size()), std::ssize(frame));
    }
  }
  Bytes ordinary = chunk(1, 1, 0, 0, 64);
  ordinary[36] = std::byte{1};  // another UDP port
  ASSERT_EQ(write(fd, ordinary.data(), ordinary.size()), std::ssize(ordinary));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  int chunks = 0, others = 0;
  for (int s = 0; s < kShards; ++s) {
    for (Arrival arrival; shards[s]->next(arrival);) {
      Packet packet;
      if (parse(arrival.frame, packet) == Kind::switchml) {
        EXPECT_EQ(packet.slot % kShards, s);
        EXPECT_EQ(arrival.port, 1);
        ++chunks;
      } else if (arrival.frame.size() == ordinary.size()) {
        EXPECT_EQ(s, 0);
        ++others;
      }  // else the kernel's own, which a socket may have got before it joined the others
    }
  }
  close(fd);
  EXPECT_EQ(chunks, 2 * kSlots);
  EXPECT_EQ(others, 1);
}

}  // namespace
}  // namespace ghostrank::switchml
