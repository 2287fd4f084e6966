#include "profiles/trace/writers/issue_order.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "profiles/error.h"

namespace ghostrank {
namespace {

// Calls that may still run, in the order of their issue.
using Calls = std::vector<std::size_t>;

// An op whose turn it is in its stream.
struct Reached {
  const Op* op = nullptr;
  std::size_t stream = 0, at = 0;
  std::size_t place = 0;  // among the calls of its launch
  Picoseconds time = 0;
  Calls ends;
};

// Whose turn it is: the op at this place of those that the stream has reached, so much later than
// the stream came to it. Packed as numbers of seven bits a byte, with what is 0 left out: a byte
// for most ops.
struct Turn {
  std::size_t stream = 0, place = 0;
  Picoseconds late = 0;
};

void pack(std::uint64_t number, std::string& to) {
  for (; number > 127; number >>= 7) to += static_cast<char>((number & 127) | 128);
  to += static_cast<char>(number);
}

std::uint64_t unpack(const std::string& from, std::size_t& at) {
  std::uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(from[at++]);
    number |= static_cast<std::uint64_t>(byte & 127) << shift;
    if (byte < 128) return number;
  }
}

void pack(const Turn& turn, std::string& to) {
  const bool more = turn.place > 0 || turn.late > 0;
  pack(2 * turn.stream + more, to);
  if (!more) return;
  pack(turn.place, to);
  pack(static_cast<std::uint64_t>(turn.late), to);
}

Turn unpack_turn(const std::string& from, std::size_t& at) {
  const std::uint64_t head = unpack(from, at);
  Turn turn{head / 2};
  if (head % 2 == 0) return turn;
  turn.place = unpack(from, at);
  turn.late = static_cast<Picoseconds>(unpack(from, at));
  return turn;
}

// The streams of a rank. Whoever plays them issues the ops that they reach, in any order.
class RankStreams {
 public:
  explicit RankStreams(const Program& program)
      : program_(&program),
        streams_(program.streams.size()),
        points_(program.events),
        waits_(program.events, kNobody) {
    if (carries_over(program))
      throw Error("a stream goes on beside the next iteration, and a trace has one iteration");
    for (std::size_t s = 0; s < streams_.size(); ++s) advance(s);
  }

  // The ops that have been reached since the last call.
  std::vector<Reached> take_reached() { return std::exchange(reached_, {}); }

  IssuedOp issue(Reached one, Picoseconds start) {
    Stream& stream = streams_[one.stream];
    stream.now = std::max(stream.now, start);
    if (one.op->kind == Op::Kind::compute)
      stream.now += one.op->duration;
    else
      stream.running.push_back(issued_);
    ++issued_;
    if (--stream.reached == 0) advance(one.stream);
    return {one.op, one.stream, one.at, start, std::move(one.ends)};
  }

  bool over() const {
    for (std::size_t s = 0; s < streams_.size(); ++s)
      if (streams_[s].at < program_->streams[s].size() || streams_[s].reached > 0) return false;
    return true;
  }

 private:
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

  struct Stream {
    std::size_t at = 0;       // the next op that it has not reached
    std::size_t reached = 0;  // ops that it has reached and not issued
    Picoseconds now = 0;
    Calls running;  // of this stream, not yet waited for
    Calls awaited;  // by a wait op since the last op that was reached
  };

  // A recorded point that no wait has taken: when it was reached, and the calls that a wait ends.
  struct Point {
    Picoseconds at = 0;
    Calls calls;
  };

  // Takes waits and records until the stream reaches an op, must wait, or ends.
  void advance(std::size_t s) {
    Stream& stream = streams_[s];
    const OpList& ops = program_->streams[s];
    while (stream.at < ops.size()) {
      const Op& op = ops[stream.at];
      if (op.kind == Op::Kind::wait) {
        if (op.previous) throw Error("a wait for the iteration before; a trace has one iteration");
        if (points_[op.event].empty()) {
          waits_[op.event] = s;
          return;
        }
        const Point point = std::move(points_[op.event].front());
        stream.now = std::max(stream.now, point.at);
        stream.awaited.insert(stream.awaited.end(), point.calls.begin(), point.calls.end());
        points_[op.event].erase(points_[op.event].begin());
      } else if (op.kind == Op::Kind::record) {
        Calls calls =
            stream.awaited;  // a wait for this point implies the stream's own waits before
        calls.insert(calls.end(), stream.running.begin(), stream.running.end());
        points_[op.event].push_back({stream.now, std::move(calls)});
      } else {
        return reach(s);
      }
      ++stream.at;
      if (op.kind == Op::Kind::record)
        if (const std::size_t waiting = std::exchange(waits_[op.event], kNobody);
            waiting != kNobody)
          advance(waiting);
    }
  }

