// Language models of LSTM layers (Zaremba et al., 2014): an embedding, layers of cells, and a
// product that predicts the next word of every position.
//
// A cell has four gates, each with a product of its input and one of its state. Tensors of a layer
// are the framework's: TensorFlow's cell has one matrix of both and one bias, PyTorch's two of
// each. Forward FLOPs per sample, with T words, width w, h units and V words known: a layer
// 8 T (in + h) h, the prediction 2 T h V; lookups 0.
#include <array>

#include "profiles/model/max_width.h"
#include "profiles/model/model.h"
#include "profiles/real.h"

namespace ghostrank {
namespace {

constexpr double kMaxWords = 1e9, kMaxCellLayers = 1000;

constexpr std::array kRecurrentKeys{
    Key{"kind", KeyType::choice, kRequired, "what is described", 0, 0, "recurrent"},
    Key{"name", KeyType::string, "model", "how reports call the model"},
    Key{"architecture", KeyType::choice, "lstm", "of the cells", 0, 0, "lstm"},
    Key{"vocabulary", KeyType::integer, kRequired, "words that are known", 1, kMaxWords},
    Key{"width", KeyType::integer, kRequired, "numbers of a word's embedding", 1, kMaxWidth},
    Key{"hidden", KeyType::integer, kRequired, "units of a layer", 1, kMaxWidth},
    Key{"layers", KeyType::integer, kRequired, "of cells", 1, kMaxCellLayers},
    Key{"sequence", KeyType::integer, kRequired, "words of a sample", 1, kMaxWidth},
    Key{"cells", KeyType::choice, "pytorch", "whose tensors a layer has", 0, 0,
        "pytorch tensorflow"},
    Key{"embedding", KeyType::choice, "dense",
        "gradients of the embedding: dense, as all others; none: they are not exchanged with them, "
        "as TensorFlow's sparse ones",
        0, 0, "dense none"}};

Layer cells(const std::string& name, std::uint64_t in, std::uint64_t hidden, std::uint64_t words,
            bool joined) {
  Layer layer{name, {}, 8 * real(words) * real(in + hidden) * real(hidden), 0, 0};
  const std::uint64_t gates = 4 * hidden;
  if (joined)
    layer.parameters = {{"kernel", (in + hidden) * gates, in + hidden}, {"bias", gates, 0}};
  else
    layer.parameters = {{"weight_ih", gates * in, gates},
                        {"weight_hh", gates * hidden, gates},
                        {"bias_ih", gates, 0},
                        {"bias_hh", gates, 0}};
  return layer;
}

}  // namespace

std::span<const Key> recurrent_keys() { return kRecurrentKeys; }

Model make_recurrent(const Settings& settings, const Mark&) {
  const auto get = [&](std::string_view key) {
    return static_cast<std::uint64_t>(settings.integer(key));
  };
  const std::uint64_t words = get("sequence"), vocabulary = get("vocabulary"),
                      hidden = get("hidden");
  Model model;
  model.name = settings.text("name");
  model.architecture = settings.text("architecture");
  model.sequence = settings.small("sequence");
  model.vocabulary = vocabulary;
  std::uint64_t in = get("width");
  Layer embedding{"embedding", {}, 0, 0, 0};
  if (settings.text("embedding") == "dense")
    embedding.parameters.push_back({"weight", vocabulary * in, vocabulary});
  model.layers.push_back(std::move(embedding));
  for (std::uint64_t l = 0; l < get("layers"); ++l, in = hidden)
    model.layers.push_back(cells("lstm." + std::to_string(l), in, hidden, words,
                                 settings.text("cells") == "tensorflow"));
  model.layers.push_back({"predict",
                          {{"weight", vocabulary * hidden, vocabulary}, {"bias", vocabulary, 0}},
                          2 * real(words) * real(hidden) * real(vocabulary),
                          0,
                          0});
  return model;
}

}  // namespace ghostrank
