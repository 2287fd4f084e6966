// The traffic that a job would send, as facts, tables and JSON: shared by `plan` and `run
// --dry-run`.
//
// Threading: pure functions, except show_plan(), which prints and writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/traffic/traffic.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "profiles/planners/pipeline/pipeline.h"
#include "profiles/planners/shared/gpu_memory.h"
#include "tools/text/table.h"

namespace ghostrank {

struct StreamFacts {  // one stream of one role, in the steady state
  std::string role, stream;
  int ranks = 0;  // number of ranks that play the role
  std::uint64_t computes = 0, collectives = 0, sends = 0, receives = 0;
  double compute_seconds = 0;
};

struct GroupFacts {
  std::string name;
  int communicators = 0;
  std::size_t smallest = 0, largest = 0;  // members
};

struct BackgroundFacts {  // the traffic of one kind of service
  std::string group;
  std::uint64_t clients = 0;           // ranks that write or read
  std::uint32_t steps = 0, cycle = 1;  // the service moves data in `steps` of every `cycle` steps
  std::uint64_t bytes = 0;             // in all those steps, all clients together
};

struct PlanFacts {
  std::string job, model;
  std::vector<Fact> jobs;                       // of several: what each trains
  int ranks = 0, nodes = 0, nics_per_node = 0;  // without storage nodes
  int storage_nodes = 0;
  double nic_bps = 0;
  std::size_t opening = 0;            // first iterations that differ from the steady state
  std::uint32_t cycle = 1;            // the same programs repeat after so many iterations
  std::uint32_t shown = 1;            // of these, those that play what is shown
  bool mean = false;                  // traffic is that of all measured iterations, as sizes differ
  bool jitters = false;               // compute varies: times here are without that
  std::uint64_t parameters = 0;       // of the model; 0: a job of programs
  double flops = 0, peak_flops = 0;   // model FLOPs per step; FLOP/s of one GPU; 0: unknown
  std::optional<Pipeline> pipeline;   // of a plan with stages
  std::optional<GpuMemory> memory;    // of the fullest GPU
  double device_memory_bytes = 0;     // of one GPU; 0: unknown
  std::optional<double> mfu_at_most;  // if a step takes no more than step_seconds_at_least
  std::vector<StreamFacts> streams;
  std::vector<GroupFacts> groups;
  std::vector<BackgroundFacts> background;
  TrafficPlan traffic;
  std::optional<TensorUse> tensors;  // of the steady state
  std::optional<CompressionUse> compression;
  std::vector<std::string> notes;  // what a reader must know
};

PlanFacts plan_facts(const LoadedJob& job, const Workload& workload);
std::string plan_text(const PlanFacts& facts, const Paint& paint);
std::string plan_json(const PlanFacts& facts);  // schema ghostrank/plan/1

// Where a plan goes besides the tables on stdout: files, of which one may be "-" (stdout, without
// the tables); empty: none. `csv`: pairs of NICs.
struct PlanOutput {
  std::string json, csv;
  bool quiet = false;  // no tables
};
void show_plan(const LoadedJob& job, const Workload& workload, const PlanOutput& output);

}  // namespace ghostrank
