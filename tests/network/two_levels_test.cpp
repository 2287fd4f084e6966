// Hosts behind leaf switches and a spine, as separate processes on veth, which the run starts or
// which run already: what a job takes for one switch sums over two levels. Every sum is checked. A
// test with more workers than one switch serves is played where GHOSTRANK_SWITCH_PROOF is set.
//
//   h0 ── port0 ┐                  h2 ── port2 ┐
//   h1 ── port1 ┤ leaf 0           h3 ── port3 ┤ leaf 1
//           up0 ┘── down0 ─┐ spine ┌─ down1 ── up1
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "emulator/host/link_layer.h"
#include "emulator/host/network_namespace.h"
#include "tests/network/switched_hosts.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::ForeignSwitch;
using testing::Lab;
using testing::shell;
using testing::SwitchedHosts;
using testing::targets;

constexpr int kLeaves = 2;
constexpr const char* kLeafAddress = "10.77.0.200";  // of both: each host knows its own alone
constexpr const char* kLeafMac = "02:00:00:00:ff:01";
constexpr const char* kSpineAddress = "10.77.0.201";
constexpr const char* kSpineMac = "02:00:00:00:ff:09";

// A switch's port, its neighbour in the job (a worker or a switch) and the MAC addresses behind it.
struct Port {
  std::string name, mac, ip;
  std::vector<std::string> behind;  // MAC addresses
  bool above = false;
};

// The run starts the leaves and the spine.
class LeavesOfTheRun : public SwitchedHosts {
 protected:
  std::string two_levels(const std::string& settings) const {
    return job("float32", " -s switch.leaves=2 -s switch.timeout_us=20000" + settings);
  }
  bool has_cables() const { return shell(lab->in("sw", "ip -o link | grep -q leaf")) == 0; }
};

TEST_F(LeavesOfTheRun, SumRightWhateverBecomesOfPackets) {
  for (const std::string& target : targets()) {
    SCOPED_TRACE(target);
    const json result = expect_exact(
        two_levels(" -s fabric.packets.loss=0.02 -s fabric.packets.duplicates=0.05 "
                   "-s fabric.packets.reordering=0.05 -s switch.loss=0.005 -s switch.target=" +
                   target));
    if (!result.contains("packets")) return;
    EXPECT_GT(result["packets"]["lost_on_purpose"], 0);
    EXPECT_FALSE(has_cables());
  }
  // Ordinary frames pass the leaves and the spine, too.
  expect_exact(two_levels(" -s collectives.allreduce=ring -s fabric.kind=packets"));
}

// A leaf tells elements from one worker or for one by the numbers of its workers.
TEST_F(LeavesOfTheRun, ScatterGatherAndReduce) {
  const std::string lossy =
      " -s fabric.packets.loss=0.005 -s fabric.packets.duplicates=0.01 -s switch.loss=0.002";
  const std::string fsdp =
      two_levels(lossy +
                 " -s parallel.framework=fsdp -s collectives.all_gather=switchml "
                 "-s collectives.reduce_scatter=switchml");
  const std::string dear =
      two_levels(lossy +
                 " -s parallel.framework=dear -s parallel.decouple=reduce "
                 "-s collectives.broadcast=switchml -s collectives.reduce=switchml");
  for (const std::string& target : targets()) {
    SCOPED_TRACE(target);
    for (const std::string& command : {fsdp, dear}) {
      if (command == dear && target != targets().back()) continue;
      const json result = expect_exact(command + " -s switch.target=" + target);
      if (!result.contains("packets")) return;
      EXPECT_GT(result["packets"]["lost_on_purpose"], 0);
    }
  }
}

// Two groups cross the leaves, which send their sums to the spine over one link.
TEST_F(LeavesOfTheRun, SumForSeveralGroups) {
  std::ofstream(lab->file("groups.yaml"))
      << "ranks: 4\ngroups: {dp: [0-2/2, 1-3/2]}\nroles:\n  - name: all\n    ranks: 0-3\n"
         "    iterations:\n      - compute: |\n          allreduce dp float32 30070\n";
  for (const std::string& target : targets())
    expect_exact(
        two_levels(" -s program=" + lab->file("groups.yaml") + " -s switch.target=" + target));
}

