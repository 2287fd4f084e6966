// The layers of each pipeline part, also if the stages do not divide the layers.
//
// clang-format off
//   Megatron-core: the first of these that the job sets
//     pipeline_model_parallel_layout
//         every part letter by letter: "Ettt|(tt|)*14,mL"
//     decoder_first_pipeline_num_layers, decoder_last_pipeline_num_layers
//         layers of the first and the last stage; the other stages have equally many
//     account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split
//         embedding or head counts as a layer of an even split
//   TorchTitan
//         as even as possible, embedding and head counted as layers; the first parts get one more
// clang-format on
//
// Parts are in the order of the model; a stage's chunks are its parts (pipeline/pipeline.h).
// Errors: Error(usage), with a split that fits. Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/model/model.h"
#include "profiles/planners/pipeline/pipeline.h"

namespace ghostrank {

// Consecutive layers. The embedding precedes the first layer, the head follows the last; modules of
// multi-token prediction come between the last layer and the head.
struct Part {
  int first_layer = 0, layers = 0, mtp = 0;
  bool embedding = false, head = false;
  bool final_norm = false;  // after the last layer
  // Units in forward order: the embedding, each layer, each module of mtp, the head.
  int units() const { return layers + mtp + (embedding ? 1 : 0) + (head ? 1 : 0); }
};

// `pipeline` gives the number of parts. Throws Error(usage).
std::vector<Part> split_as_megatron(const JobSpec& spec, const Transformer& model,
                                    const Pipeline& pipeline);
std::vector<Part> split_as_torchtitan(const JobSpec& spec, const Transformer& model,
                                      const Pipeline& pipeline);

// Parts in the job's layout; 0: it has none.
int parts_of_layout(const JobSpec& spec);

// A layout with its repetitions written out: "E(t|)*2L" is "Et|t|L". Empty: it has no letters, or
// more than 100,000.
std::string unrolled_layout(const std::string& layout);

}  // namespace ghostrank
