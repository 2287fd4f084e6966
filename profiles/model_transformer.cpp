// Transformers from the keys of a paper's table: which tensors, in which order, and what a layer
// costs. The three architectures differ in the order in which the reference implementations
// register their tensors:
//
//   gpt2    embeddings; per layer norm, fused qkv, projection, norm, ffn; final norm
//   llama   embedding; per layer q k v o, ffn, two norms; final norm, output
//   bert    embeddings and norm; per layer q k v, output, norm, ffn, norm; pooler, heads
//
// Forward FLOPs of a layer and sample (s tokens, h hidden, k width of the keys, f of the ffn):
//   2 s h (h + 2k) + 2 s h h + 4 s s h + 2 s h f (2, gated 3)
// which is 24 s h h + 4 s s h where k = h and f = 4h; logits cost 2 s h V (Narayanan et al.,
// SC'21).
#include <array>
#include <limits>

#include "profiles/model.h"

namespace ghostrank {
namespace {

constexpr double kMaxWidth = 1e6, kMaxTokens = 1e7, kMaxVocabulary = 1e8, kMaxLayers = 1e4;

constexpr std::array kKeys{
    Key{"kind", KeyType::choice, kRequired, "what is described", 0, 0, "transformer"},
    Key{"name", KeyType::string, "model", "how reports call the model"},
    Key{"architecture", KeyType::choice, kAbsent,
        "order of the tensors; without it gpt2 for layernorm and llama for rmsnorm", 0, 0,
        "gpt2 llama bert"},
    Key{"layers", KeyType::integer, kRequired, "transformer layers", 1, kMaxLayers},
    Key{"hidden", KeyType::integer, kRequired, "width of the residual stream", 1, kMaxWidth},
    Key{"heads", KeyType::integer, kRequired, "attention heads", 1, kMaxWidth},
    Key{"kv_heads", KeyType::integer, kAbsent,
        "key and value heads; fewer than heads: grouped-query attention", 1, kMaxWidth},
    Key{"ffn", KeyType::integer, kAbsent,
        "inner width of the feed-forward part; without it 4 hidden", 1, kMaxTokens},
    Key{"gated_ffn", KeyType::boolean, "false", "a third matrix gates the feed-forward (SwiGLU)"},
    Key{"sequence", KeyType::integer, kRequired, "tokens per sample", 1, kMaxTokens},
    Key{"positions", KeyType::integer, kAbsent,
        "rows of the learned position table; without it the sequence", 1, kMaxTokens},
    Key{"vocabulary", KeyType::integer, kRequired, "rows of the embedding", 1, kMaxVocabulary},
    Key{"tied_embeddings", KeyType::boolean, "true", "the output layer shares the embedding"},
    Key{"position_embeddings", KeyType::choice, "learned", "how positions enter", 0, 0,
        "learned rope none"},
    Key{"norm", KeyType::choice, "layernorm", "layernorm has a bias, rmsnorm has none", 0, 0,
        "layernorm rmsnorm"},
    Key{"bias", KeyType::boolean, "true", "linear layers have biases"},
    Key{"type_vocabulary", KeyType::integer, "2", "bert: rows of the token type table", 1, 1000},
    Key{"pretraining_heads", KeyType::boolean, "true",
        "bert: masked-language and next-sentence heads"},
    Key{"experts", KeyType::any, kAbsent, "mixture of experts", 0, 0, "", "", false}};

struct Shape {
  std::uint64_t layers, hidden, key_width, ffn, sequence, positions, vocabulary;
  bool gated, bias, norm_bias, tied, learned_positions;
};

// Appends tensors to one layer after another.
class Writer {
 public:
  explicit Writer(Model& model, const Shape& shape) : model_(model), shape_(shape) {}

  void layer(std::string name, double forward_flops) {
    model_.layers.push_back({std::move(name), {}, forward_flops, 0, 0});
  }
  void tensor(std::string name, std::uint64_t numel) {
    model_.layers.back().parameters.push_back({std::move(name), numel});
  }
  void linear(const std::string& name, std::uint64_t out, std::uint64_t in) {
    tensor(name + ".w", out * in);
    if (shape_.bias) tensor(name + ".b", out);
  }
  void norm(const std::string& name) {
    tensor(name + ".w", shape_.hidden);
    if (shape_.norm_bias) tensor(name + ".b", shape_.hidden);
  }

