// Ghost ranks behind a real switch: SwitchML packets over UDP, on veth, through the switch that the
// run starts (compiled, and the P4 program on DPDK where that is built) or one that runs; every sum
// checked. What is not there, or does not fit, is named before the start.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/network/namespaces.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::kHosts;
using testing::Lab;
using testing::read_file;
using testing::shell;

constexpr std::uint64_t kElements = 30'000;

// A lab whose ports lead to a switch of ours in place of the bridge.
class SwitchedHosts : public testing::Namespaces {
 protected:
  void SetUp() override {
    Namespaces::SetUp();
    if (!lab) return;
    for (int h = 0; h < kHosts; ++h)
      ASSERT_EQ(shell(lab->in("sw", "ip link set " + Lab::port(h) + " nomaster")), 0);
  }

  std::string job(const std::string& type, const std::string& settings) const {
    const std::string hosts = lab->pattern();
    return std::string(GHOSTRANK_BINARY) + " run " +
           lab->write_job("model: {kind: layers, name: one, dtype: " + type +
                          ", layers: [{name: a, parameters: [" + std::to_string(kElements) +
                          ", 70]}]}\n"
                          "scale: {dilation: 1}\n"
                          "switch: {target: compiled, address: 10.77.0.200, ports: 'port{node}', "
                          "slots: 32, timeout_us: 20000}\n"
                          "run: {iterations: 3, warmup: 1, probe_ms: 0, verify: true}\n") +
           " --allow-unfaithful --quiet --json " + lab->file("result.json") +
           " -s collectives.allreduce=switchml -s cluster.gpus_per_node=1 "
           "-s cluster.nics_per_node=1 -s cluster.nic.rate=200Mbps -s fabric.colocated=wire "
           "-s fabric.packets.mtu=1500 -s 'fabric.namespaces=" +
           hosts + "' -s switch.namespace=" + switch_space() + settings;
  }
  // "ghostrank-123-sw", from "ghostrank-123-h{node}".
  std::string switch_space() const {
    const std::string hosts = lab->pattern();
    return hosts.substr(0, hosts.rfind('h')) + "sw";
  }

  int play(const std::string& command) {
    return lab->finish(lab->start(command, "run"), std::chrono::seconds(60));
  }
  std::string said() const { return read_file(lab->file("run")); }

  json expect_exact(const std::string& command) {
    EXPECT_EQ(play(command), 0) << said();
    json result = json::parse(read_file(lab->file("result.json")), nullptr, false);
    EXPECT_TRUE(result.is_object()) << said();
    if (!result.is_object()) return json::object();
    EXPECT_GE(result["verify"]["checked_elements"], 3 * kHosts * (kElements + 70));
    EXPECT_EQ(result["verify"]["wrong_elements"], 0);
    return result;
  }
};

std::vector<std::string> targets() {
  std::vector<std::string> all{"compiled"};
  const auto runner = std::filesystem::path(GHOSTRANK_BINARY).parent_path() / "ghostrank-dpdk";
  if (std::filesystem::exists(runner)) all.emplace_back("dpdk");
  return all;
}

TEST_F(SwitchedHosts, AreSummedByEveryTargetInEveryType) {
  for (const std::string& target : targets()) {
    SCOPED_TRACE(target);
    for (const char* type : {"int32", "float32", "bfloat16"}) {
      SCOPED_TRACE(type);
      const json result = expect_exact(job(type, " -s switch.target=" + target));
      if (!result.contains("switch")) return;
      EXPECT_EQ(result["switch"]["target"], target);
      EXPECT_EQ(result["packets"]["strays"], 0);
      EXPECT_GE(result["packets"]["received"], 3 * kHosts * (kElements / 256));
    }
  }
}

TEST_F(SwitchedHosts, AreSummedRightWhateverIsLostOrDoubled) {
  for (const std::string& target : targets()) {
    SCOPED_TRACE(target);
    const json result = expect_exact(
        job("float32", " -s switch.target=" + target +
                           " -s switch.loss=0.02 -s fabric.packets.loss=0.02 "
                           "-s fabric.packets.duplicates=0.02 -s switch.packet_elements=64"));
    if (!result.contains("packets")) return;
    EXPECT_GT(result["packets"]["lost_on_purpose"], 0);
  }
}

