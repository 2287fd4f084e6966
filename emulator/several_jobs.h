// Several jobs on one fabric: each plays alone first, on its own nodes while the others do nothing,
// and then all play together. What a job loses to the others is the difference.
//
//   a   |  1  |  2  |  3  |· · ·     the job asks for 3 iterations
//   b   |   1   |   2   |   3   |· · ·
//                               T    b ends its third: iterations that ended by T are measured
//
// Until T every job must have something to do, so all play more iterations than are asked for: as
// many as their step times alone suggest. If that is too few for one job, because another became
// slow, all play again with more. Events before T do not depend on the iterations played after it,
// so in virtual time a second try extends the first. A job that has ended more iterations by T than
// were asked for then plays as many alone, because steps may differ.
//
// A job whose streams outlive its iterations has nothing carried into its first one, which is
// played beside those that are asked for and left out.
//
// Background beside the jobs (profiles/planners/background/background.h) is the last of them, and
// nobody waits for it: it is measured until T, and T does not depend on it.
//
// Threading: as engine.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/engine.h"

namespace ghostrank {

// Plays `phase` for the workload's jobs, in one process. The result is that of all together, with
// what each took alone. The observer hears of the first try of all together only. Throws
// Error(usage) if a step of a job takes no time.
Result play_jobs(const LoadedJob& job, const Workload& workload, Control& control,
                 const RunOptions& options, Observer& observer, Phase phase);

// Returns how many iterations each job should play, so that all jobs last until each has ended its
// `asked` iterations. `alone`: by job, seconds of a step when it plays alone.
std::vector<std::uint32_t> iterations_together(const std::vector<WorkloadJob>& jobs,
                                               const std::vector<double>& alone,
                                               const std::vector<std::uint32_t>& asked);

// Cuts each job's iterations after T and returns nothing; or, where a job ended before T, returns
// how many iterations each job should play instead.
std::optional<std::vector<std::uint32_t>> cut_or_extend(std::vector<JobReport>& jobs,
                                                        const std::vector<std::uint32_t>& asked);

}  // namespace ghostrank
