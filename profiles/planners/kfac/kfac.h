// Distributed K-FAC as Programs: gradients are preconditioned by the inverses of the model's
// Kronecker factors (factors.h); ranks share the work.
//
//   SPD compute | A0 f0 | A1 f1 | .. | b1 G1 | b0 G0 |  | inverses: mine | .. | precondition | opt
//       comm       [A0 A1 ..]       [grads][G1 G0]       [bcast][bcast] ..
//
//   D   compute | f0 | f1 | .. | b1 | b0 | A0 G0 A1 G1 .. |              | all inverses | ..
//       comm                     [grads]                  [A0 G0 A1 ..] ..
//
// Variants, of which every part can be chosen by itself (`parallel.*`):
//
//   variant  factors are         and reduced                    a rank inverts     and sends
//   ssgd     -                   -                              -                  -
//   d        after the backward  all-reduced, 64 MiB a call     all of them        nothing
//   mpd      after the backward  all-reduced, 64 MiB a call     in turn            inverses
//   spd      in hooks            all-reduced, A fused           LBP                inverses
//   pad      in hooks            reduced to the inverting rank  blocks             inverses
//   dp       after the backward, only by the rank that inverts  layers in turn     gradients
//
// In hooks A is computed in front of a layer's forward and G behind its backward, and calls overlap
// the rest of the pass. Fused calls follow MG-WFBP's rule along the pass, walking forward for A;
// SPD by itself sends every G alone, as its authors' code did when their figures were made. All
// calls share one stream, as Horovod's do, and gradients that become ready within a cycle share a
// call. Factors that are handed over after the backward are all there when Horovod looks, so it
// fills its buffers of 64 MiB with them (`threshold`). Requests (compute.h) hold up a pass whose
// hook hands tensors over; the host makes them, so calls beside them do not slow them.
// Requests of factors after the backward and of inverses come in front of the call, and so does the
// cycle of a call that is alone in it: gradients, what hooks send, broadcasts.
//
// With updates every n steps the steps between keep the factors or inverses that they have. PAD's
// first step, which reduces nothing in hooks, is played like all others. Errors: Error(usage) for a
// model without layers that have factors, factors too large for the device, and parts that do not
// go together. Threading: pure functions.
#pragma once

#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

Workload plan_kfac(const JobSpec& spec);

// Bytes of factors and inverses, in fp32, on the rank that keeps most of them: those of all layers;
// where ranks send gradients, those that it inverts itself.
double second_order_bytes(const JobSpec& spec);

}  // namespace ghostrank
