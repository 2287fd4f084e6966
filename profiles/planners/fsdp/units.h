// FSDP's units: one rank's shards of a layer's parameters, which are gathered and scattered
// together. Shards of the routed experts count apart if expert parallelism gives them a mesh of
// their own.
//
// Shards are padded along the first dimension, as PyTorch's are. TorchTitan keeps the routed
// experts of a layer as one tensor per matrix, sharded by expert, or by row if there are more ranks
// than experts. A router's bias is a buffer, not a parameter. Units: elements. Threading: plain
// values.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/planners/fsdp/mesh.h"

namespace ghostrank {

struct FsdpUnit {
  std::uint64_t shard = 0, experts_shard = 0;  // per rank
  std::uint64_t whole = 0;  // elements whose gradients tensor-parallel ranks must sum
  std::uint64_t tensors = 0, experts_tensors = 0;
};

// True if the tensor is one of a routed expert of a transformer.
bool is_routed_expert(const Model& model, const ParameterTensor& tensor);

// The units, by layer of the model. A head that shares the embedding's table is of its unit, as in
// TorchTitan.
std::vector<FsdpUnit> fsdp_units(const JobSpec& spec, const FsdpMesh& mesh);

}  // namespace ghostrank
