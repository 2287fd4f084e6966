#include "profiles/planners/kfac/factors.h"

namespace ghostrank {

std::vector<Factor> factors_of(const Model& model, std::span<const Module> modules,
                               int samples_per_rank) {
  std::vector<Factor> out;
  if (model.architecture == "gpt2" || model.architecture == "lstm") return out;
  for (std::size_t m = 0; m < modules.size(); ++m) {
    const Module& module = modules[m];
    if (module.outputs == 0) continue;
    const double rows = samples_per_rank * module.positions;
    out.push_back({"A of " + module.name, m, module.inputs + (module.bias ? 1 : 0), rows});
    out.push_back({"G of " + module.name, m, module.outputs, rows});
  }
  return out;
}

}  // namespace ghostrank
