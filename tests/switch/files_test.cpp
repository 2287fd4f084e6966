// A switch on pcap files: workers that lose, repeat and delay chunks, written as captures, played
// by the switch, and compared packet by packet with the reference.
#include <deque>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "switch/ports/live.h"
#include "switch/ports/pcap_file.h"
#include "tests/switch/reference.h"
#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

namespace fs = std::filesystem;

struct Scenario {
  int workers = 4, elements = 64, slots = 4, rounds = 20;
  double repeat = 0;  // probability that a chunk is repeated, at once or later
  int first_slot = 0;
  unsigned seed = 1;
};

// The chunks of all workers in the order of their arrival at the switch: no worker starts the next
// round of a slot before the round is complete, and repetitions stay in order.
struct Arrival {
  int worker, slot, set;
  std::int32_t first;
};

std::vector<Arrival> arrivals_of(const Scenario& s) {
  std::mt19937 random(s.seed);
  const auto chance = [&](double p) { return static_cast<double>(random() % 10'000) < p * 10'000; };
  std::vector<Arrival> all;
  std::vector<std::vector<Arrival>> previous(s.slots);
  for (int round = 0; round < s.rounds; ++round) {
    for (int slot = 0; slot < s.slots; ++slot) {
      std::vector<Arrival> now;
      for (int w = 0; w < s.workers; ++w) {
        // Large numbers, so that sums wrap.
        now.push_back({w, s.first_slot + slot, round % 2, static_cast<std::int32_t>(random())});
      }
      std::shuffle(now.begin(), now.end(), random);
      for (const Arrival& a : now) {
        // A worker that has not gone on retransmits the round before.
        for (const Arrival& old : previous[slot]) {
          if (old.worker == a.worker && chance(s.repeat)) all.push_back(old);
        }
        all.push_back(a);
        while (chance(s.repeat)) all.push_back(a);
      }
      for (const Arrival& a : now) {
        if (chance(s.repeat)) all.push_back(a);
      }
      previous[slot] = now;
    }
  }
  return all;
}

class SwitchOnFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("switch." + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string in(int port) const {
    return (folder_ / ("in" + std::to_string(port) + ".pcap")).string();
  }
  std::string out(int port) const {
    return (folder_ / ("out" + std::to_string(port) + ".pcap")).string();
  }

  void play(const Scenario& s) {
    const std::vector<Arrival> arrivals = arrivals_of(s);
    write_inputs(s, arrivals);
    JobPlan job = job_of(s.workers, s.elements, s.slots);
    job.first_slot = s.first_slot;
    CompiledSwitch sw(plan_of({job}, s.workers));
    std::vector<PortName> ports;
    for (int w = 0; w < s.workers; ++w) ports.push_back({{}, in(w), out(w)});
    const std::atomic<bool> stop{false};
    run(sw, *open_files(ports), {}, stop);
    compare(s, arrivals);
  }

 private:
  void write_inputs(const Scenario& s, const std::vector<Arrival>& arrivals) {
    std::vector<std::unique_ptr<PcapWriter>> writers;
    for (int w = 0; w < s.workers; ++w) writers.push_back(std::make_unique<PcapWriter>(in(w)));
    std::uint64_t time = 1'000;
    for (const Arrival& a : arrivals) {
      const Bytes frame = chunk(a.worker, a.slot, a.set, a.first, s.elements);
      std::memcpy(writers[a.worker]->frame(time++, frame.size()), frame.data(), frame.size());
    }
  }

  void compare(const Scenario& s, const std::vector<Arrival>& arrivals) {
    // Element i of a sum is the first one plus i times the number of summands, modulo 2^32, so the
    // reference computes only the first and the last.
    Reference first(s.workers), last(s.workers);
    const auto step = static_cast<std::uint32_t>(s.elements - 1);
    std::vector<std::deque<std::pair<std::uint32_t, std::uint32_t>>> expected(
        static_cast<std::size_t>(s.workers));
    for (const Arrival& a : arrivals) {
      const auto x = static_cast<std::uint32_t>(a.first);
      const auto [answer, sum] = first.receive(a.worker, a.slot, a.set, x);
      const auto [same, end] = last.receive(a.worker, a.slot, a.set, x + step);
      ASSERT_EQ(answer, same);
      for (int w = 0; w < s.workers; ++w) {
        if (answer == Answer::everybody || (answer == Answer::sender && w == a.worker))
          expected[w].emplace_back(sum, end);
      }
    }
    for (int w = 0; w < s.workers; ++w) {
      PcapReader reader(out(w));
      for (const auto& [sum, end] : expected[w]) {
        const auto frame = reader.next();
        ASSERT_TRUE(frame) << "port " << w;
        ASSERT_EQ(frame->bytes.size(), frame_bytes(s.elements));
        EXPECT_EQ(load32(frame->bytes.data() + kHeaderBytes), sum);
        EXPECT_EQ(load32(frame->bytes.data() + frame->bytes.size() - 4), end);
      }
      EXPECT_FALSE(reader.next()) << "port " << w;
    }
  }

  fs::path folder_;
};

TEST_F(SwitchOnFiles, GivesTheReferencesAnswersForEveryNumberOfWorkers) {
  for (int workers = 1; workers <= kMaxWorkers; ++workers) {
    SCOPED_TRACE(workers);
    play({.workers = workers, .elements = 32, .rounds = 6, .repeat = 0.1, .seed = 5});
  }
}

TEST_F(SwitchOnFiles, GivesTheReferencesAnswersForEveryNumberOfElements) {
  for (const int elements : {32, 64, 256}) {
    SCOPED_TRACE(elements);
    play({.elements = elements, .rounds = 50, .repeat = 0.3, .seed = 2});
  }
}

TEST_F(SwitchOnFiles, ServesTheLastSlot) {
  play({.elements = 32, .slots = 2, .repeat = 0.2, .first_slot = kMaxSlots - 2});
}

TEST_F(SwitchOnFiles, LeavesOutputsAloneWhereAnInputIsMissing) {
  PcapWriter(out(0)).finish();
  fs::resize_file(out(0), 1000);
  EXPECT_THROW(open_files({{{}, {}, out(0)}, {{}, in(1), {}}}), std::runtime_error);
  EXPECT_EQ(fs::file_size(out(0)), 1000);
}

TEST_F(SwitchOnFiles, TellsFilesFromInterfaces) {
  EXPECT_EQ(port_named("eth0").interface, "eth0");
  EXPECT_FALSE(port_named("eth0").xdp);
  EXPECT_EQ(port_named("xdp:eth0").interface, "eth0");
  EXPECT_TRUE(port_named("xdp:eth0").xdp);
  EXPECT_EQ(port_named("a.pcap").in, "a.pcap");
  EXPECT_EQ(port_named("a:b").in, "a");
  EXPECT_EQ(port_named("a:b").out, "b");
  EXPECT_EQ(port_named(":b").in, "");
}

}  // namespace
}  // namespace ghostrank::switchml
