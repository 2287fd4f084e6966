// The engine's small parts, one by one.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "emulator/common/blob.h"
#include "emulator/host/host_facts.h"
#include "emulator/network/port.h"
#include "emulator/result/histogram.h"
#include "emulator/segment.h"
#include "emulator/shard/timer_queue.h"
#include "emulator/traffic/call_traffic.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/ledger.h"
#include "emulator/traffic/step_table.h"
#include "emulator/verify/rank_data.h"
#include "profiles/error.h"
#include "profiles/model/model.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

struct Numbered {  // the members that the queue needs, and a number
  Moment t;
  std::uint32_t rank = 0, order = 0;
  int number = 0;
};

TEST(TimerQueue, FiresByTimeThenRankThenOrderOfScheduling) {
  std::mt19937 random(7);
  for (const auto ties :
       {TimerQueue<Numbered>::Ties::by_rank, TimerQueue<Numbered>::Ties::as_they_come}) {
    TimerQueue<Numbered> queue(ties);
    std::vector<std::tuple<Picoseconds, std::uint32_t, int>> all;
    for (int i = 0; i < 5000; ++i) {
      const auto at = static_cast<Picoseconds>(random() % 100);
      const auto rank = static_cast<std::uint32_t>(random() % 10);
      queue.push(at, rank).number = i;
      all.emplace_back(at, ties == TimerQueue<Numbered>::Ties::by_rank ? rank : 0, i);
    }
    std::sort(all.begin(), all.end());
    for (const auto& [at, rank, number] : all) {
      const Numbered& e = queue.pop();
      EXPECT_EQ(e.t.at, at);
      EXPECT_EQ(e.number, number);
    }
    EXPECT_TRUE(queue.empty());
  }
}

TEST(TimerQueue, KeepsItsOrderWhilePushesAndPopsAlternate) {
  std::mt19937 random(11);
  TimerQueue<Numbered> queue;
  Picoseconds now = 0;
  for (int i = 0; i < 20000; ++i) {
    if (queue.empty() || random() % 2) {
      const Picoseconds at = now + static_cast<Picoseconds>(random() % 1000);
      random() % 8 ? queue.push(at, 0) : queue.push_far(at, 0);
    } else {
      const Picoseconds at = queue.pop().t.at;
      ASSERT_GE(at, now);
      now = at;
    }
  }
}

// Sorted runs of several blocks, and both heaps.
TEST(TimerQueue, FindsWhatIsPendingAndNothingElse) {
  std::mt19937 random(17);
  TimerQueue<Numbered> queue;
  std::set<int> pending;
  Picoseconds now = 0;
  for (int i = 0; i < 5000; ++i) {
    const bool grows = i / 500 % 2 == 0;
    if (queue.empty() || random() % 8 < (grows ? 6 : 2)) {
      const Picoseconds at = now + static_cast<Picoseconds>(random() % 1000);
      (random() % 8 ? queue.push(at, 0) : queue.push_far(at, 0)).number = i;
      pending.insert(i);
    } else {
      const Numbered& popped = queue.pop();
      now = popped.t.at;
      pending.erase(popped.number);
    }
    if (i % 50 != 0) continue;
    std::set<int> seen;
    EXPECT_FALSE(queue.any([&](const Numbered& e) { return !seen.insert(e.number).second; }));
    ASSERT_EQ(seen, pending);
    if (pending.empty()) continue;
    const int last = *pending.rbegin();
    EXPECT_TRUE(queue.any([&](const Numbered& e) { return e.number == last; }));
  }
}

// Holds even for the last of a block, and when pushes allocate further blocks.
TEST(TimerQueue, WhatWasPoppedStaysAsItIsUntilTheNextPop) {
  std::mt19937 random(13);
  TimerQueue<Numbered> queue;
  int number = 0;
  for (int pushes = 0; pushes < 300; ++pushes) {
    const auto push = [&] {
      queue.push(static_cast<Picoseconds>(number / 3), 0).number = number;
      ++number;
    };
    push();
    const int& popped = queue.pop().number;
    const int was = popped;
    for (int i = 0; i < pushes; ++i) push();
    ASSERT_EQ(popped, was);
    while (random() % 64 && !queue.empty()) queue.pop();
    if (random() % 4 == 0) queue.trim();
  }
}

