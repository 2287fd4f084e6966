#include "profiles/planners/tensors.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

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

namespace {

std::vector<GradientLaw::Bin> read_histogram(const Setting& setting, const std::string& path) {
  std::ifstream in(path);
  if (!in) fail(setting.mark, "tensors.distribution: cannot read " + path + "; name a CSV file");
  std::vector<GradientLaw::Bin> bins;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    GradientLaw::Bin bin;
    char comma = 0, more = 0;
    std::istringstream text(line);
    if (number == 1 && line.starts_with("magnitude")) continue;
    if (line.empty()) continue;
    if (!(text >> bin.up_to >> comma >> bin.count) || comma != ',' || (text >> more))
      throw Error(path + ":" + std::to_string(number) + ": " + quote(line) +
                  " is no bin; write MAGNITUDE,COUNT, as 0.001,250");
    bins.push_back(bin);
  }
  return bins;
}

}  // namespace

GradientLaw read_gradients(const Settings& in, const std::string& folder) {
  const Setting& said = in.at("tensors.distribution");
  const std::size_t space = said.text.find(' ');
  const std::string name = said.text.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : said.text.substr(space + 1);
  GradientLaw law;
  law.scale = in.number("tensors.scale");
  const bool shaped = name == "gamma" || name == "pareto";
  if (name == "gaussian") law.kind = GradientLaw::Kind::gaussian;
  if (name == "gamma") law.kind = GradientLaw::Kind::gamma;
  if (name == "pareto") law.kind = GradientLaw::Kind::pareto;
  if (name == "measured") {
    law.kind = GradientLaw::Kind::measured;
    law.bins = read_histogram(said, rest.starts_with('/') ? rest : folder + "/" + rest);
  }
  const std::optional<double> shape = parse_number(rest);
  if (shaped && shape) law.shape = *shape;
  const bool known = shaped                                    ? shape.has_value()
                     : name == "measured"                      ? !rest.empty()
                     : name == "laplace" || name == "gaussian" ? rest.empty()
                                                               : false;
  if (!known)
    fail(said.mark, "tensors.distribution is " + quote(said.text) +
                        "; write laplace, gaussian, gamma SHAPE, pareto SHAPE or measured FILE");
  const std::string wrong = law.why_wrong();
  if (!wrong.empty()) fail(said.mark, "tensors.distribution: " + wrong);
  return law;
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
