// A model as training sees it: layers in forward order, each with its parameter tensors in
// registration order and its compute cost. A model file is a description of about a dozen keys,
// from which the tensors are generated.
//
//   kind: transformer     architecture gpt2 | llama | bert            (model/transformer.cpp)
//   kind: convolutional   architecture resnet | vgg | ...             (model/convolutional.cpp)
//   kind: recommendation  embedding tables between two MLPs           (model/recommendation.cpp)
//   kind: recurrent       LSTM language models                        (model/recurrent.cpp)
//   kind: layers          measured or plainly listed layers, or a CSV (model/layers.cpp)
//
// Backward runs through the layers in reverse. All parameters of a layer become ready when its
// backward ends, in reverse registration order.
//
// Units: parameters are elements; FLOPs are per sample (a multiply-add is 2); backward costs twice
// the forward. Threading: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/input/yaml.h"
#include "profiles/workload/program.h"

namespace ghostrank {

struct ParameterTensor {
  std::string name;  // within the layer: "attn.qkv.w"
  std::uint64_t numel = 0;
  std::uint64_t rows = 0;  // first dimension; 0: the tensor has only one
  std::uint64_t first_dimension() const { return rows > 0 ? rows : numel; }
};

struct Layer {
  std::string name;  // "h.3"
  std::vector<ParameterTensor> parameters;
  double forward_flops = 0;               // per sample; 0 when measured
  Picoseconds forward = 0, backward = 0;  // of the measured batch
  // Activations of one sample that the backward needs, for convolutional networks
  // (convolutional.h): elements in the parameters' type, and bytes in other types.
  double kept = 0, kept_bytes = 0;
};

struct Experts {                  // a mixture of experts instead of the feed-forward layer
  std::uint64_t count = 0;        // routed experts of a layer; 0: dense layers only
  std::uint64_t top_k = 0;        // experts that a token visits
  std::uint64_t groups = 1;       // groups of neighbouring experts
  std::uint64_t group_top_k = 1;  // most groups that a token's experts may lie in
  std::uint64_t ffn = 0;          // inner width of one expert
  std::uint64_t shared = 0;       // experts that every token also visits
  std::uint64_t every = 1;        // one layer in `every` has experts
  std::uint64_t first_dense = 0;  // layers before the first with experts
  bool router_bias = false;       // one bias per expert balances the routing without a loss
};

struct LatentAttention {      // keys and values from a low-rank latent (DeepSeek's MLA)
  std::uint64_t kv_lora = 0;  // width of the latent; 0: ordinary attention
  std::uint64_t q_lora = 0;   // width of the queries' latent; 0: they come from the hidden state
  std::uint64_t nope = 0, rope = 0, value = 0;  // per head: without, with rotary positions; value
};

// Sizes of a transformer, for planners that split it.
struct Transformer {
  std::uint64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_width = 0, ffn = 0,
                sequence = 0, positions = 0, vocabulary = 0;
  std::uint64_t mtp = 0;  // modules of multi-token prediction after the last layer
  bool gated = false, norm_bias = false, tied = false, learned_positions = false;
  bool bias = false;      // of linear layers other than the query, key and value projections
  bool qkv_bias = false;  // of these three
  bool dropout = false;   // after attention and feed-forward, and of scores in memory
  bool rotary = false;    // positions turn queries and keys
  Experts experts;
  LatentAttention latent;

