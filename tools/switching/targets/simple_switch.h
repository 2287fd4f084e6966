// p4lang's simple_switch as a process of ours, and its command line. Both, and the Python that the
// command line needs, are found on PATH.
//
// Errors are Error(environment). Threading: main thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tools/report/files/temporary_file.h"
#include "tools/switching/child.h"

namespace ghostrank {

class SimpleSwitch {
 public:
  // Starts it with a program (JSON) and returns when it takes commands. Port p is links[p]: an
  // interface (`files_after` is 0), or X: it then reads X_in.pcap and writes X_out.pcap, beginning
  // `files_after` after its start. On interfaces, brings up the namespace's loopback interface,
  // over which commands go.
  SimpleSwitch(const std::string& program, const std::vector<std::string>& links,
               std::chrono::seconds files_after = {});

  // Carries out commands and returns what is answered, refusals too.
  std::string answers(const std::vector<std::string>& lines) const;
  // The same; throws with the first refusal, after all have been carried out.
  std::string command(const std::vector<std::string>& lines) const;

  Child& child() { return *child_; }
  // Throws with the first refusal among the answers.
  static void check(const std::string& answers);
  std::chrono::steady_clock::time_point began() const { return began_; }
  // Throws: simple_switch has ended, although nobody has stopped it.
  [[noreturn]] void fail_ended() const;

 private:
  TemporaryFolder folder_;
  std::string commands_;  // the program that takes them
  std::string port_;      // where simple_switch takes them
  std::chrono::steady_clock::time_point began_;
  std::unique_ptr<Child> child_;
};

}  // namespace ghostrank
