// Programs of pipelines of any length, whose micro-batches in the steady state are written once.
//
// Every schedule begins, repeats a period of one or a few micro-batches, and ends. The programs of
// three short pipelines, a period apart, show where each stream repeats and which numbers of
// micro-batches move; a long program has the same ops and a body (OpList::repeat) in between.
//
// Threading: pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/planners/pipeline/pipeline.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// The program that is `periods` longer than `one`; `two` is one period longer than `one`, and
// `three` than `two`. Empty where the three do not repeat.
std::optional<Program> prolonged(const Program& one, const Program& two, const Program& three,
                                 std::uint64_t periods);

// The programs of a pipeline's roles; `write` lists that of a role for so many micro-batches.
// The programs of a short pipeline stay listed, in all roles, because roles are checked against
// each other with fewer repetitions (profiles/workload/workload_check.h). Throws Error(usage) if a
// stream has more ops than can be played.
std::vector<Program> repeated_programs(
    const JobSpec& spec, const Pipeline& pipeline, std::size_t roles,
    const std::function<Program(std::size_t role, int micro_batches)>& write);

}  // namespace ghostrank
