// The P4 program on DPDK and on bmv2 against the compiled switch: the same captures give the same
// frames, byte for byte and port by port. Skipped where ghostrank was built without DPDK, and bmv2
// where it is not on PATH.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "switch/ports/pcap_file.h"
#include "tests/switch/sparse_support.h"
#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

namespace fs = std::filesystem;

constexpr int kPorts = 4;

std::string mac_text(const Mac& mac) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
                mac[4], mac[5]);
  return text;
}

std::string ip_text(std::uint32_t ip) {
  return std::to_string(ip >> 24) + "." + std::to_string(ip >> 16 & 255) + "." +
         std::to_string(ip >> 8 & 255) + "." + std::to_string(ip & 255);
}

class SwitchTargets : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::path(GHOSTRANK_BINARY).parent_path() / "ghostrank-dpdk"))
      GTEST_SKIP() << "built without DPDK";
    make_folder();
  }
  void make_folder() {
    folder_ = fs::path(testing::TempDir()) / ("targets." + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  // Writes the input captures; frames arrive in the order of `frames`, over all ports.
  void input(const std::vector<std::pair<int, Bytes>>& frames) const {
    std::vector<std::unique_ptr<PcapWriter>> writers;
    for (int p = 0; p < kPorts; ++p)
      writers.push_back(std::make_unique<PcapWriter>(file("in" + std::to_string(p) + ".pcap")));
    constexpr std::uint64_t kApart = 3'000'000;  // ns; a slow bmv2 drops frames that come faster
    std::uint64_t time = 0;
    for (const auto& [port, frame] : frames)
      std::copy(frame.begin(), frame.end(), writers[port]->frame(time += kApart, frame.size()));
  }

  void plan(const std::string& jobs, const std::string& losses = "") const {
    std::ofstream out(file("plan.yaml"));
    out << "schema: ghostrank/switch/1\nmac: " << mac_text(kSwitchMac)
        << "\nip: " << ip_text(kSwitchIp) << "\nforward:\n";
    for (int p = 0; p < kPorts; ++p)
      out << "  - {mac: " << mac_text(worker(p, p).mac) << ", port: " << p << "}\n";
    out << "loss:\n  - {port: 1, ingress: 0.05}\n  - {port: 3, ingress: 0.2}\n"
        << losses << "jobs:\n";
    out << jobs;
  }

  // `leaf`: the worker that sums for two.
  static std::string job(const std::string& name, int elements, int first_slot,
                         const std::vector<int>& workers, const std::string& more = "",
                         int leaf = -1) {
    std::string text = "  - name: " + name + "\n    elements: " + std::to_string(elements) +
                       "\n    first_slot: " + std::to_string(first_slot) + "\n    slots: 8\n" +
                       more + "    workers:\n";
    for (const int w : workers) {
      const Worker who = worker(w, w);
      text += "      - {port: " + std::to_string(w) + ", mac: " + mac_text(who.mac) +
              ", ip: " + ip_text(who.ip) + (w == leaf ? ", workers: 2}\n" : "}\n");
    }
    return text;
  }

  // Plays the captures; returns the frames that leave, by port.
  std::vector<std::vector<Bytes>> play(const std::string& target) const {
    std::string ports;
    for (int p = 0; p < kPorts; ++p) {
      const std::string n = std::to_string(p);
      ports += (p == 0 ? "" : ",") + file("in" + n + ".pcap") + ":" + file(target + n + ".pcap");
    }
    const int status =
        std::system((std::string(GHOSTRANK_BINARY) + " switch run --target " + target + " --plan " +
                     file("plan.yaml") + " --ports " + ports + " --json - >" +
                     file(target + ".json") + " 2>" + file(target + ".log"))
                        .c_str());
    std::ifstream log(file(target + ".log"));
    EXPECT_EQ(WEXITSTATUS(status), 0) << std::string(std::istreambuf_iterator<char>(log), {});
    std::vector<std::vector<Bytes>> out;
    for (int p = 0; p < kPorts; ++p) {
      out.emplace_back();
      PcapReader reader(file(target + std::to_string(p) + ".pcap"));
      while (const auto frame = reader.next())
        out.back().emplace_back(frame->bytes.begin(), frame->bytes.end());
    }
    return out;
  }

  // DPDK works on several frames at once, so one that needs fewer passes may overtake another.
  static std::multiset<std::string> unordered(const std::vector<Bytes>& frames) {
    std::multiset<std::string> all;
    for (const Bytes& f : frames) all.emplace(reinterpret_cast<const char*>(f.data()), f.size());
    return all;
  }

  void expect_alike(std::size_t at_least, const std::string& target = "dpdk") const {
    const auto compiled = play("compiled"), p4 = play(target);
    std::size_t frames = 0;
    for (std::size_t p = 0; p < kPorts; ++p) {
      frames += compiled[p].size();
      EXPECT_EQ(compiled[p].size(), p4[p].size()) << "port " << p;
      EXPECT_TRUE(unordered(compiled[p]) == unordered(p4[p])) << "port " << p;
    }
    EXPECT_GE(frames, at_least);
    EXPECT_EQ(counted("compiled"), counted(target));
  }
  // Two guarded jobs and one that is not. Workers number their packets on and on; some leave a
  // round unfinished, and old packets of theirs come late, in any order, across the wrap of
  // numbers.
  void old_packets(int elements) const;
  // Sparse tensors beside a job of SwitchML with the same slots. Workers have half of the blocks; a
  // block that nobody has gets no sum. Packets come again, late and padded to Ethernet's minimum.
  void blocks(int elements) const;
  // Functions in which one worker gives or takes the elements alone: a guarded job whose packets
  // come late and again, one whose packets keep their order and are not lost, and one without them;
  // a leaf's with the switch above it at port 3, and a spine's.
  void functions(int elements, const std::string& losses = "") const;
  std::string counted(const std::string& target) const {
    std::ifstream in(file(target + ".json"));
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  fs::path folder_;
};

// Rounds of random numbers and exponents, with chunks repeated at once, late, and after completion.
TEST_P(SwitchTargets, SumRepeatLoseAndKeepJobsApartAlike) {
  const int elements = GetParam();
  plan(job("a", elements, 0, {0, 1, 2, 3}) + job("b", elements, 8, {2, 0}) +
       job("c", elements, 100, {3}));
  std::mt19937 random(static_cast<unsigned>(elements));
  std::vector<std::pair<int, Bytes>> frames;
  const std::vector<std::vector<int>> members{{0, 1, 2, 3}, {0, 2}, {3}};
  const std::vector<int> first{0, 8, 100};
  for (int round = 0; round < 40; ++round) {
    for (std::size_t j = 0; j < members.size(); ++j) {
      const int slot = first[j] + static_cast<int>(random() % 8), set = round % 2;
      for (const int w : members[j]) {
        const Bytes frame =
            chunk(w, slot, set, static_cast<std::int32_t>(random()), elements,
                  static_cast<std::uint32_t>(round), static_cast<std::int8_t>(random()));
        for (auto n = 1 + random() % 3; n > 0; --n) frames.emplace_back(w, frame);
      }
      for (const int w : members[j]) {
        if (random() % 2 == 0) frames.emplace_back(w, chunk(w, slot, set, 5, elements));
      }
    }
  }
  input(frames);
  expect_alike(200);
}

void SwitchTargets::old_packets(int elements) const {
  plan(job("a", elements, 0, {0, 1, 2, 3}, "    guarded: true\n") + job("b", elements, 8, {2, 0}) +
       job("c", elements, 100, {3, 1}, "    guarded: true\n"));
  std::mt19937 random(static_cast<unsigned>(elements) + 1);
  const std::vector<std::vector<int>> members{{0, 1, 2, 3}, {0, 2}, {1, 3}};
  const std::vector<int> first{0, 8, 100};
  std::vector<std::pair<int, Bytes>> frames, late;
  std::vector<std::uint32_t> number(members.size(), 0xffffff80u);
  for (int round = 0; round < 150; ++round) {
    for (std::size_t j = 0; j < members.size(); ++j) {
      const int slot = first[j] + static_cast<int>(random() % 2),
                set = static_cast<int>(random() % 2);
      number[j] += 1 + static_cast<std::uint32_t>(random() % 3);
      for (const int w : members[j]) {
        if (random() % 8 == 0) continue;  // it knows the sum from elsewhere
        const Bytes frame = chunk(w, slot, set, static_cast<std::int32_t>(random()), elements,
                                  number[j], static_cast<std::int8_t>(random()));
        for (auto n = 1 + random() % 2; n > 0; --n) frames.emplace_back(w, frame);
        if (random() % 2 == 0) late.emplace_back(w, frame);
      }
      while (!late.empty() && random() % 3 == 0) {
        const std::size_t at = random() % late.size();
        frames.push_back(late[at]);
        late.erase(late.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }
  input(frames);
}

TEST_P(SwitchTargets, TellOldPacketsAlike) {
  old_packets(GetParam());
  expect_alike(200);
}

void SwitchTargets::blocks(int elements) const {
  const std::string sparse = "    format: omnireduce\n";
  plan(job("a", elements, 0, {0, 1, 2, 3}, sparse) + job("b", elements, 0, {0, 1, 2}) +
       job("c", elements, 8, {1, 3}, sparse));
  std::mt19937 random(static_cast<unsigned>(elements) + 2);
  const std::vector<std::vector<int>> members{{0, 1, 2, 3}, {1, 3}};
  std::vector<std::pair<int, Bytes>> frames, late;
  for (std::uint32_t round = 0; round < 120; ++round) {
    const std::uint32_t number = 0xffffffc0u + round;
    for (std::size_t j = 0; j < members.size(); ++j) {
      const int slot = 8 * static_cast<int>(j) + static_cast<int>(random() % 3);
      const int set = static_cast<int>(round % 2);
      for (const int w : members[j]) {
        const bool has = random() % 2 == 0;
        Bytes frame =
            block_of(w, slot, set, number, round + 1 + static_cast<std::uint32_t>(random() % 4),
                     static_cast<std::int32_t>(random()), has ? elements : 0);
        if (!has && random() % 2 == 0) frame.resize(60);
        for (auto n = 1 + random() % 2; n > 0; --n) frames.emplace_back(w, frame);
        if (random() % 3 == 0) late.emplace_back(w, frame);
      }
      if (!late.empty() && random() % 2 == 0) {
        frames.push_back(late.back());
        late.pop_back();
      }
    }
    for (const int w : {0, 1, 2})
      frames.emplace_back(w, chunk(w, static_cast<int>(random() % 2), static_cast<int>(round % 2),
                                   static_cast<std::int32_t>(random()), elements));
  }
  input(frames);
}

TEST_P(SwitchTargets, SumBlocksAlike) {
  blocks(GetParam());
  expect_alike(200);
}

void SwitchTargets::functions(int elements, const std::string& losses) const {
  const std::string all = "    all_functions: true\n";
  plan(job("a", elements, 0, {0, 1, 2, 3}, all + "    guarded: true\n") +
           job("b", elements, 8, {2, 0}, all) + job("c", elements, 100, {3, 1}) +
           job("d", elements, 200, {0, 1},
               all + "    guarded: true\n    first_worker: 2\n    uplink: {port: 3, mac: " +
                   mac_text(worker(3, 3).mac) + ", ip: " + ip_text(worker(3, 3).ip) + "}\n") +
           job("e", elements, 300, {1, 2}, all + "    guarded: true\n", 1),
       losses);
  std::mt19937 random(static_cast<unsigned>(elements) + 3);
  const auto pick = [&](std::size_t n) { return static_cast<int>(random() % n); };
  const std::vector<std::vector<int>> members{{0, 1, 2, 3}, {2, 0}, {3, 1}, {0, 1}, {1, 2}};
  const std::vector<std::vector<int>> numbers{{0, 1, 2, 3}, {0, 1}, {0, 1}, {2, 3}, {0, 2}};
  constexpr int kFirst[] = {0, 8, 100, 200, 300};
  std::vector<std::pair<int, Bytes>> frames, late;
  for (std::uint32_t round = 0; round < 150; ++round) {
    for (std::size_t j = 0; j < members.size(); ++j) {
      const bool guarded = j == 0 || j >= 3;
      // Without a guard both sets of a slot take turns.
      const int slot = kFirst[j] + (guarded ? pick(2) : static_cast<int>(round % 2));
      const int set = guarded ? pick(2) : static_cast<int>(round / 2 % 2);
      const auto type = static_cast<PacketType>(1 + pick(3));
      const int alone = pick(numbers[j].back() + 2);  // nobody's, too
      std::vector<std::pair<int, Bytes>> sent;
      for (int w = 0; w < std::ssize(members[j]); ++w) {
        const int who = members[j][static_cast<std::size_t>(w)];
        // Now and then a worker sends elements that it should not, or none.
        const bool its = numbers[j][static_cast<std::size_t>(w)] == alone;
        const bool gives = (type != PacketType::from_one || its) != (pick(10) == 0);
        Packet p = packet_from(who, kUdpPort, slot, set, 0xffffffc0u + round,
                               type == PacketType::everyone || gives ? elements : 0);
        p.type = type;
        p.worker = static_cast<std::uint16_t>(alone);
        p.e0 = static_cast<std::int8_t>(random());
        p.e1 = static_cast<std::int8_t>(random());
        Bytes frame = frame_of(p, static_cast<std::int32_t>(random()));
        if (p.elements == 0 && pick(2) == 0) frame.resize(60);
        sent.emplace_back(who, std::move(frame));
      }
      std::shuffle(sent.begin(), sent.end(), random);
      for (const auto& frame : sent) {
        for (int n = 1 + pick(2); n > 0; --n) frames.push_back(frame);
        if (guarded && pick(3) == 0) late.push_back(frame);
      }
      if (j == 3) {  // the switch above answers; elements that nobody takes may be missing
        const bool taken = type != PacketType::to_one || alone == 2 || alone == 3;
        Packet p = packet_from(3, kUdpPort, slot, set, 0xffffffc0u + round,
                               taken || pick(2) == 0 ? elements : 0);
        p.type = type;
        p.worker = static_cast<std::uint16_t>(alone);
        const Bytes answer = frame_of(p, static_cast<std::int32_t>(random()));
        for (int n = pick(3); n > 0; --n) {
          frames.emplace_back(3, answer);
          frames.push_back(sent[static_cast<std::size_t>(pick(2))]);  // the result was lost
        }
        if (pick(3) == 0) late.emplace_back(3, answer);
      }
      if (pick(2) == 0) frames.push_back(sent[0]);  // when the round may be complete
      if (!late.empty() && pick(2) == 0) {
        frames.push_back(late.back());
        late.pop_back();
      }
    }
  }
  input(frames);
}

TEST_P(SwitchTargets, SumForOneOrFromOneAlike) {
  functions(GetParam());
  expect_alike(400);
  functions(GetParam(), "  - {port: 0, egress: 0.1}\n  - {port: 2, egress: 0.2}\n");
  expect_alike(400);
}

// Needs no DPDK.
class SwitchOnBmv2 : public SwitchTargets {
 protected:
  void SetUp() override {
    if (std::system(
            "command -v simple_switch >/dev/null && command -v simple_switch_CLI >/dev/null "
            "&& command -v p4c-bm2-ss >/dev/null") != 0)
      GTEST_SKIP() << "bmv2 is not on this machine";
    make_folder();
  }
};

TEST_P(SwitchOnBmv2, AddsUpAlike) {
  old_packets(32);
  expect_alike(200, "bmv2");
  blocks(32);
  expect_alike(200, "bmv2");
  functions(32);
  expect_alike(400, "bmv2");
}

void spoil(Bytes& frame, std::mt19937& random) {
  const auto to_worker = [&] {
    std::memcpy(frame.data(), worker(static_cast<int>(random() % 5), 0).mac.data(), 6);
  };
  switch (random() % 9) {
    case 0:  // a header field that the switch reads
      frame[12 + random() % 32] = static_cast<std::byte>(random());
      break;
    case 1:
      frame.resize(random() % frame.size());
      break;
    case 2:  // ordinary: for a worker, for nobody, for everybody
      frame[36] = std::byte{1};
      to_worker();
      break;
    case 3:
      frame[36] = std::byte{1};
      std::memset(frame.data(), 0xff, 6);
      break;
    case 4:  // trailing bytes
      frame.resize(frame.size() + 1 + random() % 50, std::byte{0xaa});
      break;
    case 5: {  // a short IPv4 packet with right lengths
      const auto packet = static_cast<std::uint16_t>(20 + random() % 40);
      store16(frame.data() + 16, packet);
      frame.resize(14 + packet);
      to_worker();
      break;
    }
    case 6: {  // a VLAN tag
      const std::byte tag[] = {std::byte{0x81}, std::byte{0}, std::byte{0}, std::byte{5}};
      frame.insert(frame.begin() + 12, std::begin(tag), std::end(tag));
      to_worker();
      break;
    }
    default:
      break;
  }
}

TEST_P(SwitchTargets, TreatHostileAndOrdinaryFramesAlike) {
  const int elements = GetParam();
  plan(job("a", elements, 0, {0, 1}));
  std::mt19937 random(9);
  std::vector<std::pair<int, Bytes>> frames;
  for (int i = 0; i < 2000; ++i) {
    const int port = static_cast<int>(random() % kPorts);
    Bytes frame = chunk(static_cast<int>(random() % 3), static_cast<int>(random() % 10),
                        static_cast<int>(random() % 2), i, elements);
    if (i % 4 == 0)
      frame = block_of(static_cast<int>(random() % 3), static_cast<int>(random() % 10),
                       static_cast<int>(random() % 2), static_cast<std::uint32_t>(random()),
                       static_cast<std::uint32_t>(random()), i, random() % 2 == 0 ? elements : 0);
    spoil(frame, random);
    frames.emplace_back(port, frame);
  }
  input(frames);
  expect_alike(100);
}

// The compiled switch forwards a frame for which DPDK has no room.
TEST_P(SwitchTargets, CountFramesThatAreTooLong) {
  plan(job("a", GetParam(), 0, {0, 1}));
  Bytes frame(2049);
  std::memcpy(frame.data(), worker(1, 1).mac.data(), 6);
  input({{2, frame}});
  EXPECT_EQ(play("compiled")[1].size(), 1u);
  EXPECT_TRUE(play("dpdk")[1].empty());
  EXPECT_NE(counted("dpdk").find("\"malformed\":1,"), std::string::npos) << counted("dpdk");
}

// A leaf switch: sums go up, results come down.
TEST_P(SwitchTargets, ActAsALeafAlike) {
  const int elements = GetParam();
  plan(job("a", elements, 0, {0, 1},
           "    uplink: {port: 2, mac: 02:00:00:00:ff:09, ip: 10.0.0.240}\n"));
  std::vector<std::pair<int, Bytes>> frames;
  for (int round = 0; round < 30; ++round) {
    for (const int w : {0, 1, 0})
      frames.emplace_back(w, chunk(w, round % 8, round / 8 % 2, round, elements));
    Bytes result = chunk(2, round % 8, round / 8 % 2, 1000 * round, elements);
    store32(result.data() + 26, 0x0a0000f0);
    frames.emplace_back(2, result);
  }
  input(frames);
  expect_alike(80);
}

INSTANTIATE_TEST_SUITE_P(Elements, SwitchTargets, testing::Values(32, 64, 256));
// bmv2 takes seconds to start: once is enough.
INSTANTIATE_TEST_SUITE_P(Elements, SwitchOnBmv2, testing::Values(32));

}  // namespace
}  // namespace ghostrank::switchml
