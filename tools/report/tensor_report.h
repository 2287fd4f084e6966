// How sparse a job's tensors are, and what compression leaves of them, in words and as JSON.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "emulator/result/result.h"

namespace ghostrank {

// "10 % of 1.5 GiB that ranks sum up is not zero; some rank has 57 %"
std::string tensor_line(const TensorUse& use);

// "topk: a rank sends 1.9 MiB, 1 % of its gradients' elements"
std::string compression_line(const CompressionUse& use);

nlohmann::ordered_json compression_json(const std::optional<CompressionUse>& use);  // likewise
nlohmann::ordered_json tensors_json(const std::optional<TensorUse>& use);           // null: none

}  // namespace ghostrank
