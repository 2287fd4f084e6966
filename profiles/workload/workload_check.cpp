#include "profiles/workload/workload_check.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "profiles/error.h"
#include "profiles/workload/carry_check.h"
#include "profiles/workload/rooted.h"

namespace ghostrank {
namespace {

constexpr std::size_t kShown = 3;  // ops that an error names
// A body with more repetitions is checked with this many, and again with one more. If calls, sends
// and receives match both times, a repetition adds as many on either side, so they match with any
// number.
constexpr std::size_t kRepetitions = 4;
constexpr std::size_t kMostParts = 4096;  // into which roles are cut

// Ranks of one role that the check plays as one. At first a role is one part.
struct Parts {
  VectorBy<WorldRank, std::uint16_t> of;  // by rank
  std::vector<std::uint16_t> role;        // by part
};

Parts whole_roles(const Workload& workload) {
  Parts parts{workload.role_of, {}};
  for (std::size_t role = 0; role < workload.roles.size(); ++role)
    parts.role.push_back(static_cast<std::uint16_t>(role));
  return parts;
}

const Program& program_in(const Role& role, std::size_t iteration) {
  return role.iterations[std::min(iteration, role.iterations.size() - 1)];
}

// Cuts roles until each receive of a part is from one part, whichever of its ranks receives: of the
// stages of a pipeline each becomes a part, with all its replicas. Nothing: they are too many.
std::optional<Parts> cut_roles(const Workload& workload, std::size_t iteration) {
  using Receive = std::pair<std::uint16_t, std::int32_t>;  // kind of group, peer
  std::vector<std::set<Receive>> receives;                 // by role
  for (const Role& role : workload.roles) {
    auto& its = receives.emplace_back();
    for (const OpList& ops : program_in(role, iteration).streams)
      for (const Op& op : ops.distinct())
        if (op.kind == Op::Kind::recv) its.emplace(op.group, op.peer);
  }
  Parts parts = whole_roles(workload);
  for (std::size_t before = 0; before != parts.role.size();) {
    before = parts.role.size();
    using Senders = std::vector<std::pair<Receive, std::uint16_t>>;
    VectorBy<WorldRank, Senders> senders(static_cast<std::size_t>(workload.ranks));
    for (const Group& group : workload.groups) {
      const auto size = static_cast<int>(group.members.size());
      for (int i = 0; i < size; ++i)
        for (const Receive& receive : receives[workload.role_of[group.members[i]]])
          if (receive.first == group.kind)
            senders[group.members[i]].emplace_back(
                receive, parts.of[group.members[((i + receive.second) % size + size) % size]]);
    }
    std::map<std::pair<std::uint16_t, Senders>, std::uint16_t> number;  // by part before, senders
    Parts finer{parts.of, {}};
    for (const WorldRank rank : parts.of.keys()) {
      const auto [at, fresh] = number.try_emplace({parts.of[rank], std::move(senders[rank])},
                                                  static_cast<std::uint16_t>(finer.role.size()));
      finer.of[rank] = at->second;
      if (fresh) finer.role.push_back(workload.role_of[rank]);
    }
    if (finer.role.size() > kMostParts) return std::nullopt;
    parts = std::move(finer);
  }
  return parts;
}

// The parts of a communicator by position, and its sends and receives so far by pair of positions.
// Communicators with the same parts share one pattern.
struct Pattern {
  std::uint16_t kind = 0;
  std::vector<std::uint16_t> parts;
  std::set<std::uint16_t> members;  // each part once
  std::map<std::pair<int, int>, std::pair<std::size_t, std::size_t>> sent_received;
  std::map<std::pair<int, int>, std::vector<const Op*>> sends;
};

struct PartState {
  const Program* program = nullptr;
  std::vector<std::size_t> at;    // by stream
  std::vector<bool> entered;      // by stream: it has entered the collective at its current op
  std::vector<std::size_t> call;  // by stream: its current call's number in its group kind
  // By stream: numbers, as in `call`, of its current launch's calls; 0 for sends and receives.
  std::vector<std::vector<std::size_t>> launched;
  std::vector<std::size_t> records;                // by event: those that no wait has taken
  std::vector<std::vector<const Op*>> calls;       // by kind: collectives entered, in order
  std::vector<std::vector<std::size_t>> patterns;  // by kind: patterns that contain this part
};

bool same_call(const Op& a, const Op& b) {
  return a.func == b.func && a.dtype == b.dtype && a.count == b.count && a.counts == b.counts &&
         a.peer == b.peer && a.tensor == b.tensor && a.reduction == b.reduction &&
         a.floats == b.floats;
}

class WorkloadCheck {
 public:
  WorkloadCheck(const Workload& workload, Parts parts, std::size_t iteration,
                std::size_t repetitions, const std::string& source)
      : workload_(workload), parts_(std::move(parts)), source_(source) {
    collect_patterns();
    std::vector<const Program*> programs;  // by role
    for (const Role& role : workload.roles)
      programs.push_back(with_fewer(program_in(role, iteration), repetitions));
    for (std::size_t part = 0; part < parts_.role.size(); ++part) {
      PartState state;
      state.program = programs[parts_.role[part]];
      state.at.resize(state.program->streams.size());
      state.entered.resize(state.at.size());
      state.call.resize(state.at.size());
      state.launched.resize(state.at.size());
      state.records.resize(state.program->events);
      state.calls.resize(workload.group_names.size());
      state.patterns.resize(workload.group_names.size());
      for (std::size_t p = 0; p < patterns_.size(); ++p)
        if (patterns_[p].members.count(static_cast<std::uint16_t>(part)) > 0)
          state.patterns[patterns_[p].kind].push_back(p);
      states_.push_back(std::move(state));
    }
  }

