// Which library and algorithm play each collective.
//
// Threading: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "collectives/nccl/machine/machine.h"
#include "collectives/schedule.h"

namespace ghostrank {

inline std::array<std::string, kFuncs> for_every_function(const std::string& value) {
  std::array<std::string, kFuncs> values;
  values.fill(value);
  return values;
}

struct CollectiveSpec {
  std::string library = "generic";
  // "auto": the library's first row.
  std::array<std::string, kFuncs> algorithms = for_every_function("auto");
  int channels = 0;                    // 0: one per NIC of a node that the group uses
  std::uint64_t slice_bytes = 0;       // 0: one message per block
  std::uint32_t credits = 0;           // 0: unlimited
  std::string protocol = "auto";       // nccl: auto | Simple | LL | LL128
  int max_channels = 0;                // nccl; 0: the tuner's limit
  std::string node_template = "auto";  // nccl: a kind of node (collectives/nccl/machine/node.h)
  std::shared_ptr<const class Algorithms> own;  // plugins and files (profiles/algorithms)
  // For nccl: a graph dump instead of a kind of node; else null.
  std::shared_ptr<const NcclGraphs> graphs;
  std::shared_ptr<const NcclMachine> machine;  // nccl: a described node; null: the template
  std::optional<NcclCpu> node_cpu;             // nccl: in place of the template's
  Environment environment;                     // nccl: its variables (nccl/environment.h)
  InSwitch in_switch;                          // for schemes that sum in a switch
  AtServers at_servers;       // for schemes with servers: what the job says of them
  OmniReduceSpec omnireduce;  // for the scheme omnireduce
  std::map<std::string, std::map<Func, std::string>> groups;  // by kind of group, where it differs
  // The algorithm that plays `func` in a kind of group; null: the library has none of that name.
  const Algorithm* row(Func func, const std::string& group) const;
  const std::string& algorithm(Func func) const {
    return algorithms[static_cast<std::size_t>(func)];
  }
  std::string& algorithm(Func func) { return algorithms[static_cast<std::size_t>(func)]; }
  // The same, unless `groups` names another one for this kind of group.
  const std::string& algorithm(Func func, const std::string& group) const;
};

// The job key that names the algorithm: "collectives.allreduce".
std::string algorithm_key(Func func);

}  // namespace ghostrank
