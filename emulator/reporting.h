// From what the processes found out in the measured segment to the Result that people and scripts
// read. Threading: plain functions.
#pragma once

#include <vector>

#include "emulator/result/result.h"
#include "emulator/segment.h"
#include "emulator/traffic/schedules.h"

namespace ghostrank {

double median(std::vector<double> values);  // 0 of nothing

// Fills everything of `result` that comes from `reports` (one per host) and their sum;
// `result.iterations` and the facts known before the start are there already.
void report_segment(const Segment& segment, const Workload& workload,
                    const std::vector<Schedules::Row>& rows, const SegmentReport& sum,
                    const std::vector<SegmentReport>& reports, Result& result);

}  // namespace ghostrank
