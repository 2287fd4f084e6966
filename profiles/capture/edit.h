// Profiles of real runs, changed: for another number of ranks, or without names.
//
// Rescaled is what is arithmetic. Data-parallel ranks all compute the same on samples of their own,
// so more ranks play what the captured ones did; a gradient keeps its size, a shard is the whole
// over the number of ranks. Everything else changes what a rank computes, and is refused by name.
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

// `model`: a capture's description (schema ghostrank/model/1, kind layers). Its held-out steps go,
// because they are of the captured run. `comments` gets what was measured, computed and assumed.
// Throws Error(usage).
void rescale_model(YamlValue& model, const Rescale& to, std::vector<std::string>& comments);

// The ranks of a `capture`; what was measured of its steps goes.
void put_ranks(YamlValue& capture, int ranks);

// A scalar of a map, new or in place of what it has under that key.
void put_scalar(YamlValue& map, const char* key, const std::string& text, bool quoted = false);

// Programs whose only group has all ranks. `to.rate_bps` must be empty: programs name no NIC.
Workload rescaled_program(const Workload& from, const Rescale& to,
                          std::vector<std::string>& comments);

// Without what a person named: layers become layer0, layer1, ..., the model `model`.
void anonymise_model(YamlValue& model);

// Labels become op1, op2, ..., roles role0, role1, ..., streams stream0, stream1, ...; groups keep
// the names of kinds of parallelism, others become group0, group1, ...
void anonymise_program(Workload& program);

}  // namespace ghostrank