// The run has its switch guarded, so copies may come in any order.
TEST_F(SwitchedHosts, AreSummedRightWhateverOvertakes) {
  for (const std::string& target : targets()) {
    SCOPED_TRACE(target);
    const json result = expect_exact(
        job("int32", " -s switch.target=" + target +
                         " -s fabric.packets.reordering=0.1 "
                         "-s fabric.packets.duplicates=0.1 -s fabric.packets.loss=0.02 "
                         "-s switch.timeout_us=2000 -s switch.packet_elements=64"));
    if (!result.contains("packets")) return;
    EXPECT_GT(result["packets"]["delayed_on_purpose"], 100);
  }
}

// A program with a packet format of its own, and its worker from a plug-in; a ring's messages pass
// the same program.
TEST_F(SwitchedHosts, AreSummedByAProgramOfTheUsersOwn) {
  if (targets().back() != "dpdk") GTEST_SKIP() << "built without DPDK";
  const std::string examples = GHOSTRANK_EXAMPLES;
  const std::string own = " -s switch.target=dpdk -s switch.program=" + examples +
                          "/slot_sum.spec -s switch.entries=" + examples + "/slot_sum.entries";
  const std::string plugin = " -s 'collectives.plugins=[" GHOSTRANK_SLOTS_PLUGIN "]'";
  for (const char* trouble : {"", " -s fabric.packets.loss=0.02 -s fabric.packets.duplicates=0.02"})
    expect_exact(job("int32", own + plugin + " -s collectives.allreduce=mine/slot-sum" + trouble));
  expect_exact(job("float32", own + " -s collectives.allreduce=ring -s fabric.kind=packets"));
  EXPECT_EQ(play(job("int32", own + "x")), 2);
  EXPECT_NE(said().find("there is no file"), std::string::npos) << said();
}

// A program with ghostrank's tables is told of the job as ghostrank's is.
TEST_F(SwitchedHosts, AreSummedByAProgramWithTheTablesOfOurs) {
  if (targets().back() != "dpdk") GTEST_SKIP() << "built without DPDK";
  expect_exact(job(
      "float32",
      " -s switch.target=dpdk -s switch.packet_elements=32 -s switch.program=" GHOSTRANK_EXAMPLES
      "/../../switch/p4/generated/switchml_32.spec"));
}

// A ring's messages pass the same switch as ordinary frames: of TCP, or as packets of our own.
TEST_F(SwitchedHosts, PlayARingThroughTheSameSwitch) {
  for (const std::string& target : targets()) {
    SCOPED_TRACE(target);
    for (const char* kind : {"ofi", "packets"})
      expect_exact(job("float32", " -s collectives.allreduce=ring -s fabric.kind=" +
                                      std::string(kind) + " -s switch.target=" + target));
  }
}

// A switch takes what goes to UDP ports 48864 to 48879 for its own, so ranks keep away from them,
// too where the kernel has hardly any other.
TEST_F(SwitchedHosts, HaveNoPortThatTheSwitchTakesForItsOwn) {
  for (int h = 0; h < kHosts; ++h)
    ASSERT_EQ(shell(lab->in(h, "sysctl -qw net.ipv4.ip_local_port_range='48864 48883'")), 0);
  for (int times = 0; times < 3; ++times)
    expect_exact(job("int32", " -s collectives.allreduce=ring -s fabric.kind=packets"));
}

TEST_F(SwitchedHosts, NameASwitchThatIsNotThere) {
  for (int h = 0; h < kHosts; ++h)
    ASSERT_EQ(shell(lab->in("sw", "ip link set " + Lab::port(h) + " master br0")), 0);
  EXPECT_EQ(play(job("int32", " -s switch.target=external -s switch.mac=02:00:00:00:ff:01")), 3);
  EXPECT_NE(said().find("the switch at switch.address 10.77.0.200 does not answer: rank "),
            std::string::npos)
      << said();
}

// The run finds a switch that serves its group, and that is killed and started again while it
// plays. The messages by which ranks agree pass the same switch.
class KilledSwitch : public SwitchedHosts, public ::testing::WithParamInterface<const char*> {};

