// Leaves and a spine of compiled switches, in every function, whatever becomes of packets between
// any two of them: every worker gets what it takes of a round, and a credit for the rest.
#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

constexpr int kElements = 32, kSlots = 2;

// Leaf l has the workers of `sizes[l]` on ports from 0 on, and the spine on the next one. All
// switches have one address.
class Leaves {
 public:
  Leaves(const std::vector<int>& sizes, unsigned seed) : sizes_(sizes), random_(seed) {
    JobPlan spine = job(0);
    spine.worker_port = kUdpPort;
    int first = 0;
    for (int l = 0; l < std::ssize(sizes); ++l) {
      spine.workers.push_back({l, kSwitchMac, kSwitchIp});
      spine.workers.back().workers = sizes[l];
      JobPlan leaf = job(first);
      for (int w = 0; w < sizes[l]; ++w) {
        leaf.workers.push_back(worker(first + w, w));
        place_.push_back({l, w});
      }
      leaf.uplink = Uplink{sizes[l], kSwitchMac, kSwitchIp};
      switches_.emplace_back(plan_of({leaf}, sizes[l] + 1));
      first += sizes[l];
    }
    switches_.emplace_back(plan_of({spine}, static_cast<int>(sizes.size())));
  }

  int workers() const { return static_cast<int>(place_.size()); }

  // A frame from a worker, and what it causes; some frames are lost, doubled or kept for later.
  void send(int w, const Bytes& frame) {
    pass(place_[w].first, place_[w].second, frame);
    while (!way_.empty()) {
      const auto [at, port, bytes] = way_.front();
      way_.pop_front();
      Tray tray;
      switches_[at].receive(port, bytes, tray);
      for (auto& [out, left] : tray.take()) leave(at, out, left);
    }
  }
  // What has come to a worker since it was last asked.
  std::vector<Bytes> arrived(int w) { return std::exchange(arrived_[w], {}); }

 private:
  struct OnTheWay {
    std::size_t at;
    int port;
    Bytes frame;
  };

  static JobPlan job(int first_worker) {
    JobPlan job = job_of(0, kElements, kSlots);
    job.guarded = job.all_functions = true;
    job.first_worker = first_worker;
    return job;
  }
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  void pass(std::size_t at, int port, const Bytes& frame) {
    if (pick(20) == 0) return;
    for (int copies = pick(20) == 0 ? 2 : 1; copies > 0; --copies)
      way_.push_back({at, port, frame});
    if (pick(20) == 0) late_.push_back({at, port, frame});
    if (late_.empty() || pick(10) != 0) return;
    way_.push_back(late_[pick(static_cast<int>(late_.size()))]);
  }

  void leave(std::size_t at, int port, const Bytes& frame) {
    if (at == sizes_.size()) return pass(static_cast<std::size_t>(port), sizes_[port], frame);
    if (port == sizes_[at]) return pass(sizes_.size(), static_cast<int>(at), frame);
    if (pick(20) == 0) return;
    const auto w = std::find(place_.begin(), place_.end(), std::pair(static_cast<int>(at), port));
    arrived_[static_cast<int>(w - place_.begin())].push_back(frame);
  }

  std::vector<int> sizes_;
  std::mt19937 random_;
  std::vector<CompiledSwitch> switches_;    // leaves, then the spine
  std::vector<std::pair<int, int>> place_;  // of a worker: leaf, port
  std::deque<OnTheWay> way_;
  std::vector<OnTheWay> late_;
  std::map<int, std::vector<Bytes>> arrived_;
};

// A round: who gives what, and who must get what.
struct Round {
  std::uint32_t id = 0;
  PacketType type = PacketType::everyone;
  int alone = 0;
  std::vector<std::int32_t> first;  // element of every worker

