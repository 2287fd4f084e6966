// OmniReduce's agents, in both algorithms and with a switch: proved for their claims, with tensors
// of every sparsity that the checker draws.
#include "collectives/schemes/omnireduce.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"
#include "collectives/wire_format.h"
#include "tests/collectives/calls.h"

namespace ghostrank {
namespace {

using testing::all_reduce;

constexpr OmniReduceOptions kReliable{
    .aggregators = 2, .block = 16, .columns = 3, .slots = 2, .timeout = 200'000'000};
constexpr OmniReduceOptions kPackets{.aggregators = 2,
                                     .packets = true,
                                     .block = 16,
                                     .columns = 1,
                                     .slots = 2,
                                     .timeout = 200'000'000};
constexpr OmniReduceOptions kSwitch{.in_switch = true,
                                    .packets = true,
                                    .block = 16,
                                    .columns = 1,
                                    .slots = 3,
                                    .timeout = 200'000'000};

TEST(OmniReduce, SumsRightForEveryTypeWhateverBecomesOfPackets) {
  for (const OmniReduceOptions& options : {kReliable, kPackets, kSwitch})
    for (const int size : {1, 2, 3, 8, 32})
      for (const std::uint64_t count : {0, 1, 16, 17, size < 32 ? 1000 : 300}) {
        const auto ends = omnireduce_ends(size, options);
        const AgentProof proof = prove(*ends, all_reduce(size, count), size < 32 ? 60 : 12);
        EXPECT_TRUE(proof.report.ok)
            << size << " ranks, count " << count << ": " << proof.report.error;
        EXPECT_EQ(proof.refused, options.in_switch ? "a switch adds int32 only" : "");
      }
}

TEST(OmniReduce, SumsRightWithEveryShapeOfBlocksAndAggregators) {
  for (const int aggregators : {1, 3})
    for (const int block : {1, 7, 256})
      for (const int columns : {1, 2, 5})
        for (const int slots : {1, 4}) {
          OmniReduceOptions options = kReliable;
          options.aggregators = aggregators;
          options.block = block;
          options.columns = columns;
          options.slots = slots;
          const AgentProof proof = prove(*omnireduce_ends(4, options), all_reduce(4, 531), 24);
          EXPECT_TRUE(proof.report.ok) << proof.report.error;
        }
}

// Algorithm 2 at 1 % and 5 % loss, with duplicates, delays and reordering: no sum is wrong.
TEST(OmniReduce, IsExactUnderLossDuplicatesAndReordering) {
  for (const OmniReduceOptions& options : {kPackets, kSwitch}) {
    const auto ends = omnireduce_ends(4, options);
    for (const double loss : {0.01, 0.05})
      for (const Overlap overlap : {Overlap::random, Overlap::all, Overlap::none}) {
        auto calls = calls_like(all_reduce(4, 3000), DataType::int32, 3);
        for (Call& call : calls) call.sparsity = {0.2, 16, overlap};
        std::uint64_t lost = 0, doubled = 0, overtaken = 0;
        for (std::uint64_t seed = 0; seed < 30; ++seed) {
          AgentCheckOptions check_options{
              .seed = seed,
              .misfortunes = {.loss = loss, .duplicates = 0.05, .delay = 0.05, .reordering = 0.05},
              .pause = 20'000'000,
              .overlap = 2};
          const AgentReport report = check(*ends, calls, check_options);
          ASSERT_TRUE(report.ok) << report.error;
          lost += report.lost, doubled += report.doubled, overtaken += report.overtaken;
        }
        EXPECT_GT(std::min({lost, doubled, overtaken}), 100u);
      }
    for (const Claim& claim :
         check_claims(*ends, calls_like(all_reduce(4, 2000), DataType::int32, 3), 60)) {
      EXPECT_TRUE(claim.holds()) << claim.text();
      EXPECT_GT(claim.met, 0u) << claim.misfortune;
    }
  }
}

// Round numbers go on from call to call; block numbers start at 0 in every call.
TEST(OmniReduce, ManySmallCallsFollowEachOther) {
  for (const OmniReduceOptions& options : {kReliable, kPackets}) {
    const auto ends = omnireduce_ends(3, options);
    std::vector<Call> calls;
    for (std::uint32_t i = 0; i < 60; ++i)
      for (Call call : calls_like(all_reduce(3, i % 5 * 40), DataType::float32, 1, i)) {
        call.sparsity = {0.3, 8, Overlap::random};
        calls.push_back(call);
      }
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const AgentReport report =
          check(*ends, calls,
                {.seed = seed,
                 .misfortunes = {.loss = 0.05, .duplicates = 0.1, .reordering = 0.2},
                 .no_room = 0.1,
                 .slow = 0.1,
                 .overlap = 3});
      ASSERT_TRUE(report.ok) << report.error;
    }
  }
}

TEST(OmniReduce, PacketsAreThoseOfItsWire) {
  const auto ends = omnireduce_ends(2, kPackets);
  const std::array<std::int32_t, 2> elements{1, 0x01020304};
  const std::array<std::uint32_t, 2> words{0x00000102, 0xfffffffe};
  const Note note{.index = 0x8005,
                  .type = DataType::float32,
                  .elements = 2,
                  .content = std::as_bytes(std::span(elements)),
                  .words = std::as_bytes(std::span(words))};
  std::vector<std::byte> packet(note_bytes(note, ends->overhead_bytes())), store;
  ends->wire_format()->encode(note, packet);
  const std::vector<unsigned> expected{0, 0, 1, 2, 0x80, 5, 0xff, 0xff, 0xff, 0xfe,
                                       2, 1, 0, 0, 0,    4, 3,    2,    1};
  ASSERT_EQ(packet.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(std::to_integer<unsigned>(packet[i]), expected[i]) << i;
  ASSERT_TRUE(ends->wire_format()->decode(packet, store));
  EXPECT_FALSE(ends->wire_format()->decode(std::span(packet).first(10), store));
  EXPECT_FALSE(ends->wire_format()->decode(std::span(packet).first(13), store));
  packet[10] = std::byte{9};
  EXPECT_FALSE(ends->wire_format()->decode(packet, store));
}

TEST(OmniReduce, RefusesWhatItCannotServe) {
  const auto refuses = [](int ranks, OmniReduceOptions options) {
    EXPECT_THROW(omnireduce_ends(ranks, options), std::invalid_argument);
  };
  refuses(33, kSwitch);
  refuses(4, {.packets = true, .columns = 2});
  refuses(4, {.aggregators = 0});
  refuses(4, {.block = 0});
  refuses(4, {.columns = 1025});
  refuses(4, {.slots = 0});
  refuses(4, {.in_switch = true, .columns = 1});
  OmniReduceOptions last = kSwitch;  // the last slots that 15 bits number
  last.first_slot = (1 << 15) - last.slots;
  EXPECT_NO_THROW(omnireduce_ends(4, last));
  ++last.first_slot;
  refuses(4, last);
  const Call large{0, all_reduce(4, std::uint64_t{1} << 40), DataType::int32};
  EXPECT_NE(omnireduce_ends(4, kReliable)->refuses(large).find("larger"), std::string::npos);
}

}  // namespace
}  // namespace ghostrank
