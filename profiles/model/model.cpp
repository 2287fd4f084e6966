#include "profiles/model/model.h"

#include <array>
#include <numeric>

namespace ghostrank {

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

Model make_model(const YamlValue& description) {
  struct Kind {
    std::string_view name;
    std::span<const Key> (*keys)();
    Model (*make)(const Settings&, const Mark&);
  };
  static constexpr std::array kKinds{
      Kind{"transformer", transformer_keys, make_transformer},
      Kind{"convolutional", convolutional_keys, make_convolutional},
      Kind{"recommendation", recommendation_keys, make_recommendation},
      Kind{"recurrent", recurrent_keys, make_recurrent}, Kind{"layers", layers_keys, make_layers}};

  const YamlValue* kind = description.find("kind");
  if (!kind)
    fail(
        description.mark,
        "the model has no kind; add kind: transformer, convolutional, recommendation, recurrent or "
        "layers");
  for (const Kind& one : kKinds) {
    if (kind->text != one.name) continue;
    Model model = one.make(Settings(description, one.keys(), "model"), description.mark);
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