  // Plays all parts. False: some wait for ever.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t part = 0; part < states_.size(); ++part)
        for (std::size_t s = 0; s < states_[part].at.size(); ++s)
          while (step(part, s)) moved = true;
    }
    for (const PartState& state : states_)
      for (std::size_t s = 0; s < state.at.size(); ++s)
        if (state.at[s] != state.program->streams[s].size()) return false;
    report_unreceived();
    return true;
  }

  [[noreturn]] void report_stuck() const {
    std::string text_of_all;
    std::size_t shown = 0;
    for (std::size_t part = 0; part < states_.size(); ++part)
      for (std::size_t s = 0; s < states_[part].at.size(); ++s) {
        const PartState& state = states_[part];
        if (state.at[s] == state.program->streams[s].size() || shown == kShown) continue;
        const Op& op = state.program->streams[s][state.at[s]];
        text_of_all += (shown++ > 0 ? "; " : "") + text(part, op) + " on stream " +
                       state.program->stream_names[s];
      }
    fail("the plan would wait for ever: " + text_of_all +
         "; change the order of the calls so that their partners come");
  }

  // Whether some body is repeated more often than was checked.
  bool left_some() const { return !fewer_.empty(); }

 private:
  // Returns the program with every body played at most `most` times.
  const Program* with_fewer(const Program& program, std::size_t most) {
    const bool fits = std::all_of(program.streams.begin(), program.streams.end(),
                                  [&](const OpList& ops) { return ops.body().times <= most; });
    if (fits) return &program;
    Program& fewer = fewer_.emplace_back(program);
    for (OpList& ops : fewer.streams) ops = ops.repeated(std::min(ops.body().times, most));
    return &fewer;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(source_.empty() ? what : source_ + ": " + what);
  }

  void collect_patterns() {
    std::set<std::pair<std::uint16_t, std::vector<std::uint16_t>>> known;
    for (const Group& group : workload_.groups) {
      std::vector<std::uint16_t> parts;
      for (const WorldRank rank : group.members) parts.push_back(parts_.of[rank]);
      if (!known.emplace(group.kind, parts).second) continue;
      std::set<std::uint16_t> members(parts.begin(), parts.end());
      patterns_.push_back({group.kind, std::move(parts), std::move(members), {}, {}});
    }
  }

