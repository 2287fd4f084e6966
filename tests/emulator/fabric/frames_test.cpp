// Frames, in which small messages travel together: alone, and over every provider.
#include "emulator/fabric/ofi/frames.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "emulator/fabric/ofi/fragments.h"
#include "tests/emulator/fabric/fabric_support.h"

namespace ghostrank {
namespace {

using namespace testing;

// ---- on their own

struct WrittenFrame {
  std::vector<std::byte> bytes = std::vector<std::byte>(kMostFrameBytes);
  std::size_t used = 0;
  bool append(const Message& message, std::size_t room = kMostFrameBytes) {
    const std::size_t before = used;
    used = append_to_frame(bytes.data(), used, room, message);
    return used > before;
  }
  std::span<const std::byte> span() const { return {bytes.data(), used}; }
};

TEST(Frame, GivesBackWhatWasPutInInOrder) {
  WrittenFrame frame;
  for (std::uint32_t i = 0; i < 10; ++i) {
    Message m = make_message(i * 7, 1, i);
    if (i % 2 == 0) m.payload = random_bytes(m.header.bytes, i);
    ASSERT_TRUE(frame.append(m));
  }
  std::vector<FramedMessage> messages;
  ASSERT_TRUE(parse_frame(frame.span(), messages));
  ASSERT_EQ(messages.size(), 10u);
  for (std::uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(messages[i].header().sequence, i);
    ASSERT_EQ(messages[i].payload().size(), i * 7);
    if (i % 2 == 0 && i > 0) {
      EXPECT_EQ(std::memcmp(messages[i].payload().data(), random_bytes(i * 7, i).get(), i * 7), 0);
    }
  }
}

TEST(Frame, TakesNoMoreThanItsRoom) {
  WrittenFrame frame;
  EXPECT_FALSE(frame.append(make_message(1000, 0, 0), 1000));
  EXPECT_TRUE(frame.append(make_message(1000, 0, 0), 1064));
  EXPECT_FALSE(frame.append(make_message(0, 0, 1), 1127));
  EXPECT_TRUE(frame.append(make_message(0, 0, 1), 1128));
  EXPECT_FALSE(frame.append(make_message(~std::uint64_t{0}, 0, 1), kMostFrameBytes));
}

TEST(Frame, IsRefusedAsAWholeWhenAnythingIsWrong) {
  WrittenFrame frame;
  frame.append(make_message(10, 0, 0));
  frame.append(make_message(20, 0, 1));
  std::vector<FramedMessage> messages;
  for (std::size_t cut = 0; cut <= frame.used; ++cut) {
    const bool whole = cut == frame.used || cut == sizeof(Header) + 10;
    EXPECT_EQ(parse_frame(frame.span().first(cut), messages), whole) << cut;
    EXPECT_EQ(messages.empty(), !whole);
  }
  Message nested = make_message(0, 0, 2);
  nested.header.kind = kFrameKind;
  WrittenFrame other;
  other.append(make_message(10, 0, 0));
  other.append(nested);
  EXPECT_FALSE(parse_frame(other.span(), messages));
  EXPECT_TRUE(messages.empty());
}

TEST(Frame, ThatIsMalformedIsAStrayAndLeavesNoTrace) {
  Reassembly inbox(kNonce, 1, false);
  std::vector<Message> ready;
  WrittenFrame frame;
  frame.append(make_message(10, 0, 0));
  frame.append(make_message(20, 0, 1));
  Header h;
  h.nonce = kNonce;
  h.kind = kFrameKind;
  h.offset = pack({0, 0, 0});
  const auto arrive = [&](std::uint64_t bytes) {
    h.bytes = bytes & kMostBytes;
    return inbox.accept(h, sizeof h + bytes, frame.bytes.data(), ready);
  };
  EXPECT_EQ(arrive(frame.used - 1), Reassembly::Verdict::stray);
  EXPECT_EQ(arrive(0), Reassembly::Verdict::stray);
  EXPECT_EQ(arrive(kMostFrameBytes + 1), Reassembly::Verdict::stray);
  EXPECT_TRUE(ready.empty());
  EXPECT_EQ(arrive(frame.used), Reassembly::Verdict::taken);
  EXPECT_EQ(ready.size(), 2u);
}

TEST(Frame, ThatComesBeforeItsTurnWaits) {
  Reassembly inbox(kNonce, 1, false);
  std::vector<Message> ready;
  WrittenFrame frame;
  frame.append(make_message(10, 0, 1));
  frame.append(make_message(20, 0, 2));
  Header h;
  h.nonce = kNonce;
  h.kind = kFrameKind;
  h.bytes = frame.used & kMostBytes;
  h.offset = pack({0, 1, 0});
  EXPECT_EQ(inbox.accept(h, sizeof h + h.bytes, frame.bytes.data(), ready),
            Reassembly::Verdict::taken);
  std::fill(frame.bytes.begin(), frame.bytes.end(), std::byte{});  // the receive buffer is reused
  Header first = make_message(0, 0, 0).header;
  first.nonce = kNonce;
  first.offset = pack({0, 0, 0});
  EXPECT_EQ(inbox.accept(first, sizeof first, nullptr, ready), Reassembly::Verdict::taken);
  ASSERT_EQ(ready.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(ready[i].header.sequence, i);
}

// ---- over the providers

class EveryProvidersFrames : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ofi, EveryProvidersFrames, kProviders, name_of_provider);

// Both sides send bursts of small messages, and a large one now and then.
std::string exchange_small(const World& world, const char* provider, bool keep) {
  OfiOptions options = options_for(provider, keep);
  options.frame_bytes = 4096;
  Joined j = join(world, options);
  constexpr std::uint32_t kMessages = 5000;
  const auto size_of = [](std::uint32_t i) {
    return i % 500 == 250 ? std::uint64_t{200'000} : std::uint64_t{i % 7 * 50};
  };
  std::vector<Message> arrived;
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    Message m = make_message(size_of(i), world.rank, i);
    if (keep) m.payload = random_bytes(m.header.bytes, i);
    send_all(*j.fabric, 1 - world.rank, std::move(m), arrived);
    if (i % 100 == 0) j.fabric->poll(arrived);
  }
  EXPECT_TRUE(finish(*j.fabric, kMessages, arrived));
  EXPECT_EQ(j.fabric->failure(), "");
  EXPECT_EQ(arrived.size(), kMessages);
  for (std::uint32_t i = 0; i < arrived.size(); ++i) {
    EXPECT_EQ(arrived[i].header.sequence, i);
    EXPECT_EQ(arrived[i].header.bytes, size_of(i));
    EXPECT_EQ(arrived[i].header.offset, 0u);
    EXPECT_EQ(arrived[i].payload != nullptr, keep && size_of(i) > 0);
    if (!arrived[i].payload) continue;
    EXPECT_EQ(std::memcmp(arrived[i].payload.get(), random_bytes(size_of(i), i).get(), size_of(i)),
              0);
  }
  EXPECT_EQ(j.fabric->stats().messages_received, kMessages);
  EXPECT_EQ(j.fabric->stats().strays, 0u);
  j.leave();
  return "";
}

TEST_P(EveryProvidersFrames, KeepOrderBoundariesAndBytes) {
  for (const bool keep : {false, true}) {
    expect_all_ok(run_processes(
        2, [&](const World& world) { return exchange_small(world, GetParam(), keep); }));
  }
}

TEST_P(EveryProvidersFrames, DoNotHoldALoneMessageBack) {
  expect_all_ok(run_processes(2, [](const World& world) {
    OfiOptions options = options_for(GetParam());
    options.frame_bytes = 16 << 10;
    Joined j = join(world, options);
    for (std::uint32_t i = 0; i < 50; ++i) {  // there and back, one at a time
      std::vector<Message> arrived;
      if (world.rank == 0) send_all(*j.fabric, 1, make_message(8, 0, i), arrived);
      EXPECT_TRUE(finish(*j.fabric, 1, arrived));
      if (world.rank == 1) send_all(*j.fabric, 0, make_message(8, 1, i), arrived);
    }
    std::vector<Message> none;
    EXPECT_TRUE(finish(*j.fabric, 0, none));
    j.leave();
    return "";
  }));
}

}  // namespace
}  // namespace ghostrank
