// The compiled switch over RoCEv2: it sums messages packet by packet, sends results as messages in
// order on the workers' queue pairs, and lets no worker touch another job.
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch/wire/roce.h"
#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kAddress = 0x7f0000001000;
constexpr std::uint32_t kLength = 4 * 1024;
constexpr std::array kMessage{RoceOpcode::first, RoceOpcode::middle, RoceOpcode::middle,
                              RoceOpcode::last_immediate};

// Worker w has `queues` queue pairs, numbered from 0x1000 * w + 1, whose sequence numbers start at
// 0xfffffe - w.
JobPlan roce_job(int workers, int queues = 1, int slots = 8) {
  JobPlan job = job_of(workers, kRoceElements, slots);
  job.format = Format::roce;
  for (int w = 0; w < workers; ++w) {
    Worker& worker = job.workers[w];
    const auto n = static_cast<std::uint32_t>(w);
    worker.remote_key = 0xabc0 + n;
    for (int q = 0; q < queues; ++q)
      worker.queue_pairs.push_back({0x1000 * n + 1 + static_cast<std::uint32_t>(q), 0xfffffe - n});
  }
  return job;
}

// The n-th packet of worker w's message to `slot`; element i is `first` + i.
Bytes write_of(int w, std::size_t n, int slot, std::int32_t first, std::uint32_t sequence,
               int queue = 0, std::uint8_t set = 0) {
  RocePacket p;
  p.source = {worker(w, w).mac, worker(w, w).ip, 0xc000};
  p.target = {kSwitchMac, kSwitchIp, kRocePort};
  p.opcode = kMessage[n];
  p.queue_pair = switch_queue_pair(w, queue);
  p.sequence = sequence + static_cast<std::uint32_t>(n);
  p.address = kAddress;
  p.remote_key = remote_key_of({static_cast<std::uint16_t>(slot), set});
  p.length = kLength;
  p.message = 77;
  p.e0 = static_cast<std::int8_t>(-w);
  p.e1 = static_cast<std::int8_t>(w);
  Bytes frame(roce_frame_bytes(p.opcode));
  write_roce_header(p, frame.data());
  std::byte* values = frame.data() + roce_header_bytes(p.opcode);
  for (int i = 0; i < kRoceElements; ++i)
    store32(values + 4 * i, static_cast<std::uint32_t>(first + i));
  return frame;
}

RocePacket read(const Bytes& frame) {
  RocePacket p;
  EXPECT_EQ(parse_roce(frame, p), Kind::switchml);
  return p;
}

std::int32_t value(const Bytes& frame, int i) {
  return static_cast<std::int32_t>(load32(read(frame).values + 4 * i));
}

TEST(RoceSums, AreWrittenToEveryWorkersOwnQueuePairInOrder) {
  CompiledSwitch sw(plan_of({roce_job(3)}, 3));
  for (int w = 0; w < 2; ++w) {
    for (std::size_t n = 0; n < kMessage.size(); ++n)
      EXPECT_TRUE(answers(sw, w, write_of(w, n, 2, 10 * w, 500)).empty());
  }
  for (std::size_t n = 0; n < kMessage.size(); ++n) {
    const auto out = answers(sw, 2, write_of(2, n, 2, 20, 900));
    ASSERT_EQ(out.size(), 3u);
    for (int w = 0; w < 3; ++w) {
      const auto& [port, frame] = out[w];
      const auto who = static_cast<std::uint32_t>(w);
      const RocePacket p = read(frame);
      EXPECT_EQ(port, w);
      EXPECT_EQ(p.opcode, kMessage[n]);
      EXPECT_EQ(p.target, (Address{worker(w, w).mac, worker(w, w).ip, kRocePort}));
      EXPECT_EQ(p.source, (Address{kSwitchMac, kSwitchIp, 0xc000}));
      EXPECT_EQ(p.queue_pair, 0x1000 * who + 1);
      EXPECT_EQ(p.sequence, (0xfffffe - who + n) & 0xffffff) << "wraps at 24 bits";
      if (begins(p.opcode)) {
        EXPECT_EQ(p.address, kAddress);
        EXPECT_EQ(p.remote_key, 0xabc0 + who);
        EXPECT_EQ(p.length, kLength);
      }
      if (has_immediate(p.opcode)) {
        EXPECT_EQ(p.message, 77);
        EXPECT_EQ(p.e0, 0) << "the largest";
        EXPECT_EQ(p.e1, 2);
      }
      for (int i = 0; i < kRoceElements; ++i) ASSERT_EQ(value(frame, i), 30 + 3 * i);
      EXPECT_EQ(load32(frame.data() + frame.size() - kIcrcBytes), 0u);
      EXPECT_EQ(ipv4_checksum(frame.data() + kIpAt), 0);
    }
  }
  EXPECT_EQ(sw.counters("a")->broadcasts, 4u);
  EXPECT_EQ(sw.counters("a")->sent, 12u);
}