std::unique_ptr<Schedule> ring(int size) {
  Communicator comm;
  comm.node_of.assign(size, 0);
  return find_algorithm("generic", Func::all_reduce, "ring")
      ->make({Func::all_reduce, size, 64}, comm);
}

TEST(StepTable, HasTheStepsOfASmallScheduleAsItSaysThem) {
  const auto schedule = ring(16);
  StepTable table;
  std::size_t left = StepTable::kMostSteps;
  for (GroupRank r = 0; r < 16; ++r) {
    const Step* steps = table.of(*schedule, r, left);
    ASSERT_NE(steps, nullptr);
    EXPECT_EQ(left, StepTable::kMostSteps - 16u * 31u);
    for (int a = 0; a < schedule->actors(r); ++a) {
      for (int k = 0; k < schedule->actor(r, a).steps; ++k, ++steps) {
        const Step step = schedule->step(r, a, k);
        EXPECT_EQ(steps->send, step.send);
        EXPECT_EQ(steps->recv, step.recv);
        EXPECT_EQ(steps->send_to.empty(), step.send_to.empty());
        EXPECT_EQ(steps->on_recv, step.on_recv);
      }
    }
  }
}

TEST(StepTable, KeepsNothingOfALongScheduleNorBeyondItsBound) {
  std::size_t left = StepTable::kMostSteps;
  EXPECT_EQ(StepTable().of(*ring(1000), 0, left), nullptr);
  EXPECT_EQ(left, StepTable::kMostSteps);
  left = 100;
  EXPECT_EQ(StepTable().of(*ring(16), 0, left), nullptr);
  EXPECT_EQ(left, 100u);
}

TEST(Histogram, QuantilesAreWithinThreePercent) {
  Histogram h;
  for (std::uint64_t v = 1; v <= 100'000; ++v) h.add(v);
  for (double q : {0.01, 0.5, 0.9, 0.99}) {
    const double exact = q * 100'000;
    EXPECT_NEAR(static_cast<double>(h.quantile(q)), exact, 0.032 * exact + 1);
  }
  EXPECT_EQ(h.max(), 100'000u);
  h.add(~0ULL);
  EXPECT_EQ(h.max(), ~0ULL);
}

TEST(Histogram, KeepsItsQuantilesBeyondFourBillionSamples) {
  Histogram h;
  h.add(100);
  for (int doublings = 0; doublings < 33; ++doublings) h.merge(Histogram(h));
  h.add(1'000'000);
  EXPECT_EQ(h.count(), (1ULL << 33) + 1);
  EXPECT_EQ(h.quantile(0.5), 100u);
  EXPECT_EQ(h.quantile(0.999), 100u);
}

TEST(Port, SerialisesWhatLeavesAndWhatArrives) {
  const LinkSpeed speed = LinkSpeed::from_rate(400e9, 0);
  EXPECT_EQ(speed.serialise(1), 20);
  Port port;
  EXPECT_EQ(port.take_egress({100}, 50).at, 100);
  EXPECT_EQ(port.take_egress({100}, 50).at, 150);
  EXPECT_EQ(port.take_egress({1000}, 50).at, 1000);
  EXPECT_EQ(port.take_ingress({500}, 50).at, 500);  // idle: in when its last byte arrives
  EXPECT_EQ(port.take_ingress({510}, 50).at, 550);  // behind the other
  EXPECT_EQ(LinkSpeed::from_rate(0, 0).serialise(1 << 20), 0);
}

TEST(Ledger, SpillsPartialSumsWhenItOutgrowsItsBound) {
  const std::string path = ::testing::TempDir() + "ghostrank_spill.csv";
  std::remove(path.c_str());
  Ledger ledger(4, path);
  for (int round = 0; round < 3; ++round) {
    for (int nic = 0; nic < 5; ++nic) ledger.add({Nic(nic), Nic(nic + 1), 0}, {100, 1});
  }
  const std::vector<LedgerRow> rest = ledger.rows();
  EXPECT_TRUE(ledger.spilled());
  std::uint64_t bytes = 0, messages = 0;
  for (const auto& [key, cell] : rest) bytes += cell.bytes, messages += cell.messages;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "source_nic,target_nic,row,bytes,messages");
  while (std::getline(in, line)) {
    unsigned long long b = 0, m = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "%*d,%*d,%*d,%llu,%llu", &b, &m), 2);
    bytes += b, messages += m;
  }
  EXPECT_EQ(bytes, 1500u);
  EXPECT_EQ(messages, 15u);
  std::remove(path.c_str());
}

