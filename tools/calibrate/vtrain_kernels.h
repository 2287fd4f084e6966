// Kernels as vTrain's profiler recorded them: of one step of one GPT layer, with embedding and
// head, a line for each event, by the start of the session in nanoseconds:
//
//   START,DURATION,TIMESTAMP,"forward start transformer"
//   START,DURATION,RUNTIME|DRIVER,CALL,PROCESS,THREAD,CORRELATION
//   START,DURATION,KERNEL,"NAME",DEVICE,CONTEXT,STREAM,GRID x 3,BLOCK x 3,CORRELATION
//   START,DURATION,MEMCPY|MEMSET,KIND,DEVICE,CONTEXT,STREAM,CORRELATION
//
// A kernel belongs to the part of the step in which the host launched it. The lines have no sizes,
// so the job says them: the products of the layer, in the order in which such a layer launches
// them, and what softmax and norms move. Where names say how operands lie, they have to agree.
// Everything else is left out, because its size is not known.
//
// Errors: Error(usage) "FILE:LINE:1: what; what to do": fields that are missing or no numbers, and
// other products than the job's layer has. Threading: pure function of the files.
#pragma once

#include <string>
#include <vector>

#include "profiles/job/job.h"
#include "tools/calibrate/recorded_kernels.h"

namespace ghostrank {

// `spec`: of a Megatron job with the file's width, heads, sequence, tensor parallelism and
// micro-batch, and unfused attention.
RecordedKernels read_vtrain_kernels(const std::vector<std::string>& paths, const JobSpec& spec);

}  // namespace ghostrank
