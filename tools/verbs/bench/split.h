// NCCL_TESTS_SPLIT: the ranks dealt out to groups that make the same calls at the same time, by
// nccl-tests' rules.
//
// Threading: pure functions, except that split_from_environment() reads the environment.
#pragma once

#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

struct Split {
  std::string text;                            // "NCCL_TESTS_SPLIT=MOD 8"; empty: no split
  std::vector<std::vector<WorldRank>> groups;  // by colour, least first; empty: no split
};

// `rule`: AND, OR, MOD or DIV, or &, |, % or /, then a number, decimal or after 0x or 0b. The
// colour of a rank is the rank after that operation; ranks of one colour are a group. Throws
// Error(usage) for a rule that is none, or whose groups differ in size.
std::vector<std::vector<WorldRank>> split_ranks(const std::string& rule, int ranks);

// By NCCL_TESTS_SPLIT_MASK (hexadecimal, as AND) or NCCL_TESTS_SPLIT.
Split split_from_environment(int ranks);

}  // namespace ghostrank
