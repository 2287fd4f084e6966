// Edits profiles of real runs: rescales them to another number of ranks, or removes names.
//
// Only what follows by arithmetic is rescaled. Data-parallel ranks all compute the same on samples
// of their own, so more ranks play what the captured ones did; a gradient keeps its size, a shard
// is the whole over the number of ranks. All other parallelism changes what a rank computes, and is
// refused by name.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiles/input/yaml.h"
#include "profiles/workload/program.h"

namespace ghostrank {

struct Rescale {
  int ranks = 0;                   // 0: as before
  std::optional<double> rate_bps;  // of a NIC
};

// `model`: a capture's description (schema ghostrank/model/1, kind layers). If `to` changes the
// ranks, removes the measured step times. Appends to `comments` what was measured, computed and
// assumed. Throws Error(usage).
void rescale_model(YamlValue& model, const Rescale& to, std::vector<std::string>& comments);

// Sets the ranks of a `capture` and removes its measured times of steps and buckets.
void put_ranks(YamlValue& capture, int ranks);

// Sets `key` of the map to a scalar; replaces the value that it has.
void put_scalar(YamlValue& map, const char* key, const std::string& text, bool quoted = false);

// Returns `from` for `to.ranks` ranks. Throws Error(usage) unless every group of `from` has all
// ranks and `to.rate_bps` is empty: programs name no NIC.
Workload rescaled_program(const Workload& from, const Rescale& to,
                          std::vector<std::string>& comments);

// Replaces names that a person chose: layers become layer0, layer1, ..., the model `model`.
void anonymise_model(YamlValue& model);

// Labels become op1, op2, ..., roles role0, role1, ..., streams stream0, stream1, ...; groups keep
// the names of kinds of parallelism, others become group0, group1, ...
void anonymise_program(Workload& program);

}  // namespace ghostrank
