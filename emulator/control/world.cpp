// Which process of the job this is, according to the launcher. No other file reads the launchers'
// variables; world_pmix.cpp speaks PMIx.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "emulator/control/control.h"
#include "emulator/control/meet.h"
#include "emulator/control/node_list.h"
#include "emulator/control/world_pmix.h"
#include "emulator/host/interfaces.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMaxName = 1024;  // bytes; a greeting must fit its frame
constexpr int kMost = std::numeric_limits<int>::max();

// An empty variable counts as unset.
std::optional<std::string> text_of(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<int> number_of(const char* variable, int least, int most) {
  const std::optional<std::string> text = text_of(variable);
  if (!text) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text->c_str(), &end, 10);
  if (errno != 0 || *end != '\0' || value < least || value > most)
    throw Error("environment: " + std::string(variable) + "=" + *text +
                " is not a whole number from " + std::to_string(least) + " to " +
                std::to_string(most));
  return static_cast<int>(value);
}

std::string short_text_of(const char* variable, const std::string& otherwise) {
  const std::string text = text_of(variable).value_or(otherwise);
  if (text.size() > kMaxName)
    throw Error("environment: " + std::string(variable) + " is longer than " +
                std::to_string(kMaxName) + " bytes");
  return text;
}

struct LauncherVariables {
  const char *rank, *size;
};
constexpr LauncherVariables kExplicit{"RANK", "WORLD_SIZE"};
constexpr LauncherVariables kOpenMpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
constexpr LauncherVariables kSlurm{"SLURM_PROCID", "SLURM_NTASKS"};
constexpr LauncherVariables kMpich{"PMI_RANK", "PMI_SIZE"};

// Takes rank and size from this launcher's variables, if they are set.
bool take(const LauncherVariables& l, World& world) {
  const std::optional<int> rank = number_of(l.rank, 0, kMost);
  const std::optional<int> size = number_of(l.size, 1, kMost);
  if (!rank && !size) return false;
  if (!rank || !size)
    throw Error("environment: " + std::string(rank ? l.rank : l.size) + " is set but " +
                (rank ? l.size : l.rank) + " is not; set both, or neither for one process");
  if (*rank >= *size)
    throw Error("environment: " + std::string(l.rank) + "=" + std::to_string(*rank) +
                " must be less than " + l.size + "=" + std::to_string(*size));
  world.rank = *rank;
  world.size = *size;
  return true;
}

std::optional<int> port_from_environment() {
  const std::optional<int> master_port = number_of("MASTER_PORT", 1, 65535);
  const std::optional<int> port = number_of("GHOSTRANK_PORT", 1, 65535);
  return port ? port : master_port;
}

// An IPv6 address may stand in brackets, as in URLs.
std::optional<std::string> master_address() {
  std::optional<std::string> address = text_of("MASTER_ADDR");
  if (address && address->size() > 2 && address->front() == '[' && address->back() == ']')
    address = address->substr(1, address->size() - 2);
  return address;
}

void take_master(const char* size, World& world) {
  const std::optional<std::string> address = master_address();
  const std::optional<int> port = port_from_environment();
  const std::string processes =
      "environment: " + std::string(size) + " is " + std::to_string(world.size);
  if (world.size > 1 && !address)
    throw Error(processes + " but MASTER_ADDR is not set; set it to the address of process 0" +
                (size == kOpenMpi.size ? ", or start with an mpirun that has PMIx" : ""));
  if (world.size > 1 && !port)
    throw Error(processes +
                " but MASTER_PORT is not set; set it (or GHOSTRANK_PORT) to a free port of " +
                *address);
  world.master_address = address.value_or(world.master_address);
  world.master_port = port.value_or(0);
}

