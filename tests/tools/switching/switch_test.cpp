// A switch's plan as YAML, the requests of its control socket, and `switch show` of captures.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "switch/ports/pcap_file.h"
#include "tests/switch/sparse_support.h"
#include "tools/switching/control.h"
#include "tools/switching/plan.h"
#include "tools/switching/show.h"
#include "tools/switching/targets/compiled.h"

namespace ghostrank {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kPlan = R"(schema: ghostrank/switch/1
mac: 02:00:00:00:ff:01
ip: 10.0.0.254
forward:
  - {mac: 02:00:00:00:00:01, port: 1}
loss:
  - {port: 1, ingress: 0.5}
jobs:
  - name: a
    elements: 64
    slots: 8
    workers:
      - {port: 0, mac: 02:00:00:00:00:01, ip: 10.0.0.1}
      - {port: 1, mac: 02:00:00:00:00:02, ip: 10.0.0.2}
)";

class SwitchPlanFile : public testing::Test {
 protected:
  std::string path() const {
    return (std::filesystem::path(testing::TempDir()) /
            ("plan." + std::to_string(getpid()) + ".yaml"))
        .string();
  }
  void TearDown() override { std::filesystem::remove(path()); }
  switchml::SwitchPlan read(const std::string& text) const {
    std::ofstream(path()) << text;
    return read_switch_plan(path(), 2);
  }
  std::string why(const std::string& from, const std::string& to) const {
    return why(kPlan, from, to);
  }
  std::string why(std::string text, const std::string& from, const std::string& to) const {
    text.replace(text.find(from), from.size(), to);
    try {
      read(text);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }
};

// A switch counts a probability in steps of 1/65536.
TEST_F(SwitchPlanFile, NamesTheLeastLossOtherThanNone) {
  EXPECT_THAT(why("ingress: 0.5", "ingress: 0.5, egress: 0.000007"),
              HasSubstr("egress is less than half of 1/65536"));
  EXPECT_EQ(why("ingress: 0.5", "ingress: 0.00001, egress: 0"), "");
}

TEST_F(SwitchPlanFile, IsReadWithItsDefaults) {
  const switchml::SwitchPlan plan = read(kPlan);
  EXPECT_EQ(plan.ports, 2);
  EXPECT_EQ(plan.mac, (switchml::Mac{2, 0, 0, 0, 0xff, 1}));
  EXPECT_EQ(plan.ip, 0x0a0000feu);
  ASSERT_EQ(plan.forward.size(), 1u);
  EXPECT_EQ(plan.forward[0].port, 1);
  ASSERT_EQ(plan.loss.size(), 2u);
  EXPECT_EQ(plan.loss[1].ingress, 32768);
  ASSERT_EQ(plan.jobs.size(), 1u);
  EXPECT_EQ(plan.jobs[0].elements, 64);
  EXPECT_EQ(plan.jobs[0].worker_port, switchml::kWorkerPort);
  ASSERT_EQ(plan.jobs[0].workers.size(), 2u);
  EXPECT_EQ(plan.jobs[0].workers[1].ip, 0x0a000002u);
}

TEST_F(SwitchPlanFile, MayHaveAGuardedJob) {
  std::string text = kPlan;
  EXPECT_FALSE(read(text).jobs[0].guarded);
  text.insert(text.find("workers:"), "guarded: true\n    ");
  EXPECT_TRUE(read(text).jobs[0].guarded);
}

constexpr const char* kRocePlan = R"(schema: ghostrank/switch/1
mac: 02:00:00:00:ff:01
ip: 10.0.0.254
jobs:
  - name: a
    format: roce
    workers:
      - port: 1
        mac: 02:00:00:00:00:01
        ip: 10.0.0.1
        remote_key: 0x1a2b
        queue_pairs: [{number: 17, first_sequence: 4711}, {number: 18}]
)";

TEST_F(SwitchPlanFile, HasQueuePairsOverRoce) {
  const switchml::SwitchPlan plan = read(kRocePlan);
  ASSERT_EQ(plan.jobs.size(), 1u);
  EXPECT_EQ(plan.jobs[0].format, switchml::Format::roce);
  const switchml::Worker& worker = plan.jobs[0].workers.at(0);
  EXPECT_EQ(worker.remote_key, 0x1a2bu);
  ASSERT_EQ(worker.queue_pairs.size(), 2u);
  EXPECT_EQ(worker.queue_pairs[0].number, 17u);
  EXPECT_EQ(worker.queue_pairs[0].first_sequence, 4711u);
  EXPECT_EQ(worker.queue_pairs[1].first_sequence, 0u);
  const auto wrong = [&](const std::string& from, const std::string& to) {
    return why(kRocePlan, from, to);
  };
  EXPECT_THAT(wrong("format: roce", "format: tcp"),
              HasSubstr(":6:13: format is udp, roce or omnireduce"));
  EXPECT_THAT(wrong("0x1a2b", "0x1a2g"), HasSubstr("remote_key is a number of 32 bits"));
  EXPECT_THAT(wrong("number: 18", "number: 16777216"), HasSubstr("from 0 to 16777215"));
  EXPECT_THAT(wrong("format: roce", "format: udp"), HasSubstr("a worker has no key 'remote_key'"));
  EXPECT_THAT(wrong("format: roce", "elements: 64\n    format: roce"), HasSubstr("not 64"));
}

