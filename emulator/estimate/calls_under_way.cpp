#include "emulator/estimate/calls_under_way.h"

#include <algorithm>
#include <limits>

namespace ghostrank {

void CallsUnderWay::begin(const Call& call, Picoseconds start, End& end) {
  end.at = kUnknown;
  starts_.push({std::max(start, now_), begun_++, &call, &end});
}

void CallsUnderWay::flow(const Part& part, const Call* call, End* end) {
  active_.push_back(
      {network_.add(part.needs, static_cast<double>(part.alone), 1, now_), call, end});
}

// Lets those begin whose resources are free, and not wanted by one that came earlier.
void CallsUnderWay::take_turns() {
  std::vector<bool> wanted = taken_;
  std::erase_if(waiting_, [&](const Start& one) {
    bool free = true;
    for (const Part* part : {&one.call->own, &one.call->others})
      for (const FlowNetwork::Need& need : part->needs) free = free && !wanted[need.resource];
    for (const Part* part : {&one.call->own, &one.call->others})
      for (const FlowNetwork::Need& need : part->needs) {
        wanted[need.resource] = true;
        if (free) taken_[need.resource] = true;
      }
    if (free) flow(one.call->own, one.call, one.end);
    return free;
  });
}

void CallsUnderWay::done(const Call& call) {
  if (!call.in_turn) return;
  for (const Part* part : {&call.own, &call.others})
    for (const FlowNetwork::Need& need : part->needs) taken_[need.resource] = false;
  take_turns();
}

// Flows get their rates, which say when they end.
void CallsUnderWay::settle() {
  for (const FlowNetwork::Id id : network_.settle(now_)) {
    if (id >= ends_.size()) ends_.resize(id + 1);
    ends_[id] = network_.end(id);
  }
}

const CallsUnderWay::End* CallsUnderWay::end_next() {
  for (;;) {
    std::size_t next = active_.size();
    Picoseconds at = kUnknown;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const Picoseconds end = ends_[active_[i].flow];
      if (next < active_.size() && end >= at) continue;
      next = i;
      at = end;
    }
    if (!starts_.empty() && starts_.top().at <= at) {
      now_ = starts_.top().at;
      bool turns = false;
      for (; !starts_.empty() && starts_.top().at == now_; starts_.pop()) {
        const Start& start = starts_.top();
        if (start.call->in_turn) {
          turns = true;
          waiting_.push_back(start);
        } else {
          flow(start.call->own, start.call, start.end);
        }
      }
      if (turns) take_turns();
      settle();
      continue;
    }
    if (next == active_.size()) return nullptr;
    now_ = std::max(now_, at);
    const Active ended = active_[next];
    network_.remove(ended.flow);
    active_[next] = active_.back();
    active_.pop_back();
    if (ended.end && ended.call->others.alone > 0)
      flow(ended.call->others, ended.call, nullptr);
    else
      done(*ended.call);
    settle();
    if (!ended.end) continue;
    ended.end->at = now_;
    return ended.end;
  }
}

}  // namespace ghostrank
