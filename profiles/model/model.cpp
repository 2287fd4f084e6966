#include "profiles/model/model.h"

#include <array>
#include <numeric>

#include "profiles/input/idle.h"

namespace ghostrank {
namespace {

struct ModelKind {
  std::string_view name;
  std::span<const Key> (*keys)();
  Model (*make)(const Settings&, const Mark&);
};
constexpr std::array kKinds{ModelKind{"transformer", transformer_keys, make_transformer},
                            ModelKind{"convolutional", convolutional_keys, make_convolutional},
                            ModelKind{"recommendation", recommendation_keys, make_recommendation},
                            ModelKind{"recurrent", recurrent_keys, make_recurrent},
                            ModelKind{"layers", layers_keys, make_layers}};

// Refuses keys that mean nothing beside the others.
void refuse_idle(const Settings& settings) {
  for (const Setting& setting : settings.all())
    for (const Beside& one : setting.key->beside)
      if (!one.key.empty() && is_changed(setting) && !holds(one, settings.text(one.key)))
        fail(setting.mark, refusal_of_idle(settings, setting, one));
}

}  // namespace

std::size_t Model::tensors() const {
  return std::accumulate(
      layers.begin(), layers.end(), std::size_t{0},
      [](std::size_t sum, const Layer& layer) { return sum + layer.parameters.size(); });
}

std::uint64_t Model::parameters() const {
  std::uint64_t sum = 0;
  for (const Layer& layer : layers)
    for (const ParameterTensor& tensor : layer.parameters) sum += tensor.numel;
  return sum;
}

double Model::forward_flops() const {
  return std::accumulate(layers.begin(), layers.end(), 0.0,
                         [](double sum, const Layer& layer) { return sum + layer.forward_flops; });
}

std::span<const Key> model_keys(std::string_view kind) {
  for (const ModelKind& one : kKinds)
    if (one.name == kind) return one.keys();
  return {};
}

Model make_model(const YamlValue& description) {
  const YamlValue* kind = description.find("kind");
  if (!kind)
    fail(
        description.mark,
        "the model has no kind; add kind: transformer, convolutional, recommendation, recurrent or "
        "layers");
  for (const ModelKind& one : kKinds) {
    if (kind->text != one.name) continue;
    const Settings settings(description, one.keys(), "model");
    refuse_idle(settings);
    Model model = one.make(settings, description.mark);
    model.kind = one.name;
    if (model.tensors() > kMaxTensors)
      fail(description.mark, "the model has " + std::to_string(model.tensors()) +
                                 " parameter tensors, at most " + std::to_string(kMaxTensors) +
                                 " are supported; describe fewer");
    return model;
  }
  fail(kind->mark, "kind is " + ghostrank::description(*kind) +
                       "; allowed: transformer, convolutional, recommendation, recurrent, layers");
}

std::optional<DataType> parse_data_type(std::string_view text) {
  struct Name {
    std::string_view name;
    DataType type;
  };
  static constexpr std::array kNames{
      Name{"fp32", DataType::float32},  Name{"float32", DataType::float32},
      Name{"bf16", DataType::bfloat16}, Name{"bfloat16", DataType::bfloat16},
      Name{"fp16", DataType::float16},  Name{"float16", DataType::float16},
      Name{"int32", DataType::int32}};
  for (const Name& one : kNames)
    if (one.name == text) return one.type;
  return std::nullopt;
}

}  // namespace ghostrank
