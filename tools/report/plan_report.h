// What a job would send, as facts, tables and JSON: shared by `plan` and `run --dry-run`.
//
// Threading: pure functions, but for show_plan, which prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/traffic/traffic.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "profiles/planners/shared/pipeline.h"
#include "tools/text/table.h"

namespace ghostrank {

struct StreamFacts {  // one stream of one role, in the steady state
  std::string role, stream;
  int ranks = 0;  // that play the role
  std::uint64_t computes = 0, collectives = 0, sends = 0, receives = 0;
  double compute_seconds = 0;
};

struct GroupFacts {
  std::string name;
  int communicators = 0;
  std::size_t smallest = 0, largest = 0;  // members
};

struct BackgroundFacts {  // what one kind of service moves
  std::string group;
  std::uint64_t clients = 0;           // ranks that write or read
  std::uint32_t steps = 0, cycle = 1;  // it happens in so many of so many steps
  std::uint64_t bytes = 0;             // in all of those
};

struct PlanFacts {
  std::string job, model;
  int ranks = 0, nodes = 0, nics_per_node = 0;  // that train
  int storage_nodes = 0;
  double nic_bps = 0;
  std::size_t opening = 0;            // first iterations that differ from the steady state
  std::uint32_t cycle = 1;            // iterations after which the same programs come again
  std::uint64_t parameters = 0;       // of the model; 0: a job of programs
  double flops = 0, peak_flops = 0;   // model FLOPs of a step; of one GPU per second; 0: unknown
  std::optional<Pipeline> pipeline;   // of a plan with stages
  std::optional<double> mfu_at_most;  // in the least time of a step
  std::vector<StreamFacts> streams;
  std::vector<GroupFacts> groups;
  std::vector<BackgroundFacts> background;
  TrafficPlan traffic;
  std::optional<TensorUse> tensors;  // of the steady state
  std::optional<CompressionUse> compression;
};

PlanFacts plan_facts(const LoadedJob& job, const Workload& workload);
std::string plan_text(const PlanFacts& facts, const Paint& paint);
std::string plan_json(const PlanFacts& facts);  // schema ghostrank/plan/1

// Tables on stdout, JSON where `json` says; "-" means JSON alone on stdout, empty none.
void show_plan(const LoadedJob& job, const Workload& workload, const std::string& json);

}  // namespace ghostrank
