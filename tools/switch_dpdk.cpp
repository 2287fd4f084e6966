#include "tools/switch_dpdk.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include "profiles/error.h"
#include "switch/dpdk/entries.h"

extern char** environ;

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

// Beside the command in a build, in libexec where it was installed.
std::string runner() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& path : {here / "ghostrank-dpdk", here / "../libexec/ghostrank-dpdk"}) {
    if (fs::exists(path)) return path.string();
  }
  throw Error(
      "--target dpdk: this ghostrank was built without DPDK; install libdpdk-dev and build again",
      ErrorKind::environment);
}

std::string own_program(int elements) {
  const std::string name = "switchml_" + std::to_string(elements) + ".spec";
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& path :
       {fs::path(GHOSTRANK_SWITCH_PROGRAMS) / name, here / "../share/ghostrank/switch" / name}) {
    if (fs::exists(path)) return path.string();
  }
  throw Error("the program " + name + " is missing; name one with --program",
              ErrorKind::environment);
}

// A file that is gone when its owner is.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_((fs::temp_directory_path() / "ghostrank-XXXXXX").string()) {
    const int fd = mkstemp(path_.data());
    if (fd < 0)
      throw Error("no temporary file can be made in " + fs::temp_directory_path().string() + ": " +
                      std::strerror(errno),
                  ErrorKind::environment);
    close(fd);
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs a command and returns what it wrote to stdout.
std::string output_of(std::vector<std::string> words, int& status) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw Error("no pipe can be made", ErrorKind::environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; error == 0 && (n = read(ends[0], buffer.data(), buffer.size())) != 0;) {
    if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  if (error != 0)
    throw Error(words[0] + " cannot be started: " + std::strerror(error), ErrorKind::environment);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return text;
}

std::string entries_of_plan(const switchml::SwitchPlan& plan, int elements) {
  try {
    return dpdk::entries_of(plan, elements);
  } catch (const std::invalid_argument& error) {
    throw Error(std::string("the plan does not fit the P4 program: ") + error.what());
  }
}

}  // namespace

std::string run_on_dpdk(const DpdkRun& run, const switchml::SwitchPlan* plan) {
  const int elements = plan == nullptr || plan->jobs.empty() ? 256 : plan->jobs[0].elements;
  const std::string program = run.program.empty() ? own_program(elements) : run.program;
  const TemporaryFile made(plan != nullptr ? entries_of_plan(*plan, elements) : "");
  std::vector<std::string> words{runner(), program,
                                 run.entries.empty() ? made.path() : run.entries};
  words.insert(words.end(), run.ports.begin(), run.ports.end());
  int status = 0;
  std::string counters = output_of(words, status);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return counters;
  const bool environment = WIFEXITED(status) && WEXITSTATUS(status) == 3;
  // It has said why on stderr, which is ours too.
  throw Error(
      "the DPDK switch ended early" +
          (WIFSIGNALED(status) ? " by signal " + std::to_string(WTERMSIG(status)) : std::string()),
      environment ? ErrorKind::environment : ErrorKind::usage);
}

}  // namespace ghostrank
