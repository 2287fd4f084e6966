// The facts and tables of a result, each for text and for a page: what its step took, its
// collectives, its traffic, and how far to trust the numbers.
//
// Threading: pure functions.
#pragma once

#include <vector>

#include "emulator/result/result.h"
#include "tools/text/table.h"

namespace ghostrank {

std::vector<Fact> time_facts(const Result& result);   // of several jobs: none
std::vector<Fact> event_facts(const Result& result);  // what happened, by time
Table collectives_table(const Result& result);
std::vector<Fact> traffic_facts(const Result& result);
std::vector<Fact> fidelity_facts(const Result& result);

}  // namespace ghostrank