 private:
  Model& model_;
  const Shape& shape_;
};

double layer_flops(const Shape& shape) {
  const auto s = static_cast<double>(shape.sequence), h = static_cast<double>(shape.hidden),
             k = static_cast<double>(shape.key_width), f = static_cast<double>(shape.ffn);
  return 2 * s * h * (h + 2 * k) + 2 * s * h * h + 4 * s * s * h +
         (shape.gated ? 3 : 2) * 2 * s * h * f;
}

double logits_flops(const Shape& shape) {
  return 2 * static_cast<double>(shape.sequence) * static_cast<double>(shape.hidden) *
         static_cast<double>(shape.vocabulary);
}

void write_ffn(Writer& out, const Shape& shape) {
  if (shape.gated) out.linear("mlp.gate", shape.ffn, shape.hidden);
  out.linear("mlp.up", shape.ffn, shape.hidden);
  out.linear("mlp.down", shape.hidden, shape.ffn);
}

void write_gpt2(Writer& out, const Shape& shape) {
  const std::uint64_t h = shape.hidden;
  out.layer("embeddings", 0);
  out.tensor("wte", shape.vocabulary * h);
  if (shape.learned_positions) out.tensor("wpe", shape.positions * h);
  for (std::uint64_t i = 0; i < shape.layers; ++i) {
    out.layer("h." + std::to_string(i), layer_flops(shape));
    out.norm("ln_1");
    out.linear("attn.qkv", h + 2 * shape.key_width, h);
    out.linear("attn.proj", h, h);
    out.norm("ln_2");
    write_ffn(out, shape);
  }
  out.layer("head", logits_flops(shape));
  out.norm("ln_f");
  if (!shape.tied) out.tensor("lm_head", shape.vocabulary * h);
}

void write_llama(Writer& out, const Shape& shape) {
  const std::uint64_t h = shape.hidden;
  out.layer("embeddings", 0);
  out.tensor("embed", shape.vocabulary * h);
  if (shape.learned_positions) out.tensor("positions", shape.positions * h);
  for (std::uint64_t i = 0; i < shape.layers; ++i) {
    out.layer("layers." + std::to_string(i), layer_flops(shape));
    out.linear("q", h, h);
    out.linear("k", shape.key_width, h);
    out.linear("v", shape.key_width, h);
    out.linear("o", h, h);
    write_ffn(out, shape);
    out.norm("ln1");
    out.norm("ln2");
  }
  out.layer("head", logits_flops(shape));
  out.norm("norm");
  if (!shape.tied) out.tensor("lm_head", shape.vocabulary * h);
}

void write_bert(Writer& out, const Shape& shape, std::uint64_t types, bool heads) {
  const std::uint64_t h = shape.hidden;
  const auto hidden = static_cast<double>(h);
  out.layer("embeddings", 0);
  out.tensor("word", shape.vocabulary * h);
  if (shape.learned_positions) out.tensor("position", shape.positions * h);
  out.tensor("token_type", types * h);
  out.norm("ln");
  for (std::uint64_t i = 0; i < shape.layers; ++i) {
    out.layer("layer." + std::to_string(i), layer_flops(shape));
    out.linear("attn.q", h, h);
    out.linear("attn.k", shape.key_width, h);
    out.linear("attn.v", shape.key_width, h);
    out.linear("attn.out", h, h);
    out.norm("attn.ln");
    write_ffn(out, shape);
    out.norm("ln");
  }
  out.layer("pooler", 2 * hidden * hidden);
  out.linear("pooler", h, h);
  if (!heads) return;
  // The decoder of the masked-language head is the word embedding with a bias of its own.
  out.layer("heads", 2 * static_cast<double>(shape.sequence) * hidden * hidden +
                         logits_flops(shape) + 4 * hidden);
  out.tensor("predictions.bias", shape.vocabulary);
  out.linear("predictions.transform", h, h);
  out.norm("predictions.ln");
  out.linear("next_sentence", 2, h);
}

std::uint64_t positive(const Settings& settings, std::string_view path, std::uint64_t otherwise) {
  return settings.given(path) ? static_cast<std::uint64_t>(settings.integer(path)) : otherwise;
}

Shape shape_of(const Settings& settings) {
  const auto get = [&](std::string_view path) {
    return static_cast<std::uint64_t>(settings.integer(path));
  };
  Shape shape{};
  shape.layers = get("layers");
  shape.hidden = get("hidden");
  const std::uint64_t heads = get("heads"), kv_heads = positive(settings, "kv_heads", heads);
  if (shape.hidden % heads != 0)
    fail(settings.at("heads").mark,
         "heads does not divide hidden; choose a divisor of " + std::to_string(shape.hidden));
  if (heads % kv_heads != 0)
    fail(settings.at("kv_heads").mark,
         "kv_heads does not divide heads; choose a divisor of " + std::to_string(heads));
  shape.key_width = shape.hidden / heads * kv_heads;
  shape.ffn = positive(settings, "ffn", 4 * shape.hidden);
  shape.sequence = get("sequence");
  shape.positions = positive(settings, "positions", shape.sequence);
  shape.vocabulary = get("vocabulary");
  shape.gated = settings.boolean("gated_ffn");
  shape.bias = settings.boolean("bias");
  shape.norm_bias = settings.text("norm") == "layernorm";
  shape.tied = settings.boolean("tied_embeddings");
  shape.learned_positions = settings.text("position_embeddings") == "learned";
  return shape;
}

}  // namespace

std::span<const Key> transformer_keys() { return kKeys; }

Model make_transformer(const Settings& settings, const Mark&) {
  const Shape shape = shape_of(settings);
  Model model;
  model.name = settings.text("name");
  model.sequence = settings.small("sequence");
  model.vocabulary = shape.vocabulary;
  model.architecture = settings.text("architecture");
  if (model.architecture.empty()) model.architecture = shape.norm_bias ? "gpt2" : "llama";
  Writer out(model, shape);
  if (model.architecture == "gpt2")
    write_gpt2(out, shape);
  else if (model.architecture == "llama")
    write_llama(out, shape);
  else
    write_bert(out, shape, static_cast<std::uint64_t>(settings.integer("type_vocabulary")),
               settings.boolean("pretraining_heads"));
  return model;
}

}  // namespace ghostrank
