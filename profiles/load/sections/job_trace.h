// A job's `trace:`: files of any format instead of a model.
//
//   trace: run/rank*.et                       a file, a folder or a pattern
//   trace: [rank0.json, rank1.json]
//   trace: {files: run.0.et, format: chakra, ranks: 8}
//
// A profile that `ghostrank profile import` wrote, or a table of layers, becomes the job's
// `program` or `model`. Threading: pure, except that it reads files.
#pragma once

#include <memory>
#include <string>

#include "profiles/job/job.h"
#include "profiles/trace/replay.h"

namespace ghostrank {

struct JobTrace {
  Trace trace;
  int ranks = 0;  // as the job gives it; 0: not given
  Mark mark;
};

// Null: the job has no trace, or one that take_trace_profile() turned into its program or model.
// Writes absolute paths into the tree, so that a result can be replayed. `ranks`: the cluster's
// number of GPUs, for a job that does not give the trace's. Throws Error(usage).
std::unique_ptr<JobTrace> take_trace(YamlValue& job, const std::string& near, int ranks);

// Turns a trace that is a profile into the job's program or model; call it before take_program().
void take_trace_profile(YamlValue& job, const std::string& near);

// What the job gives for computations in FLOPs; a note says so where the trace has none.
struct TraceKeys {
  bool device = false;
  bool type = false;  // precision.parameters, and not its default
};

// Sets the program and the notes of `spec`, whose other members must be complete.
void replay_in_job(const JobTrace& trace, const TraceKeys& given, JobSpec& spec);

// Time of a computation on the job's device, from FLOPs and bytes; empty without a device.
std::function<Picoseconds(double flops, double bytes)> cost_on_device(const JobSpec& spec,
                                                                      bool has_device);

// Lines for people: the events read and the assumptions made.
std::vector<std::string> trace_notes(const Trace& trace, const Replay& replay);

}  // namespace ghostrank
