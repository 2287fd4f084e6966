#include "profiles/trace/trace.h"

#include <algorithm>
#include <array>

#include "profiles/error.h"

namespace ghostrank {

std::uint32_t Trace::name(std::string_view text) {
  const auto [at, fresh] =
      name_of.try_emplace(std::string(text), static_cast<std::uint32_t>(names.size()));
  if (fresh) names.emplace_back(text);
  return at->second;
}

std::uint32_t add_event(TraceRank& rank, const TraceEvent& event,
                        const std::vector<std::uint32_t>& after) {
  rank.events.push_back(event);
  rank.events.back().first_dep = static_cast<std::uint32_t>(rank.deps.size());
  rank.events.back().deps = static_cast<std::uint32_t>(after.size());
  rank.deps.insert(rank.deps.end(), after.begin(), after.end());
  return static_cast<std::uint32_t>(rank.events.size() - 1);
}

std::uint16_t track_named(TraceRank& rank, const std::string& name) {
  for (std::size_t i = rank.track_of.size(); i < rank.tracks.size(); ++i)
    rank.track_of.emplace(rank.tracks[i], static_cast<std::uint16_t>(i));
  const auto [at, fresh] =
      rank.track_of.try_emplace(name, static_cast<std::uint16_t>(rank.tracks.size()));
  if (fresh) rank.tracks.push_back(name);
  if (rank.tracks.size() > 0xffff)
    throw Error(rank.file + ": more than 65,535 threads and streams; is this one rank's trace?");
  return at->second;
}

int size_of(const Trace& trace, std::uint32_t group, int ranks) {
  if (group == kNoIndex || trace.groups[group].members.empty()) return ranks;
  return static_cast<int>(trace.groups[group].members.size());
}

CallSize sized(const Trace& trace, const TraceEvent& event, int size) {
  const std::uint64_t n = std::max(size, 1);
  const std::uint64_t element = bytes_of(event.dtype);
  const std::uint64_t stated = event.func == Func::barrier ? 0 : event.stated;
  const auto elements = [&](std::uint64_t bytes) { return (bytes + element - 1) / element; };
  if (event.kind == TraceEvent::Kind::send) return {stated, 0, elements(stated)};
  if (event.kind == TraceEvent::Kind::recv) return {0, stated, elements(stated)};
  switch (event.func) {
    case Func::all_reduce:
    case Func::broadcast:
    case Func::reduce:
    case Func::send_recv:
    case Func::barrier:
      return {stated, stated, elements(stated)};
    case Func::all_to_all_v: {
      std::uint64_t sent = 0;
      for (const std::uint64_t count : trace.splits[event.splits]) sent += count * element;
      return {sent, stated, 0};
    }
    default:
      break;
  }
  const std::uint64_t block = event.blocks ? stated : (stated + n - 1) / n;
  const std::uint64_t whole = event.blocks ? stated * n : stated;
  const bool gathers = event.func == Func::all_gather || event.func == Func::gather ||
                       event.func == Func::all_gather_v;
  const bool keeps = event.func == Func::all_to_all;
  return {gathers ? block : whole, gathers || keeps ? whole : block, elements(block)};
}

std::string position_text(const Trace& trace, const TraceRank& rank, const TraceEvent& event) {
  if (trace.position_unit == "line") return rank.file + ":" + std::to_string(event.position) + ":1";
  return rank.file + ": " + trace.position_unit + " " + std::to_string(event.position);
}

namespace {

struct Sum {
  std::uint64_t calls = 0, stated = 0, in = 0, out = 0;
  void add(const TraceEvent& event, const CallSize& size) {
    ++calls;
    stated += event.stated;
    in += size.in;
    out += size.out;
  }
};

}  // namespace

TraceSummary summary_of(const Trace& trace, int ranks) {
  constexpr std::size_t kSend = kFuncs, kRecv = kFuncs + 1;
  std::array<Sum, kFuncs + 2> sums;
  std::vector<std::uint64_t> groups(trace.groups.size() + 1);  // the last one of all ranks
  std::vector<bool> used(groups.size());
  std::uint64_t computations = 0;
  TraceSummary out;
  for (const TraceRank& rank : trace.given)
    for (const TraceEvent& event : rank.events) {
      if (event.kind == TraceEvent::Kind::join) continue;
      if (event.kind == TraceEvent::Kind::compute) {
        computations += event.counted;
        out.compute += event.duration;
        out.flops += event.flops;
        continue;
      }
      const std::size_t kind = event.kind == TraceEvent::Kind::send ? kSend
                               : event.kind == TraceEvent::Kind::recv
                                   ? kRecv
                                   : static_cast<std::size_t>(event.func);
      sums[kind].add(event, sized(trace, event, size_of(trace, event.group, ranks)));
      if (kind >= kFuncs) continue;
      const std::size_t group = std::min<std::size_t>(event.group, trace.groups.size());
      groups[group] += event.stated;
      used[group] = true;
    }
  if (computations > 0) out.ops["compute"] = computations;
  for (std::size_t kind = 0; kind < sums.size(); ++kind) {
    if (sums[kind].calls == 0) continue;
    const std::string name(kind == kSend   ? "send"
                           : kind == kRecv ? "recv"
                                           : name_of(static_cast<Func>(kind)));
    out.ops[name] = sums[kind].calls;
    out.stated[name] = sums[kind].stated;
    out.in[name] = sums[kind].in;
    out.out[name] = sums[kind].out;
  }
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (!used[group]) continue;
    const bool named = group < trace.groups.size() && !trace.groups[group].name.empty();
    out.group_bytes[named ? trace.groups[group].name : "world"] += groups[group];
  }
  return out;
}

}  // namespace ghostrank
