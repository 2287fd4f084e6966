// Packets between hosts that are network namespaces: of schemes, over slow links, over links with
// too small an MTU, and between the nodes of one process; and of background's patterns, as messages
// in packets (fabric.kind: packets), against what the kernel counts.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/lab/capture.h"
#include "tests/network/ledger.h"
#include "tests/network/namespaces.h"
#include "tests/shell.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::kHosts;
using testing::Lab;
using testing::read_file;
using testing::Sent;
using testing::sent_by_host;
using testing::start_hosts;
using Namespaces = testing::Namespaces;

// Sums of 20,000 elements at a server beside the ranks of node 0, verified. Ranks retransmit
// packets that were not answered for 0.5 s of wall time.
std::string packets_job(const Lab& lab, const std::string& settings) {
  return lab.write_job(std::string("model: {kind: layers, name: one, dtype: float32, layers: "
                                   "[{name: a, parameters: [20000]}]}\n"
                                   "collectives: {plugins: [") +
                       GHOSTRANK_AGENTS_PLUGIN +
                       "], allreduce: test/with-words}\n"
                       "servers: {count: 1, placement: colocated}\n"
                       "scale: {dilation: 2}\n"
                       "run: {iterations: 3, warmup: 0, probe_ms: 0, verify: true}\n") +
         " --allow-unfaithful --json " + lab.file("result.json") + settings;
}

