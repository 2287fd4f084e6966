// SwitchML's agents: proved for their claims, and wrong beyond them.
#include "collectives/schemes/switchml.h"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"
#include "collectives/wire_format.h"
#include "tests/collectives/calls.h"
#include "tests/collectives/schemes/switched.h"

namespace ghostrank {
namespace {

using testing::all_reduce;
using testing::kFewSlots;

TEST(SwitchMl, SumsRightForEveryTypeThatItServesWhateverBecomesOfPackets) {
  for (const int size : {1, 2, 3, 8, 32})
    for (const std::uint64_t count : {0, 1, 32, 33, 1000}) {
      const auto ends = switchml_ends(size, kFewSlots);
      const AgentProof proof = prove(*ends, all_reduce(size, count), size < 32 ? 60 : 12);
      EXPECT_TRUE(proof.report.ok)
          << size << " ranks, count " << count << ": " << proof.report.error;
      EXPECT_NE(proof.refused.find("adds int32"), std::string::npos) << proof.refused;
    }
}

SwitchMlOptions without_guard() {
  SwitchMlOptions options = kFewSlots;
  options.guard = false;
  return options;
}

// Claims to survive all four faults of packets, whatever the scheme claims.
class Overtaken final : public Ends {
 public:
  explicit Overtaken(std::unique_ptr<Ends> ends) : Ends(ends->size()), ends_(std::move(ends)) {}
  std::vector<Helper> helpers() const override { return ends_->helpers(); }
  std::unique_ptr<Agent> agent(GroupParty party) const override { return ends_->agent(party); }
  std::vector<Edge> traffic(const Call& call) const override { return ends_->traffic(call); }
  std::uint64_t overhead_bytes() const override { return ends_->overhead_bytes(); }
  double error_bound(const Call& c, double l) const override { return ends_->error_bound(c, l); }
  Survives survives() const override { return {true, true, true, true}; }

 private:
  std::unique_ptr<Ends> ends_;
};

TEST(SwitchMl, HoldsFourClaimsWithItsGuardAndThreeWithout) {
  for (const DataType type : {DataType::int32, DataType::float32, DataType::bfloat16}) {
    const auto calls = calls_like(all_reduce(4, 2000), type, 3);
    for (const bool guard : {true, false})
      for (const Claim& claim :
           check_claims(*switchml_ends(4, guard ? kFewSlots : without_guard()), calls, 60)) {
        EXPECT_EQ(claim.holds(), guard || claim.misfortune != "reordering") << claim.text();
        EXPECT_EQ(claim.claimed, claim.holds());
        EXPECT_TRUE(!claim.claimed || claim.met > 100) << claim.misfortune << claim.met;
      }
  }
}

// The hazard is real: packets that overtake others leave wrong sums, or ranks that wait for ever.
// The same plays are right with the guard, also where racks have switches of their own.
TEST(SwitchMl, IsWrongWherePacketsOvertakeAndNobodyIsOnGuard) {
  Communicator racks;
  for (int r = 0; r < 34; ++r) {
    racks.node_of.push_back(r);
    racks.nic_of.push_back(r);
  }
  struct Shape {
    int ranks;
    Communicator comm;
    std::uint64_t count, plays;
  };
  for (const Shape& shape : {Shape{4, {}, 2000, 100}, Shape{34, racks, 400, 20}}) {
    const Overtaken bare(switchml_ends(shape.ranks, without_guard(), shape.comm));
    const Overtaken guarded(switchml_ends(shape.ranks, kFewSlots, shape.comm));
    const auto calls = calls_like(all_reduce(shape.ranks, shape.count), DataType::int32, 3);
    int wrong = 0;
    for (std::uint64_t seed = 0; seed < shape.plays; ++seed) {
      const AgentCheckOptions options{.seed = seed,
                                      .misfortunes = {.loss = 0.05, .reordering = 0.3}};
      wrong += !check(bare, calls, options).ok;
      const AgentReport right = check(guarded, calls, options);
      ASSERT_TRUE(right.ok) << shape.ranks << " ranks: " << right.error;
    }
    EXPECT_GT(wrong, 0) << shape.ranks << " ranks";
  }
}

TEST(SwitchMl, AFloatMayBeOffByItsBoundAndNoMore) {
  // With 8 ranks, a rank's numbers are up to 2^24 / 8 = 2^21, so the exponent is 22.
  const Call call{0, all_reduce(8, 100), DataType::float32};
  EXPECT_NEAR(switchml_ends(8, kFewSlots)->error_bound(call, 0x1p21), 64 * 0x1p22 / 0x1p32, 1e-9);
  EXPECT_EQ(switchml_ends(8, kFewSlots)->error_bound({0, call.collective, DataType::int32}, 1), 0);
}

TEST(SwitchMl, PacketsAreThoseOfItsWire) {
  const auto ends = switchml_ends(2, kFewSlots);
  std::vector<std::int32_t> values(32, 0);
  values[0] = 0x01020304;
  const std::array<std::byte, 6> words{std::byte{0}, std::byte{0},    std::byte{1},
                                       std::byte{2}, std::byte{0xfe}, std::byte{0}};
  const Note note{.call = 7,
                  .index = 0x8003,
                  .elements = 32,
                  .content = std::as_bytes(std::span(values)),
                  .words = words};
  std::vector<std::byte> packet(note_bytes(note, ends->overhead_bytes())), store;
  ends->wire_format()->encode(note, packet);
  // The header: type and size, job, packet id, set and slot, exponents; then the first element.
  const std::vector<unsigned> head{0x10, 7, 0, 0, 1, 2, 0x80, 3, 0xfe, 0, 1, 2, 3, 4};
  ASSERT_EQ(packet.size(), 10u + 128u);
  for (std::size_t i = 0; i < head.size(); ++i)
    EXPECT_EQ(std::to_integer<unsigned>(packet[i]), head[i]) << i;
  const auto read = ends->wire_format()->decode(packet, store);
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::ranges::equal(read->words, words));
  for (const std::size_t cut : {9u, 10u, 11u, 137u})
    EXPECT_FALSE(ends->wire_format()->decode(std::span(packet).first(cut), store)) << cut;
}

TEST(SwitchMl, RefusesWhatASwitchCannotServe) {
  EXPECT_THROW(switchml_ends(4, {.elements = 100}), std::invalid_argument);
  EXPECT_THROW(switchml_ends(4, {.slots = 0}), std::invalid_argument);
  EXPECT_THROW(switchml_ends(4, {.slots = 1 << 15}), std::invalid_argument);
}

}  // namespace
}  // namespace ghostrank
