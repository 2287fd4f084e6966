// What is done to the tables and registers of a pipeline, as lines of text:
//
//   TABLE match ... action NAME ...           an entry to add
//   delete TABLE match ... action NAME ...    an entry to remove
//   register NAME INDEX VALUE                 a cell to write
//   clear NAME FIRST COUNT                    cells to make 0
//
// # begins a comment; empty lines are none.
//
// Threading: the pipeline's thread.
#pragma once

#include <string>
#include <vector>

#include "switch/dpdk/pipeline.h"

namespace ghostrank::dpdk {

// Lets nothing be in the pipeline meanwhile. All entries or none; registers after them. Throws
// std::runtime_error naming the line that is wrong or refused.
void obey(const std::vector<std::string>& lines, Pipeline& pipeline);

}  // namespace ghostrank::dpdk