// /dev/full accepts writes and fails when they are flushed.
TEST(Ledger, CountsOnWhenItsFileCannotBeWrittenAndSaysSoOnce) {
  Ledger ledger(4, "/dev/full");
  int thrown = 0;
  for (int round = 0; round < 30; ++round) {
    for (int nic = 0; nic < 5; ++nic) {
      try {
        ledger.add({Nic(nic), Nic(nic + 1), 0}, {100, 1});
      } catch (const Error& error) {
        ++thrown;
        EXPECT_NE(std::string(error.what()).find("/dev/full: No space left on device"),
                  std::string::npos)
            << error.what();
      }
    }
  }
  EXPECT_EQ(thrown, 1);
  EXPECT_NE(ledger.failure(), "");
  const std::vector<LedgerRow> rest = ledger.rows();
  VectorBy<Nic, NicCount> nics = ledger.spilled_by_nic();
  for (const LedgerRow& row : rest) count_at_nics(row, nics);
  LedgerCell sent;
  for (const NicCount& nic : nics) sent += nic.sent;
  EXPECT_EQ(sent.bytes, 15'000u);
  EXPECT_EQ(sent.messages, 150u);
  EXPECT_EQ(nics.back().received.messages, 30u);
}

TEST(Ledger, CountsEachKeyApartHoweverManyThereAre) {
  Ledger ledger;
  constexpr int kNics = 300;
  for (int round = 0; round < 2; ++round)
    for (int nic = 0; nic < kNics; ++nic)
      for (std::uint16_t row = 0; row < 3; ++row)
        ledger.add({Nic(nic), Nic(nic ^ 1), row}, {static_cast<std::uint64_t>(nic), 1});
  const std::vector<LedgerRow> rows = ledger.rows();
  EXPECT_EQ(rows.size(), 3u * kNics);
  for (const auto& [key, count] : rows) {
    EXPECT_EQ(key.target_nic, Nic(key.source_nic.value() ^ 1));
    EXPECT_EQ(count.bytes, 2u * key.source_nic.index());
    EXPECT_EQ(count.messages, 2u);
  }
  ledger.clear();
  EXPECT_TRUE(ledger.rows().empty());
}

TEST(Blob, GivesBackWhatWasPutAndNeverReadsPastItsEnd) {
  BlobWriter w;
  w.put(42);
  w.put(std::string("text"));
  w.put(std::vector<double>{1.5, 2.5});
  const std::string bytes = w.bytes();
  int number = 0;
  std::string text;
  std::vector<double> values;
  BlobReader r(bytes);
  r.get(number), r.get(text), r.get(values);
  EXPECT_FALSE(r.bad());
  EXPECT_EQ(number, 42);
  EXPECT_EQ(text, "text");
  EXPECT_EQ(values, (std::vector<double>{1.5, 2.5}));
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    BlobReader shorter(std::string_view(bytes).substr(0, cut));
    shorter.get(number), shorter.get(text), shorter.get(values);
    EXPECT_TRUE(shorter.bad()) << cut;
  }
}

TEST(Blob, OfTextIsItsLengthAndItsBytesWhateverHoldsIt) {
  const std::string wanted("\4\0\0\0text", 8);
  EXPECT_EQ(BlobWriter().put("text").bytes(), wanted);
  EXPECT_EQ(BlobWriter().put(std::string("text")).bytes(), wanted);
  EXPECT_EQ(BlobWriter().put(std::string_view("text")).bytes(), wanted);
  EXPECT_EQ(BlobReader(wanted).get<std::string>(), "text");
}

TEST(Blob, TakesNoMemoryForWhatItsLengthsClaim) {
  constexpr std::uint32_t kClaimed = ~0u;  // a reader that believed it would take 4 to 128 GiB
  for (const std::string& behind : {std::string(), std::string(100, 'x')}) {
    const std::string claim = BlobWriter().put(kClaimed).bytes() + behind;
    std::string text = "before";
    std::vector<double> values;
    std::vector<std::string> texts;
    const auto goes_bad = [&](auto& into) {
      BlobReader r(claim);
      r.get(into);
      EXPECT_TRUE(r.bad());
      EXPECT_FALSE(r.complete());
      EXPECT_TRUE(into.empty());
      EXPECT_LE(into.capacity(), 100u);
      EXPECT_EQ(r.template get<std::uint8_t>(), 0)
          << "bytes behind what was malformed are not read";
    };
    goes_bad(text), goes_bad(values), goes_bad(texts);
  }
  // Two texts, the second of which has no length.
  std::vector<std::string> texts;
  BlobReader r(std::string_view("\2\0\0\0\1\0\0\0\1\0\0\0", 12));
  r.get(texts);
  EXPECT_TRUE(r.bad());
}

