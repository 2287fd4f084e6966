#include "profiles/planners/schedulers/modules.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ghostrank {
namespace {

// `name` without a last part that only says which of a module's tensors it is.
std::string_view module_name(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kParts{"weight", "bias", "w", "b"};
  const std::size_t dot = name.rfind('.');
  const std::string_view last = dot == name.npos ? name : name.substr(dot + 1);
  if (std::find(kParts.begin(), kParts.end(), last) == kParts.end()) return name;
  return dot == name.npos ? std::string_view{} : name.substr(0, dot);
}

// Shares `whole` in proportion to `weights`; the first gets all where there are none.
class Shares {
 public:
  Shares(Picoseconds whole, double weights) : whole_(whole), weights_(weights) {}

  Picoseconds next(double weight) {
    sum_ += weights_ > 0 ? weight / weights_ : 1;
    const auto end =
        static_cast<Picoseconds>(static_cast<double>(whole_) * std::min(1.0, sum_) + 0.5);
    const Picoseconds share = std::min(end, whole_) - given_;
    given_ += share;
    return share;
  }

 private:
  Picoseconds whole_, given_ = 0;
  double weights_, sum_ = 0;
};

struct WeighedModule {
  Module module;
  double matrices = 0;  // elements
};

// Whether the tensor is the weight of a product with the rows of the rank's samples: then its name
// has a last part such as "weight". Embeddings and routers have none, nor have experts, which see
// other rows.
bool is_product(const ParameterTensor& tensor) {
  return tensor.rows > 0 && module_name(tensor.name) != tensor.name;
}

std::vector<WeighedModule> modules_of_layer(const Layer& layer, bool measured) {
  std::vector<WeighedModule> out;
  std::string_view open = "/";  // no tensor is called that
  for (const ParameterTensor& tensor : layer.parameters) {
    const std::string_view name = measured ? std::string_view{} : module_name(tensor.name);
    if (name != open)
      out.push_back({{name.empty() ? layer.name : layer.name + "." + std::string(name), {}}, 0});
    open = name;
    out.back().module.tensors.push_back(tensor.numel);
    out.back().module.numel += tensor.numel;
    if (tensor.rows > 0) out.back().matrices += static_cast<double>(tensor.numel);
    if (measured) continue;
    if (is_product(tensor)) {
      out.back().module.outputs = tensor.rows;
      out.back().module.inputs = tensor.numel / tensor.rows;
    } else if (out.back().module.outputs > 0) {
      out.back().module.bias = true;
    }
  }
  if (out.empty()) out.push_back({{layer.name, {}}, 0});  // it has a time all the same
  return out;
}

}  // namespace

std::vector<Module> modules_of(const Model& model, const StepTimes& times) {
  std::vector<Module> out;
  Shares optimizer(times.optimizer, static_cast<double>(model.parameters()));
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    std::vector<WeighedModule> modules = modules_of_layer(model.layers[i], model.measured);
    double matrices = 0;
    for (const WeighedModule& one : modules) matrices += one.matrices;
    Shares forward(times.layers[i].forward, matrices), backward(times.layers[i].backward, matrices);
    for (WeighedModule& one : modules) {
      one.module.forward = forward.next(one.matrices);
      one.module.backward = backward.next(one.matrices);
      one.module.optimizer = optimizer.next(static_cast<double>(one.module.numel));
      if (model.kind == "convolutional" && one.module.outputs > 0)
        one.module.positions = model.layers[i].forward_flops / (2 * one.matrices);
      out.push_back(std::move(one.module));
    }
  }
  return out;
}

std::vector<ReadyTensor> tensors_of(std::span<const Module> modules) {
  std::vector<ReadyTensor> out;
  for (std::size_t m = 0; m < modules.size(); ++m) {
    for (const std::uint64_t numel : modules[m].tensors) out.push_back({numel, m, 0});
    // Modules without tensors hold up the gradients of those in front of them.
    if (!out.empty()) out.back().backward += modules[m].backward;
  }
  return out;
}

}  // namespace ghostrank