  // A multi-token prediction module counts as a layer after the last, and is of the last one's
  // kind.
  bool has_experts(std::uint64_t layer) const {
    const std::uint64_t kind = layer < layers ? layer : layers - 1;
    return experts.count > 0 && kind >= experts.first_dense &&
           (kind - experts.first_dense) % experts.every == 0;
  }
  bool is_latent() const { return latent.kv_lora > 0; }
  // Widths of all heads together: the input of the output projection, and the keys.
  std::uint64_t query_width() const { return heads * head_width; }
  std::uint64_t key_width() const { return kv_heads * head_width; }
};

struct EmbeddingTable {
  std::uint64_t rows = 0;
  std::uint64_t lookups = 1;  // ids per sample; their rows are summed
};

// Sizes of a recommendation model. Its layers: the tables (no FLOPs), the bottom MLP's, the
// interaction, the top MLP's.
struct Recommendation {
  // Tables have dense gradients, too: every row has a gradient, though most are zero.
  bool dense_gradients = false;
  std::uint64_t width = 0;  // elements of a table's row
  std::vector<EmbeddingTable> tables;
  std::size_t bottom = 0;  // layers of the bottom MLP
};

struct LayerTime {
  Picoseconds forward = 0, backward = 0;
};

// Compute times of a rank in one step; the optimizer steps over all parameters.
struct StepTimes {
  std::vector<LayerTime> layers;
  Picoseconds optimizer = 0;
  // DDP's time to copy each gradient out of its bucket, in the order of the model's tensors; empty:
  // gradients stay there, or another time includes the copies.
  std::vector<Picoseconds> copies;
};

inline constexpr int kMostCaptureRanks = 65536;

// What `ghostrank profile capture` found besides the layers. Lists of times are in nanoseconds.
struct CaptureFacts {
  int ranks = 0;
  std::string backend, torch;
  double bucket_cap_mb = 25;
  double nic_rate_bps = 0;  // at which the run's all-reduces moved their bytes
  Picoseconds nic_latency = 0;
  std::vector<std::int64_t> step, held_out;  // steps that were recorded, and that were not
};

struct Model {
  std::string name;
  std::string kind, architecture;
  int sequence = 0;  // tokens per sample; 0: samples are not token sequences
  std::uint64_t vocabulary = 0;
  std::vector<Layer> layers;
  bool measured = false;          // durations are given; FLOPs are unknown
  bool find_unused = false;       // DDP looks for parameters without a gradient in every step
  Picoseconds optimizer = 0;      // measured
  std::optional<DataType> dtype;  // parameters' type in a measured model
  std::vector<std::size_t>
      buckets;  // measured: tensors in each of DDP's buckets, as they get ready
  std::vector<std::vector<StepTimes>> recorded;  // by captured rank and step; empty: medians only
  std::optional<CaptureFacts> capture;
  std::optional<Transformer> transformer;
  std::optional<Recommendation> recommendation;
  // Buffers that DDP broadcasts, not parameters: elements of floating-point ones (a batch norm's
  // running means and variances) and of integers (its batch counters).
  std::uint64_t running_statistics = 0, batch_counters = 0;
  // Part of `optimizer`: hosts' time before it, which a rank with a shard of it has as well.
  Picoseconds before_optimizer = 0;
  // Part of the first layer's forward: hosts' time before it, as for data.
  Picoseconds before_forward = 0;

  std::size_t tensors() const;
  std::uint64_t parameters() const;
  double forward_flops() const;  // per sample
};

inline constexpr std::uint64_t kMaxTensors = 1'000'000;

// Builds the model from a resolved description (profiles/load/locate.h).
Model make_model(const YamlValue& description);

// The table of keys of a kind, which `make_model` checks a description against; empty: there is no
// such kind.
std::span<const Key> model_keys(std::string_view kind);

// The builders behind make_model(), one per kind; `settings` must be checked against its table.
std::span<const Key> transformer_keys();
std::span<const Key> convolutional_keys();
std::span<const Key> recommendation_keys();
std::span<const Key> recurrent_keys();
std::span<const Key> layers_keys();
std::span<const Key> layer_keys();    // of one entry of `layers`
std::span<const Key> capture_keys();  // of `capture`
Model make_transformer(const Settings& settings, const Mark& mark);
Model make_convolutional(const Settings& settings, const Mark& mark);
Model make_recommendation(const Settings& settings, const Mark& mark);
Model make_recurrent(const Settings& settings, const Mark& mark);
Model make_layers(const Settings& settings, const Mark& mark);

// Those of forward_flops() that a causal mask makes unnecessary: half of attention's scores.
double masked_flops(const Model& model);

// Reads `layer_index, numel, forward_pass_ns, backward_pass_ns`, one row per layer, into the
// description of a `kind: layers` model.
YamlValue read_layer_csv(const std::string& text, const std::string& file, const std::string& name);

// "fp32", "float32", … -> DataType.
std::optional<DataType> parse_data_type(std::string_view text);

}  // namespace ghostrank
