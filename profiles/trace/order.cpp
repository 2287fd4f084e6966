#include "profiles/trace/order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include "profiles/error.h"
#include "profiles/workload/rooted.h"

namespace ghostrank {
namespace {

using EventKey = std::pair<std::uint32_t, std::uint32_t>;
using Heap = std::priority_queue<EventKey, std::vector<EventKey>, std::greater<>>;

// Successors of events, and each event's number of unfinished dependencies.
struct Graph {
  explicit Graph(const TraceRank& rank) : left(rank.events.size()), first(rank.events.size() + 1) {
    for (const std::uint32_t dep : rank.deps) ++first[dep + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    next.resize(rank.deps.size());
    std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
    for (std::uint32_t i = 0; i < rank.events.size(); ++i) {
      const TraceEvent& event = rank.events[i];
      left[i] = event.deps;
      for (std::uint32_t d = 0; d < event.deps; ++d) next[at[rank.deps[event.first_dep + d]]++] = i;
    }
  }
  std::vector<std::uint32_t> left, first, next;
};

// Orders by dependencies, then start times, then file order; omits events of cycles.
void sort_alone(const TraceRank& rank, const Graph& graph, std::vector<std::uint32_t>& order) {
  using Entry = std::pair<Picoseconds, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<std::uint32_t> left = graph.left;
  for (std::uint32_t i = 0; i < left.size(); ++i)
    if (left[i] == 0) ready.emplace(rank.events[i].start, i);
  while (!ready.empty()) {
    const std::uint32_t event = ready.top().second;
    ready.pop();
    order.push_back(event);
    for (std::uint32_t n = graph.first[event]; n < graph.first[event + 1]; ++n)
      if (--left[graph.next[n]] == 0)
        ready.emplace(rank.events[graph.next[n]].start, graph.next[n]);
  }
}

// True if the file is already in the order of sort_alone().
bool is_sorted(const TraceRank& rank) {
  for (std::uint32_t i = 0; i < rank.events.size(); ++i) {
    const TraceEvent& event = rank.events[i];
    if (i > 0 && rank.events[i - 1].start > event.start) return false;
    for (std::uint32_t d = 0; d < event.deps; ++d)
      if (rank.deps[event.first_dep + d] >= i) return false;
  }
  return true;
}

// One collective: its members' events, and how many members have arrived.
struct Call {
  std::uint32_t arrived = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> who;  // given rank, event
};

class Ordering {
 public:
  Ordering(const Trace& trace, int ranks) : trace_(trace), ranks_(ranks) {
    given_of_.assign(ranks, kNoIndex);
    for (std::uint32_t r = 0; r < trace.given.size(); ++r) given_of_[trace.given[r].rank] = r;
    for (const TraceRank& rank : trace.given) graphs_.emplace_back(rank);
    for (std::uint32_t r = 0; r < trace.given.size(); ++r) order_alone(r);
    count_members();
    match_messages();
    match_calls();
  }

  // Advances all ranks together. An event keeps its position in its rank's own order unless
  // something holds it up, so ranks that do the same get the same sequence.
  TraceOrder run() {
    out_.sequence.resize(trace_.given.size());
    for (std::uint32_t r = 0; r < trace_.given.size(); ++r) {
      out_.sequence[r].reserve(graphs_[r].left.size());
      for (std::uint32_t i = 0; i < graphs_[r].left.size(); ++i)
        if (graphs_[r].left[i] == 0) ready_.emplace(position_[r][i], r);
    }
    while (!ready_.empty()) {
      const auto [position, r] = ready_.top();
      ready_.pop();
      reach(r, alone_[r][position]);
    }
    for (std::uint32_t r = 0; r < trace_.given.size(); ++r)
      if (out_.sequence[r].size() < trace_.given[r].events.size()) report_stuck(r);
    out_.call = std::move(call_of_);
    out_.partner = std::move(partner_);
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::uint32_t r, std::uint32_t event, const std::string& what) const {
    const TraceRank& rank = trace_.given[r];
    throw Error(position_text(trace_, rank, rank.events[event]) + ": " + what);
  }

  const TraceEvent& at(std::uint32_t r, std::uint32_t event) const {
    return trace_.given[r].events[event];
  }

