// A job whose communication outlives its step: an all-reduce of `count` elements after the backward
// pass, which runs under the next forward pass.
#pragma once

#include "profiles/workload/program_builder.h"
#include "profiles/workload/workload_check.h"
#include "tests/emulator/support.h"

namespace ghostrank::testing {

struct CarriedStep {
  Picoseconds forward = 0, backward = 0;
  std::uint64_t count = 0;
  bool waits = true;  // the backward pass waits for the all-reduce of the step before
  std::uint8_t workers = 1;
};

inline Program program_of(const CarriedStep& step) {
  ProgramBuilder out({"compute", "comm"});
  out.outlives(1);
  out.at_once(1, step.workers);
  const std::uint32_t reduced = out.carried_event();
  out.compute(0, "forward", step.forward);
  if (step.waits) out.wait_previous(0, reduced);
  out.compute(0, "backward", step.backward);
  out.after(1, 0);
  for (int i = 0; i < step.workers; ++i)
    out.collective(1, "gradients", Func::all_reduce, 0, DataType::float32, step.count);
  if (step.waits) out.record(1, reduced);
  return out.take();
}

inline SmallJob carried_job(FabricKind kind, const CarriedStep& step) {
  SmallJob job(4, 1, kind);
  job.spec.cluster.nic = {100e9, 5 * kPicosPerMicro};
  job.program() = program_of(step);
  check_workload(job.workload);
  return job;
}

}  // namespace ghostrank::testing
