// The verbs of the command, one file each (verb_NAME.cpp). A verb gets the whole command line and
// returns the exit status; what is wrong before anything has started is thrown as an Error.
#pragma once

#include "tools/arguments.h"

namespace ghostrank {

int verb_run(const Argv& argv);
int verb_plan(const Argv& argv);
int verb_schedule(const Argv& argv);
int verb_schemes(const Argv& argv);
int verb_bench(const Argv& argv);
int verb_compare(const Argv& argv);
int verb_profile(const Argv& argv);
int verb_doctor(const Argv& argv);
int verb_switch(const Argv& argv);

}  // namespace ghostrank