TEST(RoceSums, StayMessagesWhereWorkersTakeTurns) {
  CompiledSwitch sw(plan_of({roce_job(2)}, 2));
  std::vector<RoceOpcode> opcodes;
  std::vector<std::uint32_t> sequences;
  const auto send = [&](int w, std::size_t n) {
    for (const auto& [port, frame] : answers(sw, w, write_of(w, n, 0, 1, 100))) {
      if (port != 1) continue;
      opcodes.push_back(read(frame).opcode);
      sequences.push_back(read(frame).sequence);
    }
  };
  for (const auto& [w, n] :
       {std::pair{0, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}})
    send(w, static_cast<std::size_t>(n));
  EXPECT_EQ(opcodes, std::vector(kMessage.begin(), kMessage.end()));
  EXPECT_EQ(sequences, (std::vector<std::uint32_t>{0xfffffd, 0xfffffe, 0xffffff, 0}));
}

TEST(RoceSums, OfAMessageSentAgainGoToItsSenderAlone) {
  CompiledSwitch sw(plan_of({roce_job(2)}, 2));
  for (int w = 0; w < 2; ++w) {
    for (std::size_t n = 0; n < kMessage.size(); ++n) answers(sw, w, write_of(w, n, 0, w, 10));
  }
  for (std::size_t n = 0; n < kMessage.size(); ++n) {
    const auto out = answers(sw, 0, write_of(0, n, 0, 0, 14));
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].first, 0);
    EXPECT_EQ(read(out[0].second).sequence, (0xfffffe + 4 + n) & 0xffffff);
    EXPECT_EQ(value(out[0].second, 5), 1 + 2 * 5);
  }
  EXPECT_EQ(sw.counters("a")->retransmissions, 4u);
}

TEST(RoceSums, TakeNothingAfterAGapUntilTheMessageIsSentAgain) {
  CompiledSwitch sw(plan_of({roce_job(2)}, 2));
  for (std::size_t n = 0; n < kMessage.size(); ++n) answers(sw, 1, write_of(1, n, 0, 100, 10));
  ASSERT_EQ(answers(sw, 0, write_of(0, 0, 0, 1, 10)).size(), 2u);
  // The second packet is lost.
  EXPECT_TRUE(answers(sw, 0, write_of(0, 2, 0, 1, 10)).empty());
  EXPECT_TRUE(answers(sw, 0, write_of(0, 3, 0, 1, 10)).empty());
  EXPECT_EQ(sw.counters("a")->gaps, 2u);
  EXPECT_EQ(answers(sw, 0, write_of(0, 0, 0, 1, 20)).size(), 1u) << "complete before";
  for (std::size_t n = 1; n < kMessage.size(); ++n) {
    const auto out = answers(sw, 0, write_of(0, n, 0, 1, 20));
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(value(out[0].second, 0), 101);
  }
}

TEST(RoceSums, OfSeveralQueuePairsFollowTheirOwnMessages) {
  CompiledSwitch sw(plan_of({roce_job(2, 2)}, 2));
  for (std::size_t n = 0; n < kMessage.size(); ++n) {  // alternating between both
    for (int q = 0; q < 2; ++q) answers(sw, 0, write_of(0, n, 4 * q, 10 * q, 1, q));
  }
  for (int q = 0; q < 2; ++q) {
    for (std::size_t n = 0; n < kMessage.size(); ++n) {
      const auto out = answers(sw, 1, write_of(1, n, 4 * q, 1, 1, q));
      ASSERT_EQ(out.size(), 2u);
      EXPECT_EQ(value(out[0].second, 0), 10 * q + 1);
      EXPECT_EQ(read(out[0].second).queue_pair, 1u + static_cast<unsigned>(q));
    }
  }
}

TEST(RoceSums, AreNotTouchedByStrangers) {
  CompiledSwitch sw(plan_of({roce_job(2)}, 3));
  ASSERT_TRUE(answers(sw, 0, write_of(0, 0, 0, 5, 10)).empty());
  const auto turned_away = [&](int port, const Bytes& frame, const char* why) {
    const std::uint64_t before = sw.port(port).strangers;
    EXPECT_TRUE(answers(sw, port, frame).empty()) << why;
    EXPECT_EQ(sw.port(port).strangers, before + 1) << why;
  };
  turned_away(2, write_of(1, 0, 0, 99, 10), "right address, wrong port");
  turned_away(1, write_of(2, 0, 0, 99, 10), "right port, wrong address");
  turned_away(1, write_of(1, 0, 8, 99, 10), "a slot beyond the job's");
  turned_away(1, write_of(1, 0, 0, 99, 10, 1), "a queue pair that it does not have");
  Bytes other = write_of(1, 0, 0, 99, 10);
  store32(other.data() + kUdpHeaderBytes + 4, switch_queue_pair(0, 0));
  turned_away(1, other, "the other worker's queue pair");
  const auto out = answers(sw, 1, write_of(1, 0, 0, 6, 10));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(value(out[0].second, 0), 11);
}

