// The commands that start a job on its hosts, one process per entry of `hosts` in order, as
// `ghostrank run JOB --print-launch` prints them.
//
// Threading: plain functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/job/job.h"

namespace ghostrank {

inline constexpr const char* kLaunchers[] = {"mpirun", "srun", "torchrun", "env"};

// `command` is the command of each process. Text after # in a line is a remark. Throws
// Error(usage) for a job without hosts, or that cannot be spread over them.
std::string launch_lines(const std::string& launcher, const JobSpec& spec,
                         const std::vector<std::string>& command);

// `words` as one line that a shell splits into the same words.
std::string shell_quoted(const std::vector<std::string>& words);

}  // namespace ghostrank
