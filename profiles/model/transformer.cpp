// Transformers from the keys of a paper's table: their tensors in registration order and the cost
// of each layer. The three architectures differ in the order in which the reference implementations
// register tensors:
//
//   gpt2    embeddings; per layer norm, fused qkv, projection, norm, ffn; final norm
//   llama   embedding; per layer q k v o, ffn, two norms; final norm, output
//   bert    embeddings and norm; per layer q k v, output, norm, ffn, norm; pooler, heads
//
// Forward FLOPs of a layer per sample (s tokens, h hidden, k width of the keys, f of the ffn):
//   2 s h (h + 2k) + 2 s h h + 4 s s h + 2 s h f (2, gated 3)
// which is 24 s h h + 4 s s h where k = h and f = 4h; logits cost 2 s h V (Narayanan et al.,
// SC'21). A causal mask halves no count, as it does not in theirs. A token costs the experts that
// it visits, not all experts of the layer.
#include <array>
#include <limits>

#include "profiles/model/max_width.h"
#include "profiles/model/model.h"
#include "profiles/real.h"

namespace ghostrank {
namespace {

constexpr double kMaxTokens = 1e7, kMaxVocabulary = 1e8, kMaxLayers = 1e4, kMaxExperts = 1e5;

constexpr std::array kTransformerKeys{
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
        "rows of the learned position table; without it the sequence", 1, kMaxTokens}
        .where("position_embeddings", "learned"),
    Key{"vocabulary", KeyType::integer, kRequired, "rows of the embedding", 1, kMaxVocabulary},
    Key{"tied_embeddings", KeyType::boolean, "true", "the output layer shares the embedding"}
        .unless("pretraining_heads", "false"),
    Key{"position_embeddings", KeyType::choice, "learned", "how positions enter", 0, 0,
        "learned rope none"},
    Key{"norm", KeyType::choice, "layernorm", "layernorm has a bias, rmsnorm has none", 0, 0,
        "layernorm rmsnorm"},
    Key{"bias", KeyType::boolean, "true", "linear layers have biases"},
    Key{"qkv_bias", KeyType::boolean, kAbsent,
        "the projections to queries, keys and values have biases; without it as `bias`"},
    Key{"dropout", KeyType::boolean, kAbsent,
        "training drops outputs of attention and feed-forward at random; without it as `bias`"},
    Key{"type_vocabulary", KeyType::integer, "2", "rows of the token type table", 1, 1000}.where(
        "architecture", "bert"),
    Key{"pretraining_heads", KeyType::boolean, "true", "masked-language and next-sentence heads"}
        .where("architecture", "bert"),
    Key{"mtp_layers", KeyType::integer, "0",
        "multi-token prediction: modules behind the last layer, each with a layer of its kind", 0,
        kMaxLayers},
    Key{"head_width", KeyType::integer, kAbsent, "width of a head; without it hidden / heads", 1,
        kMaxWidth},
    Key{"experts.count", KeyType::integer, "0",
        "mixture of experts: routed experts of a layer; 0: none", 0, kMaxExperts},
    Key{"experts.top_k", KeyType::integer, "1", "experts that a token visits", 1, kMaxExperts}
        .unless("experts.count", "0"),
    Key{"experts.groups", KeyType::integer, "1",
        "groups of neighbouring experts, for routing limited to some of them", 1, kMaxExperts}
        .unless("experts.count", "0"),
    Key{"experts.group_top_k", KeyType::integer, "0",
        "groups that a token's experts lie in, at most; 0: any", 0, kMaxExperts}
        .unless("experts.count", "0"),
    Key{"experts.ffn", KeyType::integer, kAbsent, "inner width of an expert; without it ffn", 1,
        kMaxTokens}
        .unless("experts.count", "0"),
    Key{"experts.shared", KeyType::integer, "0", "experts that every token visits besides", 0,
        kMaxExperts}
        .unless("experts.count", "0"),
    Key{"experts.every", KeyType::integer, "1", "one layer of so many has experts", 1, kMaxLayers}
        .unless("experts.count", "0"),
    Key{"experts.first_dense", KeyType::integer, "0", "layers before the first with experts", 0,
        kMaxLayers}
        .unless("experts.count", "0"),
    Key{"experts.router_bias", KeyType::boolean, "false", "a bias per expert balances the routing"}
        .unless("experts.count", "0"),
    Key{"latent.kv_lora", KeyType::integer, "0",
        "latent attention (MLA): width of the keys' and values' latent; 0: ordinary attention", 0,
        kMaxWidth},
    Key{"latent.q_lora", KeyType::integer, "0", "width of the queries' latent; 0: none", 0,
        kMaxWidth}
        .unless("latent.kv_lora", "0"),
    Key{"latent.nope", KeyType::integer, "128", "width of a head without positions", 1, kMaxWidth}
        .unless("latent.kv_lora", "0"),
    Key{"latent.rope", KeyType::integer, "64", "width of the part with rotary positions", 1,
        kMaxWidth}
        .unless("latent.kv_lora", "0"),
    Key{"latent.value", KeyType::integer, "128", "width of a head's value", 1, kMaxWidth}.unless(
        "latent.kv_lora", "0")};

// Appends layers and their tensors to a model.
class Writer {
 public:
  Writer(Model& model, const Transformer& config, const Mark& mark)
      : model_(model), config_(config), mark_(mark) {}

