// The communicators of a Megatron plan, and the stage of every rank.
//
// clang-format off
//   tp            along tp                        activations
//   cp            along cp                        keys and values
//   cp.a2a        neighbours along cp             heads, if context parallelism has two levels
//   cp.p2p        every cp_a2a-th rank along cp   keys and values between those neighbours' groups
//   dp            along dp and cp                 gradients and parameters
//   pp.forward    along pp                        activations from stage to stage
//   pp.backward   along pp                        their gradients; a communicator of its own, so
//                                                 that two stages can exchange both at once
//   ep            along ep of the expert grid     rows on their way to experts and back
//   ep.rail       ep ranks at the same position   rows to nodes, if dispatch is deduplicated
//                 on each node
//   ep.node       ep ranks on one node            rows on to the ranks of a node
//   etp           along expert_tp                 rows of an expert that several ranks share
//   tp_ep         along expert_tp and ep          how many rows each expert gets
//   edp           along dp of the expert grid     gradients and parameters of experts
//   replicas      along tp, cp and dp             rows per expert, for the router's bias
//   amax          along tp, cp and dp, or         largest elements of fp8 tensors, for their scales
//                 tp and cp
//   embedding     first stage and the last, or    gradients of the embedding, if it is tied or
//                 multi-token prediction's        has a copy
//   world, mp     all ranks, or along tp and pp   norm of the gradients
//   expert_mp     along expert_tp, ep and pp      norm of the experts' gradients, which have an
//                                                 optimizer of their own unless it is distributed
// clang-format on
//
// With dualpipe two stages hold the same parts, so dp, edp and replicas have the ranks of both.
//
// The expert grid numbers the same ranks by expert_tp, ep, dp and pp; stages are the same in both.
//
// The job's `order` gives the order of ranks, the leftmost dimension innermost. Threading: pure.
#pragma once

#include "profiles/planners/megatron/passes.h"

namespace ghostrank {

// Adds groups and the ranks' roles to the workload: one role per stage, or
// MegatronPlan::roles_per_stage(). A group of one rank is left out (kNoGroup). Throws Error(usage)
// if the job's order or dispatch does not fit.
MegatronGroups megatron_groups(const MegatronPlan& plan, Workload& workload);

}  // namespace ghostrank
