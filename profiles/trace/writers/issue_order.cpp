#include "profiles/trace/writers/issue_order.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "profiles/error.h"

namespace ghostrank {
namespace {

// Calls that may still run, in the order of their issue.
using Calls = std::vector<std::size_t>;

struct Stream {
  std::size_t at = 0;
  Picoseconds now = 0;
  Calls running;  // of this stream, not yet waited for
  Calls awaited;  // by a wait op since the last op that was issued
};

// A recorded point that no wait has taken: when it was reached, and the calls that a wait ends.
struct Point {
  Picoseconds at = 0;
  Calls calls;
};

class Player {
 public:
  explicit Player(const Program& program)
      : program_(program), streams_(program.streams.size()), points_(program.events) {}

  std::vector<IssuedOp> run() {
    while (const std::optional<std::size_t> next = earliest()) advance(*next);
    for (std::size_t s = 0; s < streams_.size(); ++s)
      if (streams_[s].at < program_.streams[s].size())
        throw Error("a stream waits for what no stream does in this iteration; a trace has one");
    return std::move(order_);
  }

 private:
  const Op& op_of(std::size_t s) const { return program_.streams[s][streams_[s].at]; }

  // When the next op of a stream is reached; empty: not yet known, or the stream is over.
  std::optional<Picoseconds> reached(std::size_t s) const {
    if (streams_[s].at == program_.streams[s].size()) return std::nullopt;
    const Op& op = op_of(s);
    if (op.kind == Op::Kind::wait) {
      if (op.previous) throw Error("a wait for the iteration before; a trace has one iteration");
      if (points_[op.event].empty()) return std::nullopt;
      return std::max(streams_[s].now, points_[op.event].front().at);
    }
    return streams_[s].now;
  }

  std::optional<std::size_t> earliest() const {
    std::optional<std::size_t> best;
    std::tuple<Picoseconds, bool, std::size_t> least;
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      const std::optional<Picoseconds> at = reached(s);
      if (!at) continue;
      const std::tuple mine{*at, op_of(s).kind == Op::Kind::compute, calls_before(s)};
      if (best && mine >= least) continue;
      best = s;
      least = mine;
    }
    return best;
  }

  // Calls of a stream that run beside its op without its having to wait for them.
  std::size_t may_run(const Op& op, std::size_t s) const {
    return op.kind == Op::Kind::collective ? workers(program_, s) - 1U : 0;
  }

  // How many calls have been issued up to the last one that must end before the stream's next op
  // starts; 0: none must.
  std::size_t calls_before(std::size_t s) const {
    const Stream& stream = streams_[s];
    const Op& op = op_of(s);
    if (op.kind == Op::Kind::wait || op.kind == Op::Kind::record) return 0;
    std::size_t last = 0;
    for (const std::size_t call : stream.awaited) last = std::max(last, call + 1);
    for (std::size_t i = 0; i + may_run(op, s) < stream.running.size(); ++i)
      last = std::max(last, stream.running[i] + 1);
    return last;
  }

  void advance(std::size_t s) {
    Stream& stream = streams_[s];
    stream.now = *reached(s);
    const Op& op = op_of(s);
    const std::size_t at = stream.at++;
    if (op.kind == Op::Kind::wait) {
      const Calls& calls = points_[op.event].front().calls;
      stream.awaited.insert(stream.awaited.end(), calls.begin(), calls.end());
      points_[op.event].pop();
    } else if (op.kind == Op::Kind::record) {
      Calls calls = stream.awaited;  // a wait for this point implies the stream's own waits before
      calls.insert(calls.end(), stream.running.begin(), stream.running.end());
      points_[op.event].push({stream.now, std::move(calls)});
    } else {
      issue(op, s, at);
    }
  }

  void issue(const Op& op, std::size_t s, std::size_t at) {
    Stream& stream = streams_[s];
    IssuedOp one{&op, s, at, stream.now, std::exchange(stream.awaited, {})};
    // With several workers a stream's calls run together; otherwise each ends the one before it.
    const bool computes = op.kind == Op::Kind::compute;
    while (stream.running.size() > may_run(op, s)) {
      one.ends.push_back(stream.running.front());
      stream.running.erase(stream.running.begin());
    }
    std::sort(one.ends.begin(), one.ends.end());
    one.ends.erase(std::unique(one.ends.begin(), one.ends.end()), one.ends.end());
    if (computes)
      stream.now += op.duration;
    else
      stream.running.push_back(order_.size());
    order_.push_back(std::move(one));
  }

  const Program& program_;
  std::vector<Stream> streams_;
  std::vector<std::queue<Point>> points_;  // by event: those that no wait has taken
  std::vector<IssuedOp> order_;
};

}  // namespace

std::vector<IssuedOp> issue_order(const Program& program) {
  if (carries_over(program))
    throw Error("a stream goes on beside the next iteration, and a trace has one iteration");
  return Player(program).run();
}

}  // namespace ghostrank
