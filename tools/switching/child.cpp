#include "tools/switching/child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiles/error.h"

extern char** environ;

namespace ghostrank {
namespace {

constexpr int kLine = 3;  // descriptor in the child

}  // namespace

std::string program_of_ours(const std::string& name) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& path : {here / name, here / "../libexec" / name})
    if (std::filesystem::exists(path)) return path.string();
  return "";
}

Child::Child(std::vector<std::string> words, const std::string& input) {
  std::array<int, 2> out{-1, -1}, line{-1, -1};
  const bool made = pipe2(out.data(), O_CLOEXEC) == 0 &&
                    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line.data()) == 0;
  output_ = Fd(out[0]), line_ = Fd(line[0]);
  const Fd printed(out[1]), other_end(line[1]);
  if (!made)
    throw Error(std::string("no pipe can be made: ") + std::strerror(errno),
                ErrorKind::environment);
  // dup2 of a descriptor onto itself would keep its close-on-exec flag, so duplicate it above kLine
  // first.
  const Fd theirs(fcntl(other_end.get(), F_DUPFD_CLOEXEC, kLine + 1));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!input.empty())
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, printed.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), kLine);
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  const int error = posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw Error(words[0] + " cannot be started: " + std::strerror(error), ErrorKind::environment);
}

void Child::end() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  status();
}

Child::~Child() { end(); }

void Child::send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(line_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return;  // receive() reports the end
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string Child::receive() {
  std::size_t end;
  while ((end = received_.find('\n')) == std::string::npos) {
    std::array<char, 65536> buffer{};
    const ssize_t n = recv(line_.get(), buffer.data(), buffer.size(), 0);
    if (n == 0 || (n < 0 && errno != EINTR)) return {};
    if (n > 0) received_.append(buffer.data(), static_cast<std::size_t>(n));
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

bool Child::wait_output(std::chrono::milliseconds patience) const {
  pollfd polled{output_.get(), POLLIN, 0};
  return poll(&polled, 1, static_cast<int>(patience.count())) > 0;
}

bool Child::read_output() {
  std::array<char, 65536> buffer{};
  const ssize_t n = read(output_.get(), buffer.data(), buffer.size());
  if (n > 0) printed_.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

int Child::status() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

}  // namespace ghostrank
