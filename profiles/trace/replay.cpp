#include "profiles/trace/replay.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "profiles/error.h"
#include "profiles/input/content_hash.h"
#include "profiles/trace/communicators.h"
#include "profiles/trace/message_tags.h"
#include "profiles/trace/order.h"
#include "profiles/trace/streams.h"
#include "profiles/workload/rank_runs.h"
#include "profiles/workload/rooted.h"

namespace ghostrank {
namespace {

bool same(const Program& a, const Program& b) {
  if (a.stream_names != b.stream_names || a.labels != b.labels || a.events != b.events)
    return false;
  for (std::size_t s = 0; s < a.streams.size(); ++s)
    if (a.streams[s].size() != b.streams[s].size() ||
        !std::equal(a.streams[s].begin(), a.streams[s].end(), b.streams[s].begin()))
      return false;
  return true;
}

// Hashes part of what same() compares, enough to tell most programs apart.
std::uint64_t fingerprint(const Program& program) {
  std::uint64_t hash = program.events;
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 29);
  };
  for (const std::string& name : program.stream_names) mix(content_hash(name));
  for (const OpList& stream : program.streams)
    for (const Op& op : stream) {
      mix(static_cast<std::uint64_t>(op.kind) * 64 + static_cast<std::uint64_t>(op.func));
      mix(op.count + op.event);
      mix(static_cast<std::uint64_t>(op.duration) + op.label);
      mix(static_cast<std::uint64_t>(op.peer) * 65'536 + op.group);
    }
  return hash;
}

bool same(const std::vector<Program>& a, const std::vector<Program>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Program& one, const Program& other) { return same(one, other); });
}

std::uint64_t fingerprint(const std::vector<Program>& programs) {
  std::uint64_t hash = 0;
  for (const Program& program : programs) hash = hash * 0x9e3779b97f4a7c15 + fingerprint(program);
  return hash;
}

class Replaying {
 public:
  Replaying(const Trace& trace, const ReplayOptions& options, int ranks)
      : trace_(trace), options_(options), ranks_(ranks) {
    out_.workload.ranks = ranks;
    check_members();
    order_ = order_of(trace, ranks);
    sequences_.resize(trace.given.size(), std::vector<std::vector<std::uint32_t>>(trace.steps));
    for (std::size_t r = 0; r < trace.given.size(); ++r)
      for (const std::uint32_t i : order_.sequence[r])
        sequences_[r][trace.given[r].events[i].step].push_back(i);
    communicators_.emplace(trace, order_, ranks, out_.workload);
    gather_splits();
    give_tags();
  }

  Replay run() {
    Workload& workload = out_.workload;
    constexpr std::uint16_t kNone = 0xffff;
    workload.role_of.assign(ranks_, kNone);
    std::multimap<std::uint64_t, std::uint16_t> roles;  // by fingerprint
    for (std::size_t r = 0; r < trace_.given.size(); ++r) {
      std::vector<Program> programs = programs_of(r);
      std::uint16_t role = kNone;
      const auto [from, to] = roles.equal_range(fingerprint(programs));
      for (auto at = from; at != to && role == kNone; ++at)
        if (same(workload.roles[at->second].iterations, programs)) role = at->second;
      if (role == kNone) {
        role = static_cast<std::uint16_t>(workload.roles.size());
        if (role == kNone)
          throw Error("the trace has more than 65,534 ranks that do different things");
        roles.emplace(fingerprint(programs), role);
        workload.roles.push_back({"rank " + to_string(trace_.given[r].rank), std::move(programs)});
      }
      workload.role_of[trace_.given[r].rank] = role;
    }
    for (std::uint32_t step = 0; trace_.steps > 1 && step < trace_.steps; ++step)
      workload.order.push_back(step);
    workload.cycle = trace_.steps;
    fill_missing();
    take_notes();
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const TraceRank& rank, const TraceEvent& event,
                         const std::string& what) const {
    throw Error(position_text(trace_, rank, event) + ": " + what);
  }

  void take_trace_of(WorldRank rank, const std::string& file,
                     std::map<WorldRank, const std::string*>& file_of) const {
    if (rank < WorldRank(0) || rank.value() >= ranks_)
      throw Error(file + ": a trace of rank " + to_string(rank) + " in a job of " +
                  std::to_string(ranks_) + " ranks; give the traces of one job");
    const auto [first, fresh] = file_of.emplace(rank, &file);
    if (!fresh)
      throw Error(
          file + ": a second trace of rank " + to_string(rank) + ", which " + *first->second +
          " is of, too" +
          (trace_.format == "kineto" ? " (by distributedInfo; without, by the files' names)" : "") +
          "; each rank has one");
  }