  void layer(std::string name, double forward_flops) {
    model_.layers.push_back({std::move(name), {}, forward_flops, 0, 0});
  }
  void vector(std::string name, std::uint64_t numel) { add({std::move(name), numel}); }
  void matrix(std::string name, std::uint64_t rows, std::uint64_t columns) {
    add({std::move(name), rows * columns, rows});
  }
  void linear(const std::string& name, std::uint64_t out, std::uint64_t in) {
    matrix(name + ".w", out, in);
    if (config_.bias) vector(name + ".b", out);
  }
  // A projection to queries, keys or values.
  void projection(const std::string& name, std::uint64_t out, std::uint64_t in) {
    matrix(name + ".w", out, in);
    if (config_.qkv_bias) vector(name + ".b", out);
  }
  // GPT-2's linear layers store their weights transposed.
  void transposed(const std::string& name, std::uint64_t out, std::uint64_t in) {
    matrix(name + ".w", in, out);
    if (config_.bias) vector(name + ".b", out);
  }
  void norm(const std::string& name) {
    vector(name + ".w", config_.hidden);
    if (config_.norm_bias) vector(name + ".b", config_.hidden);
  }

 private:
  // Refuses too many tensors before they fill the memory.
  void add(ParameterTensor tensor) {
    if (++tensors_ > kMaxTensors)
      fail(mark_, "the model has more than " + std::to_string(kMaxTensors) +
                      " parameter tensors; lower layers or experts.count");
    model_.layers.back().parameters.push_back(std::move(tensor));
  }

