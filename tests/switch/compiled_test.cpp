// The compiled switch: results, multicast and rewriting; several jobs; two levels; ordinary frames;
// hostile frames; losses on purpose.
#include "switch/compiled/compiled.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

TEST(CompiledSwitch, SendsTheSumToEveryWorkerUnderItsAddress) {
  CompiledSwitch sw(plan_of({job_of(3, 64)}, 3));
  EXPECT_TRUE(answers(sw, 0, chunk(0, 2, 1, 10, 64, 77)).empty());
  EXPECT_TRUE(answers(sw, 1, chunk(1, 2, 1, 20, 64, 77)).empty());
  const auto out = answers(sw, 2, chunk(2, 2, 1, 30, 64, 77));
  ASSERT_EQ(out.size(), 3u);
  for (int w = 0; w < 3; ++w) {
    const auto& [port, frame] = out[w];
    EXPECT_EQ(port, w);
    Packet p;
    ASSERT_EQ(frame.size(), frame_bytes(64));
    const Worker to = worker(w, w);
    Bytes back = frame;
    store16(back.data() + 36,
            kUdpPort);  // a result goes to a worker's port: parse() wants a switch's
    ASSERT_EQ(parse(back, p), Kind::switchml);
    EXPECT_EQ(p.target.mac, to.mac);
    EXPECT_EQ(p.target.ip, to.ip);
    EXPECT_EQ(load16(frame.data() + 36), kWorkerPort);
    EXPECT_EQ(p.source, (Address{kSwitchMac, kSwitchIp, kUdpPort}));
    EXPECT_EQ(ipv4_checksum(frame.data() + 14), 0);
    EXPECT_EQ(p.id, 77u);
    EXPECT_EQ(p.slot, 2);
    EXPECT_EQ(p.set, 1);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(element(frame, i), 60 + 3 * i);
  }
}

TEST(CompiledSwitch, AnswersARetransmissionToItsSenderAlone) {
  CompiledSwitch sw(plan_of({job_of(2, 32)}, 2));
  answers(sw, 0, chunk(0, 0, 0, 1, 32));
  ASSERT_EQ(answers(sw, 1, chunk(1, 0, 0, 2, 32)).size(), 2u);
  const auto again = answers(sw, 0, chunk(0, 0, 0, 1, 32));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].first, 0);
  EXPECT_EQ(element(again[0].second, 0), 3);
  EXPECT_EQ(sw.counters("a")->retransmissions, 1u);
}

TEST(CompiledSwitch, TellsAWorkersThreadsApartByPort) {
  CompiledSwitch sw(plan_of({job_of(1, 32)}, 1));
  Bytes frame = chunk(0, 0, 0, 1, 32);
  store16(frame.data() + 36, kUdpPort + 5);
  const auto out = answers(sw, 0, frame);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(load16(out[0].second.data() + 36), kWorkerPort + 5);
  EXPECT_EQ(load16(out[0].second.data() + 34), kUdpPort + 5);
}

TEST(CompiledSwitch, KeepsJobsApartBySlotAndSource) {
  JobPlan a = job_of(2, 32), b = job_of(2, 32);
  b.name = "b";
  b.first_slot = 4;  // the same workers, other slots
  CompiledSwitch sw(plan_of({a, b}, 3));
  answers(sw, 0, chunk(0, 1, 0, 10, 32));
  answers(sw, 0, chunk(0, 5, 0, 100, 32));
  EXPECT_TRUE(answers(sw, 2, chunk(1, 1, 0, 999, 32)).empty()) << "right address, wrong port";
  EXPECT_TRUE(answers(sw, 1, chunk(2, 1, 0, 999, 32)).empty()) << "right port, wrong address";
  EXPECT_TRUE(answers(sw, 1, chunk(1, 8, 0, 999, 32)).empty()) << "a slot of no job";
  EXPECT_TRUE(answers(sw, 1, chunk(1, 1, 0, 999, 64)).empty()) << "another number of elements";
  EXPECT_EQ(sw.port(1).strangers + sw.port(2).strangers, 4u);
  EXPECT_EQ(element(answers(sw, 1, chunk(1, 1, 0, 20, 32)).at(0).second, 0), 30);
  EXPECT_EQ(element(answers(sw, 1, chunk(1, 5, 0, 200, 32)).at(0).second, 0), 300);
}

