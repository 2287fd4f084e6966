#include "profiles/trace/communicators.h"

#include <algorithm>

#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::uint16_t kNoKind = 0xffff;
// Name of communicators that are only numbered, which does not tell one kind from another.
constexpr const char* kNumbered = "group";

// The common part of names of one kind: "pp" of "pp_0" and "pp_1", and of "pp.0".
std::string stem(std::string name) {
  for (char& c : name)
    if (static_cast<unsigned char>(c) <= ' ' || c == '\\') c = '_';
  while (!name.empty() &&
         (std::isdigit(static_cast<unsigned char>(name.back())) || name.back() == '_'))
    name.pop_back();
  if (name.ends_with('.')) name.pop_back();  // "dp.0", as Chakra exports write it
  return name.empty() ? kNumbered : name.substr(0, 64);
}

}  // namespace

std::uint16_t Communicators::add_kind(const std::string& name, Workload& out) {
  if (out.group_names.size() + 1 >= kNoKind)
    throw Error("the trace has more than 65,534 communicators that no other is like");
  std::string unique = name;
  for (int i = 2;
       std::find(out.group_names.begin(), out.group_names.end(), unique) != out.group_names.end();
       ++i)
    unique = name + "." + std::to_string(i);
  out.group_names.push_back(unique);
  taken_.emplace_back(out.ranks);
  size_.push_back(0);
  return static_cast<std::uint16_t>(out.group_names.size() - 1);
}

std::uint16_t Communicators::first_fit(const std::string& name,
                                       const std::vector<WorldRank>& members, bool like) const {
  const auto fits = [&](std::uint16_t kind) {
    return size_[kind] == members.size() &&
           std::none_of(members.begin(), members.end(),
                        [&](WorldRank rank) { return taken_[kind][rank]; });
  };
  for (auto at = kinds_of_.lower_bound({name, 0}); at != kinds_of_.end() && at->first == name; ++at)
    if (fits(at->second)) return at->second;
  for (std::uint16_t kind = 0; !like && kind < taken_.size(); ++kind)
    if (fits(kind)) return kind;
  return kNoKind;
}

void Communicators::join(std::uint16_t kind, const std::string& name,
                         const std::vector<WorldRank>& members, Workload& out) {
  for (const WorldRank rank : members) taken_[kind][rank] = true;
  kinds_of_.emplace(name, kind);
  out.groups.push_back({kind, members});
}

Communicators::Communicators(const Trace& trace, const TraceOrder& order, int ranks, Workload& out)
    : kind_(trace.groups.size() + 1, kNoKind) {
  const std::vector<WorldRank> all = world_ranks(ranks);
  for (std::size_t r = 0; r < trace.given.size(); ++r)
    for (const std::uint32_t at : order.sequence[r]) {
      const TraceEvent& event = trace.given[r].events[at];
      if (event.kind != TraceEvent::Kind::collective) continue;
      const auto group = std::min(event.group, static_cast<std::uint32_t>(trace.groups.size()));
      if (kind_[group] != kNoKind) continue;
      const bool world = group == trace.groups.size() || trace.groups[group].members.empty();
      const auto& members = world ? all : trace.groups[group].members;
      const std::string name =
          group == trace.groups.size() ? "world" : stem(trace.groups[group].name);
      kind_[group] = first_fit(name, members, false);
      if (kind_[group] == kNoKind) {
        kind_[group] = add_kind(name, out);
        size_.back() = members.size();
      }
      join(kind_[group], name, members, out);
    }
  if (static_cast<std::size_t>(ranks) > trace.given.size()) {
    place_named(trace, out);
    for (std::uint16_t kind = 0; kind < size_.size(); ++kind) infer_missing(trace, kind, out);
  }
  first_of_messages_ = static_cast<std::uint16_t>(out.group_names.size());
}

// Adds communicators of ranks without a trace that the file names as those that are played.
void Communicators::place_named(const Trace& trace, Workload& out) {
  VectorBy<WorldRank, bool> traced(out.ranks);
  for (const TraceRank& one : trace.given) traced[one.rank] = true;
  for (std::size_t g = 0; g < trace.groups.size(); ++g) {
    const TraceGroup& group = trace.groups[g];
    const std::string name = stem(group.name);
    if (kind_[g] != kNoKind || group.members.empty() || name == kNumbered ||
        std::any_of(group.members.begin(), group.members.end(),
                    [&](WorldRank rank) { return traced[rank]; }))
      continue;
    kind_[g] = first_fit(name, group.members, true);
    if (kind_[g] != kNoKind) join(kind_[g], name, group.members, out);
  }
}