  // Checks that ranks, peers, roots, splits and members fit the job.
  void check_members() const {
    std::map<WorldRank, const std::string*> file_of;
    for (const TraceRank& rank : trace_.given) {
      take_trace_of(rank.rank, rank.file, file_of);
      for (const WorldRank also : rank.also) take_trace_of(also, rank.file, file_of);
      for (const TraceEvent& event : rank.events) {
        const bool message = event.kind == TraceKind::send || event.kind == TraceKind::recv;
        if (message && (event.peer < 0 || event.peer >= ranks_ || event.peer == rank.rank.value()))
          fail(rank, event,
               "there is no peer " + std::to_string(event.peer) + " in a job of " +
                   std::to_string(ranks_) + " ranks");
        if (event.kind != TraceKind::collective) continue;
        const int size = size_of(trace_, event.group, ranks_);
        if (event.peer < 0 || event.peer >= size)
          fail(rank, event,
               "there is no root " + std::to_string(event.peer) + " in a communicator of " +
                   std::to_string(size));
        if (event.splits != kNoIndex &&
            trace_.splits[event.splits].size() != static_cast<std::size_t>(size))
          fail(rank, event,
               std::to_string(trace_.splits[event.splits].size()) +
                   " splits in a communicator of " + std::to_string(size));
      }
    }
    for (const TraceGroup& group : trace_.groups)
      for (const WorldRank member : group.members)
        if (member < WorldRank(0) || member.value() >= ranks_)
          throw Error(trace_.given.front().file + ": communicator " + quote(group.name) +
                      " has rank " + to_string(member) + " but the job " + std::to_string(ranks_) +
                      " ranks");
  }

