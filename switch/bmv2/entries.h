// A plan and its jobs as commands of simple_switch_CLI, for our v1model program (p4/bmv2.p4) on
// bmv2.
//
// simple_switch gives each table entry and multicast node a handle, which it prints in its answer.
// Later commands need the handles, to join nodes to groups and to remove entries and nodes:
//
//   commands_to_add() ──► answers ──► handles_in() ──► commands_to_join(), commands_to_remove()
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "switch/compiled/counters.h"
#include "switch/plan.h"
#include "switch/tables.h"

namespace ghostrank::bmv2 {

// What the switch holds for the plan or for one of its jobs.
struct Setup {
  struct Group {
    std::string number;
    std::vector<std::string> nodes;  // "REPLICA PORT..."
  };
  std::vector<std::pair<std::string, std::string>> entries;  // table, "ACTION KEY... => VALUE..."
  std::vector<Group> groups;
  std::vector<std::string> registers;  // "NAME INDEX VALUE"
};

// Ports, forwarding and losses; of a switch that has just started.
Setup setup_of_plan(const switchml::SwitchPlan& plan);
Setup setup_of_job(const switchml::SwitchPlan& plan, const switchml::Tables& job);

struct Handles {
  std::vector<std::string> entries, nodes;  // in the order in which they were added
};

std::vector<std::string> commands_to_add(const Setup& setup);
// The first refusal among the answers; "": all was accepted.
std::string refusal_in(const std::string& answers);
// The commands that take back what was accepted of `commands`, those to add or to join, the last
// one first. Registers keep what was written to them.
std::vector<std::string> commands_to_undo(const std::vector<std::string>& commands,
                                          const std::string& answers);
Handles handles_in(const std::string& answers);
// Both require the handles of all that was added.
std::vector<std::string> commands_to_join(const Setup& setup, const Handles& handles);
std::vector<std::string> commands_to_remove(const Setup& setup, const Handles& handles);
// Empties a job's slots. `ours`: the program is ours, which has numbers of guarded rounds.
std::vector<std::string> commands_to_forget(const switchml::JobPlan& job,
                                            const switchml::JobResources& resources, bool ours);

// The commands that read the counters, and the counters that their output gives. `received` and
// `sent` of ports are not among them.
std::vector<std::string> commands_to_count(const switchml::SwitchPlan& plan,
                                           const std::vector<switchml::Tables>& jobs);
switchml::SwitchCounters counters_of(const std::string& answers, const switchml::SwitchPlan& plan,
                                     const std::vector<switchml::Tables>& jobs);

}  // namespace ghostrank::bmv2
