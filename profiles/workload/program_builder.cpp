#include "profiles/workload/program_builder.h"

#include <algorithm>

namespace ghostrank {
namespace {

// Fields common to all communication ops; callers add the size and the peer.
Op message_op(Op::Kind kind, std::uint32_t label, Func func, std::uint16_t group, DataType dtype) {
  Op op;
  op.kind = kind;
  op.func = func;
  op.dtype = dtype;
  op.group = group;
  op.label = label;
  return op;
}

}  // namespace

ProgramBuilder::ProgramBuilder(std::vector<std::string> stream_names) {
  program_.streams.resize(stream_names.size());
  program_.at_once.assign(stream_names.size(), 1);
  known_.assign(stream_names.size(), std::vector<std::uint32_t>(stream_names.size()));
  program_.stream_names = std::move(stream_names);
}

void ProgramBuilder::outlives(std::size_t stream) {
  program_.outlives.resize(program_.streams.size());
  program_.outlives.at(stream) = true;
}

std::uint32_t ProgramBuilder::label(const std::string& text) {
  const auto [at, added] =
      label_of_.try_emplace(text, static_cast<std::uint32_t>(program_.labels.size()));
  if (added) program_.labels.push_back(text);
  return at->second;
}

std::uint32_t ProgramBuilder::label(const std::string& before, int micro_batch,
                                    const std::string& after) {
  const std::uint32_t at = label(before + std::to_string(micro_batch) + after);
  program_.numerals.resize(program_.labels.size());
  program_.numerals[at] = static_cast<std::uint8_t>(before.size());
  return at;
}

Program ProgramBuilder::take() {
  for (OpList& ops : program_.streams) ops.shrink_to_fit();
  program_.events = static_cast<std::uint32_t>(events_.size());
  return std::move(program_);
}

void ProgramBuilder::end_launch(std::vector<GroupedCalls>& launches) {
  Together together = *std::exchange(together_, std::nullopt);
  make_launch(together.calls, launches);
  for (const Op& op : together.calls) append(together.stream, op);
}

void ProgramBuilder::append(std::size_t stream, const Op& op) {
  if (together_) {
    together_->stream = stream;
    return together_->calls.push_back(op);
  }
  if (script_) return script_->entries.push_back({stream, std::nullopt, op});
  program_.streams.at(stream).push_back(op);
  ++known_[stream][stream];
}

void ProgramBuilder::compute(std::size_t stream, std::uint32_t label, Picoseconds duration) {
  if (duration == 0) return;
  Op op;
  op.kind = Op::Kind::compute;
  op.label = label;
  op.duration = duration;
  append(stream, op);
}

void ProgramBuilder::pace(std::size_t stream, const std::string& text, Picoseconds duration) {
  if (duration == 0) return;
  Op op;
  op.kind = Op::Kind::compute;
  op.pace = true;
  op.label = label(text);
  op.duration = duration;
  append(stream, op);
}

void ProgramBuilder::collective(std::size_t stream, std::uint32_t label, Func func,
                                std::uint16_t group, DataType dtype, std::uint64_t count,
                                std::int32_t root, std::size_t tensor, Reduction reduction) {
  Op op = message_op(Op::Kind::collective, label, func, group, dtype);
  op.count = count;
  op.peer = root;
  op.tensor = static_cast<std::uint32_t>(tensor);
  op.reduction = reduction;
  append(stream, op);
}

void ProgramBuilder::ragged(std::size_t stream, std::uint32_t label, Func func, std::uint16_t group,
                            DataType dtype, std::uint32_t counts) {
  Op op = message_op(Op::Kind::collective, label, func, group, dtype);
  op.counts = counts;
  append(stream, op);
}

void ProgramBuilder::transfer(Op::Kind kind, std::size_t stream, std::uint32_t label,
                              std::uint16_t group, std::int32_t offset, DataType dtype,
                              std::uint64_t count, Op::Within within) {
  Op op = message_op(kind, label, Func::send_recv, group, dtype);
  op.within = within;
  op.count = count;
  op.peer = offset;
  append(stream, op);
}

void ProgramBuilder::send(std::size_t stream, std::uint32_t label, std::uint16_t group,
                          std::int32_t offset, DataType dtype, std::uint64_t count,
                          Op::Within within) {
  transfer(Op::Kind::send, stream, label, group, offset, dtype, count, within);
}

void ProgramBuilder::recv(std::size_t stream, std::uint32_t label, std::uint16_t group,
                          std::int32_t offset, DataType dtype, std::uint64_t count,
                          Op::Within within) {
  transfer(Op::Kind::recv, stream, label, group, offset, dtype, count, within);
}

// Waits of a pair may come in another order than its marks, so the event of a mark that has no wait
// yet is not recorded again.
std::uint32_t ProgramBuilder::event_between(std::size_t recorder, std::size_t waiter) {
  const auto free = std::find_if(events_.begin(), events_.end(), [&](const Event& event) {
    return event.recorder == recorder && event.waiter == waiter && !event.marked;
  });
  const auto number = static_cast<std::uint32_t>(free - events_.begin());
  if (free == events_.end()) events_.push_back({recorder, waiter});
  events_[number].marked = true;
  return number;
}

// Marks the event at once, so that event_between() never returns it.
std::uint32_t ProgramBuilder::carried_event() {
  events_.push_back({.marked = true});
  return static_cast<std::uint32_t>(events_.size() - 1);
}

ProgramBuilder::Mark ProgramBuilder::mark(std::size_t other, std::size_t stream) {
  Op op;
  op.kind = Op::Kind::record;
  op.event = event_between(other, stream);
  program_.streams.at(other).push_back(op);
  return {op.event, stream, known_[other]};
}

void ProgramBuilder::wait(const Mark& mark) {
  const std::size_t stream = mark.stream;
  Op op;
  op.kind = Op::Kind::wait;
  op.event = mark.event;
  program_.streams.at(stream).push_back(op);
  events_[mark.event].marked = false;
  for (std::size_t s = 0; s < mark.known.size(); ++s)
    known_[stream][s] = std::max(known_[stream][s], mark.known[s]);
}

void ProgramBuilder::record(std::size_t stream, std::uint32_t event) {
  Op op;
  op.kind = Op::Kind::record;
  op.event = event;
  program_.streams.at(stream).push_back(op);
}

void ProgramBuilder::wait_previous(std::size_t stream, std::uint32_t event) {
  Op op;
  op.kind = Op::Kind::wait;
  op.previous = true;
  op.event = event;
  program_.streams.at(stream).push_back(op);
  ++known_[stream][stream];  // news to other streams, which come after the iteration before, too
}

// True if `other` holds ops that `stream` does not already come after.
bool ProgramBuilder::has_news(std::size_t stream, std::size_t other) const {
  for (std::size_t s = 0; s < known_[other].size(); ++s)
    if (known_[other][s] > known_[stream][s]) return true;
  return false;
}

void ProgramBuilder::after(std::size_t stream, std::size_t other) {
  if (script_) return script_->entries.push_back({stream, other, {}});
  if (has_news(stream, other)) wait(mark(other, stream));
}

// Progress of one script in take_turns(), and the wait at which it stopped.
struct ProgramBuilder::Turn {
  const Script& script;
  std::size_t at = 0;
  std::optional<Mark> until;
};

// True if it stopped at a wait, false at its end.
bool ProgramBuilder::play_until_wait(Turn& turn, std::size_t stream, std::size_t other) {
  if (turn.until) wait(*std::exchange(turn.until, std::nullopt));
  while (turn.at < turn.script.entries.size()) {
    const Script::Entry& entry = turn.script.entries[turn.at++];
    if (!entry.after) {
      append(entry.stream, entry.op);
    } else if (entry.stream == stream && *entry.after == other && has_news(stream, other)) {
      turn.until = mark(other, stream);
      return true;
    } else {
      after(entry.stream, *entry.after);
    }
  }
  return false;
}

void ProgramBuilder::take_turns(const Script& one, const Script& two, std::size_t stream,
                                std::size_t other) {
  Turn first{one, 0, {}}, second{two, 0, {}};
  for (bool more = true; more;) {
    more = play_until_wait(first, stream, other);
    more |= play_until_wait(second, stream, other);
  }
}

}  // namespace ghostrank
