// Describes a model as text and as JSON: runs of layers that are alike, with their tensors,
// parameters and cost; and writes a model's description as YAML.
//
// Units: parameters are elements, FLOPs per sample. Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/input/yaml.h"
#include "profiles/model/model.h"
#include "tools/text/table.h"

namespace ghostrank {

struct LayerRun {  // consecutive layers that differ only in name
  std::string first, last;
  std::size_t layers = 0, tensors = 0;    // tensors of each
  std::uint64_t parameters = 0;           // of each
  double forward_flops = 0;               // of each; 0 when measured
  Picoseconds forward = 0, backward = 0;  // of each; measured
};
std::vector<LayerRun> layer_runs(const Model& model);

std::string model_text(const Model& model, const Paint& paint);
std::string model_json(const Model& model);  // schema ghostrank/model-facts/1

// A mapping as YAML: one line per key with its value in flow style, but one line per item for a
// list of mappings or of lists.
std::string yaml_text(const YamlValue& map);

}  // namespace ghostrank
