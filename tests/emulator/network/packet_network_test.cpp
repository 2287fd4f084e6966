// The network played packet by packet, beside closed forms: idle paths, incasts that overflow,
// pauses and whom they hold up, fair queues, congestion control, and what is sent again.
#include "emulator/network/packet_network.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

using Port = PacketNetwork::Port;
using PacketConnection = PacketNetwork::Connection;

constexpr std::uint32_t kPayload = 1000;
constexpr double kPsPerByte = 80;                  // 100 Gb/s
constexpr Picoseconds kPacket = kPayload * 80;     // on such a wire
constexpr Picoseconds kWire = 1 * kPicosPerMicro;  // its latency

const CongestionControl& kDcqcn = congestion_controls()[0];
const CongestionControl& kNone = congestion_controls()[1];

QueueSpec queues(bool pause, Scheduling scheduling = Scheduling::fifo,
                 const CongestionControl& control = kNone) {
  QueueSpec q;
  q.pause = pause;
  q.scheduling = scheduling;
  q.control = &control;
  return q;
}

// Ports of one speed, or of the speeds given.
PacketNetwork network(int ports, const QueueSpec& q, Picoseconds latency = kWire,
                      const std::map<Port, double>& ps_per_byte = {}) {
  PacketNetwork::Setup setup;
  setup.ports.assign(ports, {kPsPerByte, latency, {}});
  for (const auto& [port, ps] : ps_per_byte) setup.ports[port].ps_per_byte = ps;
  setup.payload = kPayload;
  setup.queues = q;
  return PacketNetwork(setup);
}

// Plays until nothing is left to do. Returns when each message came; each comes once.
std::map<std::uint32_t, Picoseconds> play(PacketNetwork& net,
                                          Picoseconds until = PacketNetwork::kNever) {
  std::map<std::uint32_t, Picoseconds> came;
  while (net.next() < until && !net.gave_up())
    for (const PacketNetwork::Arrival& a : net.play(until))
      EXPECT_TRUE(came.emplace(a.message, a.at).second) << a.message;
  EXPECT_FALSE(net.gave_up());
  return came;
}

std::uint64_t drops(const PacketNetwork& net, int ports) {
  std::uint64_t sum = 0;
  for (Port p = 0; p < static_cast<Port>(ports); ++p) sum += net.count(p).queue.drops;
  return sum;
}

TEST(PacketNetwork, PassesAMessageAloneStoreAndForward) {
  for (const int hops : {2, 3, 5}) {
    PacketNetwork net = network(hops, queues(true));
    std::vector<Port> path;
    for (int p = 0; p < hops; ++p) path.push_back(p);
    const PacketConnection c = net.connect(path);
    net.send(c, 250 * kPayload, 1, 7);
    net.send(c, 0, 2, 7);
    const auto came = play(net);
    const Picoseconds alone = 7 + (250 + hops - 1) * kPacket + hops * kWire;
    EXPECT_EQ(came.at(1), alone);
    EXPECT_EQ(came.at(2), alone);  // an empty packet takes no time
    EXPECT_EQ(net.packets(), 251u);
    EXPECT_EQ(net.again(), 0u);
    EXPECT_EQ(net.count(hops - 1).bytes, 250u * kPayload);
    EXPECT_EQ(net.count(hops - 1).messages, 2u);
  }
}

// N NICs, a switch, and the port from it to the receiver, which is the last one.
void incast(PacketNetwork& net, int senders, std::uint64_t bytes) {
  for (int s = 0; s < senders; ++s) {
    const std::vector<Port> path{static_cast<Port>(s), static_cast<Port>(senders)};
    net.send(net.connect(path), bytes, s, 0);
  }
}

TEST(PacketNetwork, OverflowsInAnIncastByWhatTheBufferAndTheDrainLeave) {
  for (const int senders : {2, 5, 16})
    for (const std::uint64_t buffer : {20ull * kPayload, 100ull * kPayload}) {
      QueueSpec q = queues(false);
      q.buffer = buffer;
      q.retransmit = 100 * kPicosPerSecond;
      // The wires are so long that no answer is back before all has been sent.
      PacketNetwork net = network(senders + 1, q, 1000 * kPicosPerMicro);
      const std::uint64_t burst = 200 * kPayload;
      incast(net, senders, burst);
      play(net, 1200 * kPicosPerMicro);
      // While the burst comes, the port sends all the time except during the first packet.
      const auto drained = static_cast<std::int64_t>(burst - kPayload);
      const std::int64_t lost =
          static_cast<std::int64_t>(net.count(senders).queue.drops * kPayload);
      const std::int64_t expected =
          std::max<std::int64_t>(0, static_cast<std::int64_t>(senders * burst - buffer) - drained);
      EXPECT_NEAR(static_cast<double>(lost), static_cast<double>(expected), senders * kPayload)
          << senders << ' ' << buffer;
      EXPECT_LE(net.count(senders).queue.longest, buffer);
      EXPECT_EQ(net.again(), 0u);
    }
}

