#include "profiles/capture/edit.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/model/model.h"
#include "profiles/workload/workload_check.h"

namespace ghostrank {
namespace {

void drop(YamlValue& map, std::string_view key) {
  std::erase_if(map.children, [&](const YamlValue& child) { return child.key == key; });
}

// What was measured with other ranks, or over another network, is no time of this profile's run.
void drop_times(YamlValue& capture) {
  for (const char* key : {"held_out_ns", "step_ns", "bucket_ns"}) drop(capture, key);
}

// Elements of a call among `to` ranks, from those of `op`, a call among `from` ranks.
std::uint64_t rescaled_count(const Op& op, std::uint64_t from, std::uint64_t to) {
  switch (op.func) {
    case Func::all_reduce:
    case Func::broadcast:
    case Func::reduce:
    case Func::barrier:
      return op.count;
    case Func::all_gather:
    case Func::reduce_scatter:
      return (op.count * from + to - 1) / to;
    default:
      throw Error(std::string(name_of(op.func)) +
                  ": what a rank exchanges with more ranks is not arithmetic; capture such a run");
  }
}

// Refuses groups of some ranks only: parallelism that splits the model changes what ranks compute.
void check_groups(const Workload& program) {
  for (const Group& group : program.groups)
    if (static_cast<int>(group.members.size()) != program.ranks)
      throw Error("group " + quote(program.group_names[group.kind]) + " has " +
                  std::to_string(group.members.size()) + " of " + std::to_string(program.ranks) +
                  " ranks: tensor, pipeline, context and expert parallelism change the shapes of "
                  "kernels, and sub-groups of data parallelism their number; capture such a run");
  if (!program.counts.empty() || !program.compressed.empty() || program.servers > 0)
    throw Error(
        "the programs have calls of uneven sizes, compressed tensors or servers; these do not "
        "follow from the number of ranks: capture such a run");
}

// Roles that no rank plays: those of ranks that fewer ranks do not have.
void drop_idle_roles(Workload& program) {
  std::vector<bool> plays(program.roles.size());
  for (const std::uint16_t role : program.role_of) plays[role] = true;
  std::vector<std::uint16_t> number(program.roles.size());
  std::vector<Role> roles;
  for (std::size_t r = 0; r < plays.size(); ++r) {
    if (!plays[r]) continue;
    number[r] = static_cast<std::uint16_t>(roles.size());
    roles.push_back(std::move(program.roles[r]));
  }
  program.roles = std::move(roles);
  for (std::uint16_t& role : program.role_of) role = number[role];
}

}  // namespace

void put_scalar(YamlValue& map, const char* key, const std::string& text, bool quoted) {
  YamlValue* value = map.find(key);
  if (!value) {
    value = &map.children.emplace_back();
    value->key = key;
  }
  value->kind = YamlValue::Kind::scalar;
  value->text = text;
  value->quoted = quoted;
  value->children.clear();
}

void put_ranks(YamlValue& capture, int ranks) {
  if (ranks > kMostCaptureRanks)
    throw Error("--dp: a captured model has at most " + std::to_string(kMostCaptureRanks) +
                " ranks, not " + std::to_string(ranks));
  put_scalar(capture, "ranks", std::to_string(ranks));
  drop_times(capture);
}

void rescale_model(YamlValue& model, const Rescale& to, std::vector<std::string>& comments) {
  YamlValue* capture = model.find("capture");
  if (!capture || !capture->is_map())
    fail(model.mark,
         "there is no `capture` in it; rescale what 'profile capture' wrote, or give "
         "the job more nodes: a plain model has no number of ranks");
  const YamlValue *ranks = capture->find("ranks"), *recorded = model.find("recorded_ns");
  const std::string before = ranks ? ranks->text : "?";
  const std::string measured = recorded ? std::to_string(recorded->children.size()) : "no";
  if (to.ranks > 0) {
    put_ranks(*capture, to.ranks);
    comments.push_back("measured: delays of " + measured + " of " + before + " ranks");
    comments.push_back("arithmetic: " + std::to_string(to.ranks) +
                       " ranks with gradients of the same sizes");
    comments.emplace_back(
        "assumed: more ranks compute as those did, with their steps shifted against each other");
  }
  if (to.rate_bps) {
    put_scalar(*capture, "nic_rate", rate_text(*to.rate_bps));
    drop_times(*capture);
    comments.emplace_back("assumed: the network's rate, as given");
  }
}

Workload rescaled_program(const Workload& from, const Rescale& to,
                          std::vector<std::string>& comments) {
  if (to.rate_bps) throw Error("--nic: programs name no NIC; give the job another cluster.nic");
  check_groups(from);
  Workload out = from;
  out.ranks = to.ranks;
  out.role_of.clear();
  for (const WorldRank r : each<WorldRank>(to.ranks))
    out.role_of.push_back(from.role_of[WorldRank(r.value() % from.role_of.size())]);
  drop_idle_roles(out);
  for (Group& group : out.groups) {
    group.members.clear();
    for (const WorldRank r : each<WorldRank>(to.ranks)) group.members.push_back(r);
  }
  const auto before = static_cast<std::uint64_t>(from.ranks),
             after = static_cast<std::uint64_t>(to.ranks);
  for (Role& role : out.roles)
    for (Program& program : role.iterations)
      for (OpList& stream : program.streams)
        stream = stream.changed([&](Op op) {
          if (op.kind == Op::Kind::send || op.kind == Op::Kind::recv)
            throw Error(
                "the programs send messages between ranks, which do not follow from the "
                "number of ranks; capture such a run");
          if (op.kind != Op::Kind::collective) return op;
          if ((op.func == Func::broadcast || op.func == Func::reduce) && op.peer >= to.ranks)
            throw Error(std::string(name_of(op.func)) + " with root " + std::to_string(op.peer) +
                        ": " + std::to_string(to.ranks) +
                        " ranks have no such rank; rescale to more, or capture such a run");
          op.count = rescaled_count(op, before, after);
          return op;
        });
  const double grown = static_cast<double>(after) / static_cast<double>(before);
  out.samples_per_iteration *= grown;
  out.flops_per_iteration *= grown;
  check_workload(out);
  comments.push_back("measured: what " + std::to_string(from.ranks) + " ranks did");
  comments.push_back("arithmetic: " + std::to_string(to.ranks) +
                     " ranks; gradients keep their sizes, shards are the whole over the ranks");
  comments.emplace_back("assumed: more ranks compute as those did");
  return out;
}

void anonymise_model(YamlValue& model) {
  put_scalar(model, "name", "model");
  YamlValue* layers = model.find("layers");
  if (!layers || !layers->is_list())
    fail(model.mark, "the model lists no layers; a described model has no names but its own");
  for (std::size_t i = 0; i < layers->children.size(); ++i)
    if (layers->children[i].find("name"))
      put_scalar(layers->children[i], "name", "layer" + std::to_string(i));
}

void anonymise_program(Workload& program) {
  constexpr std::array<std::string_view, 8> kKinds{"dp", "tp",   "pp",    "cp",
                                                   "ep", "fsdp", "world", "all"};
  for (std::size_t g = 0; g < program.group_names.size(); ++g)
    if (std::find(kKinds.begin(), kKinds.end(), program.group_names[g]) == kKinds.end())
      program.group_names[g] = "group" + std::to_string(g);
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    program.roles[r].name = "role" + std::to_string(r);
    for (Program& one : program.roles[r].iterations) {
      for (std::size_t i = 0; i < one.labels.size(); ++i)
        one.labels[i] = one.labels[i].empty() ? "" : "op" + std::to_string(i);
      one.numerals.clear();
      for (std::size_t s = 0; s < one.stream_names.size(); ++s)
        one.stream_names[s] = "stream" + std::to_string(s);
    }
  }
}

}  // namespace ghostrank
