// The bytes that cross the network, captured at every host's port, against the job's own ledger.
#include "tests/lab/capture.h"

#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "emulator/control/world_pmix.h"
#include "tests/lab/pcap.h"
#include "tests/network/ledger.h"
#include "tests/network/namespaces.h"
#include "tests/shell.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::kHosts;
using testing::kPort;
using testing::Lab;
using testing::read_file;
using testing::sent_by_host;
using testing::start_hosts;
using Namespaces = testing::Namespaces;

class Captures : public Namespaces {
 protected:
  void SetUp() override {
    if (!testing::Capture::possible()) GTEST_SKIP() << "tcpdump is not on this machine";
    Namespaces::SetUp();
  }
};

constexpr char kShortJob[] =
    "model: {kind: layers, name: four, dtype: float32, layers: [{name: a, parameters: [3000000, "
    "64], forward_us: 2000, "
    "backward_us: 4000}, {name: b, parameters: [1000000], forward_us: 2000, backward_us: 4000}], "
    "optimizer_us: 500}\n"
    "parallel: {framework: ddp, bucket_cap_mb: 4}\n"
    "scale: {dilation: 20}\n"
    "run: {iterations: 3, warmup: 0, probe_ms: 0}\n";

using HostPair = std::pair<int, int>;

struct Captured {
  std::map<HostPair, double> bytes;  // TCP payload of the data path, by ordered pair of hosts
  std::map<HostPair, int> flows;     // distinct 5-tuples of the data path, likewise
  bool complete = true;              // false: the capture itself lost packets
  json result;
  std::vector<std::string> files;  // of the capture, by host
};

// Starts one process that plays all hosts, outside of their namespaces.
std::vector<pid_t> start_one(Lab& lab, const std::string& arguments) {
  return {lab.start(std::string(GHOSTRANK_BINARY) + " run " + arguments, "host0")};
}

constexpr int kLauncherPort = 29600;

// Starts the line that the job prints for its hosts. The agent, in place of ssh, enters the
// namespace of the host that it is given. Open MPI 4.1 maps its view of the machine's topology at
// an address that it finds free; sometimes that is too near its own stack, and it crashes. Nothing
// here needs the view, so OMPI_MCA_rtc=^hwloc leaves it out.
std::vector<pid_t> start_by_mpirun(Lab& lab, const std::string& arguments) {
  const std::string agent = lab.file("agent"), line = lab.file("line");
  std::string space = lab.pattern();
  space.replace(space.find("{node}"), 6, "$((${1##*.} - 1))");
  // A TMPDIR per daemon, because daemons that share one remove each other's session directory.
  std::ofstream(agent) << "#!/bin/sh\nspace=" << space << "\nexport TMPDIR=" << lab.file("daemon")
                       << "$1\nmkdir -p $TMPDIR"
                       << "\nshift\nexec ip netns exec $space sh -c \"$*\"\n";
  std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
  const pid_t printer =
      lab.start(std::string(GHOSTRANK_BINARY) + " run " + arguments + " --print-launch", "line");
  EXPECT_EQ(lab.finish(printer, std::chrono::seconds(10)), 0) << read_file(line);
  return {lab.start(
      lab.in(0, "env -u MASTER_ADDR -u RANK -u WORLD_SIZE GHOSTRANK_PORT=" + std::to_string(kPort) +
                    " OMPI_MCA_rtc=^hwloc OMPI_MCA_plm_rsh_agent=" + agent +
                    " OMPI_MCA_oob_tcp_static_ipv4_ports=" + std::to_string(kLauncherPort) +
                    " sh " + line),
      "host0")};
}