TEST(Blob, ReadsNoTruthButZeroAndOne) {
  for (const int byte : {0, 1, 2, 255}) {
    const std::string bytes(1, static_cast<char>(byte));
    BlobReader r(bytes);
    EXPECT_EQ(r.get<bool>(), byte == 1);
    EXPECT_EQ(r.bad(), byte > 1);
  }
}

TEST(SegmentReport, SurvivesItsJourney) {
  SegmentReport report;
  report.host = {Host(3), "node3", "net", "tcp-cubic", 32, 1000, 1.5};
  report.lateness_ns.add(17);
  report.end = {5, 6};
  report.checked = 7;
  report.rows.push_back({2, 200, {0, kPicosPerSecond / 2}, {}});
  for (int i = 0; i < 2; ++i) report.rows.back().seconds.add(0.25, i);
  report.rows.back().without_lateness.add(0.125, 0);
  report.held_up = 0.03;
  report.throttled = -1;
  report.ledger.push_back({{Nic(1), Nic(2), 3}, {400, 4}});
  report.interfaces.push_back(
      {Host(3), "gr3", "eth0", 10, std::nullopt, true, {{5, std::nullopt}}, {{"rx_dropped", 3}}});
  report.spilled = 1;
  report.spilled_by_nic = {{{100, 1}, {200, 2}}};
  report.spill_paths = {"pairs.csv.0", "pairs.csv.1"};
  report.gaps = {{{1, 2}, {3, kEndless}}, {}};
  report.spans.push_back({WorldRank(1), Host(3), 0, 1, "bucket 0", 10, 20, 4096});
  const SegmentReport copy = SegmentReport::from_blob(report.to_blob()).value();
  EXPECT_EQ(copy.host.hostname, "node3");
  EXPECT_EQ(copy.lateness_ns.max(), 17u);
  EXPECT_EQ(copy.lateness_ns.quantile(0.5), 17u);
  EXPECT_EQ(copy.end.slip, 6);
  EXPECT_EQ(copy.held_up, report.held_up);
  EXPECT_EQ(copy.throttled, -1);
  EXPECT_EQ(copy.rows.at(0).without_lateness.values(), (std::vector{0.125f}));
  EXPECT_EQ(copy.rows.at(0).seconds.values(), (std::vector{0.25f, 0.25f}));
  EXPECT_EQ(copy.ledger.at(0).count.bytes, 400u);
  EXPECT_EQ(copy.interfaces.at(0).tx_bytes, 10u);
  EXPECT_FALSE(copy.interfaces.at(0).rx_bytes.has_value());
  EXPECT_EQ(copy.interfaces.at(0).network_namespace, "gr3");
  EXPECT_TRUE(copy.interfaces.at(0).loopback);
  EXPECT_EQ(copy.interfaces.at(0).iterations.at(0).tx_bytes, 5u);
  EXPECT_EQ(copy.interfaces.at(0).counters.at(0).second, 3u);
  EXPECT_EQ(copy.spilled, 1u);
  EXPECT_EQ(copy.spilled_by_nic.at(Nic(0)).received.bytes, 200u);
  EXPECT_EQ(copy.spill_paths.at(1), "pairs.csv.1");
  EXPECT_EQ(copy.gaps.at(0).at(1).from, 3);
  EXPECT_EQ(copy.spans.at(0).label, "bucket 0");
}

// What a late message keeps waiting is late through it, although it was ready in time itself.
TEST(Port, GivesItsSlipToWhatWaitsForIt) {
  Port port;
  EXPECT_EQ(port.take_egress({100, 40}, 50).slip, 40);
  EXPECT_EQ(port.take_egress({120, 0}, 50).slip, 40);
  EXPECT_EQ(port.take_egress({500, 7}, 50).slip, 7);
  EXPECT_EQ(port.take_ingress({500, 30}, 50).slip, 30);
  EXPECT_EQ(port.take_ingress({510, 0}, 50).slip, 30);
  EXPECT_EQ(port.take_ingress({900, 0}, 50).slip, 0);
}