  Model& model_;
  const Transformer& config_;
  const Mark& mark_;
  std::uint64_t tensors_ = 0;
};

// Elements of the matrices that every token passes in one layer's attention.
double attention_weights(const Transformer& config) {
  const double h = real(config.hidden), heads = real(config.heads);
  if (!config.is_latent())
    return h * real(config.query_width() + 2 * config.key_width()) + real(config.query_width()) * h;
  const LatentAttention& latent = config.latent;
  const double q = heads * real(latent.nope + latent.rope);
  const double queries = latent.q_lora > 0 ? real(latent.q_lora) * (h + q) : h * q;
  const double kv = real(latent.kv_lora);
  return queries + h * (kv + real(latent.rope)) + kv * heads * real(latent.nope + latent.value) +
         heads * real(latent.value) * h;
}

// Likewise in its feed-forward part: the router and the experts that the token visits.
double ffn_weights(const Transformer& config, std::uint64_t layer) {
  const double h = real(config.hidden), matrices = config.gated ? 3 : 2;
  if (!config.has_experts(layer)) return matrices * h * real(config.ffn);
  const Experts& experts = config.experts;
  return h * real(experts.count) +
         matrices * h * real(experts.ffn) * real(experts.top_k + experts.shared);
}

// Of one layer's scores, those of every token for every other.
double score_flops(const Transformer& config) {
  const double s = real(config.sequence);
  const LatentAttention& latent = config.latent;
  const double width = config.is_latent() ? real(latent.nope + latent.rope + latent.value)
                                          : 2 * real(config.head_width);
  return 2 * s * s * real(config.heads) * width;
}

double layer_flops(const Transformer& config, std::uint64_t layer) {
  return 2 * real(config.sequence) * (attention_weights(config) + ffn_weights(config, layer)) +
         score_flops(config);
}

double logits_flops(const Transformer& config) {
  return 2 * static_cast<double>(config.sequence) * static_cast<double>(config.hidden) *
         static_cast<double>(config.vocabulary);
}

void write_ffn(Writer& out, const Transformer& config) {
  if (config.gated) out.linear("mlp.gate", config.ffn, config.hidden);
  out.linear("mlp.up", config.ffn, config.hidden);
  out.linear("mlp.down", config.hidden, config.ffn);
}

void write_gpt2(Writer& out, const Transformer& config) {
  const std::uint64_t h = config.hidden;
  out.layer("embeddings", 0);
  out.matrix("wte", config.vocabulary, h);
  if (config.learned_positions) out.matrix("wpe", config.positions, h);
  for (std::uint64_t i = 0; i < config.layers; ++i) {
    out.layer("h." + std::to_string(i), layer_flops(config, i));
    out.norm("ln_1");
    const std::uint64_t qkv = config.query_width() + 2 * config.key_width();
    out.matrix("attn.qkv.w", h, qkv);
    if (config.qkv_bias) out.vector("attn.qkv.b", qkv);
    out.transposed("attn.proj", h, config.query_width());
    out.norm("ln_2");
    if (config.gated) out.transposed("mlp.gate", config.ffn, h);
    out.transposed("mlp.up", config.ffn, h);
    out.transposed("mlp.down", h, config.ffn);
  }
  out.layer("head", logits_flops(config));
  out.norm("ln_f");
  if (!config.tied) out.matrix("lm_head", config.vocabulary, h);
}

void write_experts(Writer& out, const Transformer& config) {
  const std::uint64_t h = config.hidden, f = config.experts.ffn;
  out.matrix("router", config.experts.count, h);
  if (config.experts.router_bias) out.vector("router_bias", config.experts.count);
  for (std::uint64_t e = 0; e < config.experts.count + config.experts.shared; ++e) {
    const std::string name = "e" + std::to_string(e);
    out.matrix(name + ".w1", f, h);
    out.matrix(name + ".w2", h, f);
    if (config.gated) out.matrix(name + ".w3", f, h);
  }
}

void write_latent_attention(Writer& out, const Transformer& config) {
  const LatentAttention& latent = config.latent;
  const std::uint64_t h = config.hidden, q = config.heads * (latent.nope + latent.rope);
  if (latent.q_lora > 0) {
    out.matrix("q_a.w", latent.q_lora, h);
    out.vector("q_a_norm", latent.q_lora);
    out.matrix("q_b.w", q, latent.q_lora);
  } else {
    out.matrix("q.w", q, h);
  }
  out.matrix("kv_a.w", latent.kv_lora + latent.rope, h);
  out.vector("kv_a_norm", latent.kv_lora);
  out.matrix("kv_b.w", config.heads * (latent.nope + latent.value), latent.kv_lora);
  out.matrix("o.w", h, config.heads * latent.value);
}

void write_llama_layer(Writer& out, const Transformer& config, std::uint64_t layer) {
  const std::uint64_t h = config.hidden;
  if (config.is_latent()) {
    write_latent_attention(out, config);
  } else {
    out.projection("q", config.query_width(), h);
    out.projection("k", config.key_width(), h);
    out.projection("v", config.key_width(), h);
    out.linear("o", h, config.query_width());
  }
  if (config.has_experts(layer))
    write_experts(out, config);
  else
    write_ffn(out, config);
  out.norm("ln1");
  out.norm("ln2");
}

// Embedding and head are shared with the model.
void write_mtp_module(Writer& out, const Transformer& config, std::uint64_t module) {
  const double h = real(config.hidden);
  const std::uint64_t layer = config.layers + module;
  out.layer("mtp." + std::to_string(module), layer_flops(config, layer) + logits_flops(config) +
                                                 2 * real(config.sequence) * 2 * h * h);
  out.norm("enorm");
  out.norm("hnorm");
  out.matrix("eh_proj.w", config.hidden, 2 * config.hidden);
  write_llama_layer(out, config, layer);
  out.norm("norm");
}

void write_llama(Writer& out, const Transformer& config) {
  const std::uint64_t h = config.hidden;
  out.layer("embeddings", 0);
  out.matrix("embed", config.vocabulary, h);
  if (config.learned_positions) out.matrix("positions", config.positions, h);
  for (std::uint64_t i = 0; i < config.layers; ++i) {
    out.layer("layers." + std::to_string(i), layer_flops(config, i));
    write_llama_layer(out, config, i);
  }
  for (std::uint64_t i = 0; i < config.mtp; ++i) write_mtp_module(out, config, i);
  out.layer("head", logits_flops(config));
  out.norm("norm");
  if (!config.tied) out.matrix("lm_head", config.vocabulary, h);
}

void write_bert(Writer& out, const Transformer& config, std::uint64_t types, bool heads) {
  const std::uint64_t h = config.hidden;
  const auto hidden = static_cast<double>(h);
  out.layer("embeddings", 0);
  out.matrix("word", config.vocabulary, h);
  if (config.learned_positions) out.matrix("position", config.positions, h);
  out.matrix("token_type", types, h);
  out.norm("ln");
  for (std::uint64_t i = 0; i < config.layers; ++i) {
    out.layer("layer." + std::to_string(i), layer_flops(config, i));
    out.projection("attn.q", config.query_width(), h);
    out.projection("attn.k", config.key_width(), h);
    out.projection("attn.v", config.key_width(), h);
    out.linear("attn.out", h, config.query_width());
    out.norm("attn.ln");
    write_ffn(out, config);
    out.norm("ln");
  }
  out.layer("pooler", 2 * hidden * hidden);
  out.linear("pooler", h, h);
  if (!heads) return;
  // The masked-language head's decoder may share the word embedding, and has its own bias.
  out.layer("heads", 2 * static_cast<double>(config.sequence) * hidden * hidden +
                         logits_flops(config) + 4 * hidden);
  out.vector("predictions.bias", config.vocabulary);
  out.linear("predictions.transform", h, h);
  out.norm("predictions.ln");
  if (!config.tied) out.matrix("predictions.decoder", config.vocabulary, h);
  out.linear("next_sentence", 2, h);
}

std::uint64_t positive(const Settings& settings, std::string_view path, std::uint64_t otherwise) {
  return settings.given(path) ? static_cast<std::uint64_t>(settings.integer(path)) : otherwise;
}

void check_heads(const Settings& settings, const Transformer& config) {
  if (!settings.given("head_width") && config.hidden % config.heads != 0)
    fail(settings.at("heads").mark, "heads does not divide hidden; choose a divisor of " +
                                        std::to_string(config.hidden) + " or give head_width");
  if (config.heads % config.kv_heads != 0)
    fail(settings.at("kv_heads").mark,
         "kv_heads does not divide heads; choose a divisor of " + std::to_string(config.heads));
}

Experts experts_of(const Settings& settings, std::uint64_t ffn) {
  const auto get = [&](std::string_view path) {
    return static_cast<std::uint64_t>(settings.integer(path));
  };
  Experts out;
  out.count = get("experts.count");
  out.top_k = get("experts.top_k");
  out.ffn = positive(settings, "experts.ffn", ffn);
  out.shared = get("experts.shared");
  out.every = get("experts.every");
  out.first_dense = get("experts.first_dense");
  out.router_bias = settings.boolean("experts.router_bias");
  if (out.count == 0) return out;
  if (out.top_k > out.count)
    fail(settings.at("experts.top_k").mark,
         "experts.top_k is more than experts.count; use at most " + std::to_string(out.count));
  out.groups = get("experts.groups");
  if (out.count % out.groups != 0)
    fail(settings.at("experts.groups").mark,
         "experts.groups does not divide experts.count; choose a divisor of " +
             std::to_string(out.count));
  const std::uint64_t chosen = get("experts.group_top_k"), each = out.count / out.groups;
  out.group_top_k = chosen == 0 ? out.groups : chosen;
  if (out.group_top_k > out.groups || out.group_top_k * each < out.top_k)
    fail(settings.at("experts.group_top_k").mark,
         "a token finds its experts in experts.group_top_k groups; use at least " +
             std::to_string((out.top_k + each - 1) / each) + " and at most " +
             std::to_string(out.groups));
  return out;
}

// Refuses experts, multi-token prediction and latent attention outside the llama architecture.
void refuse_elsewhere(const Settings& settings, const Transformer& config,
                      const std::string& architecture) {
  if (architecture == "llama") return;
  if (config.experts.count > 0)
    fail(settings.at("experts.count").mark,
         "architecture " + architecture + " has no experts; use architecture: llama");
  if (config.mtp > 0)
    fail(settings.at("mtp_layers").mark, "architecture " + architecture +
                                             " has no multi-token prediction; use architecture: "
                                             "llama");
  if (config.is_latent())
    fail(settings.at("latent.kv_lora").mark,
         "architecture " + architecture + " has no latent attention; use architecture: llama");
}

Transformer config_of(const Settings& settings) {
  const auto get = [&](std::string_view path) {
    return static_cast<std::uint64_t>(settings.integer(path));
  };
  Transformer config;
  config.layers = get("layers");
  config.mtp = get("mtp_layers");
  config.hidden = get("hidden");
  config.heads = get("heads");
  config.kv_heads = positive(settings, "kv_heads", config.heads);
  check_heads(settings, config);
  config.head_width = positive(settings, "head_width", config.hidden / config.heads);
  config.ffn = positive(settings, "ffn", 4 * config.hidden);
  config.sequence = get("sequence");
  config.positions = positive(settings, "positions", config.sequence);
  config.vocabulary = get("vocabulary");
  config.gated = settings.boolean("gated_ffn");
  config.bias = settings.boolean("bias");
  config.qkv_bias = settings.given("qkv_bias") ? settings.boolean("qkv_bias") : config.bias;
  config.dropout = settings.given("dropout") ? settings.boolean("dropout") : config.bias;
  config.norm_bias = settings.text("norm") == "layernorm";
  config.tied = settings.boolean("tied_embeddings");
  config.learned_positions = settings.text("position_embeddings") == "learned";
  config.rotary = settings.text("position_embeddings") == "rope";
  if (config.positions < config.sequence)
    fail(settings.at("positions").mark,
         "positions has fewer rows than the sequence tokens; use at least " +
             std::to_string(config.sequence));
  config.experts = experts_of(settings, config.ffn);
  config.latent = {get("latent.kv_lora"), get("latent.q_lora"), get("latent.nope"),
                   get("latent.rope"), get("latent.value")};
  if (config.is_latent() && settings.given("qkv_bias") && config.qkv_bias)
    fail(settings.at("qkv_bias").mark,
         "the projections of latent attention have no biases; leave qkv_bias out");
  return config;
}

}  // namespace

std::span<const Key> transformer_keys() { return kTransformerKeys; }

double masked_flops(const Model& model) {
  if (!model.transformer || model.architecture == "bert") return 0;
  const Transformer& config = *model.transformer;
  return real(config.layers + config.mtp) * score_flops(config) / 2;
}

Model make_transformer(const Settings& settings, const Mark& mark) {
  const Transformer config = config_of(settings);
  Model model;
  model.name = settings.text("name");
  model.sequence = settings.small("sequence");
  model.vocabulary = config.vocabulary;
  model.architecture = settings.text("architecture");
  if (model.architecture.empty()) model.architecture = config.norm_bias ? "gpt2" : "llama";
  refuse_elsewhere(settings, config, model.architecture);
  model.transformer = config;
  Writer out(model, config, mark);
  if (model.architecture == "gpt2")
    write_gpt2(out, config);
  else if (model.architecture == "llama")
    write_llama(out, config);
  else
    write_bert(out, config, settings.integer("type_vocabulary"),
               settings.boolean("pretraining_heads"));
  return model;
}

}  // namespace ghostrank