// Plays the job while every host's port is captured.
using Start = std::vector<pid_t> (*)(Lab&, const std::string&);
Captured play_and_capture(Lab& lab, const std::string& job, Start start) {
  std::deque<testing::Capture> captures;
  for (int h = 0; h < kHosts; ++h) captures.emplace_back(lab, h);
  const auto hosts = start(lab, job + " --allow-unfaithful --json " + lab.file("result.json"));
  for (std::size_t h = hosts.size(); h-- > 0;) {
    EXPECT_EQ(lab.finish(hosts[h], std::chrono::seconds(60)), 0) << lab.output(static_cast<int>(h));
  }
  Captured captured;
  captured.complete = testing::Capture::stop_all(captures);
  for (int h = 0; h < kHosts; ++h) {
    const testing::Capture& capture = captures[h];
    captured.files.push_back(capture.file());
    for (const auto& [flow, bytes] : testing::tcp_payload(capture.file())) {
      const auto is_port = [&, f = flow](int port) {
        return f.source_port == port || f.target_port == port;
      };
      if (is_port(kPort) || is_port(kLauncherPort)) continue;  // control plane, mpirun's own
      const int target = std::stoi(flow.target.substr(flow.target.rfind('.') + 1)) - 1;
      captured.bytes[{h, target}] += static_cast<double>(bytes);
      ++captured.flows[{h, target}];
    }
  }
  captured.result = json::parse(read_file(lab.file("result.json")));
  return captured;
}

Captured capture_completely(Lab& lab, const std::string& job, Start start = start_hosts) {
  Captured captured = play_and_capture(lab, job, start);
  for (int again = 0; !captured.complete && again < 3; ++again) {
    captured = play_and_capture(lab, job, start);  // a busy machine drops captured packets
  }
  return captured;
}

// Each message carries our 64-byte header and the provider's own, which has the same size for all
// messages. So do each flow's greeting and, with `credits`, the credit that the library sends for
// each message. Opening a connection costs a few bytes more. Before the start three messages prove
// the path from each address to each other one.
void expect_capture_matches_ledger(Captured& captured, bool credits = false) {
  ASSERT_EQ(captured.result["iterations"].size(), 3u);
  auto sent = sent_by_host(captured.result);
  ASSERT_FALSE(sent.empty());
  constexpr double kOurHeader = 64, kConnection = 512;
  constexpr double kProofs = 3, kProofBytes = (1 + 7 + 64) * 1024;
  double most = 0, provider_header = -1;
  const auto data = sent;
  for (const auto& [pair, s] : data) {
    if (credits) sent[{pair.second, pair.first}].messages += s.messages;
  }
  for (auto& [pair, s] : sent) {
    s.messages += captured.flows[pair] + kProofs;
    s.bytes += kProofBytes;
    if (s.messages <= most) continue;
    most = s.messages;
    provider_header = std::floor((captured.bytes[pair] - s.bytes) / s.messages) - kOurHeader;
  }
  EXPECT_GE(most, 90);
  EXPECT_GE(provider_header, 0);
  EXPECT_LE(provider_header, 48);
  for (const auto& [pair, s] : sent) {
    EXPECT_NEAR(captured.bytes[pair], s.bytes + s.messages * (kOurHeader + provider_header),
                kConnection * captured.flows[pair])
        << pair.first << ">" << pair.second << ": " << s.messages << " messages";
  }
  for (const auto& [pair, bytes] : captured.bytes) {
    if (sent.contains(pair)) continue;
    EXPECT_LE(bytes, kProofBytes + kProofs * (kOurHeader + 48) + kConnection * captured.flows[pair])
        << "unaccounted: " << pair.first << ">" << pair.second;
  }
}

// `ghostrank diff` counts in the same files what this test counts with a reader of its own.
void expect_diff_agrees(Lab& lab, const Captured& captured) {
  std::string line = GHOSTRANK_BINARY " diff --json - --iterations 3 --except-port " +
                     std::to_string(kPort) + " " + lab.file("result.json");
  for (const std::string& file : captured.files) line += " " + file;
  const test::Outcome outcome = test::shell(line);
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  const json diff = json::parse(outcome.text);
  EXPECT_EQ(diff["hosts_guessed"], true);
  std::map<HostPair, double> bytes;
  for (const json& pair : diff["pairs"]) {
    const auto host = [&](const char* end) {
      return std::stoi(pair[end].get<std::string>().substr(1));
    };
    bytes[{host("src"), host("dst")}] = pair["captured_bytes"];
  }
  EXPECT_EQ(bytes, captured.bytes);
  for (const auto& [pair, sent] : sent_by_host(captured.result))
    EXPECT_GE(bytes[pair], sent.bytes) << pair.first << ">" << pair.second;
}

