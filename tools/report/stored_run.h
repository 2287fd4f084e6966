// A result file as the Result that it was made of, for those who show or judge a run that has
// ended. What a file does not hold is as in a run that had none of it: an older version wrote fewer
// keys. Of these a Result cannot hold:
//
//   a rank's samples and FLOPs   follow from the throughput and the median step
//   how far a call's time is off only whether it is valid: else kErrorUnknown
//   late_seconds, rank_seconds   0
//
// Threading: pure functions, except read_run(), which reads files.
#pragma once

#include <string>

#include "emulator/result/result.h"
#include "tools/report/json/field.h"
#include "tools/report/result_json.h"

namespace ghostrank {

struct StoredRun {
  StoredResult stored;  // with all pairs, also those of a CSV beside the file
  Result result;        // with the pairs of the JSON alone
  SortedJson config;    // of the job; an object
  std::string hash;     // empty: none was written
  bool judged = false;  // whether the file says how far to trust the run
};

// Throws Error(usage) that names the file and the key or line.
StoredRun read_run(const std::string& file);
StoredRun stored_run(const SortedJson& json, const std::string& file);

}  // namespace ghostrank