  // The stream's next op, or all of its launch.
  void reach(std::size_t s) {
    Stream& stream = streams_[s];
    const OpList& ops = program_->streams[s];
    const Op& first = ops[stream.at];
    // With several workers a stream's calls run together; otherwise each ends the one before it.
    const std::size_t may_run = first.kind == Op::Kind::collective ? workers(*program_, s) - 1U : 0;
    Calls ends = std::exchange(stream.awaited, {});
    if (stream.running.size() > may_run) {
      const auto until = stream.running.end() - static_cast<std::ptrdiff_t>(may_run);
      ends.insert(ends.end(), stream.running.begin(), until);
      stream.running.erase(stream.running.begin(), until);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    std::size_t place = 0;
    do {
      reached_.push_back({&ops[stream.at], s, stream.at, place++, stream.now, ends});
      ++stream.reached;
      ++stream.at;
    } while (first.launch != 0 && stream.at < ops.size() && ops[stream.at].launch == first.launch &&
             ops[stream.at].launch_index > 0);
  }

  const Program* program_;
  std::vector<Stream> streams_;
  std::vector<std::vector<Point>> points_;  // by event: those that no wait has taken
  std::vector<std::size_t> waits_;          // by event: the stream that waits for it
  std::vector<Reached> reached_;
  std::size_t issued_ = 0;
};

[[noreturn]] void report_wait() {
  throw Error("a stream waits for what no stream does in this iteration; a trace has one");
}

// Which of the ops that may be issued comes first; ranks that do the same have the same order.
struct Priority {
  Picoseconds time = 0;
  bool computes = false;
  std::size_t before = 0;  // calls that have been issued up to the last one that must end; 0: none
  std::size_t stream = 0, at = 0;
  WorldRank rank;
  auto operator<=>(const Priority&) const = default;
};

Priority priority_of(const Reached& one, WorldRank rank) {
  return {one.time,
          one.op->kind == Op::Kind::compute,
          one.ends.empty() ? 0 : one.ends.back() + 1,
          one.stream,
          one.at,
          rank};
}

const Program& played_program(const Workload& workload, WorldRank rank, std::size_t iteration) {
  const Role& role = workload.roles[workload.role_of[rank]];
  return role.iterations[std::min(iteration, role.iterations.size() - 1)];
}

// Plays all ranks at once.
class IssuingTogether {
 public:
  IssuingTogether(const Workload& workload, std::size_t iteration)
      : workload_(workload),
        seats_(workload.ranks),
        calls_of_(workload.ranks),
        turns_(workload.ranks) {
    for (std::size_t g = 0; g < workload_.groups.size(); ++g)
      for (std::size_t i = 0; i < workload_.groups[g].members.size(); ++i)
        seats_[workload_.groups[g].members[i]].push_back({workload_.groups[g].kind, g, i});
    for (const WorldRank rank : each<WorldRank>(workload_.ranks))
      ranks_.push_back(RankStreams(played_program(workload, rank, iteration)));
  }

  VectorBy<WorldRank, std::string> run() {
    for (const WorldRank rank : each<WorldRank>(workload_.ranks)) collect(rank);
    while (!ready_.empty()) {
      const auto next = ready_.begin();
      const Picoseconds time = next->first.time;
      const std::vector<Member> members = std::move(next->second);
      ready_.erase(next);
      for (const Member& member : members) issue(member, time);
      for (const Member& member : members) collect(member.rank);
    }
    for (const RankStreams& rank : ranks_)
      if (!rank.over()) report_wait();
    return std::move(turns_);
  }

 private:
  struct Member {
    WorldRank rank;
    Reached one;
  };
  struct Seat {  // of a rank in a communicator
    std::uint16_t kind = 0;
    std::size_t group = 0, position = 0;
  };
  struct Call {
    Priority latest;  // of its members
    std::vector<Member> members;
  };
  struct Lane {                    // messages between two members of a communicator
    std::deque<Picoseconds> sent;  // that nobody has received
    std::deque<Member> receivers;  // that wait for a send
  };

  const Seat& seat(WorldRank rank, std::uint16_t kind) const {
    for (const Seat& one : seats_[rank])
      if (one.kind == kind) return one;
    throw Error("rank " + to_string(rank) + " is in no group " + workload_.group_names[kind]);
  }

  void collect(WorldRank rank) {
    for (Reached& one : ranks_[rank].take_reached()) {
      const Op::Kind kind = one.op->kind;
      Member member{rank, std::move(one)};
      if (kind == Op::Kind::collective)
        arrive(std::move(member));
      else if (kind == Op::Kind::recv)
        receive(std::move(member));
      else
        ready(priority_of(member.one, rank), std::move(member));
    }
  }