TEST(RoceSums, EndWhereAMessageRunsOutOfItsJobsSlots) {
  CompiledSwitch sw(plan_of({roce_job(1, 1, 2)}, 1));
  EXPECT_EQ(answers(sw, 0, write_of(0, 0, 0, 1, 10)).size(), 1u);
  EXPECT_EQ(answers(sw, 0, write_of(0, 1, 0, 1, 10)).size(), 1u);
  EXPECT_TRUE(answers(sw, 0, write_of(0, 2, 0, 1, 10)).empty());
  EXPECT_TRUE(answers(sw, 0, write_of(0, 3, 0, 1, 10)).empty());
  EXPECT_EQ(sw.port(0).strangers, 1u);
  EXPECT_EQ(sw.counters("a")->gaps, 1u);
}

TEST(RoceSums, LeaveRdmaBetweenHostsAlone) {
  SwitchPlan plan = plan_of({roce_job(2)}, 2);
  plan.forward = {{worker(1, 1).mac, 1}};
  CompiledSwitch sw(plan);
  Bytes frame = write_of(0, 0, 0, 1, 10);
  std::memcpy(frame.data(), worker(1, 1).mac.data(), 6);
  store32(frame.data() + kIpAt + 16, worker(1, 1).ip);
  const auto out = answers(sw, 0, frame);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].first, 1);
  EXPECT_EQ(out[0].second, frame);
}

TEST(RoceSums, ThatAreMalformedAreCounted) {
  CompiledSwitch sw(plan_of({roce_job(1)}, 1));
  Bytes frame = write_of(0, 0, 0, 1, 10);
  frame[kUdpHeaderBytes] = std::byte{0x04};  // a send over a reliable connection
  EXPECT_TRUE(answers(sw, 0, frame).empty());
  EXPECT_EQ(sw.port(0).malformed, 1u);
}

TEST(RoceSums, BeginAnewAfterAResetWhileResultsGoOn) {
  CompiledSwitch sw(plan_of({roce_job(2)}, 2));
  answers(sw, 0, write_of(0, 0, 0, 5, 10));
  ASSERT_EQ(answers(sw, 1, write_of(1, 0, 0, 5, 10)).size(), 2u);
  ASSERT_TRUE(sw.reset("a"));
  EXPECT_TRUE(answers(sw, 0, write_of(0, 1, 0, 5, 10)).empty()) << "its message is forgotten";
  EXPECT_TRUE(answers(sw, 0, write_of(0, 0, 0, 7, 20)).empty());
  const auto out = answers(sw, 1, write_of(1, 0, 0, 8, 20));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(value(out[0].second, 0), 15);
  EXPECT_EQ(read(out[0].second).sequence, 0xffffffu);
}

TEST(RoceJob, IsRefusedWhereItDoesNotFit) {
  const auto refusal = [](JobPlan job, std::vector<JobPlan> others = {}) {
    return reason_to_refuse(plan_of(std::move(others), 4), job);
  };
  EXPECT_EQ(refusal(roce_job(2)), "");
  JobPlan job = roce_job(2);
  job.elements = 64;
  EXPECT_THAT(refusal(job), HasSubstr("256 elements, not 64"));
  job = roce_job(2);
  job.uplink = Uplink{3, {}, 1};
  EXPECT_THAT(refusal(job), HasSubstr("has no uplink"));
  EXPECT_THAT(refusal(roce_job(2, 0)), HasSubstr("1 to 512 queue_pairs, not 0"));
  job = roce_job(2);
  job.workers[1].queue_pairs.push_back({9, 0});
  EXPECT_THAT(refusal(job), HasSubstr("worker 1 has 2 queue_pairs, worker 0 has 1"));
  job = roce_job(2);
  job.format = Format::udp;
  EXPECT_THAT(refusal(job), HasSubstr("queue pairs belong to a job of format roce"));
  job = roce_job(2);
  job.name = "b";
  job.first_slot = 100;
  EXPECT_THAT(refusal(job, {roce_job(2)}), HasSubstr("queue pairs of that number in job 'a'"));
  JobPlan over_udp = job_of(2, 256);
  over_udp.name = "b";
  EXPECT_EQ(refusal(over_udp, {roce_job(2)}), "") << "the two formats do not meet";
}

}  // namespace
}  // namespace ghostrank::switchml
