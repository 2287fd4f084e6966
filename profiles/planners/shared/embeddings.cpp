#include "profiles/planners/shared/embeddings.h"

#include <optional>

#include "profiles/model/model.h"

namespace ghostrank {
namespace {

// The table that is parameter `p` of the model's first layer, with no place yet; empty: it is none.
std::optional<ZipfTable> table_of(const JobSpec& spec, std::size_t p) {
  const Model& model = *spec.model;
  const auto samples = static_cast<double>(spec.parallel.micro_batch);
  ZipfTable table{.exponent = *spec.zipf};
  if (model.recommendation) {
    const EmbeddingTable& of_model = model.recommendation->tables[p];
    table.rows = of_model.rows;
    table.width = model.recommendation->width;
    table.ids = samples * static_cast<double>(of_model.lookups);
  } else if (model.transformer) {
    const ParameterTensor& tensor = model.layers.front().parameters[p];
    const bool has_head = model.architecture != "bert" || model.layers.back().name == "heads";
    if ((model.transformer->tied && has_head) || tensor.rows != model.transformer->vocabulary)
      return std::nullopt;
    table.rows = tensor.rows;
    table.width = tensor.numel / tensor.rows;
    table.ids = samples * static_cast<double>(model.transformer->sequence);
  } else {
    return std::nullopt;
  }
  table.weight = zipf_weight(table.rows, table.exponent);
  return table;
}

}  // namespace

std::vector<std::shared_ptr<const TensorLayout>> table_layouts(
    const JobSpec& spec, std::span<const std::size_t> tensors) {
  if (!spec.zipf) return {};
  std::vector<TensorLayout> buckets(tensors.size() + 1);
  TensorLayout all;
  std::size_t bucket = 0, in_bucket = 0;
  std::uint64_t at = 0, at_of_all = 0;  // elements before the tensor, in its bucket and in all
  for (std::size_t layer = spec.model->layers.size(); layer-- > 0;) {
    const auto& parameters = spec.model->layers[layer].parameters;
    for (std::size_t p = parameters.size(); p-- > 0;) {
      if (auto table = layer == 0 ? table_of(spec, p) : std::nullopt) {
        table->first = at;
        buckets[bucket].tables.push_back(*table);
        table->first = at_of_all;
        all.tables.push_back(*table);
      }
      at += parameters[p].numel;
      at_of_all += parameters[p].numel;
      if (bucket == tensors.size() || ++in_bucket < tensors[bucket]) continue;
      ++bucket;
      in_bucket = at = 0;
    }
  }
  if (all.tables.empty()) return {};
  buckets.back() = std::move(all);
  std::vector<std::shared_ptr<const TensorLayout>> layouts{nullptr};
  for (TensorLayout& layout : buckets)
    layouts.push_back(
        layout.tables.empty() ? nullptr : std::make_shared<const TensorLayout>(std::move(layout)));
  return layouts;
}

}  // namespace ghostrank