TEST_P(KilledSwitch, IsStartedAgainAndTheirSumsGoOn) {
  const std::string target = GetParam();
  if (targets().back() != "dpdk" && target == "dpdk") GTEST_SKIP() << "built without DPDK";
  expect_exact(job("int32", ""));  // turns offloads off at both ends of every link
  const std::string plan = lab->file("plan.yaml");
  std::string forward, workers, ports;
  for (int h = 0; h < kHosts; ++h) {
    const std::string file = lab->file("mac" + std::to_string(h));
    ASSERT_EQ(shell(lab->in(h, "cp /sys/class/net/eth0/address " + file)), 0);
    const std::string mac = read_file(file).substr(0, 17);
    const std::string place = "port: " + std::to_string(h) + ", mac: " + mac;
    forward += "  - {" + place + "}\n";
    workers += "      - {" + place + ", ip: " + Lab::address(h) + "}\n";
    ports += (h > 0 ? "," : "") + Lab::port(h);
  }
  std::ofstream(plan) << "schema: ghostrank/switch/1\nmac: 02:00:00:00:ff:01\nip: 10.77.0.200\n"
                      << "forward:\n"
                      << forward
                      << "jobs:\n  - name: a\n    elements: 256\n    first_slot: 0\n    slots: 32\n"
                      << "    worker_port: 4000\n    guarded: true\n    workers:\n"
                      << workers;
  const auto start_switch = [&] {
    return lab->start(lab->in("sw", GHOSTRANK_BINARY " switch run --target " + target + " --plan " +
                                        plan + " --ports " + ports),
                      "switch");
  };
  pid_t sw = start_switch();
  shell("sleep 0.3");
  // At this rate the payload of 100 iterations takes 1.9 s on the fastest machine.
  const pid_t run = lab->start(job("float32",
                                   " -s switch.target=external -s switch.mac=02:00:00:00:ff:01 "
                                   "-s switch.fallback_after_us=20000000 -s switch.timeout_us=5000 "
                                   "-s cluster.nic.rate=50Mbps -s run.iterations=100"),
                               "run");
  shell("sleep 1");
  int restarts = 0;
  for (; restarts < 4 && lab->running(run); ++restarts) {
    lab->stop(sw);
    sw = start_switch();
    shell("sleep 0.3");
  }
  EXPECT_EQ(lab->finish(run, std::chrono::seconds(60)), 0) << said();
  lab->stop(sw);
  EXPECT_GT(restarts, 2) << "the run was over too soon";
  const json result = json::parse(read_file(lab->file("result.json")), nullptr, false);
  ASSERT_TRUE(result.is_object()) << said();
  EXPECT_EQ(result["verify"]["wrong_elements"], 0);
  ASSERT_TRUE(result["switch_troubles"].is_object());
  EXPECT_GT(result["switch_troubles"]["restarts"], 0);
  EXPECT_EQ(result["switch_troubles"]["fallbacks"], 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, KilledSwitch, ::testing::Values("compiled", "dpdk"));

TEST_F(SwitchedHosts, NameSlotsThatTheSwitchDoesNotHave) {
  EXPECT_EQ(play(job("int32", " -s switch.slots=16384 -s collectives.allreduce=ring")), 0);
  const std::string busy =
      job("int32",
          " -s 'model.layers=[{name: a, parameters: [70]}]' -s switch.slots=16384 "
          "-s switch.target=" +
              targets().back());
  const int status = play(busy);
  if (targets().back() == "dpdk") {
    EXPECT_EQ(status, 3) << said();
    EXPECT_NE(said().find("the switch does not take switchml's group of 4 ranks"),
              std::string::npos)
        << said();
  } else {
    EXPECT_EQ(status, 0) << said();
  }
}

TEST_F(SwitchedHosts, EndTheirSwitchWhenTheyAreKilled) {
  const pid_t pid =
      lab->start(job("int32", " -s run.iterations=1000000 -s run.verify=false"), "run");
  const std::string running = "ip netns pids " + switch_space() + " | grep .";
  for (int i = 0; i < 200 && shell(running) != 0; ++i) shell("sleep 0.05");
  ASSERT_EQ(shell(running), 0) << said();
  kill(pid, SIGKILL);
  lab->finish(pid, std::chrono::seconds(10));
  for (int i = 0; i < 200 && shell(running) == 0; ++i) shell("sleep 0.05");
  EXPECT_NE(shell(running), 0);
}

}  // namespace
}  // namespace ghostrank
