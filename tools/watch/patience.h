// A line on the terminal for a step that may take long and cannot say how far it is: what it is,
// how long it has taken, the memory of this process. Nothing appears for a step of less than a
// second, or if the output is no terminal.
//
// Threading: one owner; a thread of its own paints.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace ghostrank {

class Patience {
 public:
  // On stderr, if that is a terminal and `on`.
  explicit Patience(std::string what, bool on = true);
  // Paints on `out` from `first` on, then every `each`.
  Patience(std::string what, std::FILE* out, std::chrono::milliseconds first,
           std::chrono::milliseconds each);
  ~Patience() { end(); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  void end();  // removes the line

 private:
  void start(std::chrono::milliseconds first, std::chrono::milliseconds each);
  void paint(std::chrono::milliseconds first, std::chrono::milliseconds each);

  std::string what_;
  std::FILE* out_;
  std::mutex mutex_;  // guards ended_
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace ghostrank