  // Plays the next op of a stream. False: the op must wait, or the stream has ended.
  bool step(std::size_t part, std::size_t s) {
    PartState& state = states_[part];
    const auto& ops = state.program->streams[s];
    if (state.at[s] == ops.size()) return false;
    const Op& op = ops[state.at[s]];
    if (op.launch != 0 && state.launched[s].empty()) launch(part, s);
    switch (op.kind) {
      case Op::Kind::compute:
        break;
      case Op::Kind::record:
        ++state.records[op.event];
        break;
      case Op::Kind::wait:
        if (op.previous) break;  // carry_check.h checks that it is recorded
        if (state.records[op.event] == 0) return false;
        --state.records[op.event];
        break;
      case Op::Kind::collective:
        if (op.launch != 0) {
          if (!everybody_there(part, op, state.launched[s][op.launch_index])) return false;
          break;
        }
        if (!state.entered[s]) enter(part, s, op);
        if (!everybody_there(part, op, state.call[s])) return false;
        state.entered[s] = false;
        break;
      case Op::Kind::send:
        if (op.launch == 0) send(part, op);
        break;
      case Op::Kind::recv:
        if (!receive(part, op)) return false;
        break;
    }
    ++state.at[s];
    if (op.launch != 0 && op.launch_index + 1U == workload_.launches[op.launch - 1].size())
      state.launched[s].clear();
    return true;
  }

  // Enters all collectives of the launch at the stream's position, and makes its sends.
  void launch(std::size_t part, std::size_t s) {
    PartState& state = states_[part];
    const auto& ops = state.program->streams[s];
    const std::size_t first = state.at[s];
    const std::size_t number = ops[first].launch - 1;
    check_launch(part, s);
    for (std::size_t i = 0; i < workload_.launches[number].size(); ++i) {
      const Op& op = ops[first + i];
      state.launched[s].push_back(state.calls[op.group].size());
      if (op.kind == Op::Kind::send) send(part, op);
      if (op.kind != Op::Kind::collective) continue;
      enter(part, s, op);
      state.entered[s] = false;
    }
  }

  // A launch is whole, and its calls are those that the workload lists.
  void check_launch(std::size_t part, std::size_t s) const {
    const PartState& state = states_[part];
    const auto& ops = state.program->streams[s];
    const std::size_t first = state.at[s], number = ops[first].launch;
    const auto damaged = [&](const std::string& what) {
      fail("role " + name(part) + ", stream " + state.program->stream_names[s] + ": " + what +
           "; the plan is damaged");
    };
    if (number > workload_.launches.size()) damaged("a launch is not listed");
    if (workers(*state.program, s) > 1) damaged("calls start together on a stream with workers");
    const GroupedCalls& launch = workload_.launches[number - 1];
    if (launch.size() > kMostTogether) damaged("too many calls start together");
    for (std::size_t i = 0; i < launch.size(); ++i) {
      Op op = first + i < ops.size() ? ops[first + i] : Op{};
      const bool whole = op.launch == number && op.launch_index == i && communicates(op);
      op.label = op.tensor = op.launch = 0;
      op.launch_index = 0;
      if (!whole || !(op == launch[i])) damaged("a call is missing from its launch");
    }
  }

  void send(std::size_t part, const Op& op) {
    for_each_pair(part, op, [&](Pattern& pattern, int from, int to) {
      ++pattern.sent_received[{from, to}].first;
      pattern.sends[{from, to}].push_back(&op);
      return true;
    });
  }

  // Whether `a` and `b` start together with the same collectives of their communicator.
  bool same_company(const Op& a, const Op& b) const {
    if (a.launch == b.launch && a.launch_index == b.launch_index) return true;
    return company_of(a) == company_of(b);
  }
  // The collectives of its communicator that start together with the call, and its index there;
  // none if it is the only one.
  std::pair<GroupedCalls, std::size_t> company_of(const Op& op) const {
    GroupedCalls company;
    std::size_t index = 0;
    if (op.launch == 0) return {{}, 0};
    const GroupedCalls& launch = workload_.launches[op.launch - 1];
    for (std::size_t i = 0; i < launch.size(); ++i) {
      if (launch[i].kind != Op::Kind::collective || launch[i].group != op.group) continue;
      if (i == op.launch_index) index = company.size();
      company.push_back(launch[i]);
    }
    if (company.size() < 2) return {{}, 0};
    return {std::move(company), index};
  }