TEST(Judge, EachThresholdAloneMakesARunUnfaithful) {
  JobSpec spec;
  spec.fabric.kind = FabricKind::ofi;
  SegmentReport good;
  good.end.at = kPicosPerSecond;
  good.median_seconds = 0.1;
  EXPECT_TRUE(judge(good, spec, 10).faithful);
  const auto reason = [&](auto spoil) {
    SegmentReport bad = good;
    spoil(bad);
    const Fidelity f = judge(bad, spec, 10);
    EXPECT_FALSE(f.faithful);
    return f.reason;
  };
  EXPECT_NE(reason([](auto& s) { s.median_error = 0.02; }).find("critical path 2.00 %"),
            std::string::npos);
  EXPECT_NE(
      reason([](auto& s) { s.wall_behind = kPicosPerSecond / 500; }).find("critical path 2.00 %"),
      std::string::npos);
  EXPECT_NE(reason([](auto& s) { s.held_up = s.queued = 0.02; }).find("waiting for a core"),
            std::string::npos);
  EXPECT_NE(reason([](auto& s) { s.loop_busy = 0.9; }).find("loop busy"), std::string::npos);
  EXPECT_NE(reason([](auto& s) { s.paced = 1000, s.pace_error = 20; }).find("paced rate"),
            std::string::npos);
}

// A host that is held up at work may delay messages unseen; a wait that ends late shows.
TEST(Judge, AddsWhatWasTakenFromAHostToTheLatenessThatItSaw) {
  JobSpec spec;
  spec.fabric.kind = FabricKind::ofi;
  SegmentReport run;
  run.end.at = kPicosPerSecond;
  run.median_error = 0.006;
  run.held_up = run.taken = 0.006;
  EXPECT_FALSE(judge(run, spec, 10).faithful);
  run.taken = 0.001;
  EXPECT_TRUE(judge(run, spec, 10).faithful);
}

// In memory all lateness shows in the result's own times, so being held up alone spoils nothing.
TEST(Judge, DoesNotHoldWaitingAgainstAResultThatIsExact) {
  SegmentReport run;
  run.end.at = kPicosPerSecond;
  run.held_up = run.taken = run.queued = 0.018;
  const Fidelity f = judge(run, JobSpec(), 10);
  EXPECT_TRUE(f.faithful) << f.reason;
  EXPECT_EQ(f.run_queue_wait, 0.018);
}

TEST(Judge, StepTimesOfAssumedComputeAreNotValid) {
  SegmentReport good;
  good.end.at = kPicosPerSecond;
  const auto model = std::make_shared<Model>();
  model->transformer.emplace();
  JobSpec spec;
  spec.model = model;
  spec.device.step_time_error = 0.05;
  const auto judged = [&](const SegmentReport& sum, FabricKind kind) {
    spec.fabric.kind = kind;
    return judge(sum, spec, 10);
  };
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time})
    for (const SegmentReport& sum : {good, SegmentReport{}}) {
      spec.device.multiprocessors = 0;
      const Fidelity assumed = judged(sum, kind);
      EXPECT_TRUE(assumed.faithful);
      EXPECT_TRUE(assumed.assumed_compute);
      EXPECT_EQ(assumed.model_error, 0);
      EXPECT_EQ(assumed.valid_for, (std::vector<std::string>{"bytes", "order"}));
      spec.device.multiprocessors = 108;
      spec.device.calibration = Calibration::fitted;
      const Fidelity fitted = judged(sum, kind);
      EXPECT_FALSE(fitted.assumed_compute);
      EXPECT_EQ(fitted.model_error, 0.05);
      EXPECT_EQ(fitted.valid_for.back(), "step_time");
      spec.device.calibration = Calibration::assumed;
    }
}

TEST(Judge, ARunInWhichNoTimePassedIsNotLate) {
  SegmentReport nothing;
  nothing.loop_busy = 1;
  nothing.held_up = 0.5;
  EXPECT_TRUE(judge(nothing, JobSpec(), 1).faithful);
}

