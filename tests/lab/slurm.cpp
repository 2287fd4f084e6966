// See slurm.h.
#include "tests/lab/slurm.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ghostrank::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

// LAB stands for the lab's directory, NODES for the list of nodes; Slurm replaces %n by a node's
// name.
constexpr char kConfiguration[] =
    "ClusterName=ghostrank\n"
    "SlurmctldHost=s1\n"
    "SlurmUser=root\n"
    "SlurmdUser=root\n"
    "AuthType=auth/munge\n"
    "AuthInfo=socket=LAB/munge.socket\n"
    "StateSaveLocation=LAB/state\n"
    "SlurmdSpoolDir=LAB/%n\n"
    // PMIx puts its sockets there; in /tmp those of both nodes would clash.
    "TmpFS=LAB/%n/tmp\n"
    "SlurmctldPidFile=LAB/slurmctld.pid\n"
    "SlurmdPidFile=LAB/%n.pid\n"
    "ProctrackType=proctrack/linuxproc\n"
    "TaskPlugin=task/none\n"
    "ReturnToService=2\n"
    "KillWait=2\n"
    // Use the CPUs given below, not the machine's.
    "SlurmdParameters=config_overrides\n"
    "SelectType=select/cons_tres\n"
    "SelectTypeParameters=CR_Core\n"
    "NodeName=NODES CPUs=4\n"
    "PartitionName=all Nodes=ALL Default=YES State=UP\n";

// Slurm reads this file even when nothing uses cgroups, and without it looks in /sys/fs/cgroup.
constexpr char kCgroups[] =
    "CgroupPlugin=cgroup/v1\n"
    "CgroupMountpoint=LAB/cgroup\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
    text.replace(at, what.size(), by);
  return text;
}

void write_key(const std::string& path) {
  std::random_device random;
  std::ofstream key(path, std::ios::binary);
  for (int i = 0; i < 128; ++i) key.put(static_cast<char>(random()));
  key.close();
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace

std::string Slurm::missing() {
  std::string names;
  for (const std::string program : {"munged", "slurmctld", "slurmd", "srun", "unshare"}) {
    if (shell("command -v " + program) != 0) names += (names.empty() ? "" : ", ") + program;
  }
  return names;
}

Slurm::Slurm(Lab& lab, int nodes) : lab_(lab), nodes_(nodes) {
  write_files();
  start_daemons();
  const auto deadline = steady_clock::now() + std::chrono::seconds(30);
  while (!ready()) {
    if (steady_clock::now() > deadline)
      throw std::runtime_error("Slurm's nodes did not become idle\n" + log());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void Slurm::write_files() const {
  std::string hosts = "127.0.0.1 localhost\n", nodes;
  for (int h = 0; h < nodes_; ++h) {
    hosts += Lab::address(h) + " " + node(h) + "\n";
    nodes += (h > 0 ? "," : "") + node(h);
    fs::create_directories(lab_.file(node(h) + "/tmp"));
  }
  fs::create_directories(lab_.file("state"));
  std::ofstream(lab_.file("hosts")) << hosts;
  const std::string directory = fs::path(lab_.file("hosts")).parent_path();
  std::ofstream(lab_.file("slurm.conf"))
      << replaced(replaced(kConfiguration, "LAB", directory), "NODES", nodes);
  std::ofstream(lab_.file("cgroup.conf")) << replaced(kCgroups, "LAB", directory);
  write_key(lab_.file("munge.key"));
}

// `ip netns exec` also makes a mount namespace, so the bind mount is private to the command.
std::string Slurm::at(int host, const std::string& command) const {
  const std::string directory = fs::path(lab_.file("hosts")).parent_path();
  const std::string enter = "cd " + directory + " && hostname " + node(host) +
                            " && mount --bind hosts /etc/hosts && exec \"$@\"";
  return lab_.in(host, "unshare --uts sh -c '" + enter +
                           "' sh env -u RANK -u WORLD_SIZE -u MASTER_ADDR -u MASTER_PORT "
                           "SLURM_CONF=" +
                           lab_.file("slurm.conf") + " " + command);
}

void Slurm::start_daemons() {
  const auto own = [&](const std::string& flag, const std::string& name) {
    return " --" + flag + "=" + lab_.file(name);
  };
  lab_.start(at(0, "munged --foreground --force" + own("socket", "munge.socket") +
                       own("key-file", "munge.key") + own("pid-file", "munge.pid") +
                       own("log-file", "munged.log") + own("seed-file", "munge.seed")),
             "munged");
  const auto deadline = steady_clock::now() + std::chrono::seconds(10);
  while (!fs::exists(lab_.file("munge.socket")) && steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  lab_.start(at(0, "slurmctld -D -i"), "slurmctld");
  for (int h = 0; h < nodes_; ++h)
    lab_.start(at(h, "slurmd -D -N " + node(h)), "slurmd-" + node(h));
}

bool Slurm::ready() const {
  // The test runs in the shell: sinfo prints one line per idle node.
  return shell("test $(" + at(0, "sinfo -h -N -t idle -o %n") +
               " | wc -l) = " + std::to_string(nodes_)) == 0;
}

std::string Slurm::queue() const {
  shell(at(0, "sh -c 'squeue -h > queue 2>&1'"));
  return read_file(lab_.file("queue"));
}

std::string Slurm::log() const {
  std::string text;
  std::vector<std::string> files{"munged", "munged.log", "slurmctld"};
  for (int h = 0; h < nodes_; ++h) files.push_back("slurmd-" + node(h));
  for (const std::string& file : files) text += "--- " + file + "\n" + read_file(lab_.file(file));
  return text;
}

}  // namespace ghostrank::testing
