#include "tools/verbs/compare_play.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator/common/random.h"
#include "emulator/host/cores.h"
#include "profiles/error.h"
#include "switch/ports/fd.h"

extern char** environ;

namespace ghostrank {
namespace {

using WallClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{20};

[[noreturn]] void cannot_start(int error) {
  throw Error(std::string("a run cannot be started: ") + std::strerror(error),
              ErrorKind::environment);
}

// A TCP port with no listener, below the range from which the kernel assigns ports.
int free_port() {
  constexpr int kTries = 100;
  RandomBits random{static_cast<std::uint64_t>(WallClock::now().time_since_epoch().count()),
                    static_cast<std::uint64_t>(getpid())};
  for (int i = 0; i < kTries; ++i) {
    const auto port = static_cast<std::uint16_t>(20000 + random.next() % 12000);
    const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.is_open()) cannot_start(errno);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return port;
  }
  throw Error("no free port on 127.0.0.1 from 20000 to 31999; end what listens there",
              ErrorKind::environment);
}

// This process's environment, plus the variables through which a run's processes meet.
std::vector<std::string> launch_variables(int rank, int processes, int port) {
  static constexpr std::string_view kOwn[] = {
      "RANK=", "WORLD_SIZE=", "MASTER_ADDR=", "MASTER_PORT=", "GHOSTRANK_PORT="};
  std::vector<std::string> variables;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    bool own = false;
    for (const std::string_view name : kOwn) own = own || variable.starts_with(name);
    if (!own) variables.emplace_back(variable);
  }
  if (processes == 1) return variables;
  variables.push_back("RANK=" + std::to_string(rank));
  variables.push_back("WORLD_SIZE=" + std::to_string(processes));
  variables.emplace_back("MASTER_ADDR=127.0.0.1");
  variables.push_back("MASTER_PORT=" + std::to_string(port));
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The CPUs of one of several processes: an equal share of ours, because two engine threads on one
// CPU would wait for each other. All of ours if there are fewer CPUs than processes.
std::vector<int> cpus_of(int rank, int processes) {
  const std::vector<int> ours = cpus_of_this_thread();
  const int count = static_cast<int>(ours.size());
  if (count < processes) return ours;
  // Index i goes to process floor(i processes / count).
  const auto first_of = [&](int process) { return (process * count + processes - 1) / processes; };
  return {ours.begin() + first_of(rank), ours.begin() + first_of(rank + 1)};
}

pid_t start(const std::vector<std::string>& words, int rank, int processes, int port,
            const std::string& log, const sigset_t& mask) {
  std::vector<std::string> arguments = words;
  std::vector<std::string> variables = launch_variables(rank, processes, port);
  const std::vector<char*> argv = pointers_to(arguments), envp = pointers_to(variables);
  const Fd in(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!in.is_open()) cannot_start(errno);
  const Fd out(open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!out.is_open())
    throw Error("cannot write " + log + ": " + std::strerror(errno), ErrorKind::environment);
  const StayOn cpus(cpus_of(rank, processes));  // the child keeps them
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {   // until exec, call only functions that are safe after fork()
    setpgid(0, 0);  // the terminal's Ctrl-C then reaches only the parent, which passes it on
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    dup2(in.get(), STDIN_FILENO);
    dup2(out.get(), STDOUT_FILENO);
    dup2(out.get(), STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  if (pid < 0) cannot_start(errno);
  return pid;
}

// The processes of a run; the destructor kills those that still run.
class Processes {
 public:
  ~Processes() { end_all(SIGKILL, true); }

  void add(pid_t pid) { pids_.push_back(pid); }
  bool any() const {
    for (const pid_t pid : pids_)
      if (pid > 0) return true;
    return false;
  }
  // Records the processes that have ended.
  void collect() {
    for (std::size_t i = 0; i < pids_.size(); ++i) {
      int status = 0;
      if (pids_[i] <= 0 || waitpid(pids_[i], &status, WNOHANG) != pids_[i]) continue;
      pids_[i] = 0;
      if (i > 0) continue;
      first_ended_ = true;
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
  void end_all(int signal, bool wait = false) {
    for (pid_t& pid : pids_) {
      if (pid <= 0) continue;
      kill(pid, signal);
      if (!wait) continue;
      waitpid(pid, nullptr, 0);
      pid = 0;
    }
  }
  bool first_ended() const { return first_ended_; }
  int status() const { return status_; }

 private:
  std::vector<pid_t> pids_;
  bool first_ended_ = false;
  int status_ = 0;
};

std::string log_of(const std::string& log, int rank) {
  return rank == 0 ? log : log + "." + std::to_string(rank);
}

bool ignores_hang_up() {
  struct sigaction now {};
  sigaction(SIGHUP, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

Interruption::Interruption() {
  sigemptyset(&waited_);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&waited_, signal);
  if (!ignores_hang_up()) sigaddset(&waited_, SIGHUP);  // blocked, it would come all the same
  sigprocmask(SIG_BLOCK, &waited_, &before_);
}

Interruption::~Interruption() {
  received();  // takes signals that the caller has already acted on
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void Interruption::note(int signal) {
  if (signal <= 0 || signal == SIGCHLD) return;
  received_ = received_ == 0 ? signal : received_;
}

int Interruption::received() {
  const timespec none{};
  for (int signal; (signal = sigtimedwait(&waited_, nullptr, &none)) > 0;) note(signal);
  return received_;
}

void Interruption::wait() {
  const timespec moment{0, 200'000'000};
  note(sigtimedwait(&waited_, nullptr, &moment));
}

RunOutcome play_run(const std::vector<std::string>& words, int processes, const std::string& log,
                    Interruption& interruption) {
  const int port = processes > 1 ? free_port() : 0;
  Processes run;
  for (int rank = 0; rank < processes; ++rank)
    run.add(start(words, rank, processes, port, log_of(log, rank), interruption.mask_before()));
  std::optional<WallClock::time_point> ending;
  while (true) {
    run.collect();
    if (!run.any()) break;
    if (!ending && (interruption.received() != 0 || (run.first_ended() && run.status() != 0))) {
      run.end_all(interruption.received() != 0 ? interruption.received() : SIGTERM);
      ending = WallClock::now();
    }
    if (ending && WallClock::now() - *ending > kGrace) run.end_all(SIGKILL);
    interruption.wait();
  }
  return {run.status(), run.status() == 0 ? "" : last_words(log)};
}

pid_t start_run(const std::vector<std::string>& words, const std::string& log,
                const Interruption& interruption) {
  return start(words, 0, 1, 0, log, interruption.mask_before());
}

std::string last_words(const std::string& log) {
  std::ifstream in(log);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
  }
  if (last.empty())
    return "it ended without a word: it was killed, or there is no room in " +
           std::filesystem::path(log).parent_path().string();
  constexpr std::string_view kName = "ghostrank: ";
  return last.starts_with(kName) ? last.substr(kName.size()) : last;
}

}  // namespace ghostrank
