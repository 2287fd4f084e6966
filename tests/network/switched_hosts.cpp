#include "tests/network/switched_hosts.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

namespace ghostrank::testing {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds kPatience{180};  // bmv2's program may have to be compiled first

}  // namespace

const std::string& wanted_proof() {
  static const std::string wanted = [] {
    const char* set = std::getenv("GHOSTRANK_SWITCH_PROOF");
    const std::string value = set != nullptr ? set : "";
    unsetenv("GHOSTRANK_SWITCH_PROOF");
    return value;
  }();
  return wanted;
}

void SwitchedHosts::SetUp() {
  Namespaces::SetUp();
  if (lab) lab->leave_bridge();
}

void SwitchedHosts::make_lab(int hosts) {
  lab.reset();  // before the next one, which has its names
  lab = std::make_unique<Lab>(hosts);
  lab->leave_bridge();
}

std::string SwitchedHosts::job(const std::string& type, const std::string& settings) const {
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
         "-s fabric.packets.mtu=1500 -s cluster.nodes=" +
         std::to_string(lab->hosts()) + " -s 'fabric.namespaces=" + lab->pattern() +
         "' -s switch.namespace=" + lab->switch_space() + settings;
}

pid_t SwitchedHosts::start_long_run(const std::string& settings) {
  const pid_t pid =
      lab->start(job("int32", " -s run.iterations=1000000 -s run.verify=false" + settings), "run");
  // The run itself visits the namespace, too, to set it up.
  const std::string running = "grep -qs -e --with-parent /dev/null $(ip netns pids " +
                              lab->switch_space() + " | sed 's|.*|/proc/&/cmdline|')";
  for (int i = 0; i < 200 && shell(running) != 0; ++i) shell("sleep 0.05");
  EXPECT_EQ(shell(running), 0) << said();
  return pid;
}

int SwitchedHosts::play(const std::string& command) {
  return lab->finish(lab->start(command, "run"), kPatience);
}

std::string SwitchedHosts::said() const { return read_file(lab->file("run")); }

json SwitchedHosts::expect_exact(const std::string& command) {
  json result = expect_exact_end(lab->start(command, "run"));
  const json troubles = result.value("switch_troubles", json());  // null: none
  EXPECT_TRUE(troubles.is_null() || troubles["fallbacks"] == 0) << troubles;
  return result;
}

json SwitchedHosts::expect_exact_end(pid_t run) {
  const std::string file = lab->file("result.json");
  EXPECT_EQ(lab->finish(run, kPatience), 0) << said();
  json result = json::parse(read_file(file), nullptr, false);
  std::filesystem::remove(file);  // the next run may end without one
  EXPECT_TRUE(result.is_object()) << said();
  if (!result.is_object()) return json::object();
  EXPECT_GE(result["verify"]["checked_elements"], 3 * (kElements + 70));
  EXPECT_EQ(result["verify"]["wrong_elements"], 0);
  return result;
}

void ForeignSwitch::turn_offloads_off() {
  EXPECT_EQ(play(job("int32", " -s run.iterations=1 -s run.warmup=0")), 0) << said();
}

pid_t ForeignSwitch::start_switch(const std::string& target, bool has_job) {
  std::string forward, workers, ports;
  for (int h = 0; h < lab->hosts(); ++h) {
    const std::string file = lab->file("mac" + std::to_string(h));
    EXPECT_EQ(shell(lab->in(h, "cp /sys/class/net/eth0/address " + file)), 0);
    const std::string mac = read_file(file).substr(0, 17);
    const std::string place = "port: " + std::to_string(h) + ", mac: " + mac;
    forward += "  - {" + place + "}\n";
    workers += "      - {" + place + ", ip: " + Lab::address(h) + "}\n";
    ports += (h > 0 ? "," : "") + Lab::port(h);
  }
  const std::string plan = lab->file("plan.yaml");
  std::ofstream out(plan);
  out << "schema: ghostrank/switch/1\nmac: 02:00:00:00:ff:01\nip: 10.77.0.200\nforward:\n"
      << forward;
  if (has_job)
    out << "jobs:\n  - name: a\n    elements: 256\n    first_slot: 0\n    slots: 32\n"
        << "    worker_port: 4000\n    guarded: true\n    workers:\n"
        << workers;
  out.close();
  std::filesystem::remove(socket());  // of one that was killed
  const pid_t pid = lab->start(
      lab->in("sw", std::string(GHOSTRANK_BINARY) + " switch run --target " + target + " --plan " +
                        plan + " --ports " + ports + " --socket " + socket()),
      "switch");
  // bmv2's program may have to be compiled first.
  for (int i = 0; i < 6000 && lab->running(pid) && !std::filesystem::exists(socket()); ++i)
    shell("sleep 0.02");
  EXPECT_TRUE(std::filesystem::exists(socket())) << read_file(lab->file("switch"));
  return pid;
}

std::string ForeignSwitch::socket() const { return lab->file("switch.sock"); }

void SwitchedHosts::await_sums(pid_t run, const std::string& socket) {
  const std::string summed = std::string(GHOSTRANK_BINARY) + " switch counters --socket " + socket +
                             " 2>/dev/null | grep -q '\"broadcasts\": *[0-9]\\{4,\\}'";
  for (int i = 0; i < 400 && lab->running(run) && shell(summed) != 0; ++i) shell("sleep 0.02");
}

}  // namespace ghostrank::testing
