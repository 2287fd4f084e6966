// Traffic beside the training's own, on the same fabric: checkpoints that ranks write to storage
// nodes, and samples that they read from there.
//
// A storage node follows the nodes that train and has as many ranks, its servers. Rank r uses
// server r modulo their number, so ranks of a rail keep to it while servers are a multiple of a
// node's ranks. A server and its clients form a group; a checkpoint is a gather to its server and
// data a scatter from there, cut into chunks, on a stream of its own. Clients that move other
// amounts are a kind of group of their own.
//
//   checkpoint   with every = 3, over = 2, in steps 3 and 4, 6 and 7, ...: half of it in each
//   data         likewise; what a step needs travels beside the step before
//
// An iteration ends when all its streams have ended, so a transfer that takes longer than its step
// makes the step longer.
//
// Units: bytes; rates in bits per second. Errors: usage. Threading: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

std::span<const Key> background_keys();  // of an entry of `background`

std::vector<Background> read_background(const Setting& setting);

// Bytes that a rank of each role moves each time, in the order of the workload's roles.
//
//   checkpoint   weights and the optimizer's state: with Adam 4 B of weight and 8 B of moments per
//                parameter, with SGD 4 B less, and the weights in the type of the products where
//                that is not fp32. Each pipeline stage's on its ranks, experts' on those that hold
//                them, all else on all ranks evenly
//   data         the samples of a step, on all ranks evenly; of a pipeline on its first stage
//
// Rounded up to whole bytes per rank.
std::vector<std::uint64_t> background_bytes(const JobSpec& spec, const Workload& workload,
                                            const Background& background);

// Adds servers, their groups and the streams of spec.background to a planned workload.
void add_background(const JobSpec& spec, Workload& workload);

}  // namespace ghostrank