TEST(PacketNetwork, LosesNothingWithPauses) {
  for (const int senders : {2, 5, 16})
    for (const bool least : {true, false}) {
      QueueSpec q = queues(true);
      q.buffer =
          least ? PacketNetwork::least_buffer({kPsPerByte, kWire, {}}, kPayload) : 200 * kPayload;
      q.retransmit = 10 * kPicosPerSecond;
      PacketNetwork net = network(senders + 1, q);
      incast(net, senders, 1000 * kPayload);
      const auto came = play(net);
      EXPECT_EQ(drops(net, senders + 1), 0u);
      EXPECT_EQ(net.again(), 0u);
      EXPECT_EQ(came.size(), static_cast<std::size_t>(senders));
      Picoseconds last = 0;
      for (const auto& [message, at] : came) last = std::max(last, at);
      // A larger buffer still holds something when a paused sender's next packet comes, so the
      // receiver's port always has something to send.
      const Picoseconds busy = (senders * 1000 + 1) * kPacket + 2 * kWire;
      EXPECT_GE(last, busy);
      if (!least) {
        EXPECT_EQ(last, busy);
      }
      EXPECT_GT(net.count(0).queue.pauses, 0u);
      EXPECT_GT(net.count(0).queue.paused, 0);
    }
}

// Without pauses the least buffer of the test before would overflow.
TEST(PacketNetwork, LosesThePacketsForWhichABufferIsTooSmall) {
  QueueSpec q = queues(false);
  q.buffer = PacketNetwork::least_buffer({kPsPerByte, kWire, {}}, kPayload);
  PacketNetwork net = network(6, q);
  incast(net, 5, 1000 * kPayload);
  const auto came = play(net);
  EXPECT_EQ(came.size(), 5u);
  EXPECT_GT(drops(net, 6), 0u);
  EXPECT_GT(net.again(), 0u);
  std::uint64_t again = 0;
  for (Port nic = 0; nic < 5; ++nic) again += net.count(nic).queue.again;
  EXPECT_EQ(again, net.again());
}

// Senders 0 to N-1 send to one host, the victim N to another one, all over the link N+1.
//
//   senders, victim ──> leaf ──N+1──> leaf ──N+2──> the host of all
//                                          ──N+3──> the victim's
struct Victim {
  int senders;
  PacketNetwork net;
  Victim(int n, const QueueSpec& q) : senders(n), net(network(n + 4, q, kWire, {{n + 1, 10.0}})) {}

