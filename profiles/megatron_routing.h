// How many rows of hidden states go to which experts, where that is not the same for all: a table
// of loads that the job gives, or loads drawn from its seed.
//
// A load is relative to those of the other experts of its layer. Every rank of an expert-parallel
// group routes alike, and does so in every micro-batch: of its rows an expert gets its share, whole
// rows by largest remainder, all rows together. Nothing is dropped or padded. Threading: pure
// functions.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/megatron_plan.h"
#include "profiles/yaml.h"

namespace ghostrank {

struct Routing {                      // of one layer
  std::vector<std::uint64_t> rows;    // that each member of the group gets from every member
  std::uint32_t there = 0, back = 0;  // lists in Workload::counts, in elements: rows to experts
  std::uint32_t weights_there = 0, weights_back = 0;  // likewise, one element per row
};

// By layer of the model, then by module of multi-token prediction; those without experts have no
// rows. Empty: routing is even. Adds the lists
// to the workload.
std::vector<Routing> megatron_routing(const MegatronPlan& plan, Workload& workload);

// `total` in whole numbers that are as `shares` are to each other, by largest remainder.
std::vector<std::uint64_t> apportioned(std::uint64_t total, const std::vector<double>& shares);

// The job's `parallel.expert_load`: one list of loads for all layers, or a list of such lists.
std::vector<std::vector<double>> read_expert_load(const YamlValue* value);

}  // namespace ghostrank
