// What a model is made of, as text and as JSON: runs of layers that are alike, with their tensors,
// parameters and cost; and a model's description as YAML.
//
// Units: parameters are elements, FLOPs per sample. Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/input/yaml.h"
#include "profiles/model/model.h"
#include "tools/text/table.h"

namespace ghostrank {

struct LayerRun {  // layers one after another that are alike but for their names
  std::string first, last;
  std::size_t layers = 0, tensors = 0;    // tensors of each
  std::uint64_t parameters = 0;           // of each
  double forward_flops = 0;               // of each; 0 when measured
  Picoseconds forward = 0, backward = 0;  // of each; measured
};
std::vector<LayerRun> layer_runs(const Model& model);

std::string model_text(const Model& model, const Paint& paint);
std::string model_json(const Model& model);  // schema ghostrank/model-facts/1

// A mapping as YAML, a line for every key; what is inside stands on its line.
std::string yaml_text(const YamlValue& map);

}  // namespace ghostrank
