// How sparse a job's tensors are and how much compression leaves of them, as text and as JSON.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "emulator/result/result.h"

namespace ghostrank {

// "10 % of 1.5 GiB that ranks sum up is not zero, 154 MiB; some rank has 57 % on average"
std::string tensor_line(const TensorUse& use);

// "topk: a rank gives 1.9 MiB a step, 1 % of its gradients' elements"
std::string compression_line(const CompressionUse& use);

// "logistic: loss 0.693 after the first iteration, 0.31 after 301 iterations"
std::string training_line(const TrainingUse& use);

// Null when there is no compression, nothing is learned, or no description of the tensors.
nlohmann::ordered_json compression_json(const std::optional<CompressionUse>& use);
nlohmann::ordered_json training_json(const std::optional<TrainingUse>& use);
nlohmann::ordered_json tensors_json(const std::optional<TensorUse>& use);

}  // namespace ghostrank