  // Collects the rows of all members of every all_to_all_v; a missing member gets the first row
  // given.
  void gather_splits() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::vector<std::uint64_t>>>
        calls;
    for (std::size_t r = 0; r < trace_.given.size(); ++r)
      for (std::uint32_t i = 0; i < trace_.given[r].events.size(); ++i) {
        const TraceEvent& event = trace_.given[r].events[i];
        if (event.kind != TraceKind::collective || event.splits == kNoIndex) continue;
        auto& rows = calls[{event.group, order_.call[r][i]}];
        rows.resize(size_of(trace_, event.group, ranks_));
        rows[position(event.group, trace_.given[r].rank)] = trace_.splits[event.splits];
      }
    std::map<std::vector<std::uint64_t>, std::uint32_t> known;
    for (auto& [call, rows] : calls) {
      const auto first =
          std::find_if(rows.begin(), rows.end(), [](const auto& row) { return !row.empty(); });
      std::vector<std::uint64_t> counts;
      for (const auto& row : rows) {
        assumed_splits_ += row.empty();
        const auto& from = row.empty() ? *first : row;
        counts.insert(counts.end(), from.begin(), from.end());
      }
      const auto [at, fresh] = known.emplace(counts, out_.workload.counts.size());
      if (fresh)
        out_.workload.counts.push_back(
            std::make_shared<const std::vector<std::uint64_t>>(std::move(counts)));
      counts_of_[call] = at->second;
    }
  }

  // What follows what is read from the streams of one step, which are made only for the ranks whose
  // messages differ in tag or size.
  void give_tags() {
    const auto is_message = [](const TraceEvent& event) {
      return event.kind == TraceKind::send || event.kind == TraceKind::recv;
    };
    const bool messages =
        std::any_of(trace_.given.begin(), trace_.given.end(), [&](const TraceRank& rank) {
          return std::any_of(rank.events.begin(), rank.events.end(), is_message);
        });
    if (!messages) return;
    std::map<std::uint32_t, TraceStreams> streams;  // by given rank
    std::uint32_t of_step = 0;
    tags_ = message_tags(trace_, order_, sequences_,
                         [&](std::uint32_t r, std::uint32_t earlier, std::uint32_t later) {
                           const TraceRank& rank = trace_.given[r];
                           if (std::exchange(of_step, rank.events[later].step) != of_step)
                             streams.clear();
                           auto at = streams.find(r);
                           if (at == streams.end())
                             at = streams.emplace(r, streams_of(r, of_step, names_of(rank))).first;
                           return at->second.follows(earlier, later);
                         });
    communicators_->add_messages(tags_.count, out_.workload);
    alone_ = 0;  // counted again with the programs
  }

  std::size_t position(std::uint32_t group, WorldRank rank) const {
    if (group == kNoIndex || trace_.groups[group].members.empty()) return rank.index();
    const auto& members = trace_.groups[group].members;
    return std::find(members.begin(), members.end(), rank) - members.begin();
  }

  Picoseconds duration(const TraceRank& rank, const TraceEvent& event) const {
    if (event.duration > 0 || (event.flops == 0 && event.stated == 0)) return event.duration;
    if (!options_.cost)
      fail(rank, event,
           "computations are given in FLOPs, not in time; name the device that does "
           "them, as in device: h100-sxm (profile import: --device h100-sxm)");
    return options_.cost(event.flops, static_cast<double>(event.stated));
  }

  // Names of the tracks that compute, the device's before the host's, the busiest first. `track`:
  // by track of the rank, its new index.
  std::vector<std::string> tracks_of(const TraceRank& rank, std::vector<std::size_t>& track) const {
    std::vector<double> busy(rank.tracks.size());
    for (const TraceEvent& event : rank.events)
      if (event.kind == TraceKind::compute)
        busy[event.track] += 1 + static_cast<double>(event.duration) + event.flops;
    std::vector<std::size_t> by(rank.tracks.size());
    std::iota(by.begin(), by.end(), 0);
    std::erase_if(by, [&](std::size_t i) { return busy[i] == 0; });
    const auto host = [&](std::size_t i) { return rank.tracks[i].starts_with("host"); };
    std::stable_sort(by.begin(), by.end(), [&](std::size_t a, std::size_t b) {
      return host(a) != host(b) ? host(b) : busy[a] > busy[b];
    });
    std::vector<std::string> names;
    track.assign(rank.tracks.size(), 0);
    for (const std::size_t i : by) {
      track[i] = names.size();
      names.push_back(rank.tracks[i]);
    }
    if (names.empty()) names.emplace_back("compute");
    return names;
  }

  // Offset from `rank` to `peer` round the ranks, the shorter way, so that equal patterns give
  // equal programs.
  std::int32_t offset(WorldRank peer, WorldRank rank) const {
    const std::int32_t forward = ((peer - rank) % ranks_ + ranks_) % ranks_;
    return forward > ranks_ / 2 ? forward - ranks_ : forward;
  }

  // Labels and tracks of a rank's programs.
  struct Names {
    std::vector<std::string> labels, tracks;
    std::vector<std::uint32_t> label_of;  // by name
    std::vector<std::size_t> track_of;    // by track of the rank
  };
  Names names_of(const TraceRank& rank) const {
    Names out;
    // In the order of the file, because ranks that do the same share it.
    out.label_of.resize(trace_.names.size(), kNoIndex);
    for (const TraceEvent& event : rank.events) {
      if (event.kind == TraceKind::join || out.label_of[event.name] != kNoIndex) continue;
      out.label_of[event.name] = static_cast<std::uint32_t>(out.labels.size());
      out.labels.push_back(trace_.names[event.name]);
    }
    out.tracks = tracks_of(rank, out.track_of);
    return out;
  }

  // A program for each step.
  std::vector<Program> programs_of(std::size_t r) {
    const Names names = names_of(trace_.given[r]);
    std::vector<Program> out;
    for (std::uint32_t step = 0; step < trace_.steps; ++step) {
      TraceStreams streams = streams_of(r, step, names);
      crowded_ += streams.crowded();
      out.push_back(streams.take(names.labels, out_.workload.launches));
    }
    return out;
  }

  // The events of one step.
  TraceStreams streams_of(std::size_t r, std::uint32_t step, const Names& names) {
    // GOAL's messages are those of the wire; in other formats they are calls, which may wait for
    // room.
    TraceStreams streams(names.tracks, trace_.given[r].events.size(), trace_.format == "goal");
    const TraceRank& rank = trace_.given[r];
    std::vector<std::uint32_t> after;
    for (const std::uint32_t i : sequences_[r][step]) {
      const TraceEvent& event = rank.events[i];
      after.clear();
      for (std::uint32_t d = 0; d < event.deps; ++d)
        if (const std::uint32_t dep = rank.deps[event.first_dep + d];
            rank.events[dep].step == event.step)
          after.push_back(dep);
      Op op;
      op.dtype = event.dtype;
      if (event.kind == TraceKind::compute) op.duration = duration(rank, event);
      const int size = size_of(trace_, event.group, ranks_);
      const bool alone = event.kind == TraceKind::collective && size < 2;
      alone_ += alone;
      if (event.kind == TraceKind::join || alone ||
          (event.kind == TraceKind::compute && op.duration == 0)) {
        streams.join(i, after.data(), after.size());
        continue;
      }
      op.label = names.label_of[event.name];
      if (event.kind == TraceKind::compute) {
        streams.on_track(i, names.track_of[event.track], op, after.data(), after.size());
        continue;
      }
      op.count = sized(trace_, event, size).count;
      if (event.kind == TraceKind::collective) {
        op.kind = Op::Kind::collective;
        op.func = event.func;
        op.peer = has_root(event.func) ? event.peer : 0;  // formats may name one for every call
        op.group = communicators_->kind(event.group);
        if (event.splits != kNoIndex) op.counts = counts_of_.at({event.group, order_.call[r][i]});
        const TraceEvent* const before = i > 0 ? &rank.events[i - 1] : nullptr;
        if (before && before->with_next && before->kind == TraceKind::collective &&
            before->group == event.group && before->step == event.step)
          op.launch_index = 1;  // a mark for TraceStreams
        streams.on_communicator(i, op.group, out_.workload.group_names[op.group], op, after.data(),
                                after.size());
        continue;
      }
      op.kind = event.kind == TraceKind::send ? Op::Kind::send : Op::Kind::recv;
      op.peer = offset(WorldRank(event.peer), rank.rank);
      op.within = Op::Within::unknown;
      const bool tagged = !tags_.of.empty() && !tags_.of[r].empty();
      op.group = communicators_->messages(tagged ? tags_.of[r][i] : std::uint16_t{0});
      streams.on_message_stream(i, op, after.data(), after.size());
    }
    return streams;
  }

  // A rank without a trace plays as the given rank with which it shares most communicators; of
  // several as the one whose places in communicators are most like its own, as those of the ranks
  // of one stage are.
  void fill_missing() {
    Workload& workload = out_.workload;
    if (trace_.given.size() == static_cast<std::size_t>(ranks_)) return;
    struct Place {
      std::size_t group, at;
      std::uint16_t kind;
    };
    VectorBy<WorldRank, std::vector<Place>> places_of(ranks_);
    for (std::size_t g = 0; g < workload.groups.size(); ++g) {
      const auto& [kind, members] = workload.groups[g];
      if (members.size() == static_cast<std::size_t>(ranks_)) continue;
      for (std::size_t i = 0; i < members.size(); ++i)
        places_of[members[i]].push_back({g, i, kind});
    }
    // How many of one rank's places another has, too, as `same` says.
    const auto count = [&](WorldRank rank, WorldRank other, const auto& same) {
      return std::ranges::count_if(places_of[rank], [&](const Place& a) {
        return std::ranges::any_of(places_of[other], [&](const Place& b) { return same(a, b); });
      });
    };
    for (const TraceRank& one : trace_.given)
      for (const WorldRank rank : one.also) workload.role_of[rank] = workload.role_of[one.rank];
    std::map<WorldRank, std::vector<WorldRank>> filled;  // by donor
    for (const WorldRank rank : each<WorldRank>(ranks_)) {
      std::uint16_t& role = workload.role_of[rank];
      if (role != 0xffff) continue;
      const TraceRank* donor = nullptr;
      std::pair<std::ptrdiff_t, std::ptrdiff_t> most(-1, 0);  // shared communicators, like places
      for (const TraceRank& one : trace_.given) {
        const auto shared = count(
            rank, one.rank, [](const Place& a, const Place& b) { return a.group == b.group; });
        if (shared < most.first) continue;
        const auto alike = count(rank, one.rank, [](const Place& a, const Place& b) {
          return a.kind == b.kind && a.at == b.at;
        });
        if (std::pair(shared, alike) > most) {
          most = {shared, alike};
          donor = &one;
        }
      }
      role = workload.role_of[donor->rank];
      filled[donor->rank].push_back(rank);
    }
    for (const auto& [donor, ranks] : filled)
      out_.notes.push_back("ranks " + runs_of(ranks) +
                           " have no trace of their own and play as rank " + to_string(donor));
    note_filled_peers(filled);
  }

  // A rank that exchanges messages with one that has a trace may be of another stage of a pipeline,
  // which does other work.
  void note_filled_peers(const std::map<WorldRank, std::vector<WorldRank>>& filled) {
    std::set<WorldRank> missing;
    for (const auto& [donor, ranks] : filled) missing.insert(ranks.begin(), ranks.end());
    std::set<WorldRank> peers;
    for (const TraceRank& one : trace_.given)
      for (const TraceEvent& event : one.events)
        if ((event.kind == TraceKind::send || event.kind == TraceKind::recv) &&
            missing.contains(WorldRank(event.peer)))
          peers.insert(WorldRank(event.peer));
    if (peers.empty()) return;
    const std::vector<WorldRank> sorted(peers.begin(), peers.end());
    out_.notes.push_back("ranks " + runs_of(sorted) +
                         " exchange messages with ranks that have a trace and have none: if they "
                         "are another stage of a pipeline, whose work is another, give a trace of "
                         "each stage");
  }

  void take_notes() {
    const auto note = [&](std::uint64_t count, const std::string& what) {
      if (count > 0) out_.notes.push_back(std::to_string(count) + " " + what);
    };
    note(communicators_->inferred(),
         "communicators of ranks without a trace are those of the others, moved along");
    note(assumed_splits_,
         "rows of splits of ranks without a trace are those of the first rank with one");
    note(crowded_, "messages share a stream with others that they need not follow: more than " +
                       std::to_string(kMostMessageStreams) + " would run side by side");
    note(alone_, "collectives of a communicator of one rank move nothing");
    if (tags_.count > 1)
      note(tags_.count,
           "tags of messages keep apart those between two ranks that follow each other in no "
           "fixed order");
  }

  const Trace& trace_;
  const ReplayOptions& options_;
  const int ranks_;
  TraceOrder order_;
  std::vector<std::vector<std::vector<std::uint32_t>>> sequences_;  // by given rank and step
  MessageTags tags_;
  std::optional<Communicators> communicators_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counts_of_;  // by group and call
  std::uint64_t assumed_splits_ = 0, crowded_ = 0, alone_ = 0;
  Replay out_;
};

}  // namespace

