// Changes to the tables and registers of a pipeline, as lines of text:
//
//   TABLE match ... action NAME ...           an entry to add
//   delete TABLE match ... action NAME ...    an entry to remove
//   register NAME INDEX VALUE                 a cell to write
//   clear NAME FIRST COUNT                    cells to set to 0
//
// "#" begins a comment; empty lines are ignored.
//
// Threading: the pipeline's thread.
#pragma once

#include <string>
#include <vector>

#include "switch/dpdk/pipeline.h"

namespace ghostrank::dpdk {

// Carries out the lines while the pipeline is empty: first the table entries, all or none, then the
// registers. Throws std::runtime_error naming the line that is malformed or refused.
void obey(const std::vector<std::string>& lines, Pipeline& pipeline);

}  // namespace ghostrank::dpdk