  void enter(std::size_t part, std::size_t s, const Op& op) {
    PartState& state = states_[part];
    auto& calls = state.calls[op.group];
    state.entered[s] = true;
    state.call[s] = calls.size();
    calls.push_back(&op);
    for (const std::size_t p : state.patterns[op.group])
      for (const std::uint16_t other : patterns_[p].members) {
        const auto& theirs = states_[other].calls[op.group];
        if (theirs.size() < calls.size()) continue;
        const Op& known = *theirs[calls.size() - 1];
        if (same_call(known, op) && !same_company(known, op))
          fail("call " + std::to_string(calls.size()) + " of group " +
               workload_.group_names[op.group] + " starts together with other calls at " +
               text(part, op) + " than at " + text(other, known) +
               "; members of a group must launch the same calls together");
        if (same_call(known, op)) continue;
        fail("call " + std::to_string(calls.size()) + " of group " +
             workload_.group_names[op.group] + " is " + text(part, op) + " but " +
             text(other, known) +
             "; members of a group must make the same calls in the same order");
      }
  }

  bool everybody_there(std::size_t part, const Op& op, std::size_t call) const {
    for (const std::size_t p : states_[part].patterns[op.group])
      for (const std::uint16_t other : patterns_[p].members)
        if (states_[other].calls[op.group].size() <= call) return false;
    return true;
  }

  // Calls visit(pattern, from, to) for every position of the part in every pattern; false as soon
  // as a visit returns false.
  template <typename Visit>
  bool for_each_pair(std::size_t part, const Op& op, Visit visit) {
    for (const std::size_t p : states_[part].patterns[op.group]) {
      Pattern& pattern = patterns_[p];
      const auto size = static_cast<int>(pattern.parts.size());
      for (int i = 0; i < size; ++i) {
        if (pattern.parts[i] != part) continue;
        const int other = ((i + op.peer) % size + size) % size;
        const bool sends = op.kind == Op::Kind::send;
        if (!visit(pattern, sends ? i : other, sends ? other : i)) return false;
      }
    }
    return true;
  }

  bool receive(std::size_t part, const Op& op) {
    if (!for_each_pair(part, op, [](Pattern& pattern, int from, int to) {
          const auto& [sent, received] = pattern.sent_received[{from, to}];
          return sent > received;
        }))
      return false;
    return for_each_pair(part, op, [&](Pattern& pattern, int from, int to) {
      std::size_t& received = pattern.sent_received[{from, to}].second;
      const Op& sent = *pattern.sends[{from, to}][received++];
      if (sent.count * bytes_of(sent.dtype) != op.count * bytes_of(op.dtype))
        fail(text(part, op) + " in group " + workload_.group_names[op.group] + " but " +
             text(pattern.parts[from], sent) + "; both ends must agree on the bytes");
      if (sent.within != op.within)
        fail(text(part, op) + " and " + text(pattern.parts[from], sent) +
             " use different communicators; make both ends send and recv, or isend and irecv");
      return true;
    });
  }

  void report_unreceived() const {
    for (const Pattern& pattern : patterns_)
      for (const auto& [ends, counts] : pattern.sent_received) {
        if (counts.first == counts.second) continue;
        const auto part_at = [&](int position) { return pattern.parts[position]; };
        fail(text(part_at(ends.first), *pattern.sends.at(ends)[counts.second]) +
             " is received by nobody: role " + name(part_at(ends.second)) + " receives " +
             std::to_string(counts.second) + " of " + std::to_string(counts.first) +
             "; add the receive, or leave out the send");
      }
  }

  const std::string& name(std::size_t part) const {
    return workload_.roles[parts_.role[part]].name;
  }

