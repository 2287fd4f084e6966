#include "profiles/planners/tensors.h"

#include <algorithm>
#include <set>

#include "profiles/error.h"
#include "profiles/input/quantity.h"

namespace ghostrank {
namespace {

Overlap overlap_named(const std::string& name) {
  for (const Overlap overlap : {Overlap::all, Overlap::none})
    if (name == name_of(overlap)) return overlap;
  return Overlap::random;
}

// Kinds of group in which a collective names a tensor.
std::set<std::uint16_t> kinds_with_tensors(const Workload& workload) {
  std::set<std::uint16_t> kinds;
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations)
      for (const OpList& stream : program.streams)
        for (const Op& op : stream)
          if (op.kind == Op::Kind::collective && op.tensor != 0) kinds.insert(op.group);
  return kinds;
}

}  // namespace

std::optional<Sparsity> read_tensors(const Settings& in) {
  const Sparsity said{in.number("tensors.density"),
                      static_cast<std::uint64_t>(in.integer("tensors.block")),
                      overlap_named(in.text("tensors.overlap"))};
  if (said.density == 1 && said.overlap != Overlap::none) return std::nullopt;
  return said;
}

void check_tensors(const JobSpec& spec, const Workload& workload) {
  if (!spec.tensors) return;
  const std::string& place = spec.source_of("tensors.density");
  const std::set<std::uint16_t> kinds = kinds_with_tensors(workload);
  if (kinds.empty())
    throw Error(place +
                ": no collective of this job names a tensor whose density could be set; leave "
                "tensors out, or name some in the program, as in  allreduce dp float32 1000~1");
  for (const Group& group : workload.groups) {
    if (!kinds.contains(group.kind)) continue;
    const std::string why = spec.tensors->refuses(static_cast<int>(group.members.size()));
    if (!why.empty())
      throw Error(place + ": tensors.overlap is none, but at density " +
                  number_text(spec.tensors->density) + " " + why);
  }
}

}  // namespace ghostrank
