// Traffic beside training on the same fabric: checkpoints that ranks write to storage nodes,
// samples that ranks read from them, and patterns among the ranks that train.
//
// Storage nodes follow the training nodes in rank order and have as many ranks each; these ranks
// are the servers. Rank r uses server r modulo the number of servers, so ranks stay on their rail
// if that number is a multiple of a node's ranks. A server and its clients form a group: a
// checkpoint is a gather to the server, data is a scatter from it, both cut into chunks, on a
// stream of its own. Clients that move different amounts are in groups of different kinds.
//
//   checkpoint   with every = 3 and over = 2, steps 3 and 4, 6 and 7, ... carry half of it each
//   data         likewise; a step's samples travel during the step before
//   incast       a gather as of a checkpoint, but to rank 0, which trains like the senders
//   permutation  the nodes in one cycle drawn from run.seed; rank g of a node sends to rank g of
//                the next one: a group for every g, in the cycle's order
//   bisection    node n and node n + half of the nodes: a group of two for every pair of ranks
//
// An iteration ends when all its streams have ended, so a transfer that outlasts its step prolongs
// the step.
//
// Beside several jobs background is the last job, on the nodes that no other job has. Its ranks
// train nothing; their step takes kStepBesideJobs, or as long as the step's bytes take at their
// rate if that is longer.
//
// Units: bytes; rates in bits per second. Errors: Error(usage). Threading: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"
#include "profiles/units.h"

namespace ghostrank {

std::span<const Key> background_keys();  // of an entry of `background`

std::vector<Background> read_background(const Setting& setting);

// Bytes that a rank of each role moves per transfer, in the order of the workload's roles, rounded
// up to whole bytes per rank.
//
//   checkpoint   weights and optimizer state, each once: with Adam 4 B of weight and 8 B of moments
//                per parameter, with SGD 4 B less; of Megatron and ZeRO also the weights in the
//                parameters' type unless that is fp32; where every rank holds the whole model, all
//                in the type of its weights (stored_bytes() in device/compute.h); of PHub the
//                weights alone, as its servers keep the momentum; of TorchRec's tables 4 B per
//                element and per row. Megatron's stages each spread theirs evenly over their own
//                ranks; otherwise, or if the job gives the bytes, all ranks share evenly
//   data         the samples of a step, spread evenly over all ranks; with Megatron over the ranks
//                of the first stage
std::vector<std::uint64_t> background_bytes(const JobSpec& spec, const Workload& workload,
                                            const Background& background);

// The name of the traffic beside several jobs, and how long its ranks "compute" in a step.
inline constexpr std::string_view kBackgroundJob = "background";
inline constexpr Picoseconds kStepBesideJobs = 1000 * kPicosPerMicro;

// True if the last entry of JobSpec::jobs is traffic beside the jobs.
inline bool has_background_beside(const JobSpec& spec) {
  return !spec.jobs.empty() && !spec.background.empty();
}

// The programs of traffic beside jobs; `spec` is that of its entry of JobSpec::jobs.
Workload plan_background(const JobSpec& spec);

// Adds servers, their groups and the streams of spec.background to a planned workload.
void add_background(const JobSpec& spec, Workload& workload);

}  // namespace ghostrank