  std::string text(std::size_t part, const Op& op) const {
    const std::string who = "role " + name(part);
    if (op.kind == Op::Kind::wait) return who + " waits for event " + std::to_string(op.event);
    const bool call = op.kind == Op::Kind::collective;
    std::string what(op.kind == Op::Kind::send   ? "send"
                     : op.kind == Op::Kind::recv ? "receive"
                                                 : name_of(op.func));
    if (call && op.reduction != Reduction::sum) what += ":" + std::string(name_of(op.reduction));
    what += " of " + (call && is_ragged(op.func) ? "#" + std::to_string(op.counts)
                                                 : std::to_string(op.count));
    what += " " + std::string(type_name(op)) + " (";
    const auto& labels = states_[part].program->labels;
    if (op.label < labels.size() && !labels[op.label].empty()) what += labels[op.label] + ", ";
    what += "group " + workload_.group_names[op.group];
    if (call && has_root(op.func)) what += ", root " + std::to_string(op.peer);
    if (call && op.tensor != 0) what += ", tensor " + std::to_string(op.tensor);
    return who + ": " + what + ")";
  }

  const Workload& workload_;
  const Parts parts_;
  const std::string& source_;
  std::deque<Program> fewer_;
  std::vector<Pattern> patterns_;
  std::vector<PartState> states_;
};

// Checks that one stream records each event and one waits for it, equally often. carry_check.h
// checks waits across iterations.
class EventCheck {
 public:
  EventCheck(const Program& program, std::string role, const std::string& source)
      : program_(program), role_(std::move(role)), source_(source), uses_(program.events) {}

  void run() {
    for (std::size_t s = 0; s < program_.streams.size(); ++s) {
      const OpList& ops = program_.streams[s];
      const std::vector<std::uint64_t> times = ops.times();
      for (std::size_t i = 0; i < times.size(); ++i) count(ops.distinct()[i], s, times[i]);
    }
    for (std::size_t event = 0; event < uses_.size(); ++event) {
      const Use& use = uses_[event];
      if (use.waits.times > 0 && use.records.times > use.waits.times)
        fail(event, "recorded " + number(use.records.times) + " and waited for " +
                        number(use.waits.times) + "; give every record one wait");
    }
  }

 private:
  struct Side {
    std::size_t stream = 0;
    std::uint64_t times = 0;
  };
  struct Use {
    Side records, waits;
  };

  void count(const Op& op, std::size_t stream, std::uint64_t times) {
    if (op.kind != Op::Kind::record && op.kind != Op::Kind::wait) return;
    const bool records = op.kind == Op::Kind::record;
    Use& use = uses_[op.event];
    Side& side = records ? use.records : use.waits;
    if (side.times > 0 && side.stream != stream)
      fail(op.event, std::string(records ? "recorded" : "waited for") + " on stream " +
                         program_.stream_names[side.stream] + " and on stream " +
                         program_.stream_names[stream] +
                         ", in no fixed order; give each stream an event of its own");
    side = {stream, side.times + times};
  }

  static std::string number(std::uint64_t times) {
    return times == 1 ? "once" : std::to_string(times) + " times";
  }

  [[noreturn]] void fail(std::size_t event, const std::string& what) const {
    throw Error((source_.empty() ? "" : source_ + ": ") + "role " + role_ + ": event " +
                std::to_string(event) + " is " + what);
  }

  const Program& program_;
  const std::string role_;
  const std::string& source_;
  std::vector<Use> uses_;
};

// Plays an iteration. Returns whether some body is repeated more often than it was played.
bool check_iteration(const Workload& workload, std::size_t iteration, std::size_t repetitions,
                     const std::string& source) {
  WorkloadCheck check(workload, whole_roles(workload), iteration, repetitions, source);
  if (!check.run()) {
    // A rank may wait for another of its role, which is further ahead.
    auto parts = cut_roles(workload, iteration);
    if (!parts || !WorkloadCheck(workload, std::move(*parts), iteration, repetitions, source).run())
      check.report_stuck();
  }
  return check.left_some();
}

}  // namespace

void check_workload(const Workload& workload, const std::string& source) {
  check_carried(workload, source);
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations) EventCheck(program, role.name, source).run();
  std::size_t iterations = 0;
  for (const Role& role : workload.roles) iterations = std::max(iterations, role.iterations.size());
  for (std::size_t i = 0; i < iterations; ++i) {
    for (const std::size_t repetitions : {kRepetitions, kRepetitions + 1})
      if (!check_iteration(workload, i, repetitions, source)) break;
  }
}

}  // namespace ghostrank
