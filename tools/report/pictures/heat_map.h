// `run --heatmap`: how busy the links of a topology were over time. Threading: pure functions.
#pragma once

#include <string>

#include "emulator/result/result.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Throws Error(usage) for a job whose links are not modelled, or by several processes.
void check_heat_map(const JobSpec& spec, int processes);

// An SVG with a row for each of the busiest links. The result must have been asked for it
// (RunOptions::link_times).
std::string link_heat_map(const Result& result);

}  // namespace ghostrank
