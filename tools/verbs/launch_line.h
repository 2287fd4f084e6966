// The commands that start a job on its hosts, one process per entry of `hosts`, in their order:
// what `ghostrank run JOB --print-launch` prints.
//
// Threading: plain functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/job/job.h"

namespace ghostrank {

inline constexpr const char* kLaunchers[] = {"mpirun", "srun", "torchrun", "env"};

// `command` is what each process runs. Lines that start with # are remarks. Throws Error(usage)
// for a job without hosts, or one that runs in one process.
std::string launch_lines(const std::string& launcher, const JobSpec& spec,
                         const std::vector<std::string>& command);

// As a shell reads it back.
std::string shell_quoted(const std::vector<std::string>& words);

}  // namespace ghostrank
