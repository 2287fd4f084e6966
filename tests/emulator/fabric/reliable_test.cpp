// Messages over a channel that loses, doubles and reorders datagrams: all arrive, once, in order
// and whole.
#include "emulator/fabric/reliable.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

constexpr std::size_t kMostInPacket = 200;

struct Misfortune {
  double loss = 0, doubled = 0, late = 0;
};

std::byte content(std::uint32_t message, std::uint64_t at) {
  return static_cast<std::byte>(message * 31 + at * 7);
}

Message message_of(std::uint32_t number, std::uint64_t bytes, bool real) {
  Message m;
  m.header.sequence = number;
  m.header.bytes = bytes & kMostBytes;
  if (!real || bytes == 0) return m;
  m.payload = std::make_unique<std::byte[]>(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) m.payload[i] = content(number, i);
  return m;
}

// One direction of a flow, with a clock that ticks once per datagram.
class Channel {
 public:
  Channel(const Misfortune& fate, unsigned seed, bool keep)
      : fate_(fate), dice_(seed), sender_(kMostInPacket), receiver_(keep) {}

  // Plays until all messages have been acknowledged; returns those that arrived.
  std::vector<Message> play(std::vector<Message> messages) {
    std::vector<Message> arrived;
    std::size_t next = 0;
    for (int turn = 0; turn < 2'000'000 && (next < messages.size() || !sender_.empty()); ++turn) {
      while (next < messages.size() && !sender_.full()) sender_.put(std::move(messages[next++]));
      now_ns_ += 100'000;
      sender_.time_out(now_ns_);
      if (const auto packet = sender_.due()) {
        carry(*packet);
        new_ += !packet->again;
        sender_.left(now_ns_);
      }
      deliver(arrived);
    }
    EXPECT_TRUE(sender_.empty());
    // Each packet is progress once, however often it was sent, came or was acknowledged.
    EXPECT_EQ(receiver_.taken(), new_);
    EXPECT_EQ(acknowledged_, new_);
    return arrived;
  }
  std::uint64_t sent_again() const { return sender_.sent_again(); }

 private:
  struct Datagram {
    std::uint32_t number = 0;
    bool first = false;
    std::vector<std::byte> bytes;
  };
  bool happens(double share) { return std::uniform_real_distribution<>(0, 1)(dice_) < share; }

  void carry(const ReliableSender::Packet& packet) {
    Datagram d{packet.number, packet.header != nullptr, {}};
    if (packet.header) {
      const auto* header = reinterpret_cast<const std::byte*>(packet.header);
      d.bytes.assign(header, header + sizeof(Header));
    }
    const std::vector<std::byte> zeros(packet.bytes);
    const std::byte* payload = packet.payload ? packet.payload : zeros.data();
    d.bytes.insert(d.bytes.end(), payload, payload + packet.bytes);
    EXPECT_LE(d.bytes.size(), kMostInPacket);
    for (int copies = happens(fate_.doubled) ? 2 : 1; copies > 0; --copies)
      if (!happens(fate_.loss))
        under_way_.emplace(now_ns_ + (happens(fate_.late) ? 1'500'000 : 300'000), d);
  }

  // Delivers datagrams whose time has come; their acknowledgements may be lost, too.
  void deliver(std::vector<Message>& arrived) {
    while (!under_way_.empty() && under_way_.begin()->first <= now_ns_) {
      const Datagram d = std::move(under_way_.begin()->second);
      under_way_.erase(under_way_.begin());
      EXPECT_TRUE(receiver_.take(d.number, d.first, d.bytes, arrived));
      if (!happens(fate_.loss))
        acknowledged_ += sender_.acknowledge(receiver_.acknowledgement(), now_ns_);
    }
  }

  const Misfortune fate_;
  std::mt19937 dice_;
  ReliableSender sender_;
  ReliableReceiver receiver_;
  std::multimap<std::int64_t, Datagram> under_way_;
  std::int64_t now_ns_ = 0;
  std::uint64_t new_ = 0, acknowledged_ = 0;  // packets
};

constexpr std::uint64_t kSizesAroundAPacket[] = {0, 1, 136, 137, 200, 5000, 64, 333};

void expect_all(const std::vector<Message>& arrived, std::uint32_t count, bool real) {
  ASSERT_EQ(arrived.size(), count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = kSizesAroundAPacket[i % std::size(kSizesAroundAPacket)];
    ASSERT_EQ(arrived[i].header.sequence, i);
    ASSERT_EQ(arrived[i].header.bytes, bytes);
    ASSERT_EQ(arrived[i].payload != nullptr, real && bytes > 0);
    if (!real) continue;
    for (std::uint64_t b = 0; b < bytes; ++b) ASSERT_EQ(arrived[i].payload[b], content(i, b)) << i;
  }
}

TEST(ReliablePackets, BringEveryMessageOnceInOrderAndWhole) {
  const Misfortune fates[] = {{},          {0.01, 0, 0},      {0.2, 0, 0},    {0, 0.3, 0},
                              {0, 0, 0.3}, {0.05, 0.05, 0.1}, {0.5, 0.2, 0.2}};
  unsigned seed = 0;
  for (const Misfortune& fate : fates)
    for (const bool real : {true, false}) {
      SCOPED_TRACE("loss " + std::to_string(fate.loss) + ", real " + std::to_string(real));
      Channel channel(fate, ++seed, real);
      std::vector<Message> messages;
      for (std::uint32_t i = 0; i < 400; ++i)
        messages.push_back(
            message_of(i, kSizesAroundAPacket[i % std::size(kSizesAroundAPacket)], real));
      expect_all(channel.play(std::move(messages)), 400, real);
      if (fate.loss > 0) {
        EXPECT_GT(channel.sent_again(), 0u);
      }
    }
}

TEST(ReliablePackets, SendNothingAgainWhereNothingIsLost) {
  Channel channel({}, 1, true);
  std::vector<Message> messages;
  for (std::uint32_t i = 0; i < 1000; ++i) messages.push_back(message_of(i, 0, true));
  EXPECT_EQ(channel.play(std::move(messages)).size(), 1000u);
  EXPECT_EQ(channel.sent_again(), 0u);
}

// A number that is too far ahead, a continuation of nothing, more bytes than announced.
TEST(ReliablePackets, RefuseWhatFitsNoMessage) {
  std::vector<Message> arrived;
  const std::vector<std::byte> bytes(100);
  EXPECT_FALSE(ReliableReceiver(true).take(0, false, bytes, arrived));
  EXPECT_FALSE(ReliableReceiver(true).take(65, true, bytes, arrived));
  EXPECT_FALSE(ReliableReceiver(true).take(0, true, std::span(bytes).first(63), arrived));
  EXPECT_FALSE(ReliableReceiver(true).take(0, true, bytes, arrived));  // announces 0 bytes
  EXPECT_TRUE(arrived.empty());
}

}  // namespace
}  // namespace ghostrank
