// The expected result of a tensor's calls that end with something else than a sum
// (Ends::expected()), as every rank should receive it.
//
// Such a call ends only after all ranks have begun it, and the calls of one tensor follow each
// other. So the first rank that compares its result computes what is expected, and the others find
// it. Threading: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank {

struct TensorResult {
  std::unique_ptr<Expected> reference;
  std::optional<std::uint64_t> call;  // salt of the call that ended with `result`
  std::vector<float> result;
};

}  // namespace ghostrank
