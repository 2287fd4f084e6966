// Datagrams over UDP on loopback, whose kernel a test can replace.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netinet/in.h>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/assemble/ensemble.h"
#include "emulator/fabric/datagrams.h"
#include "emulator/host/cores.h"
#include "emulator/host/interfaces.h"
#include "emulator/packets/setup.h"
#include "emulator/packets/switch_sockets.h"
#include "emulator/packets/udp.h"
#include "emulator/packets/udp_socket.h"
#include "profiles/error.h"
#include "tests/emulator/fabric/own_kernel.h"
#include "tests/emulator/processes/processes.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::calls;
using testing::kernel_refuses;
using testing::kernel_takes;
using testing::looks;

std::size_t bytes_of_message(const msghdr& m) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < m.msg_iovlen; ++i) bytes += m.msg_iov[i].iov_len;
  return bytes;
}
std::size_t bytes_of_message(const mmsghdr& m) { return bytes_of_message(m.msg_hdr); }

constexpr std::uint64_t kNonce = 0x1234'5678'9abc'def0;

UdpOptions options_for(std::uint32_t mtu = 1500, bool keep_payload = true) {
  UdpOptions o;
  o.sockets = {{"127.0.0.1", ""}};
  o.nonce = kNonce;
  o.mtu = mtu;
  o.keep_payload = keep_payload;
  return o;
}

Message note(std::uint32_t number, std::uint64_t bytes, bool real = true) {
  Message m;
  m.header.kind = MessageKind::note;
  m.header.sequence = number;
  m.header.bytes = bytes & kMostBytes;
  if (!real) return m;
  m.payload = std::make_unique<std::byte[]>(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) m.payload[i] = static_cast<std::byte>(number * 31 + i);
  return m;
}

class PacketsOverUdp : public ::testing::Test {
 protected:
  PacketsOverUdp() { open(options_for()); }
  ~PacketsOverUdp() override { kernel_takes = {}; }

  void open(const UdpOptions& options) {
    here = UdpPackets::open(options);
    there = UdpPackets::open(options);
    here->connect({{0, there->address(0), "host 1"}});
    there->connect({{0, here->address(0), "host 0"}});
  }
  // Waits for `count` datagrams and returns all that have arrived at `there`.
  std::vector<Message> arrivals(std::size_t count) {
    std::vector<Message> arrived;
    testing::eventually(
        [&] {
          here->flush();
          there->poll(arrived);
          return arrived.size() >= count;
        },
        std::chrono::seconds(10));
    there->poll(arrived);
    return arrived;
  }

  std::unique_ptr<UdpPackets> here, there;
};

TEST_F(PacketsOverUdp, AllOfABurstArriveWholeWithTheirContent) {
  constexpr std::uint32_t kCount = 200;  // several batches; some sizes can be joined into one send
  const auto size = [](std::uint32_t n) { return n < 100 ? 1000 : n * 7 % 1300; };
  for (std::uint32_t n = 0; n < kCount; ++n) {
    Message m = note(n, size(n));
    ASSERT_TRUE(here->try_send(0, m));
  }
  const std::vector<Message> arrived = arrivals(kCount);
  ASSERT_EQ(arrived.size(), kCount);
  EXPECT_TRUE(here->idle());
  for (std::uint32_t n = 0; n < kCount; ++n) {  // loopback keeps their order
    const Header& h = arrived[n].header;
    ASSERT_EQ(h.sequence, n);
    ASSERT_EQ(h.nonce, kNonce);
    ASSERT_EQ(h.bytes, size(n));
    if (h.bytes > 0) {
      ASSERT_EQ(std::memcmp(arrived[n].payload.get(), note(n, size(n)).payload.get(), h.bytes), 0);
    }
  }
  EXPECT_EQ(here->stats().sent, kCount);
  EXPECT_EQ(there->stats().received, kCount);
  EXPECT_EQ(there->stats().strays, 0u);
  EXPECT_EQ(there->stats().dropped, 0u);
}

