// What an evaluator of an artifact asks: the program that played a run, and the machines.
//
// Threading: pure.
#pragma once

#include <nlohmann/json.hpp>

#include "emulator/result/result.h"

namespace ghostrank {

nlohmann::ordered_json build_json(const BuildFacts& build);

// Adds cpu, kernel and libfabric to a host's object; null: not known.
void add_machine(nlohmann::ordered_json& json, const HostReport& host);

}  // namespace ghostrank