TEST_F(SwitchPlanFile, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(why("switch/1", "job/1"), HasSubstr(":1:9: the schema of a switch"));
  EXPECT_THAT(why("ip: 10.0.0.254", "ip: 10.0.0"), HasSubstr(":3:5: ip is an IPv4 address"));
  EXPECT_THAT(why("mac: 02:00:00:00:ff:01", "mac: zz"), HasSubstr(":2:6: mac is a MAC address"));
  EXPECT_THAT(why("mac: 02:00:00:00:ff:01\n", ""), HasSubstr("needs a key 'mac'"));
  EXPECT_THAT(why("slots: 8", "slots: 99999"), HasSubstr("slots is a number from 1 to 16384"));
  EXPECT_THAT(why("slots: 8", "slot: 8"),
              HasSubstr("no key 'slot'; known here: name, format, elements"));
  EXPECT_THAT(why("elements: 64", "elements: 65"),
              HasSubstr("job 'a': elements are 32, 64 or 256"));
  EXPECT_THAT(why("ingress: 0.5", "ingress: 1.5"), HasSubstr("a probability below 1"));
  EXPECT_THAT(why("port: 0, mac", "port: 7, mac"), HasSubstr("worker 0 is on port 7"));
}

TEST_F(SwitchPlanFile, HasOneEntryForAPortsLossAndForAnAddress) {
  EXPECT_THAT(
      why("  - {port: 1, ingress: 0.5}", "  - {port: 1, ingress: 0.5}\n  - {port: 1, egress: 0.1}"),
      AllOf(HasSubstr(":8:5: the loss of port 1 has an entry at "),
            HasSubstr(":7:5; give it one")));
  EXPECT_THAT(why("port: 1}\nloss", "port: 1}\n  - {mac: 02:00:00:00:00:01, port: 0}\nloss"),
              AllOf(HasSubstr(":6:5: 02:00:00:00:00:01 has an entry at "), HasSubstr(":5:5;")));
  EXPECT_EQ(
      why("  - {port: 1, ingress: 0.5}", "  - {port: 1, ingress: 0.5}\n  - {port: 0, egress: 0.1}"),
      "");
}

TEST_F(SwitchPlanFile, IsTakenOverTheSocketJobByJob) {
  switchml::SwitchPlan plan = read(kPlan);
  switchml::CompiledSwitch sw(plan);
  std::atomic<bool> stop{false};
  RunningCompiled running(sw, stop);
  const auto ask = [&](const std::string& request) { return answer_switch(running, request); };
  const std::string ok = R"({"ok":true})";
  const std::string job =
      R"({"name": "b", "elements": 32, "first_slot": 8, "slots": 8, "workers": [{"port": 0, "mac": "02:00:00:00:00:01", "ip": "10.0.0.1"}]})";
  EXPECT_EQ(ask(R"({"do": "admit", "job": )" + job + "}"), ok);
  EXPECT_THAT(ask(R"({"do": "admit", "job": )" + job + "}"),
              HasSubstr("there is a job 'b' already"));
  EXPECT_THAT(ask(R"({"do": "admit", "job": {"name": "c"}})"), HasSubstr("1 to 32 workers, not 0"));
  EXPECT_THAT(ask(R"({"do": "admit", "job": [1]})"), HasSubstr("a job is a mapping"));
  EXPECT_THAT(ask(R"({"do": "counters"})"), HasSubstr(R"("job":"b")"));
  EXPECT_EQ(ask(R"({"do": "reset", "job": "b"})"), ok);
  EXPECT_EQ(ask(R"({"do": "remove", "job": "b"})"), ok);
  EXPECT_THAT(ask(R"({"do": "remove", "job": "b"})"), HasSubstr("there is no job 'b'"));
  for (const char* bad :
       {"", "{", "[]", "{\"do\": 1}", "{\"do\": \"dance\"}", "{\"do\": \"remove\"}"})
    EXPECT_THAT(ask(bad), HasSubstr("\"ok\":false")) << bad;
  EXPECT_FALSE(stop);
  EXPECT_EQ(ask(R"({"do": "stop"})"), ok);
  EXPECT_TRUE(stop);
}

// The ports of a capture in tests/switch/captures.
std::vector<switchml::PortName> ports_of(const std::string& capture, int ports) {
  std::vector<switchml::PortName> names;
  for (int p = 0; p < ports; ++p) {
    const std::string folder = GHOSTRANK_SOURCE_DIR "/tests/switch/captures/" + capture + "/";
    const std::string file = std::to_string(p) + ".pcap";
    names.push_back({{}, folder + "in" + file, folder + "out" + file});
  }
  return names;
}