  // Returns the victim's share of its NIC's rate, while all send.
  double share() {
    const Port link = senders + 1;
    for (Port s = 0; s <= static_cast<Port>(senders); ++s) {
      const bool victim = s == static_cast<Port>(senders);
      const std::vector<Port> path{s, link, link + (victim ? 2u : 1u)};
      net.send(net.connect(path), 100'000 * kPayload, s, 0);
    }
    const Picoseconds from = 1000 * kPicosPerMicro, until = 3000 * kPicosPerMicro;
    play(net, from);
    const std::uint64_t before = net.count(link + 2).bytes;
    play(net, until);
    const auto bytes = static_cast<double>(net.count(link + 2).bytes - before);
    return bytes * kPsPerByte / static_cast<double>(until - from);
  }
};

TEST(PacketNetwork, HoldsUpAVictimBehindPausedPackets) {
  for (const int senders : {3, 6}) {
    QueueSpec q = queues(true);
    q.buffer = 800 * kPayload;
    q.retransmit = kPicosPerSecond;
    Victim blocked(senders, q);
    // The link's queue is first come, first served, and each NIC is paused as long as the others
    // that fill it: the victim is as fast as each of them.
    EXPECT_NEAR(blocked.share(), 1.0 / senders, 0.01 / senders) << senders;
    EXPECT_EQ(drops(blocked.net, senders + 4), 0u);

    // Without pauses the others' packets are lost, and the link is wide enough for all.
    q.pause = false;
    Victim free(senders, q);
    EXPECT_NEAR(free.share(), 1.0, 0.01) << senders;
    EXPECT_GT(drops(free.net, senders + 4), 0u);
  }
}

// A long connection over two links, and a short one on each link; the second link has a third of
// the first one's rate: shares 1/6, 5/6 and 1/6.
TEST(PacketNetwork, SharesMaxMinFairlyWithFairQueuesAndWindows) {
  QueueSpec q = queues(false, Scheduling::fair);
  q.buffer = 1 << 20;
  q.window = 128 * kPayload;
  PacketNetwork net = network(8, q, kWire, {{4, 3 * kPsPerByte}});
  const std::vector<std::vector<Port>> paths{{0, 3, 4, 5}, {1, 3, 6}, {2, 4, 7}};
  for (std::uint32_t i = 0; i < 3; ++i) net.send(net.connect(paths[i]), 100'000 * kPayload, i, 0);
  const Picoseconds until = 2000 * kPicosPerMicro;
  play(net, until);
  const auto share = [&](Port last) {
    return static_cast<double>(net.count(last).bytes) * kPsPerByte / static_cast<double>(until);
  };
  EXPECT_NEAR(share(5), 1.0 / 6, 0.01);
  EXPECT_NEAR(share(6), 5.0 / 6, 0.01);
  EXPECT_NEAR(share(7), 1.0 / 6, 0.01);
  EXPECT_EQ(drops(net, 8), 0u);
}

TEST(PacketNetwork, DividesAPortByBytesWhereQueuesAreFair) {
  // Two connections with packets of different sizes, and windows of equal bytes.
  PacketNetwork net = network(3, queues(true, Scheduling::fair));
  const PacketConnection a = net.connect(std::vector<Port>{0, 2}),
                         b = net.connect(std::vector<Port>{1, 2});
  for (int i = 0; i < 4000; ++i) net.send(a, kPayload, i, 0);
  for (int i = 0; i < 16000; ++i) net.send(b, kPayload / 4, 10'000 + i, 0);
  std::map<bool, int> came;
  for (const auto& [message, at] : play(net, 300 * kPicosPerMicro)) ++came[message < 10'000];
  EXPECT_NEAR(came[true] * 4.0 / came[false], 1, 0.02);
}

TEST(PacketNetwork, SlowsSendersDownToTheirShareWithDcqcn) {
  for (const int senders : {2, 8}) {
    QueueSpec q = queues(true, Scheduling::fifo, kDcqcn);
    PacketNetwork net = network(senders + 1, q);
    incast(net, senders, 1'000'000 * std::uint64_t{kPayload});
    play(net, 20'000 * kPicosPerMicro);
    const std::uint64_t before = net.count(senders).bytes;
    const auto paused = [&] {
      std::uint64_t sum = 0;
      for (int s = 0; s < senders; ++s) sum += net.count(s).queue.pauses;
      return sum;
    };
    const std::uint64_t pauses = paused();
    std::vector<std::uint64_t> sent;
    for (int s = 0; s < senders; ++s) sent.push_back(net.count(s).bytes);
    play(net, 40'000 * kPicosPerMicro);
    const double capacity = 20'000.0 * kPicosPerMicro / kPsPerByte;
    EXPECT_GT(static_cast<double>(net.count(senders).bytes - before), 0.9 * capacity);
    for (int s = 0; s < senders; ++s)
      EXPECT_NEAR(static_cast<double>(net.count(s).bytes - sent[s]) * senders / capacity, 1, 0.25)
          << senders;
    EXPECT_EQ(paused(), pauses) << "marks come before pauses";
    EXPECT_GT(net.count(senders).queue.marks, 0u);
    EXPECT_EQ(drops(net, senders + 1), 0u);
  }
}

TEST(PacketNetwork, GivesUpWhereNothingIsEverAcknowledged) {
  QueueSpec q = queues(false);
  q.buffer = kPayload / 2;  // no packet fits
  PacketNetwork net = network(2, q);
  net.send(net.connect(std::vector<Port>{0, 1}), kPayload, 0, 0);
  while (net.next() < PacketNetwork::kNever && !net.gave_up())
    EXPECT_TRUE(net.play(PacketNetwork::kNever).empty());
  EXPECT_EQ(net.gave_up(), 0u);
  EXPECT_EQ(net.count(1).queue.drops, 8u);
}

// Switches in a ring, each of whose NICs sends half around it: each waits for room in the next.
TEST(PacketNetwork, GivesUpWherePortsPauseEachOtherInACircle) {
  constexpr Port kSwitches = 5, kNics = 2 * kSwitches;
  QueueSpec q = queues(true);
  q.buffer = 20 * kPayload;
  PacketNetwork net = network(2 * kNics + kSwitches, q);
  for (Port nic = 0; nic < kNics; ++nic) {
    const Port at = nic / 2, target = (nic + 4) % kNics;
    const std::vector<Port> path{nic, kNics + at, kNics + (at + 1) % kSwitches,
                                 kNics + kSwitches + target};
    net.send(net.connect(path), 2000 * std::uint64_t{kPayload}, nic, 0);
  }
  while (net.next() < PacketNetwork::kNever && !net.gave_up()) net.play(PacketNetwork::kNever);
  ASSERT_TRUE(net.gave_up());
  EXPECT_TRUE(net.paused(*net.gave_up()));
  EXPECT_TRUE(net.in_circle(*net.gave_up()));
}

// Of a hundred NICs each is paused until a slow port has sent a packet of every other one.
TEST(PacketNetwork, GivesUpWherePortsArePausedForLongAndKnowsThatThisIsNoCircle) {
  constexpr Port kSenders = 100;
  QueueSpec q = queues(true);
  q.buffer = 20 * kPayload;
  PacketNetwork net = network(kSenders + 1, q, kWire, {{kSenders, 100 * kPsPerByte}});
  for (Port nic = 0; nic < kSenders; ++nic)
    net.send(net.connect(std::vector<Port>{nic, kSenders}), 2000 * std::uint64_t{kPayload}, nic, 0);
  while (net.next() < PacketNetwork::kNever && !net.gave_up()) net.play(PacketNetwork::kNever);
  ASSERT_TRUE(net.gave_up());
  EXPECT_TRUE(net.paused(*net.gave_up()));
  EXPECT_FALSE(net.in_circle(*net.gave_up()));
}

// Of random networks: every message comes once and in order; with pauses nothing is lost; the same
// calls give the same times.
TEST(PacketNetwork, DeliversInOrderWhateverIsLost) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const int hosts = 2 + static_cast<int>(random() % 6);
    QueueSpec q = queues(random() % 2 == 0, random() % 2 ? Scheduling::fair : Scheduling::fifo,
                         random() % 2 ? kDcqcn : kNone);
    const std::uint64_t least = PacketNetwork::least_buffer({kPsPerByte, kWire, {}}, kPayload);
    q.buffer = q.pause ? least + random() % 50'000 : 4 * kPayload + random() % 50'000;
    q.window = random() % 2 ? 0 : 20 * kPayload;
    q.retransmit = 200 * kPicosPerMicro;
    std::map<std::uint32_t, Picoseconds> first;
    for (int time = 0; time < 2; ++time) {
      std::mt19937 same(seed);
      PacketNetwork net = network(3 * hosts, q);  // NICs, links, ports to NICs
      std::vector<std::vector<std::uint32_t>> sent;
      std::uint32_t messages = 0;
      for (int n = 0; n < 2 * hosts; ++n) {
        const auto from = static_cast<Port>(same() % hosts), to = static_cast<Port>(same() % hosts);
        const std::vector<Port> path{from, static_cast<Port>(hosts + (from + to) % hosts),
                                     static_cast<Port>(2 * hosts + to)};
        const PacketConnection c = net.connect(path);
        sent.emplace_back();
        for (Picoseconds at = 0; sent.back().size() < 10; at += same() % (20 * kPicosPerMicro)) {
          net.send(c, same() % 50'000, messages, at);
          sent.back().push_back(messages++);
        }
      }
      const auto came = play(net);
      ASSERT_EQ(came.size(), messages) << seed;
      for (const auto& connection : sent)
        for (std::size_t i = 1; i < connection.size(); ++i)
          EXPECT_LE(came.at(connection[i - 1]), came.at(connection[i])) << seed;
      if (q.pause) {
        EXPECT_EQ(drops(net, 3 * hosts), 0u) << seed;
      }
      if (time == 0) first = came;
      EXPECT_EQ(first, came) << seed;
    }
  }
}

}  // namespace
}  // namespace ghostrank
