// Which layers each part of a pipeline holds, where the stages need not divide them.
//
//   Megatron-core, the first of these that the job names:
//     pipeline_model_parallel_layout              every part letter by letter: "Ettt|(tt|)*14,mL"
//     decoder_first_, decoder_last_pipeline_num_layers   so many in the first and last stage, the
//                                                 others alike
//     account_for_embedding_, account_for_loss_in_pipeline_split   embedding and head count as
//                                                 layers of an even split
//   TorchTitan: as even as can be with embedding and head counted as layers, the first parts one
//   more.
//
// Parts are in the order of the model; the chunks of a stage are its parts (pipeline.h). Errors:
// usage, with what does not fit and a split that does. Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/model/model.h"
#include "profiles/planners/shared/pipeline.h"

namespace ghostrank {

// Consecutive layers, with the embedding before the first and the head after the last; modules of
// multi-token prediction come between the last layer and the head.
struct Part {
  int first_layer = 0, layers = 0, mtp = 0;
  bool embedding = false, head = false;
  bool final_norm = false;  // after the last layer
  // Units in forward order: the embedding, each layer, each module of mtp, the head.
  int units() const { return layers + mtp + (embedding ? 1 : 0) + (head ? 1 : 0); }
};

// `pipeline` says how many parts there are.
std::vector<Part> split_as_megatron(const JobSpec& spec, const Transformer& model,
                                    const Pipeline& pipeline);
std::vector<Part> split_as_torchtitan(const JobSpec& spec, const Transformer& model,
                                      const Pipeline& pipeline);

// Parts that the job's layout has; 0: it has none.
int parts_of_layout(const JobSpec& spec);

// A layout with repetitions written out: "E(t|)*2L" is "Et|t|L". Empty: it is not one, or has more
// than 100,000 letters.
std::string unrolled_layout(const std::string& layout);

}  // namespace ghostrank
