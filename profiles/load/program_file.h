// The programs of a job as a file: what every rank does, op by op, as a planner made it or a person
// changed it. A job that plays the file sends the same messages as one that plays the plan.
//
//   program:
//     ranks: 16
//     samples_per_iteration: 8                 # may be left out
//     flops_per_iteration: 1.5e+15
//     groups:                                  # communicators by kind, members in group order
//       tp: [0-7, 8-15]
//       dp: [0-8/8, 1-9/8, ...]                # first-last/stride; several runs with blanks
//     counts: [[5, 0, 7, 9]]                   # lists of the v-variants
//     compressed: [1 float32 25600]            # with `compression`: tensors whose payloads are
//                                              # exchanged, their type and elements
//     roles:
//       - name: stage 0
//         ranks: 0-15
//         iterations:                          # as Role says: the last one repeats
//           - compute: |
//               compute 33175324 F0 attention
//               record 0
//             tp: |                            # one block of ops per stream (program_text.h)
//               wait 0
//               all_gather tp bfloat16 3145728 tp all-gather
//
// In a job this mapping stands under `program`, or `program` is the path of a file with the mapping
// or with a job that has one. Threading: pure functions, but for those that name a file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "profiles/input/yaml.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// Far above any cluster, far below overflow of a rank's number.
inline constexpr std::int64_t kMaxRanks = 1 << 24;

enum class ProgramForm : std::uint8_t { yaml, json };

// A whole job: `job`, resolved, with these programs.
std::string program_job(const LoadedJob& job, const Workload& workload, ProgramForm form);

// A file of these programs alone, for a job's `program` or `trace`. Its first lines are `comments`.
std::string program_profile(const Workload& workload, const std::vector<std::string>& comments);

// What a job has of files that its config only names: plug-ins and files of algorithms, programs
// and traces as they are played. Equal texts stand for equal contents.
std::string contents_of_files(const JobSpec& spec);

// Checks every index and number, but not whether the programs fit together (workload_check.h does).
// Throws Error(usage) with the line.
Workload read_program(const YamlValue& program);

// Takes `program` out of a job's tree and leaves the path of its file there; null if there is none.
// `file` is the job's, `near` its folder.
std::shared_ptr<const Workload> take_program(YamlValue& job, const std::string& file,
                                             const std::string& near);

}  // namespace ghostrank