TEST(SwitchShow, SaysWhatWentInAndWhatCameOut) {
  const std::string text = switch_show(ports_of("four_workers", 4), 100);
  EXPECT_THAT(text,
              HasSubstr("\n 3.000  out  0 1 2 3  sum to all   10.0.0.254     0    0       0   3   "
                        "0  6 406 806 .. 25206\n"));
  EXPECT_THAT(text, HasSubstr("in   0        chunk again  10.0.0.1       0    0       0"));
  EXPECT_THAT(text, HasSubstr("out  0        sum to one"));
  EXPECT_THAT(switch_show(ports_of("four_workers", 4), 3), HasSubstr("and 23 more; --most N"));
}

TEST(SwitchShow, ReadsRdmaWrites) {
  const std::string text = switch_show(ports_of("roce", 3), 200);
  EXPECT_THAT(text, HasSubstr("in   0      chunk, first   10.0.0.1       0    0       100"));
  EXPECT_THAT(text, HasSubstr("out  2      sum, last      10.0.0.254"));
  EXPECT_THAT(text, testing::Not(HasSubstr("ordinary frame")));
}

// Two slots of two workers end at one time, as in captures in microseconds.
TEST(SwitchShow, KeepsResultsOfOneTimeApart) {
  using namespace switchml;
  CompiledSwitch sw(plan_of({job_of(2, 32)}, 2));
  const std::string folder = testing::TempDir() + "show." + std::to_string(getpid()) + ".";
  std::vector<PortName> ports;
  std::vector<std::unique_ptr<PcapWriter>> out;
  for (const int w : {0, 1}) {
    ports.push_back({{}, {}, folder + std::to_string(w) + "out"});
    out.push_back(std::make_unique<PcapWriter>(ports.back().out));
  }
  for (const int w : {0, 1})
    for (const int slot : {0, 1})
      for (const auto& [port, frame] : answers(sw, w, chunk(w, slot, 0, 1, 32)))
        std::memcpy(out[port]->frame(1'000'000, frame.size()), frame.data(), frame.size());
  for (const auto& writer : out) writer->finish();
  const std::string text = switch_show(ports, 100);
  EXPECT_THAT(text, HasSubstr("out  0 1    sum to all  10.0.0.254     0"));
  EXPECT_THAT(text, HasSubstr("out  0 1    sum to all  10.0.0.254     1"));
  EXPECT_THAT(text, testing::Not(HasSubstr("sum to one")));
  for (const PortName& port : ports) std::filesystem::remove(port.out);
}

TEST(SwitchShow, NumbersPacketsWithoutSign) {
  const std::string file = testing::TempDir() + "show." + std::to_string(getpid()) + ".last";
  PcapWriter in(file);
  switchml::Bytes frame = switchml::chunk(0, 1, 0, 7, 32);
  switchml::store32(frame.data() + switchml::kUdpHeaderBytes + 2, 0xffffffff);
  std::memcpy(in.frame(0, frame.size()), frame.data(), frame.size());
  in.finish();
  EXPECT_THAT(switch_show({{{}, file, {}}}, 1), HasSubstr(" 4294967295 "));
  std::filesystem::remove(file);
}

// Two workers; worker 1 has no block to send.
TEST(SwitchShow, ReadsBlocksOfOmniReduce) {
  using namespace switchml;
  JobPlan job = job_of(2, 32);
  job.format = Format::omnireduce;
  CompiledSwitch sw(plan_of({job}, 2));
  const std::string folder = testing::TempDir() + "show." + std::to_string(getpid()) + ".";
  std::vector<PortName> ports;
  for (const int w : {0, 1}) {
    ports.push_back({{}, folder + std::to_string(w) + "in", folder + std::to_string(w) + "out"});
    PcapWriter in(ports.back().in);
    const Bytes block = block_of(w, 1, 0, 0, w == 0 ? 7 : 9, 10, w == 0 ? 32 : 0);
    std::memcpy(in.frame(0, block.size()), block.data(), block.size());
    for (const auto& [port, frame] : answers(sw, w, block)) {
      PcapWriter out(folder + std::to_string(port) + "out");
      std::memcpy(out.frame(1'000'000, frame.size()), frame.data(), frame.size());
    }
  }
  const std::string text = switch_show(ports, 100);
  EXPECT_THAT(text, HasSubstr("in   0      block       10.0.0.1       1    0       0          "
                              "10 11 12 .. 41; next 7\n"));
  EXPECT_THAT(text, HasSubstr("in   1      no block    10.0.0.2       1    0       0          "
                              "next 9\n"));
  EXPECT_THAT(text, HasSubstr("out  0 1    sum to all  10.0.0.254     1    0       0          "
                              "10 11 12 .. 41; next 7\n"));
  for (const PortName& port : ports)
    std::filesystem::remove(port.in), std::filesystem::remove(port.out);
}

}  // namespace
}  // namespace ghostrank