  std::string name_of_group(std::uint32_t group) const {
    return group >= trace_.groups.size() ? "of all ranks" : quote(trace_.groups[group].name);
  }

  WorldRank member(std::uint32_t group, std::int32_t at) const {
    const bool all = group >= trace_.groups.size() || trace_.groups[group].members.empty();
    return all ? WorldRank(at) : trace_.groups[group].members[at];
  }

  std::string name_of_lane(std::uint32_t group, std::uint64_t tag) const {
    return group == kNoIndex ? "tag " + std::to_string(tag)
                             : "communicator " + name_of_group(group);
  }

  // Orders a rank by itself: dependencies, then start times, then file order.
  void order_alone(std::uint32_t r) {
    const TraceRank& rank = trace_.given[r];
    const auto events = static_cast<std::uint32_t>(rank.events.size());
    std::vector<std::uint32_t>& order = alone_.emplace_back();
    std::vector<std::uint32_t>& position = position_.emplace_back(events);
    order.reserve(events);
    const bool sorted = is_sorted(rank);
    if (sorted) {
      for (std::uint32_t i = 0; i < events; ++i) order.push_back(i);
    } else {
      sort_alone(rank, graphs_[r], order);
      if (order.size() < events) report_cycle(r, order);
    }
    for (std::uint32_t i = 0; i < events; ++i) position[order[i]] = i;
  }

  // Follows unfinished dependencies back until an event repeats.
  [[noreturn]] void report_cycle(std::uint32_t r, const std::vector<std::uint32_t>& order) const {
    const TraceRank& rank = trace_.given[r];
    std::vector<std::uint8_t> state(rank.events.size());  // 1: done, 2: seen
    for (const std::uint32_t event : order) state[event] = 1;
    auto at = static_cast<std::uint32_t>(std::find(state.begin(), state.end(), 0) - state.begin());
    while (state[at] != 2) {
      state[at] = 2;
      const TraceEvent& event = rank.events[at];
      for (std::uint32_t d = 0; d < event.deps; ++d)
        if (state[rank.deps[event.first_dep + d]] != 1) {
          at = rank.deps[event.first_dep + d];
          break;
        }
    }
    fail(r, at,
         quote(trace_.names[rank.events[at].name]) +
             " depends on itself through others; a trace has no cycles, convert it again");
  }

  // Number of given members by communicator; the last entry is that of all ranks.
  void count_members() {
    const std::size_t groups = trace_.groups.size();
    members_.assign(groups + 1, 0);
    for (std::size_t g = 0; g < groups; ++g) {
      if (trace_.groups[g].members.empty())
        members_[g] = static_cast<std::uint32_t>(trace_.given.size());
      for (const WorldRank rank : trace_.groups[g].members)
        members_[g] += given_of_[rank] != kNoIndex;
    }
    members_[groups] = static_cast<std::uint32_t>(trace_.given.size());
  }

  void match_calls() {
    std::vector<std::vector<std::uint32_t>> count(members_.size());  // by group and given rank
    for (auto& ranks : count) ranks.resize(trace_.given.size());
    call_of_.resize(trace_.given.size());
    calls_.resize(members_.size());
    for (std::uint32_t r = 0; r < trace_.given.size(); ++r) {
      call_of_[r].assign(trace_.given[r].events.size(), 0);
      for (const std::uint32_t event : alone_[r]) {
        if (at(r, event).kind != TraceKind::collective) continue;
        const std::uint32_t group = std::min<std::uint32_t>(
            at(r, event).group, static_cast<std::uint32_t>(trace_.groups.size()));
        check_member(r, event, group);
        const std::uint32_t k = count[group][r]++;
        call_of_[r][event] = k;
        if (calls_[group].size() <= k) calls_[group].resize(k + 1);
        calls_[group][k].who.emplace_back(r, event);
        check_same(calls_[group][k], group, k);
      }
    }
    for (std::uint32_t g = 0; g < calls_.size(); ++g)
      for (std::uint32_t k = 0; k < calls_[g].size(); ++k)
        if (calls_[g][k].who.size() < members_[g]) report_missing_call(g, k, count[g]);
  }

