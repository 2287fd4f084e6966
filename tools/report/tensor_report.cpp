#include "tools/report/tensor_report.h"

#include <cstdio>

#include <nlohmann/json.hpp>

#include "tools/text/humane.h"

namespace ghostrank {

std::string tensor_line(const TensorUse& use) {
  return humane_percent(use.density()) + " of " + humane_bytes(static_cast<double>(use.bytes)) +
         " that ranks sum up is not zero, " + humane_bytes(static_cast<double>(use.nonzero_bytes)) +
         "; some rank has " + humane_percent(use.union_density) + " on average" +
         (use.last_density
              ? "; in the last iteration " + humane_percent(*use.last_density) + " is not zero"
              : "");
}

nlohmann::ordered_json tensors_json(const std::optional<TensorUse>& use) {
  if (!use) return nullptr;
  nlohmann::ordered_json json{{"calls", use->calls},
                              {"bytes", use->bytes},
                              {"nonzero_bytes", use->nonzero_bytes},
                              {"density", use->density()},
                              {"union_density_mean", use->union_density}};
  if (use->last_density) json["last_density"] = *use->last_density;
  return json;
}

std::string compression_line(const CompressionUse& use) {
  return use.method + ": a rank gives " + humane_bytes(static_cast<double>(use.payload_bytes)) +
         " a step, " + humane_percent(use.ratio_mean) + " of its gradients' elements";
}

std::string training_line(const TrainingUse& use) {
  if (use.loss.empty()) return use.task + ": nothing was played";
  char text[96];
  std::snprintf(text, sizeof text, ": loss %.4g after the first iteration, %.4g after ",
                use.loss.front(), use.loss.back());
  return use.task + text + humane_count(static_cast<double>(use.loss.size()), "iteration");
}

nlohmann::ordered_json training_json(const std::optional<TrainingUse>& use) {
  if (!use) return nullptr;
  return {{"task", use->task}, {"loss", use->loss}};
}

nlohmann::ordered_json compression_json(const std::optional<CompressionUse>& use) {
  if (!use) return nullptr;
  nlohmann::ordered_json json{{"method", use->method},
                              {"payload_bytes_per_rank", use->payload_bytes},
                              {"ratio_target", use->ratio_target},
                              {"ratio_mean", use->ratio_mean}};
  if (!use->ratios.empty()) json["ratios"] = use->ratios;
  return json;
}

}  // namespace ghostrank
