// Hosts behind a switch of ghostrank's: a lab (namespaces.h) whose ports lead to the switch in
// place of the bridge, and jobs with a tensor of kElements and one of 70, whose results are
// checked.
//
// Threading: the lab's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/network/namespaces.h"

namespace ghostrank::testing {

inline constexpr std::uint64_t kElements = 30'000;

// The target whose long proofs are wanted, from GHOSTRANK_SWITCH_PROOF; 1: all, empty: none. The
// command refuses variables that it does not know, so the first call unsets this one.
const std::string& wanted_proof();

class SwitchedHosts : public Namespaces {
 protected:
  void SetUp() override;
  void make_lab(int hosts);  // replaces the present lab

  // The command that plays the job, with result.json; `settings`: more of -s.
  std::string job(const std::string& type, const std::string& settings) const;

  // Returns when the switch that the run starts is there.
  pid_t start_long_run(const std::string& settings = "");
  int play(const std::string& command);
  std::string said() const;  // by the last run
  // Returns the result of a run that must end well with no wrong element; {} if there is none.
  nlohmann::json expect_exact(const std::string& command);
  nlohmann::json expect_exact_end(pid_t run);
  // Returns when the switch of this control socket has completed a thousand sums since its start,
  // or the run has ended.
  void await_sums(pid_t run, const std::string& socket);
};

// The run finds a switch that runs.
class ForeignSwitch : public SwitchedHosts {
 protected:
  // Turns them off at both ends of every link, as a run that starts its switch does.
  void turn_offloads_off();
  // Returns when it serves. `has_job`: its plan holds the job's group; else only its control socket
  // tells it.
  pid_t start_switch(const std::string& target, bool has_job);
  std::string socket() const;
  using SwitchedHosts::await_sums;
  void await_sums(pid_t run) { await_sums(run, socket()); }
};

}  // namespace ghostrank::testing
