#include "emulator/traffic/call_traffic.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace ghostrank {
namespace {

std::uint64_t step_bytes(const Schedule& schedule, const Step& step) {
  const std::uint32_t element = schedule.collective().element_bytes;
  if (schedule.protocol() == Protocol::simple) return step.send.count * element;
  std::uint64_t bytes = 0;  // each message is rounded up by itself
  for (std::uint32_t s = 0; s < step.slices; ++s) {
    bytes += message_bytes(schedule.protocol(), slice_of(step.send, step, s).count, element);
  }
  return bytes;
}

// What one connection sends; by pair, if there are several.
class Sent {
 public:
  explicit Sent(const QueuePairs& pairs)
      : pairs_(pairs), by_pair_(pairs.several() ? pairs.count : 0) {}

  void add(const Schedule& schedule, const Step& step) {
    sum_ += {step_bytes(schedule, step), step.slices};
    if (by_pair_.empty()) return;
    const std::uint32_t element = schedule.collective().element_bytes;
    for (std::uint32_t s = 0; s < step.slices; ++s)
      add_message(message_bytes(schedule.protocol(), slice_of(step.send, step, s).count, element));
  }
  const LedgerCell& sum() const { return sum_; }
  std::vector<LedgerCell> take_by_pair() { return std::move(by_pair_); }

 private:
  void add_message(std::uint64_t bytes) {
    const std::uint32_t parts = pairs_.parts(bytes);
    for (std::uint32_t i = 0; i < parts; ++i)
      by_pair_[pairs_.split ? i : turn_] += {pairs_.part(bytes, i), 1};
    turn_ = (turn_ + 1) % pairs_.count;
  }

  QueuePairs pairs_;
  LedgerCell sum_;
  std::vector<LedgerCell> by_pair_;
  std::uint32_t turn_ = 0;  // the next message's pair
};

}  // namespace

CallTraffic walk(const Schedule& schedule, const QueuePairs& pairs) {
  CallTraffic call;
  const Collective& c = schedule.collective();
  call.call_bytes = call_elements(c) * c.element_bytes;
  std::map<std::tuple<GroupRank, GroupRank, int>, Sent> sums;
  const auto add = [&](GroupRank r) {
    for (int a = 0; a < schedule.actors(r); ++a) {
      const Actor actor = schedule.actor(r, a);
      Sent* sent = nullptr;
      GroupRank last = kNoRank;
      for (int k = 0; k < actor.steps; ++k) {
        const Step s = schedule.step(r, a, k);
        for (GroupRank peer : s.send_to) {
          if (!sent || peer != last)
            sent = &sums.try_emplace({r, last = peer, actor.channel}, pairs).first->second;
          sent->add(schedule, s);
        }
      }
    }
  };
  if (c.func == Func::send_recv)
    add(c.root);
  else
    for (GroupRank r = 0; r < c.size; ++r) add(r);
  for (auto& [key, sent] : sums) {
    const auto& [from, to, channel] = key;
    call.edges.push_back(
        {from, to, channel, sent.sum().bytes, sent.sum().messages, sent.take_by_pair()});
  }
  return call;
}

}  // namespace ghostrank
