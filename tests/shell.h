// A command of the shell as a test sees it.
//
// Threading: safe to call from any thread.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <sys/wait.h>

namespace ghostrank::test {

struct Outcome {
  int status = -1;   // as a shell reports it: 128 + N after signal N; -1: there is no shell
  std::string text;  // on stdout and stderr
};

inline Outcome shell(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = popen(("(" + command + "\n) 2>&1").c_str(), "r");
  if (!pipe) return outcome;
  std::array<char, 4096> piece;
  while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe))
    outcome.text.append(piece.data(), n);
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace ghostrank::test