TEST_F(PacketsOverUdp, KeepsOnlyWordsWhereNothingIsVerified) {
  open(options_for(1500, false));
  Message words = note(1, 500), none = note(2, 500), synthetic = note(3, 500, false);
  words.header.number = 20;
  for (Message* m : {&words, &none, &synthetic}) ASSERT_TRUE(here->try_send(0, *m));
  const std::vector<Message> arrived = arrivals(3);
  ASSERT_EQ(arrived.size(), 3u);
  EXPECT_EQ(std::memcmp(arrived[0].payload.get(), note(1, 500).payload.get(), 20), 0);
  EXPECT_EQ(arrived[1].payload, nullptr);
  EXPECT_EQ(arrived[2].payload, nullptr);
  EXPECT_EQ(arrived[2].header.bytes, 500u);
}

TEST_F(PacketsOverUdp, StraysAreDroppedAndCounted) {
  const auto send_raw = [&](const std::string& bytes) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const auto to = udp::Address::from(there->address(0));
    EXPECT_EQ(sendto(fd, bytes.data(), bytes.size(), 0,
                     reinterpret_cast<const sockaddr*>(&to.bytes), to.size),
              static_cast<ssize_t>(bytes.size()));
    close(fd);
  };
  Header h;
  h.nonce = kNonce;
  h.kind = MessageKind::note;
  h.bytes = 3;
  const auto with = [](Header header, const std::string& payload) {
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + payload;
  };
  std::uint64_t strays = 0;
  const auto expect_stray = [&](const std::string& bytes) {
    send_raw(bytes);
    ++strays;
  };
  expect_stray("");
  expect_stray("port scan");
  expect_stray(with(h, "ab"));
  expect_stray(with(h, "abcd"));
  Header other = h;
  other.nonce ^= 1;
  expect_stray(with(other, "abc"));
  other = h;
  other.kind = MessageKind::data;
  expect_stray(with(other, "abc"));
  other = h;
  other.number = 4;
  expect_stray(with(other, "abc"));
  expect_stray(with(h, std::string(60'000, 'x')));
  send_raw(with(h, "abc"));
  const std::vector<Message> arrived = arrivals(1);
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(std::memcmp(arrived[0].payload.get(), "abc", 3), 0);
  EXPECT_EQ(there->stats().strays, strays);
  EXPECT_EQ(there->stats().received, 1u);
}

TEST_F(PacketsOverUdp, TheLargestFitsTheMtuAndALargerOneIsRefused) {
  for (const std::uint32_t mtu : {576u, 9000u, 65535u}) {
    open(options_for(mtu));
    EXPECT_EQ(here->most_bytes(), mtu - 28 - sizeof(Header));
    Message largest = note(1, here->most_bytes());
    ASSERT_TRUE(here->try_send(0, largest));
    ASSERT_EQ(arrivals(1).size(), 1u);
    Message larger = note(2, here->most_bytes() + 1);
    EXPECT_FALSE(here->try_send(0, larger));
    EXPECT_NE(here->failure().find("at most " + std::to_string(mtu - 92) + " bytes fit"),
              std::string::npos);
  }
}

TEST_F(PacketsOverUdp, AFullSocketBufferIsNoRoomAndNoError) {
  kernel_takes = [](const mmsghdr*, int) { return -EAGAIN; };
  std::uint32_t taken = 0;
  for (Message m = note(0, 100); taken < 1000 && here->try_send(0, m); m = note(taken, 100))
    ++taken;
  EXPECT_EQ(taken, udp::kBatch);
  Message kept = note(taken, 100);
  EXPECT_FALSE(here->try_send(0, kept));
  EXPECT_NE(kept.payload, nullptr);
  EXPECT_EQ(here->failure(), "");
  EXPECT_FALSE(here->idle());
  EXPECT_GT(here->stats().again, 0u);
  EXPECT_EQ(here->stats().sent, 0u);
  kernel_takes = {};
  EXPECT_TRUE(here->try_send(0, kept));
  const std::vector<Message> arrived = arrivals(taken + 1);
  ASSERT_EQ(arrived.size(), taken + 1);
  for (std::uint32_t n = 0; n <= taken; ++n) EXPECT_EQ(arrived[n].header.sequence, n);
}

TEST_F(PacketsOverUdp, WhatTheKernelTakesOnlyInPartGoesOnFromThere) {
  bool full = false;  // takes one message, then none until the next call
  kernel_takes = [&](const mmsghdr*, int) {
    full = !full;
    return full ? 1 : -EAGAIN;
  };
  constexpr std::uint32_t kCount = 40;
  for (std::uint32_t n = 0; n < kCount; ++n) {
    Message m = note(n, n % 2 == 0 ? 100 : 200);  // sizes alternate: no two can be joined
    ASSERT_TRUE(here->try_send(0, m));
  }
  const std::vector<Message> arrived = arrivals(kCount);
  ASSERT_EQ(arrived.size(), kCount);
  for (std::uint32_t n = 0; n < kCount; ++n) {
    EXPECT_EQ(arrived[n].header.sequence, n);
    EXPECT_EQ(std::memcmp(arrived[n].payload.get(), note(n, 100).payload.get(), 100), 0);
  }
  EXPECT_TRUE(here->idle());
}

TEST_F(PacketsOverUdp, ABatchLeavesInFewCalls) {
  calls = 0;
  for (std::uint32_t n = 0; n < udp::kBatch; ++n) {
    Message m = note(n, 1000);
    ASSERT_TRUE(here->try_send(0, m));
  }
  EXPECT_EQ(calls, 0);
  here->flush();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(arrivals(udp::kBatch).size(), udp::kBatch);
}

TEST_F(PacketsOverUdp, WhereTheInterfaceCannotCutEachLeavesAlone) {
  kernel_takes = [](const mmsghdr* m, int count) {
    return m[0].msg_hdr.msg_controllen > 0 ? -EIO : count;
  };
  for (std::uint32_t n = 0; n < 30; ++n) {
    Message m = note(n, 1000);
    ASSERT_TRUE(here->try_send(0, m));
  }
  EXPECT_EQ(arrivals(30).size(), 30u);
  EXPECT_EQ(here->stats().refused, 0u);
  EXPECT_EQ(here->failure(), "");
}

TEST_F(PacketsOverUdp, WhatAFirewallKeepsBackIsLostAndCounted) {
  kernel_takes = [](const mmsghdr* m, int count) {
    return bytes_of_message(m[0]) == sizeof(Header) + 33 ? -EPERM : count;
  };
  Message kept = note(1, 33), other = note(2, 44);
  ASSERT_TRUE(here->try_send(0, kept));
  here->flush();
  ASSERT_TRUE(here->try_send(0, other));
  const std::vector<Message> arrived = arrivals(1);
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived[0].header.sequence, 2u);
  EXPECT_EQ(here->stats().refused, 1u);
  EXPECT_EQ(here->stats().sent, 1u);
  EXPECT_EQ(here->failure(), "");
  EXPECT_NE(here->trouble(0), "");
}

TEST_F(PacketsOverUdp, AnArrivalMakesTheDescriptorReadable) {
  pollfd fd{there->wait_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&fd, 1, 0), 0);
  Message m = note(1, 10);
  ASSERT_TRUE(here->try_send(0, m));
  here->flush();
  EXPECT_EQ(::poll(&fd, 1, 10'000), 1);
  std::vector<Message> arrived;
  there->poll(arrived);
  EXPECT_EQ(arrived.size(), 1u);
  EXPECT_EQ(::poll(&fd, 1, 0), 0);
}

TEST_F(PacketsOverUdp, WhatFindsNoRoomAtTheReceiverIsCountedThere) {
  constexpr std::uint32_t kCount = 2000;  // 60 kB each: more than any receive buffer
  open(options_for(65535));
  for (std::uint32_t n = 0; n < kCount; ++n) {
    Message m = note(n, 60'000, false);
    ASSERT_TRUE(here->try_send(0, m));
  }
  here->flush();
  std::vector<Message> arrived;
  while (there->poll(arrived) > 0) {
  }
  EXPECT_LT(arrived.size(), kCount);
  ASSERT_TRUE(there->stats().dropped.has_value());
  EXPECT_EQ(arrived.size() + *there->stats().dropped, kCount);
}

TEST_F(PacketsOverUdp, SeveralSocketsOfAnOwnerSendAndReceive) {
  UdpOptions two = options_for();
  two.sockets.push_back({"127.0.0.2", ""});
  here = UdpPackets::open(two);
  there = UdpPackets::open(two);
  here->connect({{0, there->address(1), "a"}, {1, there->address(0), "b"}});
  for (std::uint32_t n = 0; n < 10; ++n) {
    Message m = note(n, 100);
    ASSERT_TRUE(here->try_send(static_cast<int>(n % 2), m));
  }
  std::vector<Message> arrived = arrivals(10);
  EXPECT_EQ(arrived.size(), 10u);
  EXPECT_TRUE(here->idle());
}

TEST(PacketSockets, AreBoundToTheChosenAddressAndNoOther) {
  UdpOptions o = options_for();
  o.sockets = {{"127.0.0.5", ""}};
  EXPECT_EQ(UdpPackets::open(o)->address(0).substr(0, 10), "127.0.0.5 ");
  for (const char* wrong : {"", "192.0.2.1", "nowhere"}) {
    o.sockets = {{wrong, ""}};
    try {
      UdpPackets::open(o);
      ADD_FAILURE() << wrong;
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), 3);
      EXPECT_NE(std::string(e.what()).find("fabric.bind"), std::string::npos) << e.what();
    }
  }
}

// ---- The fabric of messages over datagrams (fabric.kind: packets)

class MessagesOverUdp : public ::testing::Test {
 protected:
  ~MessagesOverUdp() override { kernel_refuses = {}; }

  void open(const std::string& address) {
    FabricOptions options;
    options.endpoints = {{address, ""}};
    options.nonce = kNonce;
    here = open_datagram_fabric(options);
    there = open_datagram_fabric(options);
    here->connect({{0, there->address(0), "host 1", 0}});
    there->connect({{0, here->address(0), "host 0", 0}});
  }

  std::unique_ptr<NetworkFabric> here, there;
  std::vector<Message> arrived;
};

TEST_F(MessagesOverUdp, AnAcknowledgementThatFoundNoRoomLeavesLater) {
  open("127.0.0.1");
  Message m = note(1, 100);
  ASSERT_TRUE(here->try_send(0, m));
  kernel_refuses = [](int, const msghdr&) { return EAGAIN; };
  there->poll(arrived);
  ASSERT_EQ(arrived.size(), 1u);
  kernel_refuses = {};
  there->poll(arrived);
  here->poll(arrived);
  EXPECT_TRUE(here->idle());
}

TEST_F(MessagesOverUdp, FillPacketsOfTheMtuThatRoutersMayNotCut) {
  for (const std::string address : {"127.0.0.1", "::1"}) {
    const bool v6 = address == "::1";
    if (v6 && !is_address_here(address)) GTEST_SKIP() << "no IPv6";
    open(address);
    std::size_t largest = 0;
    kernel_refuses = [&](int fd, const msghdr& message) {
      largest = std::max(largest, bytes_of_message(message));
      int whole = -1;
      socklen_t size = sizeof whole;
      getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
                 &whole, &size);
      EXPECT_EQ(whole, IP_PMTUDISC_PROBE);
      return 0;
    };
    Message m = note(1, 10'000, false);
    ASSERT_TRUE(here->try_send(0, m));
    EXPECT_EQ(largest, v6 ? 1500u - 48 : 1500u - 28);
  }
}

TEST_F(MessagesOverUdp, ThatNoInterfaceCarriesAreNamedWithWhatToDo) {
  open("127.0.0.1");
  std::size_t refused = 0;
  kernel_refuses = [&](int, const msghdr& message) {
    if (bytes_of_message(message) <= 1372) return 0;
    refused = bytes_of_message(message);
    return EMSGSIZE;
  };
  Message m = note(1, 10'000, false);
  here->try_send(0, m);
  EXPECT_EQ(here->failure(),
            "a packet of " + std::to_string(refused + 28) +
                " bytes cannot be sent to host 1 (127.0.0.1): Message too long; set "
                "fabric.packets.mtu (1500) to what every interface and switch between them carries "
                "(ip link shows it), or raise theirs (ip link set DEVICE mtu 1500)");
}

// The probe has the CPU of the first engine thread, but others have theirs.
TEST_F(MessagesOverUdp, AreProbedByAThreadThatStaysAwakeWhereTheRunsThreadsDo) {
  const std::vector<int> cpus = cpus_of_this_thread();
  if (cpus.size() < 2) GTEST_SKIP() << "one core";
  const auto outcomes = testing::run_processes(2, [&](const World& world) {
    testing::SmallJob small(2, 1, FabricKind::packets);
    small.spec.run.probe_ms = 50;  // time enough to have to wait
    small.spec.fabric.packets.mtu = 65535;
    small.collective(Func::all_reduce, 1);
    LoadedJob job;
    job.spec = small.spec;
    const Cluster cluster(job.spec, small.workload, world.size);
    const Flows flows(job.spec, small.workload, cluster);
    const auto control = Control::meet(world);
    looks = 0;
    assemble(job, cluster, flows, *control, nullptr, {cpus.front()});
    control->close();
    return std::string(looks > 0 ? "awake" : "asleep");
  });
  testing::expect_all_ok(outcomes);
  for (const auto& o : outcomes) EXPECT_EQ(o.said, "awake");
}

// ---- Set-up

// Opens the packets of two processes; returns the error, or the content of the first packet.
std::string opened(const World& world, std::uint32_t mtu = 9000) {
  testing::SmallJob job(2, 1, FabricKind::ofi);
  job.spec.fabric.packets.mtu = mtu;
  job.collective(Func::all_reduce, 1);
  const Cluster cluster(job.spec, job.workload, world.size);
  const Flows flows(job.spec, job.workload, cluster);
  const auto control = Control::meet(world);
  std::string said;
  try {
    const auto packets = open_packets(job.spec, flows, *control, kNonce,
                                      std::vector<EndpointBinding>(2, {"127.0.0.1", ""}));
    Message m = note(42, packets[0]->most_bytes());
    EXPECT_TRUE(packets[0]->try_send(0, m));
    packets[0]->flush();
    std::vector<Message> arrived;
    testing::eventually(
        [&] {
          packets[0]->poll(arrived);
          std::erase_if(arrived,
                        [](const Message& a) { return a.header.kind != MessageKind::note; });
          return !arrived.empty();
        },
        std::chrono::seconds(10));
    said = arrived.empty() ? "nothing" : std::to_string(arrived[0].header.sequence);
    control->all_gather("");
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 3);
    said = e.what();
  }
  control->close();
  return said;
}

TEST(PacketSetup, WaysOfTheLargestPacketsAreThere) {
  const auto outcomes = testing::run_processes(2, [](const World& w) { return opened(w); });
  testing::expect_all_ok(outcomes);
  for (const auto& o : outcomes) EXPECT_EQ(o.said, "42");
}

TEST(PacketSetup, HellosThatAreLostAreSentAgain) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    int lost = 0;
    kernel_takes = [&](const mmsghdr*, int count) { return lost++ < 3 ? -EPERM : count; };
    return opened(world);
  });
  testing::expect_all_ok(outcomes);
  for (const auto& o : outcomes) EXPECT_EQ(o.said, "42");
}

