#include "profiles/planners/shared/tensor_layouts.h"

#include <algorithm>
#include <fnmatch.h>
#include <optional>

#include "profiles/error.h"
#include "profiles/model/model.h"
#include "profiles/planners/shared/tied_table.h"

namespace ghostrank {
namespace {

// The table that is parameter `p` of the model's first layer, without its first element's index;
// empty: the parameter is no table.
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
    if (head_has_embedding(model) || tensor.rows != model.transformer->vocabulary)
      return std::nullopt;
    table.rows = tensor.rows;
    table.width = tensor.numel / tensor.rows;
    table.ids = samples * static_cast<double>(model.transformer->sequence);
  } else if (model.kind == "recurrent") {
    const ParameterTensor& tensor = model.layers.front().parameters[p];
    table.rows = tensor.rows;
    table.width = tensor.numel / tensor.rows;
    table.ids = samples * static_cast<double>(model.sequence);
  } else {
    return std::nullopt;
  }
  table.weight = zipf_weight(table.rows, table.exponent);
  return table;
}

// Which of the job's rules gives each tensor its sparsity.
class Rules {
 public:
  explicit Rules(const JobSpec& spec) : spec_(spec), used_(spec.tensor_rules.size()) {}

  // The first that matches; null: none does.
  const TensorRule* of(const std::string& tensor) {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const TensorRule& rule = spec_.tensor_rules[i];
      if (fnmatch(rule.tensors.c_str(), tensor.c_str(), 0) != 0) continue;
      used_[i] = true;
      return &rule;
    }
    return nullptr;
  }

  void check_used() const {
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (!used_[i])
        throw Error(spec_.source_of("tensors.overlap") +
                    ": tensors.overlap: " + quote(spec_.tensor_rules[i].tensors) +
                    " gives no tensor of " + quote(spec_.model->name) +
                    " an overlap; 'ghostrank profile show' lists its layers, whose tensors are "
                    "called as in " +
                    quote(example()));
  }

 private:
  std::string example() const {
    for (const Layer& layer : spec_.model->layers)
      if (!layer.parameters.empty()) return layer.name + "." + layer.parameters.front().name;
    return "";
  }

  const JobSpec& spec_;
  std::vector<bool> used_;
};

// A layout that is written tensor by tensor.
class Layout {
 public:
  void append(std::uint64_t elements, const TensorRule* rule, std::optional<ZipfTable> table) {
    if (table) {
      table->first = at_;
      layout_.tables.push_back(*table);
    }
    if (rule && rule == last_)
      layout_.parts.back().end += elements;
    else if (rule)
      layout_.parts.push_back({at_, at_ + elements, rule->sparsity});
    last_ = rule;
    at_ += elements;
  }
  // Null if nothing differs within the tensor.
  std::shared_ptr<const TensorLayout> take() {
    if (layout_.tables.empty() && layout_.parts.empty()) return nullptr;
    return std::make_shared<const TensorLayout>(std::move(layout_));
  }

 private:
  TensorLayout layout_;
  std::uint64_t at_ = 0;
  const TensorRule* last_ = nullptr;
};

}  // namespace

std::vector<std::shared_ptr<const TensorLayout>> tensor_layouts(
    const JobSpec& spec, std::span<const std::size_t> tensors) {
  if (!spec.zipf && spec.tensor_rules.empty()) return {};
  Rules rules(spec);
  std::vector<Layout> buckets(tensors.size() + 1);  // the last has all gradients
  std::size_t bucket = 0, in_bucket = 0;
  for (std::size_t layer = spec.model->layers.size(); layer-- > 0;) {
    const Layer& of_model = spec.model->layers[layer];
    const auto& parameters = of_model.parameters;
    for (std::size_t p = parameters.size(); p-- > 0;) {
      const auto table = spec.zipf && layer == 0 ? table_of(spec, p) : std::nullopt;
      const TensorRule* rule = rules.of(of_model.name + "." + parameters[p].name);
      buckets.back().append(parameters[p].numel, rule, table);
      if (bucket == tensors.size()) continue;
      buckets[bucket].append(parameters[p].numel, rule, table);
      if (++in_bucket < tensors[bucket]) continue;
      ++bucket;
      in_bucket = 0;
    }
  }
  rules.check_used();
  std::vector<std::shared_ptr<const TensorLayout>> layouts{nullptr};
  for (Layout& layout : buckets) layouts.push_back(layout.take());
  const bool alike = std::all_of(layouts.begin(), layouts.end(),
                                 [](const auto& layout) { return layout == nullptr; });
  return alike ? std::vector<std::shared_ptr<const TensorLayout>>{} : layouts;
}

}  // namespace ghostrank
