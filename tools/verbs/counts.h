// `--counts`: the block sizes of an all-gather-v or all-to-all-v, as numbers on the command line or
// in a file, separated by commas or white space. Threading: pure functions.
#pragma once

#include <string>

#include "collectives/schedule.h"

namespace ghostrank {

// "5,0,7", or the name of a file with such a list. The number of counts must be what a group of
// `ranks` ranks needs; for an all-to-all-v they come row by row: row i is what rank i sends. Null
// for functions without counts. Throws Error(usage) for anything else, even an empty text.
Counts parse_counts(const std::string& text, Func func, int ranks);

// The counts divided by one number and rounded up, so that none exceeds `most`; zeros stay 0.
Counts shrink(const Counts& counts, std::uint64_t most);

}  // namespace ghostrank