TEST(PacketSetup, APathThatCarriesNoUdpIsNamedWithWhatToDo) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    if (world.rank == 1) kernel_takes = [](const mmsghdr*, int) { return -EPERM; };
    return opened(world);
  });
  testing::expect_all_ok(outcomes);
  for (const auto& o : outcomes) {
    EXPECT_NE(o.said.find("none gets from host 1 (127.0.0.1) to host 0 (127.0.0.1) (the sender's "
                          "kernel says: Operation not permitted); let UDP pass"),
              std::string::npos)
        << o.said;
  }
}

TEST(PacketSetup, AnMtuThatDoesNotPassIsNamedWithWhatToDo) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    if (world.rank == 0)
      kernel_takes = [](const mmsghdr* m, int count) {
        return bytes_of_message(m[0]) > 1472 ? -EMSGSIZE : count;
      };
    return opened(world);
  });
  testing::expect_all_ok(outcomes);
  for (const auto& o : outcomes) {
    EXPECT_NE(o.said.find("none of 9000 bytes (fabric.packets.mtu) gets from host 0"),
              std::string::npos)
        << o.said;
    EXPECT_NE(o.said.find("while small ones do; set fabric.packets.mtu"), std::string::npos);
  }
}

// A worker's socket, and a socket in place of the switch.
class PacketsToASwitch : public ::testing::Test {
 protected:
  PacketsToASwitch() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(there.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(there.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    SwitchSocket one;
    one.binding.address = "127.0.0.1";
    one.switch_address = "127.0.0.1";
    one.switch_port = ntohs(address.sin_port);
    here = open_switch_sockets({one}, 1500);
  }
  ~PacketsToASwitch() override { kernel_takes = {}; }

  void send(const std::vector<std::uint64_t>& sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      Message m = note(static_cast<std::uint32_t>(i), sizes[i]);
      ASSERT_TRUE(here->try_send(0, m));
    }
    here->flush();
  }
  // Sizes of what arrives; each datagram has its own bytes.
  std::vector<std::uint64_t> arrived(const std::vector<std::uint64_t>& sent) {
    std::vector<std::uint64_t> sizes;
    std::array<std::byte, 2000> bytes;
    for (ssize_t n; (n = recv(there.get(), bytes.data(), bytes.size(), MSG_DONTWAIT)) >= 0;) {
      const auto number = static_cast<std::uint32_t>(sizes.size());
      sizes.push_back(static_cast<std::uint64_t>(n));
      const Message expected = note(number, sent.at(number));
      EXPECT_EQ(std::memcmp(bytes.data(), expected.payload.get(),
                            std::min(sizes.back(), sent.at(number))),
                0);
    }
    return sizes;
  }