TEST(CompiledSwitch, AdmitsRemovesAndForgets) {
  CompiledSwitch sw(plan_of({}, 2));
  EXPECT_EQ(sw.admit(job_of(2, 32)), "");
  EXPECT_NE(sw.admit(job_of(2, 32)), "");
  answers(sw, 0, chunk(0, 0, 0, 10, 32));
  EXPECT_TRUE(sw.reset("a"));
  EXPECT_TRUE(answers(sw, 1, chunk(1, 0, 0, 20, 32)).empty());
  EXPECT_EQ(element(answers(sw, 0, chunk(0, 0, 0, 10, 32)).at(0).second, 0), 30);
  EXPECT_TRUE(sw.remove("a"));
  EXPECT_FALSE(sw.remove("a"));
  EXPECT_TRUE(answers(sw, 0, chunk(0, 0, 0, 10, 32)).empty());
  EXPECT_EQ(sw.port(0).strangers, 1u);
}

// Workers 0-1 below leaf 0, 2-3 below leaf 1; port 2 of each leaf leads to the spine, whose ports
// 0 and 1 lead to the leaves.
TEST(CompiledSwitch, SumsOverALeafAndASpine) {
  const std::uint32_t spine_ip = 0x0a0000f0;
  const Mac spine_mac{2, 0, 0, 0, 0xff, 9};
  std::vector<CompiledSwitch> leaves;
  JobPlan above;
  above.name = "a";
  above.elements = 32;
  above.slots = 4;
  above.worker_port = kUdpPort;
  for (int leaf = 0; leaf < 2; ++leaf) {
    JobPlan job;
    job.name = "a";
    job.elements = 32;
    job.slots = 4;
    for (int w = 0; w < 2; ++w) job.workers.push_back(worker(2 * leaf + w, w));
    job.uplink = Uplink{2, spine_mac, spine_ip};
    SwitchPlan plan = plan_of({job}, 3);
    plan.ip = 0x0a0000e0u + static_cast<std::uint32_t>(leaf);
    plan.mac = {2, 0, 0, 0, 0xee, static_cast<std::uint8_t>(leaf)};
    above.workers.push_back({leaf, plan.mac, plan.ip});
    leaves.emplace_back(plan);
  }
  SwitchPlan plan = plan_of({above}, 2);
  plan.ip = spine_ip;
  plan.mac = spine_mac;
  CompiledSwitch spine(plan);

  // The results that reach the workers, by number, after one chunk of worker w.
  const auto play = [&](int w, std::int32_t first) {
    std::map<int, std::vector<std::int32_t>> got;
    const std::size_t leaf = static_cast<std::size_t>(w / 2);
    for (const auto& [up, sum] : answers(leaves[leaf], w % 2, chunk(w, 3, 0, first, 32))) {
      EXPECT_EQ(up, 2);
      for (const auto& [down, result] : answers(spine, static_cast<int>(leaf), sum)) {
        for (const auto& [port, frame] : answers(leaves[static_cast<std::size_t>(down)], 2, result))
          got[2 * down + port].push_back(element(frame, 0));
      }
    }
    return got;
  };
  using Got = std::map<int, std::vector<std::int32_t>>;
  EXPECT_EQ(play(0, 1), Got{});
  EXPECT_EQ(play(2, 10), Got{});
  EXPECT_EQ(play(3, 20), Got{}) << "one leaf is complete, the other is not";
  EXPECT_EQ(play(3, 20), Got{}) << "a retransmission meanwhile";
  EXPECT_EQ(play(1, 2), (Got{{0, {33}}, {1, {33}}, {2, {33}}, {3, {33}}}));
  EXPECT_EQ(play(2, 10), (Got{{2, {33}}, {3, {33}}})) << "a lost result comes again, to one leaf";
}

// The ports at which frames leave, each with its first element.
std::map<int, std::int32_t> left(CompiledSwitch& sw, int port, const Bytes& frame) {
  std::map<int, std::int32_t> all;
  for (const auto& [out, result] : answers(sw, port, frame)) all[out] = element(result, 0);
  return all;
}

