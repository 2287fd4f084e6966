// Ops of one stream as text, one a line, both ways: the inner form of program files
// (profiles/load/program_file.h).
//
//   compute PICOSECONDS [LABEL]                 compute 33175324 F0 attention
//   pace PICOSECONDS [LABEL]                    the same without run.jitter (Op::pace)
//   FUNCTION GROUP TYPE COUNT [LABEL]           all_gather tp bfloat16 3145728 tp all-gather
//   FUNCTION GROUP TYPE COUNT@ROOT [LABEL]      broadcast dp int32 582@3 bucket indices
//   FUNCTION GROUP TYPE COUNT~TENSOR [LABEL]    allreduce dp float32 262144~1 bucket 0
//   FUNCTION GROUP TYPE #N [LABEL]              all_to_all_v ep bfloat16 #0 rows of experts
//   FUNCTION:REDUCTION ...                      reduce_scatter:avg dp float32 262144 gradients
//   send GROUP OFFSET TYPE COUNT [LABEL]        send pp.forward +1 bfloat16 3145728 activations
//   recv GROUP OFFSET TYPE COUNT [LABEL]
//   isend, irecv                                on a communicator of the two ranks alone
//   send?, recv?                                on an unknown communicator (Op::within)
//   record EVENT, wait EVENT
//   wait EVENT previous                         for EVENT of the iteration before
//   workers N                                   before the first op: Program::at_once
//   outlives                                    before the first op: Program::outlives
//   & CALL                                      starts together with the call before it, as in one
//                                               ncclGroup (Workload::launches)
//
// FUNCTION is a name of `ghostrank schedule`; #N is list N of the file's `counts`. A function that
// reduces may name REDUCTION if that is no sum (prod, min, max, avg, mulsum), and ~TENSOR, the
// tensor that it reduces (Op::tensor), behind @ROOT if it has a root. A function that gathers
// payloads names the tensor to which they belong. LABEL is the rest of the line; control characters
// and backslashes in it are written \xNN.
//
// Threading: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/input/yaml.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// Lines that end in a newline.
std::string text_of_ops(const Program& program, std::size_t stream,
                        std::span<const std::string> group_names);

// Appends to stream `stream` of `program`, whose labels and number of events grow. `mark` is where
// the text begins, for errors. Adds new launches to `launches`. Throws Error(usage).
void read_ops(std::string_view text, const Mark& mark, std::span<const std::string> group_names,
              Program& program, std::size_t stream, std::vector<GroupedCalls>& launches);

}  // namespace ghostrank
