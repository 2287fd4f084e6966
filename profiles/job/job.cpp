#include "profiles/job/job.h"

#include "collectives/server_placement.h"

namespace ghostrank {

std::string_view name_of(Framework framework) {
  for (const auto& [known, word] : kFrameworks)
    if (known == framework) return word;
  return "";
}

std::string_view name_of(FabricKind kind) {
  for (const auto& [known, word] : kFabricKinds)
    if (known == kind) return word;
  return "";
}

std::string_view name_of(SwitchTarget target) {
  for (const auto& [known, word] : kSwitchTargets)
    if (known == target) return word;
  return "";
}

int ServerSpec::places(int rank_nodes) const {
  return count + (placement && placement->everywhere ? rank_nodes : 0);
}

int ServerSpec::beside(int rank_nodes) const {
  if (placement && placement->everywhere) return rank_nodes;
  return colocated ? count : 0;
}

std::string algorithm_key(Func func) { return "collectives." + std::string(name_of(func)); }

const std::string& CollectiveSpec::algorithm(Func func, const std::string& group) const {
  const auto of_group = groups.find(group);
  if (of_group == groups.end()) return algorithm(func);
  const auto named = of_group->second.find(func);
  return named == of_group->second.end() ? algorithm(func) : named->second;
}

const std::string& JobSpec::source_of(const std::string& key) const {
  const auto at = sources.find(key);
  return at == sources.end() ? file : at->second;
}

}  // namespace ghostrank