void expect_capture_matches_ledger(Lab& lab, const std::string& settings) {
  Captured captured = capture_completely(lab, lab.write_job(std::string(kShortJob) + settings));
  if (!captured.complete)
    GTEST_SKIP() << "tcpdump lost packets four times: the machine is too busy";
  expect_capture_matches_ledger(captured);
  expect_diff_agrees(lab, captured);
}

TEST_F(Captures, ACaptureSeesTheLedgersBytesOfARing) {
  expect_capture_matches_ledger(*lab, "collectives: {allreduce: ring}\n");
}

TEST_F(Captures, ACaptureSeesTheLedgersBytesOfRecursiveDoubling) {
  expect_capture_matches_ledger(*lab,
                                "collectives: {allreduce: recursive_doubling, slice: 1MiB}\n");
}

// All patterns at once, each process playing a node. Without frames, because the ledger counts
// messages and a frame carries several.
TEST_F(Captures, ACaptureSeesTheLedgersBytesOfBackground) {
  const std::string job = lab->write_job(
      std::string(kShortJob) +
      "background: [{pattern: incast, bytes: 2000001, chunk: 100000, at_once: 3}, {pattern: "
      "permutation, bytes: 3000001, chunk: 100000}, {pattern: bisection, bytes: 1000001, rate: "
      "5Gbps, chunk: 100000}]\n");
  Captured captured = capture_completely(*lab, job + " -s fabric.frames=off -s run.verify=true");
  if (!captured.complete) GTEST_SKIP() << "the machine is too busy to capture";
  EXPECT_EQ(captured.result["verify"]["wrong_elements"], 0);
  const auto sent = sent_by_host(captured.result);
  for (int h = 1; h < kHosts; ++h) EXPECT_GE(sent.at({h, 0}).bytes, 3 * 2'000'001.0) << h;
  for (int h = 0; h < kHosts; ++h) {
    EXPECT_GE(sent.at({h, (h + 2) % kHosts}).bytes, 3 * 2 * 1'000'001.0) << h;
  }
  expect_capture_matches_ledger(captured);
}

// ---- Flows

std::map<HostPair, int> flows_of(const json& result) {
  std::map<HostPair, int> flows;
  for (const json& f : result["traffic"]["flows"]) {
    const int a = f["hosts"][0], b = f["hosts"][1];
    flows[{a, b}] = flows[{b, a}] = f["count"];
  }
  return flows;
}

TEST_F(Captures, ACaptureSeesAsManyConnectionsAsTheJobSays) {
  const std::string job =
      lab->write_job(std::string(kShortJob) + "collectives: {library: nccl-2.28, channels: 4}\n");
  std::map<std::string, double> bytes;
  std::map<std::string, int> neighbours;
  for (const std::string kind : {"process", "nic", "connection"}) {
    // Without frames, because the ledger counts messages and a frame carries several.
    Captured captured =
        capture_completely(*lab, job + " -s fabric.frames=off -s fabric.flows=" + kind);
    if (!captured.complete) GTEST_SKIP() << "the machine is too busy to capture";
    EXPECT_EQ(captured.flows, flows_of(captured.result)) << kind;
    expect_capture_matches_ledger(captured, true);
    bytes[kind] = captured.result["traffic"]["wire_bytes_per_iteration"];
    neighbours[kind] = captured.flows[{0, 1}];
  }
  EXPECT_EQ(bytes["process"], bytes["nic"]);
  EXPECT_EQ(bytes["process"], bytes["connection"]);
  EXPECT_EQ(neighbours["process"], 1);
  EXPECT_GT(neighbours["nic"], 1);
  EXPECT_GT(neighbours["connection"], neighbours["nic"]);
}

// ---- Hosts of the job

std::string hosts_key(const std::string& nics) {
  std::string text = "hosts: [";
  for (int h = 0; h < kHosts; ++h)
    text += (h > 0 ? ", " : "") + ("{name: " + Lab::address(h)) + nics + "}";
  return text + "]\n";
}

