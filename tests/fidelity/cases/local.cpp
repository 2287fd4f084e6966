#include "tests/fidelity/cases/local.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/lab/lab.h"

namespace ghostrank::fidelity {
namespace {

constexpr int kPort = testing::kPort + 2;

// Starts process `rank` of so many; what it says goes to `log`.
pid_t start(int rank, int processes, const std::vector<std::string>& arguments,
            const std::string& log) {
  std::vector<std::string> words{GHOSTRANK_BINARY, "run"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child > 0) return child;
  if (processes > 1) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(processes).c_str(), 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", std::to_string(kPort).c_str(), 1);
  }
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

bool write_to(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  return static_cast<bool>(out << text << std::flush);
}

std::filesystem::path cpu_controller() {
  for (const char* path : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"})
    if (std::filesystem::exists(std::string(path) + "/cgroup.procs")) return path;
  return {};
}

std::string make_group() {
  const std::filesystem::path path =
      cpu_controller() / ("ghostrank-quota-" + std::to_string(getpid()));
  std::error_code failed;
  std::filesystem::create_directory(path, failed);
  return failed ? "" : path.string();
}

// Version 1 has two files, version 2 one.
bool set_quota(const std::string& folder, double share, double period_ms) {
  const std::string period = std::to_string(static_cast<int>(period_ms * 1000));
  const std::string quota = std::to_string(static_cast<int>(share * period_ms * 1000));
  if (std::filesystem::exists(folder + "/cpu.cfs_quota_us"))
    return write_to(folder + "/cpu.cfs_period_us", period) &&
           write_to(folder + "/cpu.cfs_quota_us", quota);
  return std::filesystem::exists(folder + "/cpu.max") &&
         write_to(folder + "/cpu.max", quota + " " + period);
}

}  // namespace

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "ghostrank-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

json play_here(const Folder& folder, int processes, const std::vector<std::string>& arguments,
               const Disturbance& disturb) {
  const std::string result = folder.file("result.json");
  std::filesystem::remove(result);
  std::vector<std::string> all = arguments;
  all.insert(all.end(), {"--json", result, "--allow-unfaithful", "--quiet"});
  std::vector<pid_t> children;
  for (int rank = 0; rank < processes; ++rank)
    children.push_back(start(rank, processes, all, folder.file("log." + std::to_string(rank))));
  bool disturbing = disturb != nullptr;
  for (std::vector<pid_t> left = children; !left.empty();) {
    if (disturbing) disturbing = disturb(left);
    const pid_t ended = waitpid(-1, nullptr, disturbing ? WNOHANG : 0);
    if (ended > 0) std::erase(left, ended);
  }
  std::ifstream file(result);
  if (!file) throw std::runtime_error("no result: " + testing::read_file(folder.file("log.0")));
  return json::parse(file);
}

Disturbance stops(unsigned seed, double every_ms) {
  return [random = std::mt19937(seed), every_ms](const std::vector<pid_t>& processes) mutable {
    const auto nap = [](double ms) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
    };
    nap(std::exponential_distribution<>(1 / every_ms)(random));
    const pid_t victim = processes[random() % processes.size()];
    kill(victim, SIGSTOP);
    nap(std::uniform_real_distribution<>(0.3, 5)(random));
    kill(victim, SIGCONT);
    return true;
  };
}

Quota::Quota(double share, double period_ms) : folder_(make_group()) {
  if (folder_.empty() || !set_quota(folder_, share, period_ms))
    throw std::runtime_error("no control group can be given a CPU quota here");
}

Quota::~Quota() { rmdir(folder_.c_str()); }

bool Quota::possible() {
  if (cpu_controller().empty()) return false;
  const std::string folder = make_group();
  if (folder.empty()) return false;
  const bool set = set_quota(folder, 1, 100);
  rmdir(folder.c_str());
  return set;
}

Disturbance Quota::disturbance() const {
  return [procs = folder_ + "/cgroup.procs"](const std::vector<pid_t>& processes) {
    for (const pid_t p : processes)
      if (!write_to(procs, std::to_string(p))) throw std::runtime_error("cannot write " + procs);
    return false;
  };
}

// Delegates, so that the destructor ends those that run already when one cannot be started.
Hogs::Hogs(int count) : Hogs() {
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("fork failed");  // kill(-1) would signal all processes
    if (child == 0)
      for (volatile unsigned long n = 0;;) n = n + 1;
    processes_.push_back(child);
  }
}

Hogs::~Hogs() {
  for (const pid_t p : processes_) {
    kill(p, SIGKILL);
    waitpid(p, nullptr, 0);
  }
}

}  // namespace ghostrank::fidelity
