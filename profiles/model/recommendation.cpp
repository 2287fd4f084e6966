// Deep learning recommendation models (DLRM), described by the numbers in their papers' tables:
// embedding tables for sparse features, a bottom MLP for dense features, an interaction of both,
// and a top MLP.
//
//   dot     one number per pair of vectors: the tables' and the bottom MLP's output (DLRM, 2019)
//   dcn     layers of a low-rank cross network on all vectors side by side (DCN-V2, MLPerf from v3)
//   neumf   neural collaborative filtering (2017): the first `factors` numbers of two vectors are
//           multiplied, the others side by side go through the top MLP, and one product predicts
//           from both; no dense features and no bottom MLP
//
// Layers: the tables; each layer of the bottom MLP; the interaction; each layer of the top MLP.
// Tensors are in the order of TorchRec's DLRM. Forward FLOPs per sample: an MLP layer 2 in out, a
// cross layer 4 in rank, the dots 2 n n width with n vectors; lookups 0.
#include <array>

#include "profiles/model/max_width.h"
#include "profiles/model/model.h"
#include "profiles/real.h"

namespace ghostrank {
namespace {

constexpr double kMaxRows = 1e12, kMaxLookups = 1e5;
constexpr std::size_t kMaxTables = 10'000;

constexpr std::array kRecommendationKeys{
    Key{"kind", KeyType::choice, kRequired, "what is described", 0, 0, "recommendation"},
    Key{"name", KeyType::string, "model", "how reports call the model"},
    Key{"dense_features", KeyType::integer, kAbsent, "numbers of a sample besides its ids", 1,
        kMaxWidth}
        .unless("interaction", "neumf"),
    Key{"embedding_width", KeyType::integer, kRequired, "numbers in a row of every table", 1,
        kMaxWidth},
    Key{"tables", KeyType::integers, kRequired, "rows of each embedding table", 1, kMaxRows},
    Key{"lookups", KeyType::integers, kAbsent,
        "ids that a sample has for each table; without it one each", 1, kMaxLookups},
    Key{"bottom", KeyType::integers, kAbsent,
        "outputs of each product for the dense features; the last is the embeddings' width", 1,
        kMaxWidth}
        .unless("interaction", "neumf"),
    Key{"interaction", KeyType::choice, "dot", "of dense and sparse features", 0, 0,
        "dot dcn neumf"},
    Key{"factors", KeyType::integer, "64",
        "numbers of a table's row that are multiplied; the top MLP gets the others", 1, kMaxWidth}
        .where("interaction", "neumf"),
    Key{"cross_layers", KeyType::integer, "3", "layers of the cross network", 1, 1000}.where(
        "interaction", "dcn"),
    Key{"cross_rank", KeyType::integer, "512", "width of a layer's two products", 1, kMaxWidth}
        .where("interaction", "dcn"),
    Key{"top", KeyType::integers, kRequired, "outputs of each product after the interaction", 1,
        kMaxWidth}};
constexpr std::string_view kOfDense[] = {"dense_features", "bottom"};

using Widths = std::vector<std::uint64_t>;

Widths widths(const Settings& settings, std::string_view key) {
  Widths out;
  for (const std::int64_t one : settings.integers(key))
    out.push_back(static_cast<std::uint64_t>(one));
  if (out.empty())
    fail(settings.at(key).mark, std::string(key) + " is empty; list one number at least");
  return out;
}

std::vector<EmbeddingTable> tables_of(const Settings& settings) {
  const Widths rows = widths(settings, "tables");
  if (rows.size() > kMaxTables)
    fail(settings.at("tables").mark,
         "more than " + std::to_string(kMaxTables) + " tables; list fewer");
  Widths lookups(rows.size(), 1);
  if (settings.given("lookups")) lookups = widths(settings, "lookups");
  if (lookups.size() != rows.size())
    fail(settings.at("lookups").mark, "there are " + std::to_string(lookups.size()) +
                                          " lookups but " + std::to_string(rows.size()) +
                                          " tables; give one for each");
  std::vector<EmbeddingTable> out;
  for (std::size_t t = 0; t < rows.size(); ++t) out.push_back({rows[t], lookups[t]});
  return out;
}

// Appends one MLP layer per width, the first with `in` inputs; returns the last width.
std::uint64_t add_products(Model& model, const std::string& name, std::uint64_t in,
                           const Widths& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::uint64_t out = outputs[i];
    model.layers.push_back({name + "." + std::to_string(i),
                            {{"weight", out * in, out}, {"bias", out, 0}},
                            2 * real(in) * real(out),
                            0,
                            0});
    in = out;
  }
  return in;
}

// Returns the width of the interaction's output.
std::uint64_t add_interaction(Model& model, const Settings& settings) {
  const std::uint64_t width = model.recommendation->width;
  const std::uint64_t vectors = model.recommendation->tables.size() + 1, in = vectors * width;
  Layer layer{"interaction", {}, 0, 0, 0};
  if (settings.text("interaction") == "dot") {
    layer.forward_flops = 2 * real(vectors) * real(vectors) * real(width);
    model.layers.push_back(std::move(layer));
    return width + vectors * (vectors - 1) / 2;
  }
  const std::uint64_t layers = settings.integer("cross_layers");
  const std::uint64_t rank = settings.integer("cross_rank");
  const auto each = [&](const char* name, std::uint64_t numel, std::uint64_t rows) {
    for (std::uint64_t l = 0; l < layers; ++l)
      layer.parameters.push_back({name + std::to_string(l), numel, rows});
  };
  each("W.", in * rank, in);
  each("V.", rank * in, rank);
  each("bias.", in, 0);
  layer.forward_flops = 4 * real(in) * real(rank) * real(layers);
  model.layers.push_back(std::move(layer));
  return in;
}

// Features of two kinds, dense ones through an MLP of their own.
void add_dense_and_sparse(Model& model, const Settings& settings) {
  Recommendation& config = *model.recommendation;
  for (const std::string_view key : kOfDense)
    if (!settings.given(key))
      fail(settings.at("interaction").mark, std::string(key) + " is missing, which interaction " +
                                                settings.text("interaction") + " needs; add it");
  const Widths bottom = widths(settings, "bottom");
  if (bottom.back() != config.width)
    fail(settings.at("bottom").mark, "the bottom ends with " + std::to_string(bottom.back()) +
                                         " but embeddings are " + std::to_string(config.width) +
                                         " wide; both must be alike");
  config.bottom = bottom.size();
  add_products(model, "bottom", settings.integer("dense_features"), bottom);
  const std::uint64_t width = add_interaction(model, settings);
  add_products(model, "top", width, widths(settings, "top"));
}

// Neural collaborative filtering: one table of users, one of items.
void add_filtering(Model& model, const Settings& settings) {
  Recommendation& config = *model.recommendation;
  const std::uint64_t factors = settings.integer("factors");
  if (config.tables.size() != 2)
    fail(settings.at("tables").mark, "interaction neumf has two tables, not " +
                                         std::to_string(config.tables.size()) +
                                         "; list the numbers of users and of items");
  if (factors >= config.width)
    fail(settings.at("factors").mark, "factors " + std::to_string(factors) +
                                          " leave nothing for the top MLP of rows of " +
                                          std::to_string(config.width) + "; give fewer");
  config.dense_gradients = true;
  const std::uint64_t out =
      add_products(model, "top", 2 * (config.width - factors), widths(settings, "top"));
  add_products(model, "predict", factors + out, {1});
}

}  // namespace

std::span<const Key> recommendation_keys() { return kRecommendationKeys; }

Model make_recommendation(const Settings& settings, const Mark&) {
  Model model;
  model.name = settings.text("name");
  model.architecture = settings.text("interaction");
  Recommendation& config = model.recommendation.emplace();
  config.width = settings.integer("embedding_width");
  config.tables = tables_of(settings);
  Layer tables{"tables", {}, 0, 0, 0};
  for (std::size_t t = 0; t < config.tables.size(); ++t)
    tables.parameters.push_back(
        {"t" + std::to_string(t), config.tables[t].rows * config.width, config.tables[t].rows});
  model.layers.push_back(std::move(tables));
  model.architecture == "neumf" ? add_filtering(model, settings)
                                : add_dense_and_sparse(model, settings);
  return model;
}

}  // namespace ghostrank
