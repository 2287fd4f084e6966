#include "profiles/workload/carry_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "profiles/error.h"

namespace ghostrank {
namespace {

class CarryCheck {
 public:
  CarryCheck(const Workload& workload, const Role& role, const std::string& source)
      : workload_(workload), role_(role), source_(source) {}

  void run() const {
    const bool carries = std::any_of(role_.iterations.begin(), role_.iterations.end(),
                                     [](const Program& p) { return carries_over(p); });
    check_waits(carries);
    if (!carries) return;
    for (const Program& program : role_.iterations) {
      check_streams(program);
      check_groups(program);
    }
    // Beyond `last`, pairs of iterations repeat, because the order is cyclic past its end.
    const std::size_t last = std::max(workload_.order.size(), role_.iterations.size());
    std::set<std::pair<std::size_t, std::size_t>> checked;
    for (std::size_t i = 0; i < last; ++i)
      if (checked.emplace(number_at(i), number_at(i + 1)).second) check_events(i, i + 1);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error((source_.empty() ? "" : source_ + ": ") + "role " + role_.name + what);
  }

  std::size_t number_at(std::size_t iteration) const {
    return std::min(program_number(workload_, iteration), role_.iterations.size() - 1);
  }

  static std::string event_text(std::uint32_t event) {
    return "event " + std::to_string(event) + " of the previous iteration";
  }

  // All programs of a role must mark the same streams as outliving, because such a stream may still
  // run one iteration when the next begins.
  void check_streams(const Program& program) const {
    if (outlives(program, 0))
      fail(": stream " + program.stream_names[0] +
           " is the first one, whose end is the end of the iteration, and cannot outlive it; mark "
           "another stream");
    const Program& first = role_.iterations.front();
    for (std::size_t s = 0; s < std::max(first.outlives.size(), program.outlives.size()); ++s)
      if (outlives(first, s) != outlives(program, s))
        fail(": stream " + std::to_string(s) +
             " outlives some of its iterations and not others; mark it alike in all of them");
  }

  // Members of a group must make their calls in the same order. Events can order two streams of one
  // iteration, but not a stream that may still be in the previous one.
  void check_groups(const Program& program) const {
    std::map<std::uint16_t, std::set<std::size_t>> users;
    for (std::size_t s = 0; s < program.streams.size(); ++s)
      for (const Op& op : program.streams[s].distinct())
        if (communicates(op)) users[op.group].insert(s);
    for (const auto& [kind, streams] : users) {
      const auto carried = std::find_if(streams.begin(), streams.end(),
                                        [&](std::size_t s) { return outlives(program, s); });
      if (streams.size() == 1 || carried == streams.end()) continue;
      const std::size_t other = *carried == *streams.begin() ? *streams.rbegin() : *streams.begin();
      fail(": group " + workload_.group_names[kind] + " is used by stream " +
           program.stream_names[*carried] + ", which outlives its iteration, and by stream " +
           program.stream_names[other] +
           "; give each a group of its own, so that all members make the same calls in the same "
           "order");
    }
  }

  void check_waits(bool carries) const {
    const std::set<std::uint32_t> previous = awaited(true);
    if (previous.empty()) return;
    const std::set<std::uint32_t> own = awaited(false);
    for (const std::uint32_t event : previous) {
      if (!carries)
        fail(" waits for " + event_text(event) +
             ", but no stream of it outlives an iteration; mark one, or leave out the wait");
      if (own.contains(event))
        fail(" waits for " + event_text(event) +
             " and also in the iteration that records it; use an event for each");
    }
  }

  // Events that the role waits for: recorded by the previous iteration, or by the same one.
  std::set<std::uint32_t> awaited(bool previous) const {
    std::set<std::uint32_t> events;
    for (const Program& program : role_.iterations)
      for (const OpList& stream : program.streams)
        for (const Op& op : stream.distinct())
          if (op.kind == Op::Kind::wait && op.previous == previous) events.insert(op.event);
    return events;
  }

  // Iteration `before` must record once, and iteration `next` await once, each carried event.
  void check_events(std::size_t before, std::size_t next) const {
    std::map<std::uint32_t, std::size_t> recorded, waits;
    for (const OpList& stream : role_.iterations[number_at(before)].streams)
      for (const Op& op : stream)
        if (op.kind == Op::Kind::record) ++recorded[op.event];
    for (const OpList& stream : role_.iterations[number_at(next)].streams)
      for (const Op& op : stream)
        if (op.kind == Op::Kind::wait && op.previous) ++waits[op.event];
    for (const auto& [event, times] : waits) {
      if (times == 1 && recorded[event] == 1) continue;
      fail(" waits " + (times == 1 ? "" : std::to_string(times) + " times ") + "in iteration " +
           std::to_string(next) + " for " + event_text(event) + ", which records it " +
           std::to_string(recorded[event]) + " times; record it once, and wait for it once");
    }
  }

  const Workload& workload_;
  const Role& role_;
  const std::string& source_;
};

}  // namespace

void check_carried(const Workload& workload, const std::string& source) {
  for (const Role& role : workload.roles) CarryCheck(workload, role, source).run();
}

}  // namespace ghostrank
