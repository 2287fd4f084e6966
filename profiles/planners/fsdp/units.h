// What FSDP gathers and scatters together: the shards of a layer's parameters at one rank, those of
// its routed experts apart where expert parallelism gives them a mesh of their own.
//
// Tensors are padded to a multiple of the ranks that share them, where PyTorch pads the first
// dimension. TorchTitan keeps the routed experts of a layer as one tensor per matrix, cut between
// experts, or between rows where there are more ranks than experts; a router's bias is a buffer of
// its, no parameter. Units: elements. Threading: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/planners/fsdp/mesh.h"

namespace ghostrank {

struct FsdpUnit {
  std::uint64_t shard = 0, experts_shard = 0;  // of a rank
  std::uint64_t whole = 0;  // elements whose gradients tensor-parallel ranks have to add up
  std::uint64_t tensors = 0, experts_tensors = 0;
};

// By layer of the model.
std::vector<FsdpUnit> fsdp_units(const JobSpec& spec, const FsdpMesh& mesh);

}  // namespace ghostrank