// 79 packets from each of six ranks to the server, and as many back to each, in every iteration.
void expect_summed_without_loss(const Lab& lab) {
  const json result = json::parse(read_file(lab.file("result.json")));
  EXPECT_GE(result["verify"]["checked_elements"], 3 * 8 * 20'000);
  EXPECT_EQ(result["verify"]["wrong_elements"], 0);
  const json& packets = result["packets"];
  EXPECT_EQ(packets["sent"], 3 * 2 * 6 * 79);
  EXPECT_EQ(packets["received"], packets["sent"]);
  for (const char* none : {"lost_on_purpose", "dropped", "refused", "strays"})
    EXPECT_EQ(packets[none], 0) << none;
}

// A rank hands over all its packets at once, more than a socket's buffer holds: they must wait, and
// none may be lost.
TEST_F(Namespaces, PacketsWaitForALinkThatIsSlowerThanTheirSender) {
  lab->shape({50e6, 65536});
  for (const pid_t pid :
       start_hosts(*lab, packets_job(*lab, " -s fabric.packets.mtu=1500 -s cluster.nic.rate=0")))
    EXPECT_EQ(lab->finish(pid, std::chrono::seconds(60)), 0) << lab->output(0);
  expect_summed_without_loss(*lab);
}

TEST_F(Namespaces, PacketsLargerThanTheInterfacesCarryAreNamedBeforeTheStart) {
  for (const pid_t pid : start_hosts(*lab, packets_job(*lab, " -s fabric.packets.mtu=1501")))
    EXPECT_EQ(lab->finish(pid, std::chrono::seconds(60)), 3);
  for (const std::string part :
       {"none of 1501 bytes (fabric.packets.mtu) gets from host", "10.77.0.",
        "the sender's kernel says: Message too long", "while small ones do"})
    EXPECT_NE(lab->output(0).find(part), std::string::npos) << lab->output(0);
}

TEST_F(Namespaces, OneProcessSendsPacketsBetweenItsNodesThroughTheirInterfaces) {
  const std::uint64_t before = lab->sent_by(3);
  const std::string arguments =
      packets_job(*lab,
                  " -s fabric.packets.mtu=1500 -s fabric.colocated=wire -s run.shards=2 "
                  "-s fabric.namespaces='" +
                      lab->pattern() + "'");
  const pid_t pid = lab->start(std::string(GHOSTRANK_BINARY) + " run " + arguments, "host0");
  EXPECT_EQ(lab->finish(pid, std::chrono::seconds(60)), 0) << lab->output(0);
  expect_summed_without_loss(*lab);
  EXPECT_GT(lab->sent_by(3) - before, 3u * 2u * 80'000u);  // of two ranks
}

// ---- Background over packets ----

constexpr double kBackgroundBytes = 3'000'001, kSteps = 3;

// Every node has two ranks, whose steps compute and carry one pattern.
std::string background_job(const Lab& lab, const std::string& pattern) {
  const std::string path = lab.file("background.yaml");
  std::ofstream(path)
      << "schema: ghostrank/job/1\n"
         "cluster: {nodes: 4, gpus_per_node: 2, nics_per_node: 2, nic: {rate: 10Gbps, latency_us: "
         "5}}\n"
         "fabric: {kind: packets, colocated: wire, namespaces: '"
      << lab.pattern()
      << "', packets: {mtu: 1500}}\n"
         "model: {kind: layers, name: one, layers: [{parameters: [1000], forward_us: 1000, "
         "backward_us: 2000}]}\n"
         "scale: {dilation: 20}\n"
         "run: {iterations: 3, warmup: 0, probe_ms: 0, verify: true}\n"
         "background: [{pattern: "
      << pattern << ", bytes: 3000001, chunk: 300000}]\n";
  return path + " --allow-unfaithful --json " + lab.file("result.json");
}

// What the kernel has counted on a host: bytes at its port of the bridge, with Ethernet's headers,
// and UDP datagrams.
struct Counted {
  double bytes = 0, datagrams = 0;
};
struct Host {
  Counted out, in;
};
Host counted(const Lab& lab, int host) {
  const auto number = [](const std::string& command) {
    return std::stod(test::shell(command).text);
  };
  const std::string port = "cat /sys/class/net/" + Lab::port(host) + "/statistics/",
                    udp = "sh -c \"awk '/^Udp: [0-9]/ {print \\$";
  return {
      {number(lab.in("sw", port + "rx_bytes")), number(lab.in(host, udp + "5}' /proc/net/snmp\""))},
      {number(lab.in("sw", port + "tx_bytes")),
       number(lab.in(host, udp + "2}' /proc/net/snmp\""))}};
}
Counted since(const Counted& before, const Counted& now) {
  return {now.bytes - before.bytes, now.datagrams - before.datagrams};
}

// A datagram has headers of Ethernet, IP, UDP and ghostrank's packets; a message has 64 bytes more.
// Beside the ledger there are the messages that prove the paths to the three others before the
// start, and packets that were sent again.
void expect_is(const Counted& kernel, const Sent& ledger, const std::string& where) {
  constexpr double kHeaders = 14 + 20 + 8 + 32, kMessage = 64, kProofs = 3 * 73 * 1024;
  const double rest =
      kernel.bytes - kHeaders * kernel.datagrams - kMessage * ledger.messages - ledger.bytes;
  EXPECT_GE(rest, 0) << where;
  EXPECT_LE(rest, kProofs + ledger.bytes / 2 + (1 << 20)) << where;
}

// To whom a node sends background, by pattern; the rest is the gradients' ring.
std::map<int, int> targets_of(const std::string& pattern,
                              const std::map<std::pair<int, int>, Sent>& ledger) {
  if (pattern == "incast") return {{1, 0}, {2, 0}, {3, 0}};
  if (pattern == "bisection") return {{0, 2}, {1, 3}, {2, 0}, {3, 1}};
  std::map<int, int> cycle;  // drawn: one target of every node, and one way through all
  for (const auto& [ends, sent] : ledger)
    if (sent.bytes > kBackgroundBytes) cycle[ends.first] = ends.second;
  std::set<int> seen;
  for (int node = 0; seen.insert(node).second;) node = cycle.at(node);
  EXPECT_EQ(seen.size(), 4u);
  return cycle;
}

TEST_F(Namespaces, PatternsOfBackgroundCrossInPacketsAsTheLedgerSays) {
  for (const std::string pattern : {"incast", "permutation", "bisection"}) {
    SCOPED_TRACE(pattern);
    std::array<Host, kHosts> before;
    for (int h = 0; h < kHosts; ++h) before[h] = counted(*lab, h);
    const pid_t pid = lab->start(
        std::string(GHOSTRANK_BINARY) + " run " + background_job(*lab, pattern), "host0");
    ASSERT_EQ(lab->finish(pid, std::chrono::seconds(60)), 0) << lab->output(0);
    const json result = json::parse(read_file(lab->file("result.json")));
    EXPECT_EQ(result["verify"]["wrong_elements"], 0);
    const auto ledger = sent_by_host(result);
    const std::map<int, int> targets = targets_of(pattern, ledger);
    const double ranks = pattern == "incast" ? 1 : 2;
    std::array<Sent, kHosts> out, in;
    for (const auto& [ends, sent] : ledger) {
      const auto [source, target] = ends;
      const bool background = targets.contains(source) && targets.at(source) == target;
      const double bytes = background ? kSteps * ranks * kBackgroundBytes : 0;
      EXPECT_GE(sent.bytes, bytes) << source << " > " << target;
      EXPECT_LT(sent.bytes, bytes + 100'000) << source << " > " << target;
      out[source].bytes += sent.bytes, out[source].messages += sent.messages;
      in[target].bytes += sent.bytes, in[target].messages += sent.messages;
    }
    for (int h = 0; h < kHosts; ++h) {
      const Host now = counted(*lab, h);
      expect_is(since(before[h].out, now.out), out[h], "from " + std::to_string(h));
      expect_is(since(before[h].in, now.in), in[h], "to " + std::to_string(h));
    }
  }
}

// As a capture at a node's port shows: of messages in packets, and of a scheme's packets, to a
// server beside node 0.
TEST_F(Namespaces, PacketsHaveTheCodePointThatTheJobNames) {
  if (!testing::Capture::possible()) GTEST_SKIP() << "tcpdump is not on this machine";
  const std::string scheme =
      packets_job(*lab,
                  " -s fabric.kind=packets -s fabric.packets.mtu=1500 -s fabric.colocated=wire -s "
                  "fabric.namespaces='" +
                      lab->pattern() + "'");
  for (const std::string& job : {background_job(*lab, "permutation"), scheme}) {
    testing::Capture capture(*lab, 1, "udp");
    const pid_t pid =
        lab->start(std::string(GHOSTRANK_BINARY) + " run " + job + " -s fabric.dscp=26", "host0");
    EXPECT_EQ(lab->finish(pid, std::chrono::seconds(60)), 0) << lab->output(0);
    capture.stop();
    const auto captured = [&](const std::string& filter) {
      return std::stod(
          test::shell("tcpdump -nr " + capture.file() + " '" + filter + "' 2>/dev/null | wc -l")
              .text);
    };
    EXPECT_GT(captured("udp"), 100);
    EXPECT_EQ(captured("udp and ip[1] & 0xfc = 104"), captured("udp"));
  }
}

// Starts a job of steps of 50 ms whose messages go in packets; pulls a node's cable when it has
// played some.
pid_t start_and_pull_the_cable(Lab& lab, const std::string& run) {
  std::ofstream(lab.file("pulled.yaml"))
      << "schema: ghostrank/job/1\n"
         "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 1Gbps, latency_us: "
         "10}}\n"
         "fabric: {kind: packets, colocated: wire, namespaces: '"
      << lab.pattern()
      << "', packets: {mtu: 1500}}\n"
         "model: {kind: layers, name: one, layers: [{parameters: [100000], forward_us: 2000, "
         "backward_us: 2000}]}\n"
         "scale: {dilation: 10}\n"
         "run: {warmup: 0, probe_ms: 0, "
      << run << "}\n";
  const pid_t pid = lab.start(std::string(GHOSTRANK_BINARY) + " run " + lab.file("pulled.yaml") +
                                  " --allow-unfaithful --json " + lab.file("result.json"),
                              "host0");
  for (int i = 0; i < 1000; ++i) {
    const std::string stream = read_file(lab.file("result.json.partial.jsonl"));
    if (std::count(stream.begin(), stream.end(), '\n') >= 5) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(test::shell(lab.in("sw", "ip link set " + Lab::port(3) + " down")).status, 0);
  return pid;
}

// The packets that are then sent again and again are no progress.
TEST_F(Namespaces, APulledCableEndsAJobOfPacketsWithinTheStallTimeout) {
  const pid_t pid = start_and_pull_the_cable(*lab, "iterations: 2000, stall_timeout_s: 2");
  EXPECT_EQ(lab->finish(pid, std::chrono::seconds(10)), 1) << lab->output(0);
  EXPECT_NE(lab->output(0).find("stalled for 2"), std::string::npos) << lab->output(0);
}

TEST_F(Namespaces, ACablePulledForTwoSecondsIsAStallOfAJobOfPackets) {
  const pid_t pid = start_and_pull_the_cable(*lab, "iterations: 60, stall_timeout_s: 20");
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_EQ(test::shell(lab->in("sw", "ip link set " + Lab::port(3) + " up")).status, 0);
  EXPECT_EQ(lab->finish(pid, std::chrono::seconds(40)), 0) << lab->output(0);
  const json result = json::parse(read_file(lab->file("result.json")));
  EXPECT_EQ(result["iterations"].size(), 60u);
  ASSERT_EQ(result["stalls"].size(), 1u);
  EXPECT_GT(result["stalls"][0]["wall_seconds"].get<double>(), 1.5);
}

TEST_F(Namespaces, MessagesInPacketsAreOfOneProcess) {
  std::array<pid_t, 2> hosts{};
  for (int h = 0; h < 2; ++h) hosts[h] = lab->start_host(h, 2, background_job(*lab, "incast"));
  for (const pid_t pid : hosts) EXPECT_EQ(lab->finish(pid, std::chrono::seconds(20)), 2);
  EXPECT_NE(lab->output(0).find("fabric.kind: packets joins the namespaces of one process, here "
                                "are 2 (WORLD_SIZE); start one, or set fabric.kind=ofi"),
            std::string::npos)
      << lab->output(0);
}

}  // namespace
}  // namespace ghostrank
