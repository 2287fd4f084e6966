// The example schemes with agents, proved further than the loader of plug-ins does.
#include <functional>

#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"
#include "collectives/slot_scheme.h"
#include "collectives/wire_format.h"
#include "profiles/algorithms/algorithms.h"

namespace ghostrank {
namespace {

std::unique_ptr<Ends> example(const char* name, int size) {
  static const Algorithms* const kAlgorithms = [] {
    auto* algorithms = new Algorithms;
    algorithms->load_plugin(GHOSTRANK_SERVER_PLUGIN, ".");
    algorithms->load_plugin(GHOSTRANK_SPARSE_PLUGIN, ".");
    algorithms->load_plugin(GHOSTRANK_SLOTS_PLUGIN, ".");
    return algorithms;
  }();
  return kAlgorithms->find("mine", Func::all_reduce, name)->ends(size, {});
}

std::unique_ptr<Ends> packet_server(int size) { return example("packet-server", size); }

Collective all_reduce(int size, std::uint64_t count) {
  return {Func::all_reduce, size, count, 4, 0};
}

TEST(PacketServer, SumsRightWhateverBecomesOfPacketsForHundredsOfSeeds) {
  for (int size = 1; size <= 8; ++size) {
    const auto ends = packet_server(size);
    for (const std::uint64_t count : {0, 1, 346, 347, 2000}) {
      const AgentProof proof = prove(*ends, all_reduce(size, count), 100);
      EXPECT_TRUE(proof.report.ok)
          << size << " ranks, count " << count << ": " << proof.report.error;
    }
  }
}

TEST(PacketServer, HoldsEachOfItsFourClaims) {
  for (const int size : {2, 5}) {
    const auto calls = calls_like(all_reduce(size, 1000), DataType::float32, 4);
    for (const Claim& claim : check_claims(*packet_server(size), calls, 200)) {
      EXPECT_TRUE(claim.holds()) << claim.misfortune << ": " << claim.text();
      EXPECT_GT(claim.met, 100U) << claim.misfortune;
    }
  }
}

TEST(PacketServer, SendsPacketsThatFitAnEthernetFrame) {
  for (int t = 0; t < kDataTypes; ++t) {
    const auto calls = calls_like(all_reduce(3, 5000), static_cast<DataType>(t), 2);
    const AgentReport report = check(*packet_server(3), calls, {.datagram_bytes = 1400});
    EXPECT_TRUE(report.ok) << report.error;
    EXPECT_FALSE(check(*packet_server(3), calls, {.datagram_bytes = 1399}).ok);
  }
}

TEST(PacketServer, AnswersInOneCopyThoseThatAskMeanwhile) {
  const auto calls = calls_like(all_reduce(8, 4000), DataType::int32, 3);
  AgentCheckOptions options{.misfortunes = {.loss = 0.3}};
  std::uint64_t lost = 0, packets = 0;
  for (options.seed = 0; options.seed < 20; ++options.seed) {
    const AgentReport report = check(*packet_server(8), calls, options);
    ASSERT_TRUE(report.ok) << report.error;
    lost += report.lost;
    packets += report.packets;
  }
  // A loss makes only its own rank receive again: 2 x 8 packets per block, and about two per loss.
  EXPECT_GT(lost, 1000U);
  EXPECT_LT(packets, 20 * 3 * 12 * 16 + 3 * lost);
}

TEST(PacketServer, GoesOnWhereNumbersOfCallsWrap) {
  const auto calls = calls_like(all_reduce(4, 1000), DataType::int64, 4, 0xffff'fffe);
  const AgentReport report =
      check(*packet_server(4), calls, {.misfortunes = {0.1, 0.1, 0.1, 0.1}, .overlap = 2});
  EXPECT_TRUE(report.ok) << report.error;
}

TEST(SparseServer, SumsWhateverBlocksRanksHoldForHundredsOfSeeds) {
  for (int size = 1; size <= 8; ++size) {
    const auto ends = example("sparse-server", size);
    for (const std::uint64_t count : {0, 1, 255, 257, 5000}) {
      const AgentProof proof = prove(*ends, all_reduce(size, count), 50);
      EXPECT_TRUE(proof.report.ok)
          << size << " ranks, count " << count << ": " << proof.report.error;
    }
  }
}

TEST(SparseServer, SendsWhatIsNotZeroAlone) {
  const auto ends = example("sparse-server", 4);
  std::vector<Call> calls = calls_like(all_reduce(4, 100 * 256), DataType::int32, 1);
  const auto events = [&](Sparsity sparsity) {
    calls[0].sparsity = sparsity;
    const AgentReport report = check(*ends, calls);
    EXPECT_TRUE(report.ok) << report.error;
    return report.events;
  };
  // 4 calls, 8 end notes (a rank's, up and down), each rank's nonzero blocks up, their union down.
  EXPECT_EQ(events({0.1, 256, Overlap::all}), 4u + 8u + 4 * 10 + 4 * 10);
  EXPECT_EQ(events({0.1, 256, Overlap::none}), 4u + 8u + 4 * 10 + 4 * 40);
  EXPECT_EQ(events({}), 4u + 8u + 4 * 100 + 4 * 100);
}

// Sums of integers need nothing beside the form.
const SlotForm kSums{.name = "slot-sum", .port = 0x51c0, .slots = 4, .elements = 16};

void expect_right(const Ends& ends, const std::string& refused) {
  for (const std::uint64_t count : {0, 1, 256, 257, 2000}) {
    const AgentProof proof = prove(ends, all_reduce(ends.size(), count), 60);
    EXPECT_TRUE(proof.report.ok) << ends.size() << " ranks: " << proof.report.error;
    EXPECT_EQ(proof.refused, refused);
  }
}

void expect_claims_hold(const Ends& ends, DataType type) {
  const auto calls = calls_like(all_reduce(ends.size(), 5000), type, 4);
  for (const Claim& claim : check_claims(ends, calls, 100)) {
    EXPECT_EQ(claim.holds(), claim.misfortune != "reordering") << claim.text();
    EXPECT_EQ(claim.claimed, claim.holds());
  }
}

TEST(SlotScheme, CombinesRightAndHoldsItsClaims) {
  for (int size = 1; size <= 8; ++size) {
    expect_right(SlotScheme(size, {}, kSums), "its switch combines int32 alone");
    expect_right(*example("slot-max", size), "its switch combines float32 alone");
  }
  expect_claims_hold(SlotScheme(3, {}, kSums), DataType::int32);
  expect_claims_hold(*example("slot-max", 3), DataType::float32);
}

// Communicators on one switch outside ghostrank have slots of their own there.
TEST(SlotScheme, UsesTheSlotsThatItsCommunicatorHas) {
  Communicator comm;
  comm.in_switch.first_slot = 100;
  const SlotScheme ends(3, comm, kSums);
  expect_right(ends, "its switch combines int32 alone");
  const auto brings_across = [&](std::uint32_t index) {
    const Note note{.index = index};
    std::vector<std::byte> packet(ends.overhead_bytes()), store;
    ends.wire_format()->encode(note, packet);
    const std::optional<Note> read = ends.wire_format()->decode(packet, store);
    return read && read->index == index;
  };
  const std::optional<SwitchService> service = ends.switch_service();
  std::vector<std::uint32_t> greeted;
  for (const Note& note : service->greeting) {
    greeted.push_back(note.index);
    EXPECT_TRUE(brings_across(note.index));
  }
  EXPECT_EQ(greeted, (std::vector<std::uint32_t>{201, 203, 205, 207}));
  EXPECT_FALSE(brings_across(199));
  EXPECT_FALSE(brings_across(208));
  comm.in_switch.first_slot = 16'380;
  EXPECT_NO_THROW(SlotScheme(3, comm, kSums));
  comm.in_switch.first_slot = 16'381;
  EXPECT_THROW(SlotScheme(3, comm, kSums), std::invalid_argument);
}

TEST(SlotScheme, RefusesIntegersThatAreNoSums) {
  class Largest final : public SlotScheme {
   public:
    Largest() : SlotScheme(2, {}, kSums) {}
    std::uint32_t combine(std::uint32_t a, std::uint32_t b) const override {
      return std::max(a, b);
    }
    bool sums() const override { return false; }
  };
  EXPECT_EQ(Largest().refuses(calls_like(all_reduce(2, 1), DataType::int32, 1)[0]),
            "slots whose results are no sums hold float32; its form says int32");
}

TEST(SlotScheme, RefusesAFormOutOfRange) {
  const auto made = [](SlotForm form) { return SlotScheme(2, {}, form).size(); };
  EXPECT_EQ(made(kSums), 2);
  for (const SlotForm& wrong : {SlotForm{.name = "x", .port = 0},
                                {.name = "x", .port = 1, .slots = 0},
                                {.name = "x", .port = 1, .slots = 16385},
                                {.name = "x", .port = 1, .elements = 257},
                                {.name = "x", .port = 1, .type = DataType::float16}})
    EXPECT_THROW(made(wrong), std::invalid_argument);
}

std::vector<unsigned> packet_of(const Ends& ends, std::uint32_t element) {
  const auto content = std::as_bytes(std::span(&element, 1));
  const Note note{.call = 0x01020304, .index = 5, .elements = 1, .content = content};
  std::vector<std::byte> packet(note_bytes(note, ends.overhead_bytes())), store;
  ends.wire_format()->encode(note, packet);
  const std::optional<Note> read = ends.wire_format()->decode(packet, store);
  EXPECT_TRUE(read && std::ranges::equal(read->content, content));
  std::vector<unsigned> bytes;
  for (const std::byte b : packet) bytes.push_back(std::to_integer<unsigned>(b));
  packet[1] = std::byte{0};
  EXPECT_FALSE(ends.wire_format()->decode(packet, store));
  return bytes;
}

// Packets are big-endian on the wire.
TEST(SlotScheme, WritesWhatASwitchReads) {
  using Bytes = std::vector<unsigned>;
  EXPECT_EQ(packet_of(SlotScheme(2, {}, kSums), 0xfffffffe),
            (Bytes{0x51, 0xc0, 0, 5, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xfe}));
  // -1.5 is 0xbfc00000, 1.5 is 0x3fc00000; on the wire, floats have the order of unsigned integers.
  EXPECT_EQ(packet_of(*example("slot-max", 2), 0xbfc00000),
            (Bytes{0x51, 0xc0, 0, 5, 1, 2, 3, 4, 0x40, 0x3f, 0xff, 0xff}));
  EXPECT_EQ(packet_of(*example("slot-max", 2), 0x3fc00000),
            (Bytes{0x51, 0xc0, 0, 5, 1, 2, 3, 4, 0xbf, 0xc0, 0, 0}));
}

// Sums with a wire format that makes a mistake.
class Careless final : public Ends, private WireFormat {
 public:
  using Spoil = std::function<void(Note&)>;
  explicit Careless(Spoil spoil)
      : Ends(3),
        ends_(std::make_unique<SlotScheme>(3, Communicator{}, kSums)),
        spoil_(std::move(spoil)) {}
  std::vector<Helper> helpers() const override { return ends_->helpers(); }
  std::unique_ptr<Agent> agent(GroupParty party) const override { return ends_->agent(party); }
  std::vector<Edge> traffic(const Call& call) const override { return ends_->traffic(call); }
  std::uint64_t overhead_bytes() const override { return ends_->overhead_bytes(); }
  const WireFormat* wire_format() const override { return this; }

 private:
  std::string_view name() const override { return "careless"; }
  void encode(const Note& note, std::span<std::byte> packet) const override {
    ends_->wire_format()->encode(note, packet);
  }
  std::optional<Note> decode(std::span<const std::byte> packet,
                             std::vector<std::byte>& store) const override {
    auto note = ends_->wire_format()->decode(packet, store);
    if (!spoil_) return std::nullopt;
    if (note) spoil_(*note);
    return note;
  }

  std::unique_ptr<Ends> ends_;
  Spoil spoil_;
};

TEST(AgentChecker, NamesWhatAWireFormatDoesNotBringAcross) {
  const auto calls = calls_like(all_reduce(3, 300), DataType::int32, 1);
  const auto found = [&](Careless::Spoil spoil) { return check(Careless(spoil), calls).error; };
  const auto says = [](const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  EXPECT_EQ(found([](Note&) {}), "");
  says(found(nullptr), "careless does not bring across: it is not recognised");
  says(found([](Note& n) { n.index ^= 1; }), "with another tag, call, index");
  says(found([](Note& n) { --n.call; }), "with another tag, call, index");
  says(found([](Note& n) { --n.elements; }), "has another length");
  says(found([](Note& n) { n.content = n.content.first(4); }), "of another length than its");
  says(found([](Note& n) { n.words = n.content.first(4); }), "has another length");
  static std::vector<std::byte> zeros(4096);
  says(found([](Note& n) { n.content = std::span(zeros).first(n.content.size()); }),
       "with other content");
}

}  // namespace
}  // namespace ghostrank
