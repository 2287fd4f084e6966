// Compares a result of 'ghostrank run' with what its job plays now: for each operation and group
// the algorithms, protocols and calls, and the messages and bytes between nodes. A result of
// another version may have played other rules.
//
// Threading: pure functions.
#pragma once

#include "profiles/load/load.h"
#include "tools/nccl/check.h"
#include "tools/report/result_json.h"

namespace ghostrank {

// `job` is that of the result. Throws Error(usage) if it plays nothing of NCCL.
NcclFindings check_nccl_result(const StoredResult& result, const LoadedJob& job);

}  // namespace ghostrank