  const Fd there = Fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  std::unique_ptr<Packets> here;
};

TEST_F(PacketsToASwitch, OfOneSizeAreCutByTheKernel) {
  std::vector<std::uint64_t> sizes(40, 300);
  for (const std::uint64_t size : {200, 300, 300, 100, 100, 64}) sizes.push_back(size);
  std::vector<std::size_t> joined;
  kernel_takes = [&](const mmsghdr* m, int count) {
    for (int i = 0; i < count; ++i) joined.push_back(m[i].msg_hdr.msg_iovlen);
    return count;
  };
  send(sizes);
  EXPECT_EQ(arrived(sizes), sizes);
  EXPECT_EQ(here->stats().sent, sizes.size());
  EXPECT_EQ(here->stats().refused, 0u);
  if (!udp::can_cut(there.get())) GTEST_SKIP() << "this kernel does not cut datagrams";
  EXPECT_EQ(joined, (std::vector<std::size_t>{41, 3, 2}));
}

TEST_F(PacketsToASwitch, LeaveOneByOneWhereAnInterfaceCannotCut) {
  kernel_takes = [](const mmsghdr* m, int count) {
    return m[0].msg_hdr.msg_iovlen > 1 ? -EIO : count;
  };
  const std::vector<std::uint64_t> sizes(30, 300);
  send(sizes);
  EXPECT_EQ(arrived(sizes), sizes);
  EXPECT_EQ(here->failure(), "");
  EXPECT_EQ(here->stats().sent, 30u);
  EXPECT_EQ(here->stats().refused, 0u);
}

TEST_F(PacketsToASwitch, AreLostWhereNobodyListensAndJoinedAfterwards) {
  if (!udp::can_cut(there.get())) GTEST_SKIP() << "this kernel does not cut datagrams";
  std::size_t joined = 0;
  bool listens = false;
  kernel_takes = [&](const mmsghdr* m, int count) {
    joined = m[0].msg_hdr.msg_iovlen;
    return listens ? count : -ECONNREFUSED;
  };
  const std::vector<std::uint64_t> sizes(30, 300);
  send(sizes);
  EXPECT_EQ(arrived(sizes).size(), 0u);
  EXPECT_EQ(here->stats().refused, 30u);
  listens = true;
  send(sizes);
  EXPECT_EQ(arrived(sizes), sizes);
  EXPECT_EQ(joined, 30u);
}

}  // namespace
}  // namespace ghostrank
