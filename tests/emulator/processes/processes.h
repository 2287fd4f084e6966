// Plays a job of several processes inside a test: forks them, gives each its World and collects
// their results. EXPECT_* work inside a process: a failure is printed and makes its outcome not ok.
//
// Fork before the test program starts threads; code that needs threads belongs in a process.
#pragma once

#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <functional>
#include <poll.h>
#include <signal.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/control/control.h"

namespace ghostrank::testing {

struct Outcome {
  bool ok = false;  // exited normally; no failure, no exception
  bool timed_out = false;
  int signal = 0;    // the signal that ended it
  std::string said;  // the body's result, or "error: " and the exception's text
};

inline int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(fd, reinterpret_cast<const sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

inline World local_world(int rank, int size, int port) {
  World world;
  world.rank = rank;
  world.size = size;
  world.master_port = port;
  world.timeout = std::chrono::seconds(10);
  return world;
}

using Body = std::function<std::string(const World&)>;

// The forked half; never returns.
[[noreturn]] inline void play(const Body& body, const World& world, int out) {
  std::string said;
  bool ok = true;
  try {
    said = body(world);
  } catch (const std::exception& e) {
    said = std::string("error: ") + e.what();
    ok = false;
  }
  std::size_t written = 0;
  while (written < said.size()) {
    const ssize_t n = write(out, said.data() + written, said.size() - written);
    if (n <= 0) break;
    written += n;
  }
  std::fflush(nullptr);
  _exit(ok && !::testing::Test::HasFailure() ? 0 : 1);
}

// One process per world, in order.
inline std::vector<Outcome> run_worlds(const std::vector<World>& worlds, const Body& body,
                                       std::chrono::seconds limit = std::chrono::seconds(20)) {
  struct Child {
    pid_t pid = 0;
    int pipe = -1;
  };
  std::fflush(nullptr);
  std::vector<Child> children;
  for (const World& world : worlds) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    const pid_t pid = fork();
    if (pid < 0) std::abort();  // kill(-1) would signal every process of the machine
    if (pid == 0) {
      close(ends[0]);
      for (const Child& other : children) close(other.pipe);
      play(body, world, ends[1]);
    }
    close(ends[1]);
    children.push_back({pid, ends[0]});
  }

  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::vector<Outcome> outcomes;
  for (const Child& child : children) {
    Outcome outcome;
    for (;;) {  // its end of the pipe closes when it ends, even if killed
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd fd{child.pipe, POLLIN, 0};
      if (left.count() <= 0 || poll(&fd, 1, static_cast<int>(left.count())) == 0) {
        outcome.timed_out = true;
        kill(child.pid, SIGKILL);
        break;
      }
      char chunk[4096];
      const ssize_t n = read(child.pipe, chunk, sizeof chunk);
      if (n <= 0) break;
      outcome.said.append(chunk, static_cast<std::size_t>(n));
    }
    close(child.pipe);
    int status = 0;
    waitpid(child.pid, &status, 0);
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
    outcome.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

inline std::vector<Outcome> run_processes(int size, const Body& body,
                                          std::chrono::seconds limit = std::chrono::seconds(20)) {
  const int port = free_port();
  std::vector<World> worlds;
  for (int rank = 0; rank < size; ++rank) worlds.push_back(local_world(rank, size, port));
  return run_worlds(worlds, body, limit);
}

inline void expect_all_ok(const std::vector<Outcome>& outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    EXPECT_TRUE(outcomes[i].ok) << "process " << i << (outcomes[i].timed_out ? " timed out" : "")
                                << " (signal " << outcomes[i].signal << "): " << outcomes[i].said;
}

// Waits until `condition` holds; false if it does not within `limit`.
inline bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace ghostrank::testing