  void check_member(std::uint32_t r, std::uint32_t event, std::uint32_t group) const {
    if (group == trace_.groups.size()) return;
    const auto& members = trace_.groups[group].members;
    const WorldRank rank = trace_.given[r].rank;
    if (!members.empty() && std::find(members.begin(), members.end(), rank) == members.end())
      fail(r, event,
           "rank " + to_string(rank) + " is no member of communicator " + name_of_group(group) +
               "; correct the communicators");
  }

  void check_same(const Call& call, std::uint32_t group, std::uint32_t k) const {
    const auto [r0, first] = call.who.front();
    const auto [r, event] = call.who.back();
    const TraceEvent &a = at(r0, first), &b = at(r, event);
    const bool ragged = is_ragged(a.func), rooted = has_root(a.func);
    check_step(r0, first, r, event);
    if (a.func == b.func && (!rooted || a.peer == b.peer) && (ragged || a.stated == b.stated))
      return;
    const auto text = [&](const TraceEvent& one) {
      return std::string(name_of(one.func)) + " of " + std::to_string(one.stated) + " bytes" +
             (has_root(one.func) ? ", root rank " + to_string(member(group, one.peer)) : "");
    };
    const bool uneven = trace_.format == "flight-recorder" && a.func == Func::all_to_all &&
                        b.func == Func::all_to_all;
    fail(
        r, event,
        "call " + std::to_string(k + 1) + " of communicator " + name_of_group(group) + " is " +
            text(b) + " but " + position_text(trace_, trace_.given[r0], a) + " has " + text(a) +
            (uneven ? "; it is uneven, and this format does not say how: give the ranks' execution "
                      "traces"
                    : "; give the traces of one step of one job"));
  }

  // Refuses a call or a message whose two ends are of different steps.
  void check_step(std::uint32_t r0, std::uint32_t first, std::uint32_t r,
                  std::uint32_t event) const {
    const TraceEvent &a = at(r0, first), &b = at(r, event);
    if (a.step == b.step) return;
    fail(r, event,
         "this is of step " + std::to_string(b.step + 1) + " of its file, but " +
             position_text(trace_, trace_.given[r0], a) + ", the same call or message, of step " +
             std::to_string(a.step + 1) + "; give the traces of the same steps");
  }

  [[noreturn]] void report_missing_call(std::uint32_t group, std::uint32_t k,
                                        const std::vector<std::uint32_t>& count) const {
    const auto [r, event] = calls_[group][k].who.front();
    std::uint32_t lacks = 0;
    for (std::uint32_t other = 0; other < count.size(); ++other) {
      const auto& members =
          group < trace_.groups.size() ? trace_.groups[group].members : std::vector<WorldRank>{};
      const bool member = members.empty() || std::find(members.begin(), members.end(),
                                                       trace_.given[other].rank) != members.end();
      if (member && count[other] <= k) lacks = other;
    }
    fail(r, event,
         "call " + std::to_string(k + 1) + " of communicator " + name_of_group(group) +
             ", but rank " + to_string(trace_.given[lacks].rank) + " makes " +
             std::to_string(count[lacks]) + " of them (" + trace_.given[lacks].file +
             "); give the traces of one step of one job");
  }

  // Matches sends with receives among the given ranks. Communicators keep their messages apart.
  void match_messages() {
    // From, to, group, tag.
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>;
    std::map<Key, std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>> messages;
    partner_.resize(trace_.given.size());
    for (std::uint32_t r = 0; r < trace_.given.size(); ++r)
      for (const std::uint32_t event : alone_[r]) {
        const TraceEvent& one = at(r, event);
        if (one.kind != TraceKind::send && one.kind != TraceKind::recv) continue;
        partner_[r].resize(trace_.given[r].events.size(), kNoIndex);
        const std::uint32_t other = given_of_[WorldRank(one.peer)];
        if (other == kNoIndex) continue;
        if (one.kind == TraceKind::send)
          messages[{r, other, one.group, one.tag}].first.push_back(event);
        else
          messages[{other, r, one.group, one.tag}].second.push_back(event);
      }
    for (const auto& [key, ends] : messages) {
      const auto [from, to, group, tag] = key;
      const auto& [sends, receives] = ends;
      const std::size_t both = std::min(sends.size(), receives.size());
      if (sends.size() > both)
        fail(from, sends[both],
             "rank " + to_string(trace_.given[to].rank) + " never receives this message (" +
                 name_of_lane(group, tag) + "); give the traces of one step of one job");
      if (receives.size() > both)
        fail(to, receives[both],
             "rank " + to_string(trace_.given[from].rank) + " never sends this message (" +
                 name_of_lane(group, tag) + "); give the traces of one step of one job");
      for (std::size_t i = 0; i < both; ++i) {
        if (at(from, sends[i]).stated != at(to, receives[i]).stated)
          fail(to, receives[i],
               "a message of " + std::to_string(at(to, receives[i]).stated) +
                   " bytes is received, but " + std::to_string(at(from, sends[i]).stated) +
                   " were sent by " +
                   position_text(trace_, trace_.given[from], at(from, sends[i])));
        check_step(from, sends[i], to, receives[i]);
        partner_[from][sends[i]] = receives[i];
        partner_[to][receives[i]] = sends[i];
      }
    }
  }

