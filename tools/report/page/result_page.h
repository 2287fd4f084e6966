// Results as one page that needs nothing else: no network, no scripts, no fonts or styles of its
// own. The same results give the same bytes.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/report/stored_run.h"

namespace ghostrank {

// One result: all that its file holds. Several: side by side, ratios to the first, the keys of
// their jobs that differ, and each of them folded.
std::string result_page(const std::vector<StoredRun>& runs);

}  // namespace ghostrank
