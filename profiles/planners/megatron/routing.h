// How many rows of hidden states go to which experts if loads differ: the job gives a table of
// loads, or they are drawn with its seed.
//
// A load is relative to those of the other experts of its layer. If tokens are limited to groups of
// experts, or their rows are deduplicated, a sample of tokens is drawn (shared/expert_choice.h) and
// stands for all. All ranks of an expert-parallel group route alike, in every micro-batch: every
// expert gets its share of a rank's rows, in whole rows by largest remainder, so that none is lost.
// Nothing is dropped or padded. Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/input/yaml.h"
#include "profiles/planners/megatron/plan.h"

namespace ghostrank {

struct Lists {  // indices into Workload::counts; counts are elements
  std::uint32_t there = 0, back = 0;
  const std::uint32_t& list(bool home) const { return home ? back : there; }
};

struct ExpertRouting {              // of one layer
  std::vector<std::uint64_t> rows;  // by member: rows that its experts get from every member
  Lists rows_lists, weights_lists;  // of hidden states; of weights, one element per row
  // Deduplicated: between nodes; inside each node. A row carries the weights of all its token's
  // experts.
  Lists rail, rail_weights;
  std::vector<Lists> node, node_weights;
};

// By layer of the model, then by multi-token prediction module; a layer without experts has no
// rows. Empty: routing is even. Adds the lists to the workload. `nodes`: nodes that an
// expert-parallel group spans, with deduplicated dispatch. Throws Error(usage) if the job's loads
// do not fit the model.
std::vector<ExpertRouting> megatron_routing(const MegatronPlan& plan, int nodes,
                                            Workload& workload);

// Rows that a rank sends to each of `shares` equal shares of the experts, if routing is even and a
// token's row goes to a share only once; rounded up.
std::uint64_t rows_to_each(const MegatronPlan& plan, int shares);

// Splits `total` into whole numbers in proportion to `shares`, by largest remainder.
std::vector<std::uint64_t> apportioned(std::uint64_t total, const std::vector<double>& shares);

// The job's `parallel.expert_load`: one list of loads for all layers, or a list of such lists.
std::vector<std::vector<double>> read_expert_load(const YamlValue* value);

}  // namespace ghostrank
