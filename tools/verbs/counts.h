// `--counts`: the block sizes of an all-gather-v or all-to-all-v, as numbers on the command line or
// in a file, separated by commas or white space. Threading: pure functions.
#pragma once

#include <string>

#include "collectives/schedule.h"

namespace ghostrank {

// "5,0,7", or the name of a file that holds such a list: as many counts as a group of so many ranks
// needs; for an all-to-all-v row by row, row i what rank i sends. Null for functions without
// counts. Throws Error(usage) for anything else, an empty text included.
Counts parse_counts(const std::string& text, Func func, int ranks);

// The same blocks, empty ones still empty, but none longer than `most`.
Counts shrink(const Counts& counts, std::uint64_t most);

}  // namespace ghostrank
