// Turns the reports of a measured segment into the Result that people and scripts read.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "emulator/result/result.h"
#include "emulator/segment.h"
#include "emulator/traffic/schedules.h"

namespace ghostrank {

// Fills every field of `result` that comes from `reports` (one per host) and their sum `sum`.
// `result.iterations`, `result.jobs` and the facts known before the start must already be there.
// Traffic is per iteration; of several jobs, that of an iteration of each. `played`: by job, the
// number of iterations that sent the traffic.
void report_segment(const Segment& segment, const Workload& workload,
                    const std::vector<Schedules::Row>& rows, const SegmentReport& sum,
                    const std::vector<SegmentReport>& reports, const std::vector<double>& played,
                    Result& result);

// A note about a stall of a warm-up, which results do not list.
std::string warm_up_stall(const StallReport& stall);

// Reports failures of the schemes' switches, if there were any.
void report_troubles(const SegmentReport& sum, const SwitchSpec& spec, Result& result);

// Adds the servers of `sum` to the result, by node. `played_by_job`: iterations of each job, which
// has servers of its own. `cores`: of one server.
void report_servers(const SegmentReport& sum, const Cluster& cluster, const Workload& workload,
                    const std::vector<double>& played_by_job, int cores, Result& result);

}  // namespace ghostrank
