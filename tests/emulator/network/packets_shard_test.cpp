// How a shard sends and takes packets: in the order of their turns, with a bound on packets that
// find no room, and only packets of its segment.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/emulator/fabric/fabric_double.h"
#include "tests/emulator/plugins.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

std::shared_ptr<const Algorithms> agents_plugin() {
  static const auto kOwn = testing::load_plugins({GHOSTRANK_AGENTS_PLUGIN});
  return kOwn;
}

// Sends nowhere; a test decides when there is room and which packets arrive.
class PacketsDouble final : public Packets {
 public:
  bool try_send(int flow, Message& datagram) override {
    if (!room()) return false;
    EXPECT_EQ(flow, 0);
    sent.push_back(std::move(datagram));
    return true;
  }
  void flush() override {}
  int poll(std::vector<Message>& arrived) override {
    const std::size_t before = arrived.size();
    on_poll(arrived);
    return static_cast<int>(arrived.size() - before);
  }
  int wait_fd() const override { return -1; }
  bool idle() const override { return true; }
  std::uint64_t most_bytes() const override { return 1400; }
  const std::string& failure() const override { return failure_text; }
  PacketStats stats() const override { return {.dropped = 0}; }

  std::function<bool()> room = [] { return true; };
  std::function<void(std::vector<Message>&)> on_poll;
  std::vector<Message> sent;
  std::string failure_text;
};

constexpr std::uint64_t kSegment = 3;

// The two ranks are on host 0; the test plays the server on host 1.
SmallJob ranks_and_server(const std::string& scheme, std::uint64_t blocks) {
  SmallJob job(2, 1, FabricKind::ofi);
  job.spec.collectives.own = agents_plugin();
  job.spec.collectives.algorithm(Func::all_reduce) = "test/" + scheme;
  job.spec.cluster.servers.count = 1;
  job.collective(Func::all_reduce, 256 * blocks);
  return job;
}

// Plays host 0 until on_poll() sets `shared.stop`. `before` gets `shared` before the start.
struct Played {
  explicit Played(const SmallJob& job, PacketsDouble& packets,
                  const std::function<void(ShardShared&)>& before)
      : cluster(job.spec, job.workload, 2),
        flows(job.spec, job.workload, cluster),
        shard({job.spec,
               job.workload,
               cluster,
               Host(0),
               0,
               flows,
               fabric,
               0,
               {},
               0,
               "",
               {},
               &packets}) {
    shared.fabrics = {&fabric};
    before(shared);
    Segment segment;
    segment.number = kSegment;
    shard.prepare(segment, shared);
    shard.play(Clock::real(monotonic_ns(), 1));
  }
  testing::FabricDouble fabric;
  Cluster cluster;
  Flows flows;
  ShardShared shared{1};
  Shard shard;
};

// The server's answer to a rank's packet.
Message answer_to(const Message& m) {
  Message answer;
  answer.header = m.header;
  answer.header.source = 2;  // the server is the party after the ranks
  answer.header.target = m.header.source;
  answer.header.channel = static_cast<std::uint16_t>((m.header.channel & 0xff00) | 2);
  return answer;
}

TEST(PacketsOfAShard, WaitForRoomInTheOrderOfTheirTurnsAndThenAllLeave) {
  constexpr std::uint64_t kBlocks = 50;
  SmallJob job = ranks_and_server("with-words", kBlocks);
  job.spec.cluster.nic = {10e9, kPicosPerMicro};
  PacketsDouble packets;
  int polls = 0;
  packets.room = [&] { return polls > 200 && polls % 3 == 0; };
  Played played(job, packets, [&](ShardShared& shared) {
    packets.on_poll = [&](std::vector<Message>&) {
      ++polls;
      if (packets.sent.size() == 2 * kBlocks) shared.stop = true;
    };
  });
  EXPECT_EQ(played.shared.failure, "");
  ASSERT_EQ(packets.sent.size(), 2 * kBlocks);
  std::vector<Picoseconds> last(2, -1);
  for (const Message& m : packets.sent) {
    Picoseconds& before = last.at(m.header.source);
    EXPECT_GT(m.header.start, before);  // each rank has its own NIC
    before = m.header.start;
    EXPECT_EQ(m.header.offset, kSegment);
    EXPECT_EQ(m.header.kind, MessageKind::note);
  }
  EXPECT_EQ(played.shard.stats().packets.sent, 2 * kBlocks);
  EXPECT_EQ(played.shared.packets_sent, 2 * kBlocks);
  EXPECT_EQ(played.shared.notes_open, 0);
}

// Both ranks have 3,000 packets to send, and the outbox of a packet flow holds 1,024.
TEST(PacketsOfAShard, AreNoMoreThanTheirOutboxHolds) {
  constexpr std::uint64_t kBlocks = 3000;
  SmallJob job = ranks_and_server("with-words", kBlocks);
  job.spec.cluster.nic = {0, 0};
  PacketsDouble packets;
  std::int64_t most = 0;
  int polls = 0;
  packets.room = [&] { return polls > 20; };
  Played played(job, packets, [&](ShardShared& shared) {
    packets.on_poll = [&](std::vector<Message>&) {
      ++polls;
      most = std::max(most, shared.notes_open.load());
      if (packets.sent.size() == 2 * kBlocks) shared.stop = true;
    };
  });
  EXPECT_EQ(played.shared.failure, "");
  EXPECT_EQ(packets.sent.size(), 2 * kBlocks);
  EXPECT_EQ(most, 1024);
}

