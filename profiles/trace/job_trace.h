// `trace:` of a job: files of any format in place of a model.
//
//   trace: run/rank*.et                       a file, a folder or a pattern
//   trace: [rank0.json, rank1.json]
//   trace: {files: run.0.et, format: chakra, ranks: 8}
//
// A profile that `ghostrank profile import` wrote, or a table of layers, becomes the `program` or
// the `model` that it is. Threading: pure but for reading.
#pragma once

#include <memory>
#include <string>

#include "profiles/job/job.h"
#include "profiles/trace/replay.h"

namespace ghostrank {

struct JobTrace {
  Trace trace;
  int ranks = 0;  // as the job says; 0: not
  Mark mark;
};

// Null: the job has no trace, or one that is now its program or model. Leaves absolute paths in the
// tree, so that a result can be replayed. `ranks` is the cluster's number of GPUs.
std::unique_ptr<JobTrace> take_trace(YamlValue& job, const std::string& near, int ranks);

// Makes of profiles what they are; before take_program().
void take_trace_profile(YamlValue& job, const std::string& near);

// Sets the program of `spec` and its notes, once the rest of it is read.
void replay_in_job(const JobTrace& trace, bool has_device, JobSpec& spec);

// What a job of this device takes for a computation; empty without a device.
std::function<Picoseconds(double flops, double bytes)> cost_on_device(const JobSpec& spec,
                                                                      bool has_device);

// What was read and assumed, in lines for people.
std::vector<std::string> trace_notes(const Trace& trace, const Replay& replay);

}  // namespace ghostrank
