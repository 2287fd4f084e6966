// A hash of a job and of the files that it names: whether a run has played the job that was loaded
// before it, whose file may have been edited since.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "profiles/load/named_files.h"
#include "tools/report/json/json.h"

namespace ghostrank {

// 16 hexadecimal digits (FNV-1a): equal jobs have equal hashes. `seed` takes the place of run.seed.
std::string job_hash(const std::string& config_json, const NamedFiles& files,
                     std::optional<std::uint64_t> seed = std::nullopt);
// Of the job that a run says it has played (--json). Throws nlohmann's exceptions.
std::string played_hash(const Json& result);

// What to say where they differ. `what` has loaded the job: "sweep".
std::string another_job(const std::string& what);

}  // namespace ghostrank
