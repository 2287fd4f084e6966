#include "tools/verbs/launch_line.h"

#include <algorithm>
#include <unistd.h>

#include "emulator/process_checks.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr char kPort[] = "29500", kOwnPort[] = "29501";  // torchrun takes the first

std::string quoted(const std::string& word) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string names_joined(const std::vector<HostEntry>& hosts, const char* separator) {
  std::string text;
  for (const HostEntry& host : hosts) text += (text.empty() ? "" : separator) + quoted(host.name);
  return text;
}

// One application context per host, because only contexts keep the order: given one list of hosts,
// mpirun begins with its own.
std::string mpirun(const std::vector<HostEntry>& hosts, const std::string& command) {
  std::string text = "mpirun --bind-to none";
  if (geteuid() == 0) text += " --allow-run-as-root";
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const auto slots = std::count_if(hosts.begin(), hosts.end(), [&](const HostEntry& other) {
      return other.name == hosts[h].name;
    });
    text += (h == 0 ? " " : " : ") + std::string("--host ") + quoted(hosts[h].name);
    if (slots > 1) text += ":" + std::to_string(slots);
    text += " -n 1 " + command;
  }
  return text + "\n";
}

// Slurm sorts its nodes. A host file with an arbitrary distribution keeps the processes in order,
// but not Slurm's list of nodes, so the line also says where process 0 is.
std::string srun(const std::vector<HostEntry>& hosts, const std::string& command) {
  std::vector<std::string> names;
  for (const HostEntry& host : hosts) names.push_back(host.name);
  std::sort(names.begin(), names.end());
  const auto nodes = std::unique(names.begin(), names.end()) - names.begin();
  return "printf '%s\\n' " + names_joined(hosts, " ") + " > ghostrank-hosts\n" +
         "MASTER_ADDR=" + quoted(hosts.front().name) +
         " SLURM_HOSTFILE=ghostrank-hosts srun --distribution=arbitrary --nodes=" +
         std::to_string(nodes) + " --ntasks=" + std::to_string(hosts.size()) +
         " --cpu-bind=none --exclusive " + command + "\n";
}

std::string torchrun(const std::vector<HostEntry>& hosts, const std::string& command) {
  std::string text;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    text += "GHOSTRANK_PORT=" + std::string(kOwnPort) +
            " torchrun --nnodes=" + std::to_string(hosts.size()) +
            " --nproc-per-node=1 --node-rank=" + std::to_string(h) +
            " --master-addr=" + quoted(hosts.front().name) + " --master-port=" + kPort +
            " --no-python " + command + "   # on " + hosts[h].name + "\n";
  }
  return text;
}

std::string env(const std::vector<HostEntry>& hosts, const std::string& command) {
  std::string text;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    text += "RANK=" + std::to_string(h) + " WORLD_SIZE=" + std::to_string(hosts.size()) +
            " MASTER_ADDR=" + quoted(hosts.front().name) + " MASTER_PORT=" + kPort + " " + command +
            "   # on " + hosts[h].name + "\n";
  }
  return text;
}

}  // namespace

std::string shell_quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

std::string launch_lines(const std::string& launcher, const JobSpec& spec,
                         const std::vector<std::string>& command) {
  if (spec.hosts.empty())
    throw Error(spec.file +
                ": --print-launch needs the job's hosts; list them, as in "
                "-s 'hosts=[{name: s1}, {name: s2}]'");
  if (!is_network(spec.fabric.kind) && spec.hosts.size() > 1)
    throw Error(spec.source_of("fabric.kind") +
                ": fabric.kind: memory and virtual run in one process, which needs no launcher; "
                "for several hosts set fabric.kind=ofi");
  check_spread(spec, static_cast<int>(spec.hosts.size()));
  const std::string line = shell_quoted(command);
  if (launcher == "srun") return srun(spec.hosts, line);
  if (launcher == "torchrun") return torchrun(spec.hosts, line);
  return launcher == "env" ? env(spec.hosts, line) : mpirun(spec.hosts, line);
}

}  // namespace ghostrank