TEST(Judge, AdvisesWhatHelpsAgainstTheReason) {
  JobSpec memory, network;
  network.fabric.kind = FabricKind::ofi;
  SegmentReport run;
  run.end.at = kPicosPerSecond;
  const auto advice = [&](const JobSpec& spec) {
    return remedy_for(judge(run, spec, 10).reason, "scale.dilation");
  };
  const std::string accept = ", or accept it with --allow-unfaithful";
  run.held_up = run.queued = 0.02;
  EXPECT_EQ(advice(network), "stop other programs on this machine" + accept);
  run.throttled = 0.02;
  EXPECT_EQ(advice(network), "give its control group more CPU time (cpu.max)" + accept);
  run.throttled = run.queued = 0;
  EXPECT_EQ(advice(network), "find what stops this process or this machine" + accept);
  run.queued = 0.02;
  run.loop_busy = 0.9;
  EXPECT_EQ(advice(network),
            "stop other programs on this machine, or raise scale.dilation" + accept);
  run.held_up = run.queued = 0;
  EXPECT_EQ(advice(network), "raise scale.dilation" + accept);
  run.loop_busy = 0;
  run.median_error = 0.05;
  EXPECT_EQ(advice(memory), "raise scale.dilation" + accept);
  run.held_up = run.queued = 0.1;  // that is where the lateness comes from
  EXPECT_EQ(advice(memory),
            "stop other programs on this machine, or raise scale.dilation" + accept);
}

TEST(Judge, CongestionIsValidOnlyUndilatedOnARealFabric) {
  JobSpec spec;
  SegmentReport good;
  good.end.at = kPicosPerSecond;
  const auto valid = [&](FabricKind kind, double dilation) {
    spec.fabric.kind = kind;
    const auto list = judge(good, spec, dilation).valid_for;
    return std::find(list.begin(), list.end(), "congestion") != list.end();
  };
  EXPECT_TRUE(valid(FabricKind::ofi, 1));
  EXPECT_FALSE(valid(FabricKind::ofi, 2));
  EXPECT_FALSE(valid(FabricKind::memory, 1));
  EXPECT_FALSE(valid(FabricKind::virtual_time, 1));
}

// The contributions of the ranks of an all-reduce, and the first rank's sum of all of them.
class AllReduce {
 public:
  AllReduce(int size, std::uint64_t count, DataType type)
      : type_(type), whole_{0, count, Buffer::work} {
    const Collective c{Func::all_reduce, size, count, bytes_of(type), 0};
    schedule_ = find_algorithm("generic", c.func, "ring")->make(c, {});
    first_ = of(0);
  }

  std::unique_ptr<RankData> of(GroupRank rank, std::uint64_t salt = 5) {
    return std::make_unique<RankData>(*schedule_, type_, rank, salt, spare_);
  }
  RankData& first() { return *first_; }
  std::vector<std::byte> copy(RankData& data) const {
    std::vector<std::byte> bytes(whole_.count * bytes_of(type_));
    data.read(whole_, bytes.data());
    return bytes;
  }
  // Adds in messages of `each` elements.
  void add(GroupRank rank, std::uint64_t each) {
    const std::vector<std::byte> theirs = copy(*of(rank));
    for (std::uint64_t at = 0; at < whole_.count; at += each)
      first_->write({at, std::min(each, whole_.count - at), Buffer::work},
                    theirs.data() + at * bytes_of(type_), Combine::reduce);
  }
  void add_others(std::uint64_t each) {
    for (GroupRank r = 1; r < schedule_->collective().size; ++r) add(r, each);
  }
  void put(RankData& into, const std::vector<std::byte>& from, std::size_t by = 0) const {
    into.write(whole_, from.data() + by * bytes_of(type_), Combine::copy);
  }

 private:
  DataType type_;
  Block whole_;
  SpareBuffers spare_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<RankData> first_;
};

constexpr DataType kEveryType[] = {DataType::int32, DataType::float32, DataType::bfloat16,
                                   DataType::int64, DataType::uint8};

TEST(Verify, NoticesEveryWrongElement) {
  for (DataType type : kEveryType) {
    for (int size : {1, 2, 7, 250, 251, 600}) {
      AllReduce call(size, 3000, type);
      call.add_others(size == 2 ? 100 : size == 7 ? 1500 : 3000);
      EXPECT_EQ(call.first().check().wrong, 0u) << size;
      EXPECT_EQ(call.first().check().elements, 3000u);
      std::vector<std::byte> sum = call.copy(call.first());
      const auto other = call.of(0, 6);
      call.put(*other, sum);
      EXPECT_GT(other->check().wrong, 2900u);  // from another call
      for (const std::size_t element : {0, 63, 64, 1023, 1024, 2999}) {
        std::byte& last = sum[element * bytes_of(type)];
        last ^= std::byte{1};
        call.put(call.first(), sum);
        EXPECT_EQ(call.first().check().wrong, 1u) << element;
        last ^= std::byte{1};
        call.put(call.first(), sum);
        EXPECT_EQ(call.first().check().wrong, 0u) << element;
      }
      if (size != 2 && size != 7) continue;
      call.add(size - 1, 7);  // add the last rank's share twice
      EXPECT_GT(call.first().check().wrong, 1500u);
    }
  }
}