int ranks_named(const Trace& trace) {
  int last = trace.ranks - 1;
  for (const TraceRank& rank : trace.given) {
    last = std::max(last, rank.rank.value());
    for (const TraceEvent& event : rank.events)
      if (event.kind == TraceKind::send || event.kind == TraceKind::recv)
        last = std::max(last, event.peer);
  }
  for (const TraceGroup& group : trace.groups)
    for (const WorldRank member : group.members) last = std::max(last, member.value());
  return std::max(last + 1, 1);
}

bool knows_ranks(const Trace& trace) {
  if (trace.ranks > 0 || trace.given.size() > 1) return true;
  return std::none_of(trace.given.front().events.begin(), trace.given.front().events.end(),
                      [&](const TraceEvent& event) {
                        return event.kind == TraceKind::collective &&
                               size_of(trace, event.group, 0) == 0;
                      });
}

Replay replay(const Trace& trace, const ReplayOptions& options) {
  const int named = ranks_named(trace);
  if (options.ranks == 0 && !knows_ranks(trace))
    throw Error(trace.given.front().file +
                ": the trace does not say of how many ranks the job was; say it, as in --ranks 8");
  if (options.ranks != 0 && options.ranks < named)
    throw Error(trace.given.front().file + ": the trace names " + std::to_string(named) +
                " ranks, but there are to be " + std::to_string(options.ranks) +
                "; they must be as many");
  if (static_cast<std::int64_t>(std::max(named, options.ranks)) > kMaxReplayRanks)
    throw Error(trace.given.front().file + ": a job of more than " +
                std::to_string(kMaxReplayRanks) + " ranks; the trace is damaged");
  Replay out = Replaying(trace, options, options.ranks == 0 ? named : options.ranks).run();
  const auto is_empty = [](const TraceRank& rank) { return rank.events.empty(); };
  if (trace.used == 0 && std::ranges::all_of(trace.given, is_empty))
    throw Error(trace.given.front().file + ": there is nothing in it that is played" +
                (trace.format == "pytorch-et"
                     ? "; calls are taken from its record_param_comms, and it has none"
                     : ""));
  return out;
}

}  // namespace ghostrank
