#include "profiles/planners/fsdp/units.h"

#include <cctype>
#include <optional>
#include <string>

#include "profiles/planners/shared/tied_table.h"

namespace ghostrank {
namespace {

std::uint64_t split(std::uint64_t numel, std::uint64_t shards) {
  return (numel + shards - 1) / shards;
}

// The number in "e12.w1"; empty for a tensor that is no expert's.
std::optional<std::uint64_t> expert_of(const ParameterTensor& tensor) {
  if (tensor.name.size() < 2 || tensor.name[0] != 'e' ||
      std::isdigit(static_cast<unsigned char>(tensor.name[1])) == 0)
    return std::nullopt;
  return std::stoull(tensor.name.substr(1));
}

// Adds a rank's shards of the routed experts' matrices.
void add_experts(const Transformer& model, const FsdpMesh& mesh, FsdpUnit& out) {
  const std::uint64_t ep = mesh.ep;
  const std::uint64_t shards = mesh.experts_shard;
  const std::uint64_t tp = mesh.ep > 1 ? 1 : mesh.tp;
  const std::uint64_t here = model.experts.count / ep, f = model.experts.ffn / tp;
  const auto matrix = [&](std::uint64_t rows, std::uint64_t columns) {
    const bool by_rows = shards * ep > model.experts.count;
    (mesh.ep > 1 ? out.experts_shard : out.shard) +=
        by_rows ? here * split(rows, shards) * columns : split(here, shards) * rows * columns;
    ++(mesh.ep > 1 ? out.experts_tensors : out.tensors);
  };
  for (int up = 0; up < (model.gated ? 2 : 1); ++up) matrix(f, model.hidden);
  matrix(model.hidden, f);
}

FsdpUnit unit_of(const JobSpec& spec, const FsdpMesh& mesh, const Layer& layer) {
  const bool titan = spec.parallel.framework == Framework::torchtitan && spec.model->transformer;
  const std::uint64_t shards = mesh.shard;
  FsdpUnit out;
  bool routed = false;
  for (const ParameterTensor& tensor : layer.parameters) {
    if (titan && tensor.name == "router_bias") continue;
    if (titan && is_routed_expert(*spec.model, tensor)) {
      routed = true;
      continue;
    }
    ++out.tensors;
    const bool whole = is_replicated(spec, tensor);
    // Under expert parallelism a tensor-parallel rank routes only its part of the sequence.
    if (mesh.tp > 1 && whole && (tensor.name != "router" || mesh.ep > 1)) out.whole += tensor.numel;
    out.shard += shard_elements(spec, tensor, shards);
  }
  if (routed) add_experts(*spec.model->transformer, mesh, out);
  return out;
}

}  // namespace

bool is_routed_expert(const Model& model, const ParameterTensor& tensor) {
  if (!model.transformer) return false;
  const auto expert = expert_of(tensor);
  return expert && *expert < model.transformer->experts.count;
}

std::vector<FsdpUnit> fsdp_units(const JobSpec& spec, const FsdpMesh& mesh) {
  std::vector<FsdpUnit> out;
  for (const Layer& layer : spec.model->layers) out.push_back(unit_of(spec, mesh, layer));
  if (!head_has_embedding(*spec.model)) return out;
  FsdpUnit& head = out.back();
  for (const auto of : {&FsdpUnit::shard, &FsdpUnit::whole, &FsdpUnit::tensors})
    out.front().*of += head.*of;
  head = {};
  return out;
}

}  // namespace ghostrank