  void ready(const Priority& priority, Member member) {
    ready_[priority].push_back(std::move(member));
  }

  // A collective may be issued when all members have reached it.
  void arrive(Member member) {
    const std::uint16_t kind = member.one.op->group;
    const std::size_t group = seat(member.rank, kind).group;
    const std::size_t number = calls_of_[member.rank][kind]++;
    Call& call = calls_[{group, number}];
    call.latest = std::max(call.latest, priority_of(member.one, member.rank));
    call.members.push_back(std::move(member));
    if (call.members.size() < workload_.groups[group].members.size()) return;
    ready_[call.latest] = std::move(call.members);
    calls_.erase({group, number});
  }

  using LaneKey = std::tuple<std::size_t, std::size_t, std::size_t>;  // group, from, to
  LaneKey lane_of(const Member& member) const {
    const Op& op = *member.one.op;
    const Seat& mine = seat(member.rank, op.group);
    const auto size = static_cast<std::int64_t>(workload_.groups[mine.group].members.size());
    const auto at = static_cast<std::int64_t>(mine.position);
    const auto peer = static_cast<std::size_t>(((at + op.peer) % size + size) % size);
    return op.kind == Op::Kind::send ? LaneKey{mine.group, mine.position, peer}
                                     : LaneKey{mine.group, peer, mine.position};
  }

  // A receive may be issued when its message has been sent.
  void receive(Member member) {
    Lane& lane = lanes_[lane_of(member)];
    if (lane.sent.empty()) {
      lane.receivers.push_back(std::move(member));
      return;
    }
    receive(std::move(member), lane.sent.front());
    lane.sent.pop_front();
  }
  void receive(Member member, Picoseconds sent) {
    Priority priority = priority_of(member.one, member.rank);
    priority.time = std::max(priority.time, sent);
    ready(priority, std::move(member));
  }

  void issue(const Member& member, Picoseconds time) {
    const Reached& one = member.one;
    pack({one.stream, one.place, time - one.time}, turns_[member.rank]);
    ranks_[member.rank].issue(one, time);
    if (one.op->kind != Op::Kind::send) return;
    Lane& lane = lanes_[lane_of(member)];
    if (lane.receivers.empty()) {
      lane.sent.push_back(time);
      return;
    }
    receive(std::move(lane.receivers.front()), time);
    lane.receivers.pop_front();
  }

  const Workload& workload_;
  VectorBy<WorldRank, std::vector<Seat>> seats_;
  VectorBy<WorldRank, RankStreams> ranks_;
  VectorBy<WorldRank, std::map<std::uint16_t, std::size_t>> calls_of_;  // by kind of group
  std::map<std::pair<std::size_t, std::size_t>, Call> calls_;           // by group and number
  std::map<LaneKey, Lane> lanes_;
  std::map<Priority, std::vector<Member>> ready_;
  VectorBy<WorldRank, std::string> turns_;
};

}  // namespace

IssueOrders::IssueOrders(const Workload& workload, std::size_t iteration)
    : workload_(workload),
      iteration_(iteration),
      turns_(IssuingTogether(workload, iteration).run()) {}

const Program& IssueOrders::program(WorldRank rank) const {
  return played_program(workload_, rank, iteration_);
}

std::vector<IssuedOp> IssueOrders::of(WorldRank rank) const {
  RankStreams streams(program(rank));
  std::map<std::pair<std::size_t, std::size_t>, Reached> waiting;  // by stream and place
  std::vector<IssuedOp> order;
  const std::string& turns = turns_[rank];
  for (std::size_t at = 0; at < turns.size();) {
    for (Reached& one : streams.take_reached()) {
      const std::pair key(one.stream, one.place);
      waiting.emplace(key, std::move(one));
    }
    const Turn turn = unpack_turn(turns, at);
    auto next = waiting.extract({turn.stream, turn.place});
    const Picoseconds start = next.mapped().time + turn.late;
    order.push_back(streams.issue(std::move(next.mapped()), start));
  }
  return order;
}

std::vector<IssuedOp> issue_order(const Program& program) {
  RankStreams streams(program);
  std::map<Priority, Reached> ready;
  std::vector<IssuedOp> order;
  for (;;) {
    for (Reached& one : streams.take_reached()) {
      const Priority priority = priority_of(one, WorldRank(0));
      ready.emplace(priority, std::move(one));
    }
    if (ready.empty()) break;
    auto next = ready.extract(ready.begin());
    order.push_back(streams.issue(std::move(next.mapped()), next.key().time));
  }
  if (!streams.over()) report_wait();
  return order;
}

}  // namespace ghostrank