// A stand-in for the P4 compiler: it copies the program that the real one has made of ours.
TEST_F(LeavesOfTheRun, HaveTheirProgramCompiledOnce) {
  if (targets().back() != "dpdk") GTEST_SKIP() << "built without DPDK";
  const std::string compiler = lab->file("p4c-dpdk"), compiled = lab->file("compiled");
  std::ofstream(compiler) << "#!/bin/sh\n"
                          << "for last; do :; done\n"
                          << "case \" $* \" in *' -o '*) ;; *) exit 0 ;; esac\n"
                          << "echo once >>" << compiled << "\n"
                          << "exec cp " GHOSTRANK_EXAMPLES
                             "/../../switch/p4/generated/switchml_64.spec \"$last\"\n";
  ASSERT_EQ(shell("chmod +x " + compiler), 0);
  // Nothing can be kept there, so that each switch would have to compile it.
  expect_exact("env PATH=" + lab->file("") + ":$PATH XDG_CACHE_HOME=/dev/null " +
               two_levels(" -s switch.target=dpdk -s switch.packet_elements=64 "
                          "-s switch.program=" GHOSTRANK_EXAMPLES "/../../switch/p4/dpdk.p4"));
  EXPECT_EQ(testing::read_file(compiled), "once\n");
}

TEST_F(LeavesOfTheRun, GoWithIt) {
  const pid_t killed = start_long_run(" -s switch.leaves=2");
  EXPECT_TRUE(has_cables());
  kill(killed, SIGKILL);
  lab->finish(killed, std::chrono::seconds(10));
  for (int i = 0; i < 200 && has_cables(); ++i) shell("sleep 0.05");
  EXPECT_FALSE(has_cables());
  const std::string left = "ip netns pids " + lab->switch_space() + " | grep .";
  for (int i = 0; i < 200 && shell(left) == 0; ++i) shell("sleep 0.05");
  EXPECT_NE(shell(left), 0) << "a leaf outlives its run";

  const pid_t run = start_long_run(" -s switch.leaves=2");
  shell("sleep 1");
  ASSERT_EQ(shell("kill -KILL $(ip netns pids " + lab->switch_space() + " | head -1)"), 0);
  EXPECT_EQ(lab->finish(run, std::chrono::seconds(10)), 3);
  EXPECT_NE(said().find(" that the run has started (switch.target) has ended"), std::string::npos)
      << said();
  EXPECT_FALSE(has_cables());
}

TEST_F(LeavesOfTheRun, SumForMoreWorkersThanOneSwitchServes) {
  const std::string& wanted = testing::wanted_proof();
  if (wanted.empty()) GTEST_SKIP() << "takes a minute; set GHOSTRANK_SWITCH_PROOF=1";
  make_lab(34);
  EXPECT_EQ(play(job("float32", "")), 2);
  EXPECT_NE(said().find("switch.leaves: 2 or more"), std::string::npos) << said();
  for (const std::string& target : targets()) {
    if (wanted != "1" && wanted != target) continue;
    SCOPED_TRACE(target);
    // Connections between all pairs would be more than the kernel keeps neighbours.
    expect_exact(
        two_levels(" -s fabric.flows=nic -s fabric.packets.loss=0.005 "
                   "-s fabric.packets.duplicates=0.005 -s switch.target=" +
                   target));
  }
}

// The user starts the leaves and the spine.
class TwoLevels : public ForeignSwitch {
 protected:
  void SetUp() override {
    ForeignSwitch::SetUp();
    if (lab) link_leaves();
  }

  void link_leaves() {
    for (int leaf = 0; leaf < kLeaves; ++leaf) {
      const std::string up = "up" + std::to_string(leaf), down = "down" + std::to_string(leaf);
      ASSERT_EQ(shell(lab->in("sw", "ip link add " + up + " up type veth peer name " + down)), 0);
      ASSERT_EQ(shell(lab->in("sw", "ip link set " + down + " up")), 0);
      for (const std::string& end : {up, down}) make_plain(lab->switch_space(), end);
    }
    for (int h = 0; h < lab->hosts(); ++h) {
      make_plain(namespace_of_node(lab->pattern(), Node(h)), "eth0");
      make_plain(lab->switch_space(), Lab::port(h));
      macs_.push_back(mac_of(h));
    }
  }

  // A leaf, or above the leaves the spine. Returns when it serves.
  void start_switch(int number) {
    if (number == kLeaves)
      start_spine();
    else
      start_leaf(number);
  }
  std::string socket_of(int number) const {
    return lab->file("switch" + std::to_string(number) + ".sock");
  }
  void stop_switch(int number) { lab->stop(switches_[static_cast<std::size_t>(number)]); }

  std::string two_levels(const std::string& settings) const {
    return job("float32", " -s switch.target=external -s switch.mac=" + std::string(kLeafMac) +
                              " -s switch.timeout_us=10000" + settings);
  }

 private:
  int leaf_of(int host) const { return host * kLeaves / lab->hosts(); }

