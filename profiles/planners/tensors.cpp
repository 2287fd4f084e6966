#include "profiles/planners/tensors.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/input/idle.h"
#include "profiles/input/named_text.h"
#include "profiles/input/quantity.h"
#include "profiles/input/yaml.h"

namespace ghostrank {
namespace {

// By number of ranks, the share of blocks that are nonzero on exactly so many.
Sparsity measured_in(const YamlValue* list, const Mark& mark, std::uint64_t block) {
  constexpr const char* kExample = "shares: [0.6, 0.2, 0.2]";
  if (!list || !list->is_list() || list->children.size() < 2)
    fail(list ? list->mark : mark,
         std::string("a file of measured overlaps has the shares of blocks that are nonzero on "
                     "exactly 0, 1, 2 and so on up to all ranks, as in  ") +
             kExample);
  std::vector<double> shares;
  const auto ranks = static_cast<double>(list->children.size() - 1);
  double sum = 0, density = 0;
  for (const YamlValue& item : list->children) {
    const auto share = item.is_scalar() ? parse_number(item.text) : std::nullopt;
    if (!share || *share < 0 || *share > 1)
      fail(item.mark, description(item) + " is no share; write a number from 0 to 1");
    density += *share * static_cast<double>(shares.size()) / ranks;
    sum += *share;
    shares.push_back(*share);
  }
  if (std::abs(sum - 1) > 1e-6)
    fail(list->mark, "the shares sum to " + number_text(sum) + "; they must sum to 1");
  return {density, block, Overlap::measured,
          std::make_shared<const std::vector<double>>(std::move(shares))};
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

MeasuredOverlaps measured_overlaps(const YamlValue& root, std::uint64_t block) {
  const YamlValue *shares = nullptr, *tensors = nullptr;
  for (const YamlValue& entry : root.children) {
    if (entry.key == "shares") {
      shares = &entry;
    } else if (entry.key == "tensors") {
      tensors = &entry;
    } else if (root.is_map() && (entry.key != "schema" || entry.text != "ghostrank/overlap/1")) {
      fail(entry.key_mark, quote(entry.key) +
                               " has no place in a file of measured overlaps; it has shares, and "
                               "may have schema: ghostrank/overlap/1 and tensors");
    }
  }
  MeasuredOverlaps out{measured_in(shares, root.mark, block), {}};
  if (!tensors) return out;
  if (!tensors->is_map() || tensors->children.empty())
    fail(tensors->mark, "tensors is " + description(*tensors) +
                            "; write shares by tensor or pattern, as in  fc.*: [0.6, 0.2, 0.2]");
  for (const YamlValue& entry : tensors->children) {
    out.by_tensor.push_back({entry.key, measured_in(&entry, entry.mark, block)});
    const std::size_t ranks = out.all.measured->size() - 1;
    if (entry.children.size() != ranks + 1)
      fail(entry.mark, quote(entry.key) + " has shares of " +
                           std::to_string(entry.children.size() - 1) + " ranks and the file of " +
                           std::to_string(ranks) + "; they must be of as many");
  }
  return out;
}

void read_tensors(const Settings& in, const std::string& near, JobSpec& spec) {
  const Setting& overlap = in.at("tensors.overlap");
  const auto block = static_cast<std::uint64_t>(in.integer("tensors.block"));
  for (const Overlap known : {Overlap::random, Overlap::all, Overlap::none}) {
    if (overlap.text != name_of(known)) continue;
    const double density = in.number("tensors.density");
    const bool changes = in.number("tensors.last_density") > 0;
    if (changes && density == 0)
      fail(in.at("tensors.last_density").mark,
           "tensors.last_density: from a density of 0 no factor leads to it; set "
           "tensors.density above 0");
    if (density < 1 || known == Overlap::none || changes)
      spec.tensors = Sparsity{density, block, known};
    return;
  }
  const std::optional<NamedText> file = named_text(overlap.text, overlap.key->path, near);
  if (!file)
    fail(overlap.mark, "tensors.overlap is " + quote(overlap.text) +
                           "; write random, all, none, or the path of a file of measured overlaps "
                           "(there is no such file)");
  for (const char* key : {"tensors.density", "tensors.last_density"})
    if (is_changed(in.at(key)))
      fail(in.at(key).mark, std::string(key) + " follows from the measured overlaps of " +
                                overlap.text + "; leave it out");
  MeasuredOverlaps measured = measured_overlaps(
      parse_yaml(file->text, std::make_shared<const Source>(Source{file->name, file->name, true})),
      block);
  spec.tensors = std::move(measured.all);
  spec.tensor_rules = std::move(measured.by_tensor);
}

void check_tensors(const JobSpec& spec, const Workload& workload) {
  if (!spec.tensors) return;
  if (spec.zipf && spec.last_density > 0)
    throw Error(spec.source_of("tensors.last_density") +
                ": tensors.last_density: with tensors.embeddings: zipf the ids decide what is "
                "zero; leave one of them out");
  if (spec.zipf && spec.compression)
    throw Error(spec.source_of("tensors.embeddings") +
                ": tensors.embeddings: zipf is not for compressed gradients; leave out it or "
                "compression");
  if (spec.zipf && workload.layouts.empty())
    throw Error(spec.source_of("tensors.embeddings") +
                ": tensors.embeddings: no gradient of this job has rows that ids choose: a program "
                "has no tables, and a table that the output layer shares has no zero rows; leave "
                "it out, or use a model with tied_embeddings: false");
  if (!spec.tensor_rules.empty() && workload.layouts.empty())
    throw Error(spec.source_of("tensors.overlap") +
                ": tensors.overlap: overlaps by tensor are for framework: ddp without "
                "compression; name a file without `tensors`, which has those of all together");
  if (!spec.tensor_rules.empty() && spec.zipf)
    throw Error(spec.source_of("tensors.embeddings") +
                ": tensors.embeddings: zipf and overlaps by tensor both say where tables are "
                "zero; leave one of them out");
  const std::string& source = spec.source_of("tensors.density");
  const std::set<std::uint16_t> kinds = kinds_with_tensors(workload);
  if (kinds.empty())
    throw Error(source +
                ": no collective of this job names a tensor whose density could be set; leave "
                "tensors out, or name some in the program, as in  allreduce dp float32 1000~1");
  for (const Group& group : workload.groups) {
    if (!kinds.contains(group.kind)) continue;
    Sparsity fullest = *spec.tensors;
    fullest.density = std::max(fullest.density, spec.last_density);
    const std::string why = fullest.refuses(static_cast<int>(group.members.size()));
    if (why.empty()) continue;
    if (spec.tensors->overlap == Overlap::measured)
      throw Error(spec.source_of("tensors.overlap") + ": tensors.overlap: " + why);
    throw Error(source + ": tensors.overlap is none, but at density " +
                number_text(fullest.density) + " " + why);
  }
}

}  // namespace ghostrank