  // Called when all dependencies of an event in its own rank are done.
  void reach(std::uint32_t r, std::uint32_t event) {
    const TraceEvent& one = at(r, event);
    if (one.kind == TraceKind::collective) {
      const std::uint32_t group =
          std::min<std::uint32_t>(one.group, static_cast<std::uint32_t>(trace_.groups.size()));
      Call& call = calls_[group][call_of_[r][event]];
      if (++call.arrived < call.who.size()) return;
      for (const auto& [member, its] : call.who) emit(member, its);
      return;
    }
    if (one.kind == TraceKind::recv && partner_[r][event] != kNoIndex) {
      const std::uint32_t from = given_of_[WorldRank(one.peer)];
      if (graphs_[from].left[partner_[r][event]] != kDone) {
        graphs_[r].left[event] = kPosted;
        return;
      }
    }
    emit(r, event);
    if (one.kind != TraceKind::send || partner_[r][event] == kNoIndex) return;
    const std::uint32_t to = given_of_[WorldRank(one.peer)];
    if (graphs_[to].left[partner_[r][event]] == kPosted) emit(to, partner_[r][event]);
  }

  void emit(std::uint32_t r, std::uint32_t event) {
    Graph& graph = graphs_[r];
    graph.left[event] = kDone;
    out_.sequence[r].push_back(event);
    for (std::uint32_t n = graph.first[event]; n < graph.first[event + 1]; ++n)
      if (--graph.left[graph.next[n]] == 0) ready_.emplace(position_[r][graph.next[n]], r);
  }

  [[noreturn]] void report_stuck(std::uint32_t r) const {
    for (const std::uint32_t event : alone_[r]) {
      if (graphs_[r].left[event] == kDone) continue;
      fail(r, event,
           quote(trace_.names[at(r, event).name]) + " of rank " + to_string(trace_.given[r].rank) +
               " and events of other ranks wait for each other for ever; give the "
               "traces of one step of one job");
    }
    throw Error(trace_.given[r].file + ": not every event can be played");
  }

  static constexpr std::uint32_t kDone = 0xffffffff, kPosted = 0xfffffffe;

  const Trace& trace_;
  const int ranks_;
  VectorBy<WorldRank, std::uint32_t> given_of_;
  std::vector<Graph> graphs_;                                 // by given rank, as the next four
  std::vector<std::vector<std::uint32_t>> alone_, position_;  // own order, and its inverse
  std::vector<std::vector<std::uint32_t>> partner_;  // by event: the other end; empty: no messages
  std::vector<std::vector<std::uint32_t>> call_of_;  // by event: number of the call in its group
  std::vector<std::uint32_t> members_;               // by group: number of given members
  std::vector<std::vector<Call>> calls_;             // by group
  Heap ready_;                                       // position in its rank's own order, given rank
  TraceOrder out_;
};

}  // namespace

bool has_cycle(const TraceRank& rank) {
  if (is_sorted(rank)) return false;
  std::vector<std::uint32_t> order;
  sort_alone(rank, Graph(rank), order);
  return order.size() < rank.events.size();
}

TraceOrder order_of(const Trace& trace, int ranks) { return Ordering(trace, ranks).run(); }

}  // namespace ghostrank