  bool gives(int w) const { return type != PacketType::from_one || w == alone; }
  bool takes(int w) const {
    return type == PacketType::everyone || (type == PacketType::to_one) == (w == alone);
  }
  Bytes packet(int w) const {
    Packet p = packet_from(w, kUdpPort, static_cast<int>(id) % kSlots,
                           static_cast<int>(id) / kSlots % 2, id, gives(w) ? kElements : 0);
    p.type = type;
    p.worker = static_cast<std::uint16_t>(alone);
    return frame_of(p, first[static_cast<std::size_t>(w)]);
  }
  // Whether the frame is this round's; it must then have what worker w takes.
  bool ends_with(int w, const Bytes& frame) const {
    Packet p;
    if (parse_result(frame, p) != Kind::switchml || p.id != id) return false;
    EXPECT_EQ(p.type, type);
    EXPECT_EQ(p.target.ip, worker(w, 0).ip);
    EXPECT_EQ(p.elements, takes(w) ? kElements : 0) << "worker " << w;
    std::uint32_t sum = 0, givers = 0;
    for (int v = 0; v < std::ssize(first); ++v) {
      if (!gives(v)) continue;
      sum += static_cast<std::uint32_t>(first[static_cast<std::size_t>(v)]);
      ++givers;
    }
    for (int i = 0; i < p.elements; ++i)
      EXPECT_EQ(load32(p.values + 4 * i), sum + givers * static_cast<std::uint32_t>(i));
    return true;
  }
};

void play(const std::vector<int>& sizes, unsigned seed) {
  Leaves leaves(sizes, seed);
  std::mt19937 random(seed + 1);
  const int workers = leaves.workers();
  for (std::uint32_t id = 1; id <= 60; ++id) {
    Round round{id,
                static_cast<PacketType>(1 + random() % 3),
                static_cast<int>(random() % static_cast<unsigned>(workers)),
                {}};
    for (int w = 0; w < workers; ++w) round.first.push_back(static_cast<std::int32_t>(random()));
    std::vector<int> waiting(static_cast<std::size_t>(workers));
    std::iota(waiting.begin(), waiting.end(), 0);
    for (int times = 0; !waiting.empty(); ++times) {
      ASSERT_LT(times, 100) << "worker " << waiting[0] << " gets no result of round " << id;
      std::shuffle(waiting.begin(), waiting.end(), random);
      for (const int w : waiting) leaves.send(w, round.packet(w));
      std::erase_if(waiting, [&](int w) {
        const std::vector<Bytes> frames = leaves.arrived(w);
        return std::ranges::any_of(frames, [&](const Bytes& f) { return round.ends_with(w, f); });
      });
    }
  }
}

TEST(LeavesAndSpine, GiveEveryWorkerWhatItTakesInEveryFunction) {
  const std::vector<int> shapes[] = {{2, 2}, {1, 3}, {1, 1, 1}, {5, 2, 4}};
  for (const std::vector<int>& sizes : shapes)
    for (unsigned seed = 0; seed < 20 && !::testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", leaf 0 of " + std::to_string(sizes[0]));
      play(sizes, 2 * seed);
    }
}

// To the spine, a leaf with one worker is that worker.
TEST(LeavesAndSpine, SendElementsToEveryLeafOfSeveralWorkers) {
  JobPlan spine = job_of(0, kElements, kSlots);
  spine.all_functions = true;
  for (int l = 0; l < 3; ++l) {
    spine.workers.push_back(worker(l, l));
    spine.workers.back().workers = l == 2 ? 1 : 2;  // workers 0 1, 2 3, 4
  }
  const auto sent = [&](PacketType type, int alone) {
    CompiledSwitch sw(plan_of({spine}, 3));
    std::string elements;
    for (int l = 0; l < 3; ++l) {
      Packet p = packet_from(l, kUdpPort, 0, 0, 1, kElements);
      p.type = type;
      p.worker = static_cast<std::uint16_t>(alone);
      for (const auto& [port, frame] : answers(sw, l, frame_of(p, 1))) {
        Packet result;
        EXPECT_EQ(parse_result(frame, result), Kind::switchml);
        elements += std::to_string(port) + (result.elements > 0 ? "+" : "-");
      }
    }
    return elements;
  };
  EXPECT_EQ(sent(PacketType::to_one, 3), "0+1+2-");
  EXPECT_EQ(sent(PacketType::to_one, kNobody), "0+1+2-");
  EXPECT_EQ(sent(PacketType::from_one, 3), "0+1+2+");
  EXPECT_EQ(sent(PacketType::from_one, 4), "0+1+2-");
  EXPECT_EQ(sent(PacketType::everyone, 0), "0+1+2+");
}

}  // namespace
}  // namespace ghostrank::switchml