TEST(PacketsOfAShard, ThatAreNotOfItsSegmentOrNotForItAreStrays) {
  SmallJob job = ranks_and_server("in-packets", 1);
  job.spec.cluster.servers.count = 1;
  PacketsDouble packets;
  bool brought = false;
  Played played(job, packets, [&](ShardShared& shared) {
    shared.at_rest = true;
    packets.on_poll = [&](std::vector<Message>& arrived) {
      if (packets.sent.size() < 2 || std::exchange(brought, true)) return;
      for (std::size_t i = 0; i < 2; ++i) {
        const Message& m = packets.sent[i];
        for (const std::uint64_t segment : {kSegment - 1, kSegment + 1}) {
          arrived.push_back(answer_to(m));
          arrived.back().header.offset = segment;
        }
        arrived.push_back(answer_to(m));
        arrived.back().header.target = 2;  // the server, on the other host
        arrived.push_back(answer_to(m));
        arrived.back().header.group = 77;
        arrived.push_back(answer_to(m));
        arrived.back().header.kind = MessageKind::probe;  // a hello of the set-up
        arrived.push_back(answer_to(m));
      }
    };
  });
  EXPECT_EQ(played.shared.failure, "");  // both ranks have ended
  EXPECT_EQ(played.shard.stats().packets.strays, 8u);
  EXPECT_EQ(played.shard.stats().packets.received, 2u);
  EXPECT_EQ(played.shared.packets_received, 2u);
}

// Of a payload's bytes beyond Header::number nothing is kept, and a scheme's own format reads all.
TEST(PacketsOfAShard, OfAFormatOfTheirOwnAreWholeOrStrays) {
  SmallJob job = ranks_and_server("in-packets", 1);
  job.spec.collectives.algorithm(Func::all_reduce) = "switchml/switchml";
  PacketsDouble packets;
  bool brought = false;
  Played played(job, packets, [&](ShardShared& shared) {
    packets.on_poll = [&](std::vector<Message>& arrived) {
      if (std::exchange(brought, !packets.sent.empty())) shared.stop = true;
      if (packets.sent.empty() || shared.stop) return;
      for (const bool whole : {false, true}) {
        const Message& m = packets.sent[0];
        Message& answer = arrived.emplace_back(answer_to(m));
        answer.payload = std::make_unique<std::byte[]>(m.header.bytes);
        std::copy_n(m.payload.get(), m.header.bytes, answer.payload.get());
        if (!whole) answer.header.number = 4;
      }
    };
  });
  EXPECT_EQ(played.shard.stats().packets.strays, 1u);
  EXPECT_EQ(played.shard.stats().packets.received, 1u);
}

// One block is answered, again and again, the other never: ranks and packets are busy for ever.
TEST(PacketsOfAShard, ThatTellNothingNewDoNotKeepItFromBeingQuiet) {
  SmallJob job = ranks_and_server("in-packets", 2);
  job.spec.run.stall_timeout_s = 0.2;
  PacketsDouble packets;
  ShardShared::Quiet told;
  const std::int64_t began = monotonic_ns();
  Played played(job, packets, [&](ShardShared& shared) {
    packets.on_poll = [&](std::vector<Message>& arrived) {
      for (Message& m : packets.sent)
        if (m.header.actor == 0) arrived.push_back(answer_to(m));
      packets.sent.clear();
      const std::lock_guard lock(shared.mutex);
      told = shared.quiet.at(0);
      if (told.is || monotonic_ns() - began > 10'000'000'000) shared.stop = true;
    };
  });
  EXPECT_EQ(played.shared.failure, "");
  EXPECT_TRUE(told.is);
  EXPECT_NE(told.stuck.find("rank 0 on host 0 in allreduce #0 'op' of group all (in-packets) "
                            "waits for its agents"),
            std::string::npos)
      << told.stuck;
  EXPECT_LT(told.since, 100 * kPicosPerMilli);
}

TEST(PacketsOfAShard, ThatCannotBeSentAnyMoreEndTheRun) {
  SmallJob job = ranks_and_server("in-packets", 1);
  PacketsDouble packets;
  Played played(job, packets, [&](ShardShared&) {
    packets.on_poll = [&](std::vector<Message>&) { packets.failure_text = "no interface"; };
  });
  EXPECT_EQ(played.shared.failure, "no interface");
}

TEST(PacketsOfAShard, NeedWaysThatThePlanKnowsOf) {
  SmallJob job = ranks_and_server("in-packets", 1);
  const Cluster cluster(job.spec, job.workload, 2);
  EXPECT_TRUE(Flows(job.spec, job.workload, cluster).with_packets());
  job.spec.collectives.algorithm(Func::all_reduce) = "test/at-server";
  const Cluster reliable(job.spec, job.workload, 2);
  EXPECT_FALSE(Flows(job.spec, job.workload, reliable).with_packets());
}

}  // namespace
}  // namespace ghostrank
