// Which ranks Megatron puts together: the communicators of a plan and the stage of every rank.
//
//   tp            along tp                        activations
//   cp            along cp                        keys and values
//   cp.a2a        neighbours along cp             heads, where context parallelism has two levels
//   cp.p2p        every so many along cp          keys and values between those groups
//   dp            along dp and cp                 gradients and parameters
//   pp.forward    along pp                        activations from stage to stage
//   pp.backward   along pp                        their gradients; a communicator of its own, so
//   that
//                                                 two stages can exchange both at once
//   ep            along ep of the expert grid     rows on their way to experts and back
//   ep.rail       the ep ranks at one place of     rows to nodes, where dispatch is deduplicated
//                 each node
//   ep.node       those on one node               rows on to the ranks of a node
//   etp           along its tp                    rows of an expert that several ranks share
//   tp_ep         along both                      how many rows each expert gets
//   edp           along its dp                    gradients and parameters of experts
//   replicas      along tp, cp and dp             rows per expert, for the router's bias
//   embedding     first and last stage, or that   gradients of the embedding, where it is tied
//                 of multi-token prediction       or has a copy
//   world, mp     all ranks, or along tp and pp   norm of the gradients
//
// With dualpipe two stages hold the same parts, and dp, edp and replicas have the ranks of both.
//
// The expert grid numbers the same ranks by expert_tp, ep, dp and pp; stages are the same in both.
//
// The order of ranks is the job's `order`, the leftmost dimension innermost. Threading: pure.
#pragma once

#include "profiles/planners/megatron/passes.h"

namespace ghostrank {

// Adds groups and the ranks' roles (one per stage, or MegatronPlan::roles_per_stage) to the
// workload; a group of one rank is left out.
MegatronGroups megatron_groups(const MegatronPlan& plan, Workload& workload);

}  // namespace ghostrank