TEST_F(Captures, MpirunStartsTheJobOnItsHostsAndACaptureSeesTheLedgersBytes) {
  if (testing::shell("mpirun --version") != 0 || pmix_version().empty())
    GTEST_SKIP() << "no mpirun, or built without PMIx";
  const std::string job = lab->write_job(std::string(kShortJob) + hosts_key(""));
  Captured captured = capture_completely(*lab, job, start_by_mpirun);
  if (!captured.complete) GTEST_SKIP() << "the machine is too busy to capture";
  ASSERT_EQ(captured.result["hosts"].size(), 4u);
  EXPECT_EQ(captured.result["hosts"][3]["name"], Lab::address(3));
  expect_capture_matches_ledger(captured);
}

// Bytes that a host sent through a device during the measured iterations.
double sent_through(const json& result, int host, const std::string& device) {
  for (const json& i : result["interfaces"])
    if (i["host"] == host && i["device"] == device) return i["tx_bytes"].get<double>();
  return 0;
}

TEST_F(Namespaces, EachRailIsCarriedByTheInterfaceThatItsHostGives) {
  lab->add_rail();
  struct Case {
    std::string nics;
    std::vector<std::string> device_of_rail;
  };
  const std::vector<Case> cases{
      {", nics: [{device: eth0}, {device: eth1}]", {"eth0", "eth1"}},
      {", nics: [{device: eth0, rail: 1}, {device: eth1, rail: 0}]", {"eth1", "eth0"}},
      {", nics: [{device: eth1}]", {"eth1", "eth1"}}};
  for (const Case& c : cases) {
    const std::string job = lab->write_job(std::string(kShortJob) + hosts_key(c.nics));
    const auto hosts = start_hosts(
        *lab, job + " -s fabric.flows=nic --allow-unfaithful --json " + lab->file("result.json"));
    for (int h = kHosts; h-- > 0;)
      ASSERT_EQ(lab->finish(hosts[h], std::chrono::seconds(60)), 0) << lab->output(h);
    const json result = json::parse(read_file(lab->file("result.json")));
    for (const json& i : result["interfaces"]) {
      double sum = 0;
      for (const json& iteration : i["iterations"]) sum += iteration["tx_bytes"].get<double>();
      EXPECT_EQ(i["iterations"].size(), 3u);
      EXPECT_GT(sum, 0.9 * i["tx_bytes"].get<double>());
      EXPECT_LE(sum, i["tx_bytes"].get<double>());
      EXPECT_GT(i["counters"]["tx_packets"], 0);
      EXPECT_EQ(i["counters"]["tx_errors"], 0);
    }
    std::map<std::pair<int, std::string>, double> expected;
    for (const json& pair : result["traffic"]["pairs"]) {
      const std::string nic = pair["src"];  // "n3.nic1"
      const auto rail = static_cast<std::size_t>(nic.back() - '0');
      expected[{nic[1] - '0', c.device_of_rail[rail]}] += 3 * pair["bytes"].get<double>();
    }
    for (int h = 0; h < kHosts; ++h) {
      for (const std::string device : {"eth0", "eth1"}) {
        const double bytes = expected[{h, device}];
        EXPECT_GE(sent_through(result, h, device), bytes) << c.nics << " " << h << " " << device;
        EXPECT_LT(sent_through(result, h, device), bytes * 1.05 + 1e5)
            << c.nics << " " << h << " " << device;
      }
    }
  }
}

TEST_F(Namespaces, AnInterfaceThatAHostDoesNotHaveIsNamedWithThoseItHas) {
  const std::string job =
      lab->write_job(std::string(kShortJob) + hosts_key(", nics: [{device: eth5}]"));
  for (const pid_t pid : start_hosts(*lab, job))
    EXPECT_EQ(lab->finish(pid, std::chrono::seconds(20)), 3);
  for (const std::string part : {"there is no interface 'eth5'", "eth0 (10.77.0.1, "})
    EXPECT_NE(lab->output(0).find(part), std::string::npos) << lab->output(0);
}

TEST_F(Namespaces, RailsThatOneEndpointCannotUseAreRefused) {
  const std::string job =
      lab->write_job(std::string(kShortJob) + hosts_key(", nics: [{device: eth0}, {device: lo}]"));
  for (const pid_t pid : start_hosts(*lab, job))
    EXPECT_EQ(lab->finish(pid, std::chrono::seconds(20)), 2);
  EXPECT_NE(lab->output(0).find("set fabric.flows=nic"), std::string::npos) << lab->output(0);
}