// The leaf's workers are on ports 0 and 1, the switch above on port 2.
TEST(CompiledSwitch, KeepsTheAnswerFromAboveForWhoAsksAgain) {
  JobPlan job = job_of(2, 32, 4);
  job.guarded = true;
  job.uplink = Uplink{2, worker(2, 2).mac, worker(2, 2).ip};
  CompiledSwitch leaf(plan_of({job}, 3));
  const auto from = [&](int w, std::uint32_t id, std::int32_t first) {
    return left(leaf, w, chunk(w, 1, 0, first, 32, id));
  };
  using Left = std::map<int, std::int32_t>;
  EXPECT_EQ(from(0, 5, 1), Left{});
  EXPECT_EQ(from(1, 5, 2), (Left{{2, 3}}));
  EXPECT_EQ(from(0, 5, 1), (Left{{2, 3}})) << "the answer may be lost";
  EXPECT_EQ(from(2, 5, 100), (Left{{0, 100}, {1, 100}}));
  EXPECT_EQ(from(1, 5, 2), (Left{{1, 100}})) << "the result was lost";
  EXPECT_EQ(from(2, 5, 100), Left{}) << "the answer comes twice";
  EXPECT_EQ(from(0, 5, 1), (Left{{0, 100}}));

  EXPECT_EQ(from(1, 6, 20), Left{});
  EXPECT_EQ(from(2, 6, 50), (Left{{0, 50}, {1, 50}})) << "of a round that it has forgotten";
  EXPECT_EQ(from(2, 5, 100), (Left{{0, 100}, {1, 100}})) << "of an earlier round";
  EXPECT_EQ(from(0, 5, 1), Left{}) << "an old chunk";
  EXPECT_EQ(from(0, 6, 10), (Left{{2, 30}}));
  EXPECT_EQ(from(1, 6, 20), (Left{{2, 30}})) << "no answer is kept yet";
  EXPECT_EQ(leaf.counters("a")->results, 4u);
  EXPECT_EQ(leaf.counters("a")->retransmissions, 4u);
}

// ---- Functions in which one worker gives or takes alone

// A packet of worker `w`, number 7, in slot 1: `elements` that are all `value`, or a credit.
Bytes packet_of(PacketType type, int w, std::uint16_t alone, int elements, std::uint32_t value) {
  Packet p = packet_from(w, kUdpPort, 1, 0, 7, elements);
  p.type = type;
  p.worker = alone;
  Bytes frame = frame_of(p, 0);
  for (std::size_t at = header_bytes(type); at < frame.size(); at += 4)
    store32(frame.data() + at, value);
  return frame;
}

// What each port got: "1:12" elements that are all 12, "2:credit".
std::string text_of(const std::vector<std::pair<int, Bytes>>& out) {
  std::string text;
  for (const auto& [port, frame] : out) {
    Packet p;
    EXPECT_EQ(parse_result(frame, p), Kind::switchml);
    EXPECT_EQ(frame.size(), frame_bytes(p.elements, p.type));
    EXPECT_EQ(std::tuple(p.id, p.slot, p.target.ip), std::tuple(7u, 1, worker(port, 0).ip));
    for (int i = 1; i < p.elements; ++i)
      EXPECT_EQ(load32(p.values + 4 * i), load32(p.values)) << "element " << i;
    text += (text.empty() ? "" : " ") + std::to_string(port) + ":" +
            (p.elements > 0 ? std::to_string(load32(p.values)) : "credit");
  }
  return text;
}

SwitchPlan plan_of_all_functions() {
  JobPlan job = job_of(3, 32);
  job.all_functions = true;
  return plan_of({job}, 3);
}

TEST(CompiledSwitch, GivesASumThatOneWorkerTakesToThatOneAndCreditsToTheOthers) {
  CompiledSwitch sw(plan_of_all_functions());
  const auto play = [&](int w) {
    return text_of(answers(sw, w, packet_of(PacketType::to_one, w, 1, 32, 10 + w)));
  };
  EXPECT_EQ(play(0), "");
  EXPECT_EQ(play(2), "");
  EXPECT_EQ(play(1), "0:credit 1:33 2:credit");
  EXPECT_EQ(play(1), "1:33") << "sent again";
  EXPECT_EQ(play(0), "0:credit") << "sent again";
}

TEST(CompiledSwitch, GivesWhatOneWorkerHasToAllOthersWhoeverSendsLast) {
  for (const int last : {0, 1, 2}) {
    CompiledSwitch sw(plan_of_all_functions());
    const auto play = [&](int w) {
      return text_of(answers(sw, w, packet_of(PacketType::from_one, w, 1, w == 1 ? 32 : 0, 5)));
    };
    for (int w = 0; w < 3; ++w) {
      if (w == last) continue;
      EXPECT_EQ(play(w), "");
    }
    EXPECT_EQ(play(last), "0:5 1:credit 2:5");
    EXPECT_EQ(play(2), "2:5") << "sent again";
  }
}

// A credit that comes first must not leave a sum of an earlier round.
TEST(CompiledSwitch, BeginsARoundOfCreditsWithZeros) {
  CompiledSwitch sw(plan_of_all_functions());
  for (const int set : {0, 1, 0})
    for (int w = 0; w < 3; ++w) {
      Bytes frame = packet_of(PacketType::from_one, w, 2, w == 2 ? 32 : 0, 9);
      store16(frame.data() + 48, static_cast<std::uint16_t>(set << 15 | 1));
      const auto out = answers(sw, w, frame);
      ASSERT_EQ(out.size(), w == 2 ? 3u : 0u);
      if (w < 2) continue;
      EXPECT_EQ(load32(out[0].second.data() + header_bytes(PacketType::from_one)), 9u);
    }
}

