// A root's watch over the servers that owe it answers (KeyRules::timeout_ps). The root probes a
// server that is silent for that time; if the server stays silent as long again, it is dead, for
// ever.
//
// A server's timer has the server's number. Requires a time-out above 0. Threading: one owner.
#pragma once

#include <set>
#include <unordered_map>

#include "collectives/agent.h"

namespace ghostrank {

class ServerWatch {
 public:
  explicit ServerWatch(Picoseconds timeout) : timeout_(timeout) {}

  const std::set<int>& dead() const { return dead_; }

  // The server owes one answer more, or one less.
  void owes(Io& io, int server) {
    if (owed_[server].answers++ == 0) wait(io, server);
  }
  void paid(Io& io, int server) {
    if (--owed_[server].answers == 0) io.disarm(name(server));
  }

  // A note of the server has come; false: it is dead, and the note counts for nothing.
  bool hears(Io& io, int server) {
    if (dead_.contains(server)) return false;
    Owed& owed = owed_[server];
    owed.asked = false;
    if (owed.answers > 0) wait(io, server);
    return true;
  }

  enum class Verdict : std::uint8_t { ask, dead };
  Verdict on_timer(Io& io, int server) {
    if (owed_[server].asked) return Verdict::dead;
    owed_[server].asked = true;
    wait(io, server);
    return Verdict::ask;
  }

  void bury(Io& io, int server) {
    owed_.erase(server);
    io.disarm(name(server));
    dead_.insert(server);
  }

 private:
  struct Owed {
    std::size_t answers = 0;
    bool asked = false;
  };
  static std::uint32_t name(int server) { return static_cast<std::uint32_t>(server); }
  void wait(Io& io, int server) { io.arm(name(server), timeout_); }

  const Picoseconds timeout_;
  std::unordered_map<int, Owed> owed_;
  std::set<int> dead_;
};

}  // namespace ghostrank
