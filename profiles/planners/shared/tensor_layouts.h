// What differs within DDP's buckets: the gradients of tensors that a rule of the job names
// (JobSpec::tensor_rules), and embedding tables where ids follow Zipf's law (tensors.embeddings).
//
// In a step a rank looks up micro_batch samples: of a recommendation model each with the table's
// lookups, of a transformer each with `sequence` tokens of the word table. A word table that the
// output layer shares has no zero rows.
//
// Units: elements. Threading: pure functions.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collectives/tensor_content.h"
#include "profiles/job/job.h"

namespace ghostrank {

// `tensors`: how many parameter tensors each bucket has, in reverse order of registration. Returns
// by Op::tensor: 0 nothing, then the buckets, then all gradients in one. Empty: they are all alike.
// Throws Error(usage) for a rule that names no tensor of the model.
std::vector<std::shared_ptr<const TensorLayout>> tensor_layouts(
    const JobSpec& spec, std::span<const std::size_t> tensors);

}  // namespace ghostrank
