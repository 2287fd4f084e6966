// How many rows of hidden states go to which experts, where that is not the same for all: a table
// of loads that the job gives, or loads drawn from its seed.
//
// A load is relative to those of the other experts of its layer. Where tokens are limited to groups
// of experts, or their rows deduplicated, so many tokens are drawn (expert_choice.h) and stand for
// all. Every rank of an expert-parallel
// group routes alike, and does so in every micro-batch: of its rows an expert gets its share, whole
// rows by largest remainder, all rows together. Nothing is dropped or padded. Threading: pure
// functions.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/input/yaml.h"
#include "profiles/planners/megatron/plan.h"

namespace ghostrank {

struct Lists {  // in Workload::counts, in elements
  std::uint32_t there = 0, back = 0;
  const std::uint32_t& way(bool home) const { return home ? back : there; }
};

struct Routing {                    // of one layer
  std::vector<std::uint64_t> rows;  // that each member's experts get from every member
  Lists rows_lists, weights_lists;  // of hidden states; one element per row
  // Deduplicated: between nodes; inside each node. A row has the weights of a token's experts.
  Lists rail, rail_weights;
  std::vector<Lists> node, node_weights;
};

// By layer of the model, then by module of multi-token prediction; those without experts have no
// rows. Empty: routing is even. Adds the lists
// to the workload.
// `nodes`: that an expert-parallel group lies on, where dispatch is deduplicated.
std::vector<Routing> megatron_routing(const MegatronPlan& plan, int nodes, Workload& workload);

// Rows that a rank sends to each of so many equal shares of the experts when routing is even and a
// token's row goes to a share once; rounded up.
std::uint64_t rows_to_each(const MegatronPlan& plan, int shares);

// `total` in whole numbers that are as `shares` are to each other, by largest remainder.
std::vector<std::uint64_t> apportioned(std::uint64_t total, const std::vector<double>& shares);

// The job's `parallel.expert_load`: one list of loads for all layers, or a list of such lists.
std::vector<std::vector<double>> read_expert_load(const YamlValue* value);

}  // namespace ghostrank