void Communicators::add_messages(std::uint16_t tags, Workload& out) {
  const std::vector<WorldRank> all = world_ranks(out.ranks);
  for (std::uint16_t tag = 0; tag < tags; ++tag)
    out.groups.push_back({add_kind(tag == 0 ? "p2p" : "p2p." + std::to_string(tag), out), all});
}

// Adds communicators like the given ones of the kind, for ranks that none of the kind contains.
void Communicators::infer_missing(const Trace& trace, std::uint16_t kind, Workload& out) {
  if (std::all_of(taken_[kind].begin(), taken_[kind].end(), [](bool taken) { return taken; }))
    return;
  std::string why;
  std::optional<Members> added = tiles(kind, out, why);
  if (!added) added = moved_along(trace, kind, out);
  if (!added)
    throw Error(trace.given.front().file + ": communicator " + out.group_names[kind] + " " + why +
                "; give the traces of all ranks");
  for (std::vector<WorldRank>& members : *added) {
    out.groups.push_back({kind, std::move(members)});
    ++inferred_;
  }
}

// The first communicator of the kind, repeated over all ranks that none contains. Says why there
// are none.
std::optional<Communicators::Members> Communicators::tiles(std::uint16_t kind, const Workload& out,
                                                           std::string& why) const {
  const auto model = std::find_if(out.groups.begin(), out.groups.end(),
                                  [&](const Group& group) { return group.kind == kind; });
  const std::vector<WorldRank>& members = model->members;
  const auto size = static_cast<int>(members.size());
  const int stride = size > 1 ? members[1] - members[0] : 1;
  for (int i = 0; i < size; ++i)
    if (stride <= 0 || members[i] != members[0] + i * stride) {
      why = "has no even stride, so those of other ranks cannot be inferred";
      return std::nullopt;
    }
  std::set<WorldRank> missing;
  for (const WorldRank rank : each<WorldRank>(out.ranks))
    if (!taken_[kind][rank]) missing.insert(rank);
  Members added;
  while (!missing.empty()) {
    const WorldRank rank = *missing.begin();
    const WorldRank first = rank - rank.value() / stride % size * stride;
    std::vector<WorldRank>& moved = added.emplace_back();
    for (int i = 0; i < size; ++i) {
      const WorldRank member = first + i * stride;
      if (member.value() >= out.ranks || missing.erase(member) == 0) {
        why = "of " + std::to_string(size) + " ranks does not tile the " +
              std::to_string(out.ranks) + " ranks of the job";
        return std::nullopt;
      }
      moved.push_back(member);
    }
  }
  return added;
}

// Those of the ranks that do the same as a given one (TraceRank::also), moved as far from its as
// they are from it. None if some rank has no trace, or if they would overlap.
std::optional<Communicators::Members> Communicators::moved_along(const Trace& trace,
                                                                 std::uint16_t kind,
                                                                 const Workload& out) const {
  VectorBy<WorldRank, bool> taken = taken_[kind], traced(out.ranks);
  Members added;
  for (const TraceRank& one : trace.given) {
    traced[one.rank] = true;
    for (const WorldRank also : one.also) traced[also] = true;
    const auto its = std::find_if(out.groups.begin(), out.groups.end(), [&](const Group& group) {
      return group.kind == kind &&
             std::find(group.members.begin(), group.members.end(), one.rank) != group.members.end();
    });
    if (its == out.groups.end()) continue;
    for (const WorldRank also : one.also) {
      if (taken[also]) continue;
      std::vector<WorldRank>& moved = added.emplace_back();
      for (const WorldRank member : its->members) {
        const WorldRank other = member + (also - one.rank);
        if (other < WorldRank(0) || other.value() >= out.ranks || taken[other]) return std::nullopt;
        taken[other] = true;
        moved.push_back(other);
      }
    }
  }
  const bool all = std::all_of(traced.begin(), traced.end(), [](bool known) { return known; });
  return all ? std::optional(std::move(added)) : std::nullopt;
}

std::uint16_t Communicators::kind(std::uint32_t group) const {
  return kind_[std::min<std::size_t>(group, kind_.size() - 1)];
}

}  // namespace ghostrank
