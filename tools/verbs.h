// The verbs of the command: a table (verbs.cpp), and one file each in verbs/. A verb gets the whole
// command line and returns the exit status. It throws Error for mistakes that it finds before
// anything has started.
//
// Threading: main thread.
#pragma once

#include <span>
#include <string_view>

#include "tools/arguments.h"

namespace ghostrank {

struct Verb {
  std::string_view name, synopsis;
  int (*play)(const Argv& argv);
  std::span<const Verb> verbs = {};  // sub-verbs, as in `ghostrank profile show`
};

std::span<const Verb> all_verbs();
std::span<const Verb> profile_verbs();
std::span<const Verb> switch_verbs();
std::span<const Verb> nccl_verbs();
std::span<const Verb> topology_verbs();
std::span<const Verb> calibrate_verbs();

// Plays the verb that argv[1] names.
int play_verb(const Argv& argv);

// For a verb with sub-verbs: plays the one that argv[2] names, with {program, its name, ...}. With
// --help it prints `intro` and the list of sub-verbs.
int play_verb_of(std::span<const Verb> verbs, const Argv& argv, std::string_view intro);

int verb_run(const Argv& argv);
int verb_plan(const Argv& argv);
int verb_schedule(const Argv& argv);
int verb_schemes(const Argv& argv);
int verb_bench(const Argv& argv);
int verb_compare(const Argv& argv);
int verb_sweep(const Argv& argv);
int verb_adapt(const Argv& argv);
int verb_report(const Argv& argv);
int verb_diagnose(const Argv& argv);
int verb_diff(const Argv& argv);
int verb_profile(const Argv& argv);
int verb_doctor(const Argv& argv);
int verb_switch(const Argv& argv);
int verb_nccl(const Argv& argv);
int verb_place(const Argv& argv);
int verb_topology(const Argv& argv);
int verb_calibrate(const Argv& argv);
int verb_help(const Argv& argv);

}  // namespace ghostrank
