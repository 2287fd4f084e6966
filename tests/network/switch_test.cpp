// Ghost ranks behind a real switch: SwitchML packets over UDP, on veth, through the switch that the
// run starts (compiled, and the P4 program on DPDK where that is built) or one that runs; every sum
// checked. What is not there, or does not fit, is named before the start.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/network/switched_hosts.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::ForeignSwitch;
using testing::kElements;
using testing::kHosts;
using testing::Lab;
using testing::shell;
using testing::SwitchedHosts;
using testing::targets;

TEST_F(SwitchedHosts, AreSummedByEveryTargetInEveryType) {
  for (const std::string& target : targets()) {
    SCOPED_TRACE(target);
    for (const char* type : {"int32", "float32", "bfloat16", "float16"}) {
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
    // Lost packets are sent again, unless a second copy arrived.
    EXPECT_GT(result["switch"]["packets_sent_again"],
              result["packets"]["lost_on_purpose"].get<int>() / 2);
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

TEST_F(SwitchedHosts, SumTheBlocksOfSparseTensorsWhateverBecomesOfPackets) {
  for (const std::string& target : targets()) {
    SCOPED_TRACE(target);
    const json result = expect_exact(
        job("int32", " -s switch.target=" + target +
                         " -s collectives.allreduce=omnireduce_switch "
                         "-s tensors.density=0.3 -s tensors.block=64 -s switch.packet_elements=64 "
                         "-s fabric.packets.reordering=0.05 -s fabric.packets.duplicates=0.05 "
                         "-s fabric.packets.loss=0.02 -s switch.timeout_us=5000"));
    if (!result.contains("packets")) return;
    EXPECT_EQ(result["switch"]["target"], target);
    EXPECT_GT(result["packets"]["lost_on_purpose"], 0);
    // Each rank has three in ten of 470 blocks; four have three quarters between them.
    EXPECT_GE(result["packets"]["received"], 3 * kHosts * 330);
  }
}

// A program with a packet format of its own, and its worker from a plug-in; a ring's messages pass
// the same program.
TEST_F(SwitchedHosts, AreSummedByAProgramOfTheUsersOwn) {
  if (targets().back() != "dpdk") GTEST_SKIP() << "built without DPDK";
  const std::string examples = GHOSTRANK_EXAMPLES;
  const std::string own = " -s switch.target=dpdk -s switch.program=" + examples +
                          "/slot_max.spec -s switch.entries=" + examples + "/slot_max.entries";
  const std::string plugin = " -s 'collectives.plugins=[" GHOSTRANK_SLOTS_PLUGIN "]'";
  for (const char* trouble : {"", " -s fabric.packets.loss=0.02 -s fabric.packets.duplicates=0.02"})
    expect_exact(
        job("float32", own + plugin + " -s collectives.allreduce=mine/slot-max" + trouble));
  // Two communicators of all nodes, one after the other in the step, in slots of their own.
  const std::string all = "0-" + std::to_string(kHosts - 1);
  std::ofstream(lab->file("groups.yaml"))
      << "ranks: " << kHosts << "\ngroups: {a: [" << all << "], b: [" << all
      << "]}\nroles:\n  - name: all\n    ranks: " << all
      << "\n    iterations:\n      - compute: |\n          allreduce a float32 10000~1\n"
      << "          allreduce b float32 300~1\n          allreduce a float32 40~2\n";
  expect_exact(job("float32", own + plugin + " -s collectives.allreduce=mine/slot-max -s program=" +
                                  lab->file("groups.yaml")));
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

// A switch takes packets to UDP ports 48864 to 48879 for its own, so ranks avoid these ports, even
// where the kernel has hardly any other.
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

// The switch serves another job in these slots, or packets of another size.
TEST_F(ForeignSwitch, IsRefusedWhereItHasNoFreeSlotsOrAnotherFormat) {
  turn_offloads_off();
  const pid_t sw = start_switch("compiled", true);
  const std::string external = " -s switch.target=external -s switch.mac=02:00:00:00:ff:01";
  EXPECT_EQ(play(job("int32", external + " -s switch.socket=" + socket())), 3);
  EXPECT_NE(said().find("worker 0 has slots 0 to 31 in job 'a'; give this job other slots"),
            std::string::npos)
      << said();
  EXPECT_EQ(play(job("int32", external + " -s switch.packet_elements=64")), 3);
  EXPECT_NE(said().find("has no result for 32 of 32 slots"), std::string::npos) << said();
  EXPECT_NE(said().find("in packets of 64 elements"), std::string::npos) << said();
  const pid_t counters =
      lab->start(GHOSTRANK_BINARY " switch counters --socket " + socket(), "counters");
  EXPECT_EQ(lab->finish(counters, std::chrono::seconds(10)), 0);
  const json counted = json::parse(testing::read_file(lab->file("counters")));
  EXPECT_EQ(counted["jobs"][0]["received"], 0);
  lab->stop(sw);
}

// Its rounds of an earlier run have the numbers of the next one's first packets.
TEST_F(ForeignSwitch, IsRefusedWhereItHoldsSumsOfAnotherRun) {
  turn_offloads_off();
  const pid_t sw = start_switch("compiled", true);
  const auto small = [&](const std::string& type) {
    return play(job(type,
                    " -s switch.target=external -s switch.mac=02:00:00:00:ff:01 "
                    "-s run.iterations=1 -s run.warmup=0 "
                    "-s 'model.layers=[{name: a, parameters: [70]}]'"));
  };
  EXPECT_EQ(small("int32"), 0) << said();
  EXPECT_EQ(small("float32"), 3) << said();
  EXPECT_NE(said().find("('ghostrank switch reset')"), std::string::npos) << said();
  EXPECT_EQ(shell(GHOSTRANK_BINARY " switch reset --socket " + socket() + " a"), 0);
  EXPECT_EQ(small("float32"), 0) << said();
  lab->stop(sw);
}

// The switch is killed and started again while the run plays. The messages by which ranks agree
// pass the same switch.
class KilledSwitch : public ForeignSwitch, public ::testing::WithParamInterface<const char*> {};

TEST_P(KilledSwitch, IsStartedAgainAndTheirSumsGoOn) {
  const std::string target = GetParam();
  if (targets().back() != "dpdk" && target == "dpdk") GTEST_SKIP() << "built without DPDK";
  turn_offloads_off();
  pid_t sw = start_switch(target, true);
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
    sw = start_switch(target, true);
  }
  const json result = expect_exact_end(run);
  lab->stop(sw);
  EXPECT_GT(restarts, 2) << "the run was over too soon";
  EXPECT_GT(result["switch_troubles"]["restarts"], 0);
  EXPECT_EQ(result["switch_troubles"]["fallbacks"], 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, KilledSwitch, ::testing::Values("compiled", "dpdk"));

// A switch that stays away is given up, once for the whole job: the rest of it travels around a
// ring.
class LostSwitch : public ForeignSwitch {
 protected:
  static constexpr int kIterations = 60;

  // Returns when the switch has summed for a while.
  pid_t start_run(const std::string& settings, const std::string& type = "float32") {
    const pid_t run = lab->start(job(type,
                                     " -s switch.target=external -s switch.mac=02:00:00:00:ff:01 "
                                     "-s switch.fallback_after_us=200000 -s switch.timeout_us=5000 "
                                     "-s cluster.nic.rate=50Mbps -s run.iterations=" +
                                         std::to_string(kIterations) + settings),
                                 "run");
    await_sums(run);
    return run;
  }
  void expect_given_up(pid_t run) {
    const json result = expect_exact_end(run);
    ASSERT_TRUE(result["switch_troubles"].is_object()) << result["switch_troubles"];
    const json& troubles = result["switch_troubles"];
    EXPECT_EQ(troubles["fallbacks"], 1);
    EXPECT_GT(troubles["ring_calls"], 0);
    EXPECT_LT(troubles["ring_calls"], kIterations);
    EXPECT_GT(troubles["first_fallback_s"], 0.2);
  }
};

// The switch forwards, but has forgotten the job.
TEST_F(LostSwitch, IsGivenUpWhereItOnlyForwards) {
  turn_offloads_off();
  const pid_t sw = start_switch("compiled", false);
  const pid_t run = start_run(" -s fabric.kind=packets -s switch.socket=" + socket());
  EXPECT_EQ(shell(GHOSTRANK_BINARY " switch remove --socket " + socket() + " ghostrank-0"), 0);
  expect_given_up(run);
  lab->stop(sw);
}

// The switch forgets all rounds now and then, and in the end the job.
TEST_F(LostSwitch, OfSparseBlocksForgetsItsRoundsAndIsGivenUp) {
  turn_offloads_off();
  const pid_t sw = start_switch("compiled", false);
  const pid_t run = start_run(" -s fabric.kind=packets -s switch.socket=" + socket() +
                                  " -s collectives.allreduce=omnireduce_switch "
                                  "-s tensors.density=0.5 -s tensors.block=256",
                              "int32");
  const auto tell = [&](const std::string& verb) {
    return shell(GHOSTRANK_BINARY " switch " + verb + " --socket " + socket() + " ghostrank-0");
  };
  for (int times = 0; times < 5; ++times) EXPECT_EQ(tell("reset"), 0);
  EXPECT_EQ(tell("remove"), 0);
  expect_given_up(run);
  lab->stop(sw);
}

// The switch is gone, and a bridge takes its place on the links.
TEST_F(LostSwitch, IsGivenUpWhereABridgeTakesItsPlace) {
  turn_offloads_off();
  const pid_t sw = start_switch("compiled", true);
  const pid_t run = start_run(" -s fabric.kind=ofi");
  lab->stop(sw);
  for (int h = 0; h < kHosts; ++h)
    EXPECT_EQ(shell(lab->in("sw", "ip link set " + Lab::port(h) + " master br0")), 0);
  expect_given_up(run);
}

// The functions of a distributed optimizer, FSDP and DeAR, by packets that only ghostrank's
// switches know.
TEST_F(SwitchedHosts, ScatterGatherAndReduceThroughEveryTarget) {
  const struct {
    std::string framework;
    std::set<std::string> functions;
  } jobs[] = {{"fsdp", {"all_gather", "reduce_scatter"}},
              {"dear -s parallel.decouple=reduce", {"broadcast", "reduce"}}};
  for (const auto& [framework, functions] : jobs) {
    std::string settings =
        " -s fabric.packets.loss=0.01 -s fabric.packets.duplicates=0.01 "
        "-s switch.timeout_us=3000 -s parallel.framework=" +
        framework;
    for (const std::string& function : functions)
      settings += " -s collectives." + function + "=switchml";
    for (const std::string& target : targets()) {
      SCOPED_TRACE(framework + ", " + target);
      const json result = expect_exact(
          job("float32", settings + " -s switch.loss=0.01 -s switch.target=" + target));
      std::set<std::string> played;
      for (const json& row : result["collectives"])
        if (row["algorithm"] == "switchml") played.insert(row["op"]);
      EXPECT_TRUE(std::ranges::includes(played, functions)) << result["collectives"];
    }
    EXPECT_EQ(play(job("float32", settings + " -s switch.target=external")), 2);
    EXPECT_NE(said().find("the switch of switch.target knows no packets of "), std::string::npos)
        << said();
  }
}

// Two NICs per node, each with a link of its own to the switch, and a rail each.
TEST_F(SwitchedHosts, SumOnEveryRail) {
  lab->add_rail();
  for (int h = 0; h < kHosts; ++h) {
    const std::string node = std::to_string(h), first = Lab::port(h), second = "second" + node;
    ASSERT_EQ(shell(lab->in("sw", "ip link set " + first + " down name port" + node + "r0 up")), 0);
    ASSERT_EQ(
        shell(lab->in("sw", "ip link set " + second + " nomaster down name port" + node + "r1 up")),
        0);
    // A host answers ARP for the addresses of the interface that was asked, and takes answers of a
    // switch whose address is in another of its networks.
    ASSERT_EQ(shell(lab->in(h,
                            "sysctl -qw net.ipv4.conf.all.arp_ignore=1 "
                            "net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth1.rp_filter=0")),
              0);
  }
  const std::string rails =
      " -s cluster.gpus_per_node=2 -s cluster.nics_per_node=2 -s 'switch.ports=port{node}r{nic}'";
  const json result = expect_exact(job("float32", rails + " -s switch.target=" + targets().back()));
  std::set<std::string> senders;
  for (const json& pair : result["traffic"]["pairs"]) senders.insert(pair["src"]);
  for (int h = 0; h < kHosts; ++h)
    for (const char* nic : {".nic0", ".nic1"})
      EXPECT_TRUE(senders.contains("n" + std::to_string(h) + nic)) << h << nic;

  // Each group has a rank on every node, and so one rail: that of its NIC.
  std::ofstream(lab->file("groups.yaml"))
      << "ranks: " << 2 * kHosts << "\ngroups: {dp: [0-" << 2 * kHosts - 2 << "/2, 1-"
      << 2 * kHosts - 1 << "/2]}\nroles:\n  - name: all\n    ranks: 0-" << 2 * kHosts - 1
      << "\n    iterations:\n      - compute: |\n          allreduce dp float32 5000\n";
  expect_exact(job("float32", rails + " -s program=" + lab->file("groups.yaml")));
}

// The switch is told of the job by a controller of the form that SwitchML publishes.
TEST_F(ForeignSwitch, IsToldByAController) {
  const auto beside = [](const char* name) {
    return std::filesystem::path(GHOSTRANK_BINARY).parent_path() / name;
  };
  const std::string settings =
      " -s switch.target=external -s switch.mac=02:00:00:00:ff:01 "
      "-s switch.socket=grpc:127.0.0.1:50199";
  if (!std::filesystem::exists(beside("ghostrank-controller"))) {
    EXPECT_EQ(play(job("int32", settings)), 3);
    EXPECT_NE(said().find("built without gRPC"), std::string::npos) << said();
    return;
  }
  turn_offloads_off();
  const pid_t sw = start_switch("compiled", false);
  const auto start_controller = [&](const std::string& ip) {
    const pid_t pid =
        lab->start("sh -c 'sleep 60 | exec " + beside("controller_double").string() +
                       " 127.0.0.1:50199 " + socket() + " 02:00:00:00:ff:01 " + ip + "'",
                   "controller");
    shell("sleep 0.3");
    return pid;
  };
  const pid_t wrong = start_controller("10.77.0.201");
  EXPECT_EQ(play(job("int32", settings)), 3);
  EXPECT_NE(said().find("says that it has the address 10.77.0.201"), std::string::npos) << said();
  lab->stop(wrong);
  shell(std::string(GHOSTRANK_BINARY) + " switch remove --socket " + socket() + " session");
  const pid_t right = start_controller("10.77.0.200");
  expect_exact(job("float32", settings));
  const std::string heard = testing::read_file(lab->file("controller"));
  for (int h = 0; h < kHosts; ++h)
    EXPECT_NE(heard.find("rank " + std::to_string(h) + " of 4, "), std::string::npos) << heard;
  EXPECT_NE(heard.find(Lab::address(3) + ", size 3\n"), std::string::npos) << heard;
  lab->stop(right);
  EXPECT_EQ(play(job("int32", settings)), 3);
  EXPECT_NE(said().find("the controller's answer to worker 0 is an error"), std::string::npos)
      << said();
  lab->stop(sw);
}

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

// A smaller group would change nothing.
TEST_F(SwitchedHosts, NameASchemeThatNoRealSwitchPlays) {
  EXPECT_EQ(play(job("int32", " -s collectives.allreduce=atp")), 2);
  EXPECT_TRUE(said().ends_with("use switch.target: model\n")) << said();
}

TEST_F(SwitchedHosts, EndTheirSwitchWhenTheyAreKilled) {
  const pid_t pid = start_long_run();
  kill(pid, SIGKILL);
  lab->finish(pid, std::chrono::seconds(10));
  const std::string running = "ip netns pids " + lab->switch_space() + " | grep .";
  for (int i = 0; i < 200 && shell(running) == 0; ++i) shell("sleep 0.05");
  EXPECT_NE(shell(running), 0);
}

// The ranks do not wait for a switch that nobody starts again.
TEST_F(SwitchedHosts, EndSoonAfterTheSwitchThatTheyStarted) {
  const pid_t pid = start_long_run();
  shell("sleep 0.5");
  ASSERT_EQ(shell("ip netns pids " + lab->switch_space() + " | xargs kill -KILL"), 0);
  EXPECT_EQ(lab->finish(pid, std::chrono::seconds(10)), 3);
  EXPECT_NE(said().find("the switch that the run has started (switch.target) has ended"),
            std::string::npos)
      << said();
}

}  // namespace
}  // namespace ghostrank