// A tile found right is checked again when a part of it has been written.
TEST(Verify, NoticesWhatIsSpoiledLater) {
  AllReduce call(3, 5000, DataType::float32);
  call.add_others(5000);
  EXPECT_EQ(call.first().check().wrong, 0u);
  const std::vector<std::byte> zeros(4 * sizeof(float));
  for (const std::uint64_t at : {0, 1022, 2500, 4996}) {
    call.first().write({at, 4, Buffer::work}, zeros.data(), Combine::reduce);
    EXPECT_EQ(call.first().check().wrong, 0u) << at;
  }
  const std::vector<float> ones(4, 1);
  call.first().write({1022, 4, Buffer::work}, reinterpret_cast<const std::byte*>(ones.data()),
                     Combine::reduce);
  EXPECT_EQ(call.first().check().wrong, 4u);
  call.first().apply({{0, 8, Buffer::work}, {8, 8, Buffer::work}, Combine::reduce});
  EXPECT_GT(call.first().check().wrong, 4u);
}

TEST(Verify, NoticesWhatLiesAtAnotherPlace) {
  for (int size : {2, 600}) {
    AllReduce call(size, 20'000, DataType::int32), shorter(size, 8'000, DataType::int32);
    call.add_others(20'000);
    const std::vector<std::byte> sum = call.copy(call.first());
    for (std::size_t by : {1, 2, 512, 1023, 1024, 2048, 8192, 12'000}) {
      shorter.put(shorter.first(), sum, by);
      EXPECT_GT(shorter.first().check().wrong, 7'800u) << by;
    }
    shorter.put(shorter.first(), sum);
    EXPECT_EQ(shorter.first().check().wrong, 0u);
  }
}

TEST(Cluster, SpreadsNodesOverHostsAndShardsWithoutSplittingOne) {
  testing::SmallJob job(7, 2, FabricKind::memory);
  job.spec.run.shards = 2;
  for (bool cyclic : {false, true}) {
    job.spec.placement.cyclic = cyclic;
    const Cluster cluster(job.spec, job.workload, 3);
    std::size_t ranks = 0;
    for (const Host h : each<Host>(3)) {
      for (int s = 0; s < 2; ++s) {
        ranks += cluster.ranks_of(h, s).size();
        EXPECT_FALSE(cluster.ranks_of(h, s).empty());
      }
    }
    EXPECT_EQ(ranks, 14u);
    for (WorldRank r; r < WorldRank(14); r = r + 2) {
      EXPECT_EQ(cluster.location(r).host, cluster.location(r + 1).host);
      EXPECT_EQ(cluster.location(r).shard, cluster.location(r + 1).shard);
    }
    EXPECT_EQ(cluster.location(WorldRank(2)).host, Host(cyclic ? 1 : 0));
  }
}

TEST(LongestChain, OfARowWithoutAClosedFormIsThatOfItsLeastCall) {
  for (const Func func :
       {Func::all_reduce, Func::all_gather, Func::broadcast, Func::all_to_all_v}) {
    Algorithm row = *find_algorithm("generic", func, "auto");
    Collective c{func, 8, 1000, 4, 0};
    if (is_ragged(func)) c.counts = std::make_shared<const std::vector<std::uint64_t>>(64, 1000);
    const auto schedule = row.make(c, {{}, 1, 16, {1}});
    const int steps = row.cost(c).steps;
    row.cost = nullptr;
    EXPECT_EQ(longest_chain(row, *schedule), steps) << name_of(func);
    row.make = [](const Collective&, const Communicator&) -> std::unique_ptr<Schedule> {
      throw std::invalid_argument("not so few");
    };
    EXPECT_GE(longest_chain(row, *schedule), steps) << name_of(func);
  }
}

TEST(HostFacts, LoopbackIsReachedFromLoopback) {
  EXPECT_EQ(local_address_towards("127.0.0.1"), "127.0.0.1");
}

}  // namespace
}  // namespace ghostrank