TEST(CompiledSwitch, HasNoAnswerToARoundOfCreditsAlone) {
  CompiledSwitch sw(plan_of_all_functions());
  for (int w = 0; w < 3; ++w)
    EXPECT_TRUE(answers(sw, w, packet_of(PacketType::from_one, w, 1, 0, 0)).empty());
  EXPECT_TRUE(answers(sw, 0, packet_of(PacketType::from_one, 0, 1, 0, 0)).empty());
  EXPECT_EQ(sw.counters("a")->broadcasts, 1u);
  EXPECT_EQ(sw.counters("a")->retransmissions, 1u);
}

TEST(CompiledSwitch, KnowsOtherFunctionsInJobsThatHaveThemAlone) {
  JobPlan other = job_of(3, 32);
  other.name = "b";
  other.first_slot = 4;
  CompiledSwitch bare(plan_of({other}, 3));
  EXPECT_TRUE(answers(bare, 0, packet_of(PacketType::to_one, 0, 1, 32, 1)).empty());
  EXPECT_EQ(bare.port(0).strangers, 1u);
  SwitchPlan both = plan_of_all_functions();
  both.jobs.push_back(other);
  CompiledSwitch sw(both);
  Bytes frame = packet_of(PacketType::to_one, 0, 1, 32, 1);
  store16(frame.data() + 48, 5);  // a slot of the other job
  EXPECT_TRUE(answers(sw, 0, frame).empty());
  EXPECT_EQ(sw.port(0).strangers, 1u);
  EXPECT_EQ(sw.counters("b")->received, 0u);
}

TEST(CompiledSwitch, ForwardsOrdinaryFrames) {
  SwitchPlan plan = plan_of({}, 3);
  plan.forward = {{worker(0, 0).mac, 0}, {worker(1, 1).mac, 1}};
  CompiledSwitch sw(plan);
  Bytes frame(60);
  std::memcpy(frame.data(), worker(1, 1).mac.data(), 6);
  auto out = answers(sw, 0, frame);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0], (std::pair{1, frame}));
  frame[5] = std::byte{99};
  EXPECT_TRUE(answers(sw, 0, frame).empty());
  EXPECT_EQ(sw.port(0).unknown, 1u);
  std::memset(frame.data(), 0xff, 6);
  out = answers(sw, 1, frame);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].first, 0);
  EXPECT_EQ(out[1].first, 2);
}

TEST(CompiledSwitch, LosesAboutAsManyAsItIsAskedTo) {
  SwitchPlan plan = plan_of({job_of(1, 32)}, 1);
  plan.loss = {{6554, 0}};  // a tenth, in 65536ths
  CompiledSwitch sw(plan);
  int answered = 0;
  for (int i = 0; i < 10'000; ++i) answered += !answers(sw, 0, chunk(0, 0, i % 2, i, 32)).empty();
  EXPECT_NEAR(answered, 9'000, 150);
  EXPECT_EQ(sw.port(0).lost, static_cast<std::uint64_t>(10'000 - answered));
}

// No frame of one worker changes a round that the workers of another job complete, and nothing
// crashes.
TEST(CompiledSwitch, SurvivesHostileFramesWithoutTouchingAnotherJob) {
  JobPlan victim = job_of(2, 32), evil;
  evil.name = "evil";
  evil.elements = 32;
  evil.slots = 4;
  evil.workers = {worker(7, 2)};
  CompiledSwitch sw(plan_of({victim, evil}, 3));
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    answers(sw, 0, chunk(0, 0, round % 2, round, 32));
    for (int i = 0; i < 20; ++i) {
      Bytes bad =
          chunk(static_cast<int>(random() % 9), static_cast<int>(random() % 6), round % 2, 666, 32);
      for (unsigned k = random() % 4; k > 0; --k)
        bad[random() % bad.size()] = static_cast<std::byte>(random());
      bad.resize(random() % 8 == 0 ? random() % bad.size() : bad.size());
      answers(sw, 2, bad);
    }
    const auto out = answers(sw, 1, chunk(1, 0, round % 2, 1000, 32));
    ASSERT_EQ(out.size(), 2u);
    ASSERT_EQ(element(out[0].second, 0), 1000 + round);
  }
}

}  // namespace
}  // namespace ghostrank::switchml