TEST_F(Namespaces, AProcessOnAnotherHostThanItsEntryIsRefused) {
  const std::string job = lab->write_job(std::string(kShortJob) + hosts_key(""));
  const auto hosts = start_hosts(*lab, job +
                                           " -s 'hosts=[{name: 10.77.0.1}, {name: 10.77.0.3}, "
                                           "{name: 10.77.0.2}, {name: 10.77.0.4}]'");
  for (const pid_t pid : hosts) EXPECT_EQ(lab->finish(pid, std::chrono::seconds(20)), 3);
  EXPECT_NE(lab->output(1).find("process 1 runs on 10.77.0.3, but it was started on"),
            std::string::npos)
      << lab->output(1);
}

// ---- Colocated nodes on the wire

// The interface of node h, in its namespace, counted the bytes that the ledger says it sent,
// iteration by iteration, and a few for headers.
void expect_interfaces_of_namespaces(const Lab& lab, const json& result,
                                     const std::map<int, double>& sent) {
  ASSERT_EQ(result["interfaces"].size(), static_cast<std::size_t>(kHosts));
  for (int h = 0; h < kHosts; ++h) {
    const json& counted = result["interfaces"][h];
    std::string space = lab.pattern();
    space.replace(space.find("{node}"), 6, std::to_string(h));
    EXPECT_EQ(counted["namespace"], space);
    EXPECT_EQ(counted["device"], "eth0");
    EXPECT_FALSE(counted["loopback"].get<bool>());
    const auto total = counted["tx_bytes"].get<double>();
    EXPECT_GT(total, sent.at(h)) << space;
    EXPECT_LT(total, sent.at(h) * 1.05 + 1e5) << space;  // headers, acknowledgements
    double sum = 0;
    ASSERT_EQ(counted["iterations"].size(), result["iterations"].size());
    for (const json& iteration : counted["iterations"]) {
      EXPECT_GT(iteration["tx_bytes"], 0);
      EXPECT_GT(iteration["rx_bytes"], 0);
      sum += iteration["tx_bytes"].get<double>();
    }
    EXPECT_LE(sum, total);
    EXPECT_GT(sum, total * 0.9);
  }
}

TEST_F(Captures, OneProcessSendsEveryNodesTrafficThroughTheNodesOwnInterface) {
  for (const std::string settings : {"-s run.shards=1", "-s run.shards=2 -s fabric.flows=nic"}) {
    const std::string job = lab->write_job(std::string(kShortJob)) +
                            " -s fabric.colocated=wire -s fabric.namespaces='" + lab->pattern() +
                            "' " + settings;
    std::vector<std::uint64_t> before;
    for (int h = 0; h < kHosts; ++h) before.push_back(lab->sent_by(h));
    Captured captured = play_and_capture(*lab, job, start_one);
    if (!captured.complete) GTEST_SKIP() << "the machine is too busy to capture";
    expect_capture_matches_ledger(captured);
    std::map<int, double> bytes;
    for (const auto& [pair, sent] : sent_by_host(captured.result)) bytes[pair.first] += sent.bytes;
    for (int h = 0; h < kHosts; ++h) {
      const auto counted = static_cast<double>(lab->sent_by(h) - before[h]);
      EXPECT_GT(counted, bytes[h]);
      EXPECT_LT(counted, bytes[h] * 1.05 + 1e5) << "node " << h;  // headers included
    }
    expect_interfaces_of_namespaces(*lab, captured.result, bytes);
  }
}

TEST_F(Namespaces, TwoNodesOfOneNamespaceAreNotOnTheWire) {
  const pid_t pid =
      lab->start(lab->in(0, std::string(GHOSTRANK_BINARY) + " run " + lab->write_job(kShortJob) +
                                " -s fabric.colocated=wire -s fabric.bind=" + Lab::address(0)),
                 "host0");
  EXPECT_EQ(lab->finish(pid, std::chrono::seconds(20)), 3);
  for (const std::string part : {"node 0", "node 1", "10.77.0.1", "fabric.namespaces"})
    EXPECT_NE(lab->output(0).find(part), std::string::npos) << lab->output(0);
}

}  // namespace
}  // namespace ghostrank