  void start_leaf(int leaf) {
    std::vector<Port> ports;
    Port up{"up" + std::to_string(leaf), kSpineMac, kSpineAddress, {}, true};
    for (int h = 0; h < lab->hosts(); ++h) {
      const std::string& mac = macs_[static_cast<std::size_t>(h)];
      if (leaf_of(h) == leaf)
        ports.push_back({Lab::port(h), mac, Lab::address(h), {mac}});
      else
        up.behind.push_back(mac);
    }
    ports.push_back(up);
    start(leaf, kLeafMac, kLeafAddress, 4000, ports);
  }

  void start_spine() {
    std::vector<Port> ports;
    for (int leaf = 0; leaf < kLeaves; ++leaf)
      ports.push_back({"down" + std::to_string(leaf), kLeafMac, kLeafAddress, {}});
    for (int h = 0; h < lab->hosts(); ++h)
      ports[static_cast<std::size_t>(leaf_of(h))].behind.push_back(
          macs_[static_cast<std::size_t>(h)]);
    start(kLeaves, kSpineMac, kSpineAddress, 48864, ports);
  }

  // Turns a device's offloads off, as a run does whose switch it starts.
  static void make_plain(const std::string& space, const std::string& device) {
    const InNamespace inside(space);
    ghostrank::turn_offloads_off(device);
  }
  std::string mac_of(int host) const {
    const std::string file = lab->file("mac");
    EXPECT_EQ(shell(lab->in(host, "cp /sys/class/net/eth0/address " + file)), 0);
    return testing::read_file(file).substr(0, 17);
  }

  void start(int number, const std::string& mac, const std::string& ip, int worker_port,
             const std::vector<Port>& ports) {
    const std::string name = "switch" + std::to_string(number);
    const std::string plan = lab->file(name + ".yaml"), socket = socket_of(number);
    std::string forward, names, workers, uplink;
    for (std::size_t p = 0; p < ports.size(); ++p) {
      const Port& port = ports[p];
      const std::string at = "{port: " + std::to_string(p) + ", mac: ";
      for (const std::string& behind : port.behind) forward += "  - " + at + behind + "}\n";
      names += (p > 0 ? "," : "") + port.name;
      if (port.above)
        uplink = "    uplink: " + at + port.mac + ", ip: " + port.ip + "}\n";
      else
        workers += "      - " + at + port.mac + ", ip: " + port.ip + "}\n";
    }
    std::ofstream(plan) << "schema: ghostrank/switch/1\nmac: " << mac << "\nip: " << ip
                        << "\nforward:\n"
                        << forward
                        << "jobs:\n  - name: a\n    elements: 256\n    slots: 32\n"
                           "    guarded: true\n    worker_port: "
                        << worker_port << "\n"
                        << uplink << "    workers:\n"
                        << workers;
    switches_[static_cast<std::size_t>(number)] =
        lab->start(lab->in("sw", std::string(GHOSTRANK_BINARY) + " switch run --plan " + plan +
                                     " --ports " + names + " --socket " + socket),
                   name);
    const std::string asked = std::string(GHOSTRANK_BINARY) + " switch counters --socket " + socket;
    bool serves = false;
    for (int i = 0; i < 400 && !serves; ++i) {
      serves = shell(asked) == 0;
      if (!serves) shell("sleep 0.05");
    }
    EXPECT_TRUE(serves) << name << ": " << testing::read_file(lab->file(name));
  }

  std::vector<std::string> macs_;              // by host
  std::array<pid_t, kLeaves + 1> switches_{};  // leaves, then the spine
};

// Workers agree on how to go on when one of the switches has forgotten its rounds.
TEST_F(TwoLevels, SumRightAfterALeafOrTheSpineHasStartedAgain) {
  for (int number = 0; number <= kLeaves; ++number) start_switch(number);
  const pid_t run = lab->start(two_levels(" -s switch.fallback_after_us=20000000 "
                                          "-s cluster.nic.rate=50Mbps -s run.iterations=60"),
                               "run");
  int restarts = 0;
  for (await_sums(run, socket_of(kLeaves)); restarts < 4 && lab->running(run); ++restarts) {
    const int number = restarts % (kLeaves + 1);
    stop_switch(number);
    start_switch(number);
    shell("sleep 0.2");
  }
  const json result = expect_exact_end(run);
  for (int number = 0; number <= kLeaves; ++number) stop_switch(number);
  EXPECT_GT(restarts, 2) << "the run was over too soon";
  // Null where workers had nothing to agree on: forgotten rounds were sent whole once more.
  const json& troubles = result["switch_troubles"];
  EXPECT_TRUE(troubles.is_null() || troubles["fallbacks"] == 0) << troubles;
}

}  // namespace
}  // namespace ghostrank