// Outside of a step of srun this is one process alone, although Slurm sets SLURM_NTASKS, for the
// next srun, in salloc's shell, and SLURM_PROCID=0 beside it in a batch script. Only srun sets
// SLURM_STEP_ID. The shell may be a step of one task, which has SLURM_NTASKS for the next, too, so
// the size of the step itself goes first.
bool take_slurm(World& world) {
  const std::optional<int> task = number_of(kSlurm.rank, 0, kMost);
  if (!task || (*task == 0 && !text_of("SLURM_STEP_ID"))) return false;
  constexpr const char* kOfStep = "SLURM_STEP_NUM_TASKS";
  take({kSlurm.rank, text_of(kOfStep) ? kOfStep : kSlurm.size}, world);
  if (world.size == 1) return true;
  const std::optional<std::string> own = master_address();
  const char* variable = text_of("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
  const std::optional<std::string> list = text_of(variable);
  if (!own && !list)
    throw Error(
        "environment: SLURM_PROCID is set but neither SLURM_NODELIST nor MASTER_ADDR is; set "
        "MASTER_ADDR to the address of process 0");
  const auto nodes = own ? std::nullopt : expand_node_list(*list);
  if (!own && !nodes)
    throw Error("environment: " + std::string(variable) + "=" + *list +
                " is no list of nodes such as node[1-3,7]; set MASTER_ADDR to the address of "
                "process 0");
  world.master_address = own ? *own : nodes->front();
  // One port per job and step, so that neighbours on a node do not meet each other.
  constexpr unsigned long kFirstPort = 20000, kPorts = 10000, kStep = 97;
  const std::string job = text_of("SLURM_JOB_ID").value_or("0");
  const std::string step = text_of("SLURM_STEP_ID").value_or("0");
  const auto folded = [](const std::string& id) { return std::strtoul(id.c_str(), nullptr, 10); };
  const unsigned long port = kFirstPort + (folded(job) + folded(step) * kStep) % kPorts;
  world.master_port = port_from_environment().value_or(static_cast<int>(port));
  world.job_id = "slurm-" + job + "." + step;
  return true;
}

// The address that GHOSTRANK_ADDRESS gives, itself or as an interface.
std::string address_of(const std::string& wanted) {
  const std::vector<Interface> all = list_interfaces();
  const bool is_interface =
      std::any_of(all.begin(), all.end(), [&](const auto& i) { return i.name == wanted; });
  if (is_interface) return address_of_device(wanted, "GHOSTRANK_ADDRESS");
  if (is_address_here(wanted)) return wanted;
  throw Error("GHOSTRANK_ADDRESS: '" + wanted +
                  "' is neither an interface nor an address of this host; there are " +
                  interfaces_text(all),
              ErrorKind::environment);
}

// Without PMIx GHOSTRANK_ADDRESS has no effect: refuses it for several processes.
void check_address(const World& world) {
  const auto wanted = text_of("GHOSTRANK_ADDRESS");
  if (!wanted) return;
  if (world.size > 1)
    throw Error(
        "environment: GHOSTRANK_ADDRESS is for processes that meet over PMIx; these meet at " +
        world.master_address + ", as MASTER_ADDR or srun says: unset it, or set MASTER_ADDR");
  address_of(*wanted);
}

// The address at which process 0 listens: as the user says, else one that the others reach.
std::string address_to_publish(const PmixSession& session) {
  if (const auto wanted = text_of("GHOSTRANK_ADDRESS")) return address_of(*wanted);
  if (const auto master = master_address()) return *master;
  return session.one_host() ? "127.0.0.1" : address_towards_any_of(session.other_hosts());
}

// Process 0 listens first and then tells where, so nobody comes too early and no port is guessed.
void take_pmix(World& world) {
  const PmixSession session(world.timeout);
  world.rank = session.rank();
  world.size = session.size();
  world.job_id = session.name();
  if (world.size == 1) return;
  constexpr std::string_view kProblem = "problem ";
  std::string said;
  std::optional<Error> problem;
  if (world.rank == 0) {
    try {
      world.master_address = address_to_publish(session);
      world.master_port = port_from_environment().value_or(0);
      world.listener = std::make_shared<Fd>(listen_at(world));
      said = std::to_string(port_of(*world.listener)) + " " + world.master_address;
    } catch (const Error& error) {
      problem = error;
      said = std::string(kProblem) + error.what();
    }
  }
  said = session.share(said);
  if (problem) throw Error(*problem);
  if (said.starts_with(kProblem))
    throw Error("process 0: " + said.substr(kProblem.size()), ErrorKind::environment);
  world.master_port = std::atoi(said.c_str());
  world.master_address = said.substr(said.find(' ') + 1);
}

}  // namespace

World world_from_environment() {
  World world;
  if (const auto seconds = number_of("GHOSTRANK_TIMEOUT_S", 1, 86'400))
    world.timeout = std::chrono::seconds(*seconds);
  const bool over_pmix = !text_of(kExplicit.rank) && !text_of(kExplicit.size) && pmix_present();
  if (over_pmix)
    take_pmix(world);
  else if (take(kExplicit, world))
    take_master(kExplicit.size, world);
  else if (take(kOpenMpi, world))
    take_master(kOpenMpi.size, world);
  else if (!take_slurm(world) && take(kMpich, world))
    take_master(kMpich.size, world);
  if (!over_pmix) check_address(world);
  world.job_id = short_text_of("GHOSTRANK_JOB_ID", world.job_id);
  world.token = short_text_of("GHOSTRANK_TOKEN", "");
  return world;
}

}  // namespace ghostrank
