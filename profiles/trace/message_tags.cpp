#include "profiles/trace/message_tags.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostTags = 10'000;

// Communicator, traced tag, bytes.
using MessageKey = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;

struct Message {
  std::uint32_t from = 0, to = 0;  // given ranks
  std::uint32_t send = 0, receive = 0;
};

// What a tag of a pair of ranks holds of a step so far. Of messages that follow each other only the
// last is kept: what follows it follows all of them.
struct Lane {
  MessageKey key;                       // of the latest messages
  std::vector<Message> before, latest;  // `latest` follow all of `before`
  std::uint32_t received = 0;           // position of the last receive in its sequence
};

struct Pair {
  MessageKey first;
  bool mixed = false;  // not all messages have the first one's key
  std::vector<Lane> lanes;
};

class Tagging {
 public:
  Tagging(const Trace& trace, const TraceOrder& order, const Follows& follows)
      : trace_(trace), order_(order), follows_(follows), index_(trace.given.size()) {
    for (std::uint32_t r = 0; r < trace.given.size(); ++r) given_of_[trace.given[r].rank] = r;
    for (std::uint32_t r = 0; r < trace.given.size(); ++r) {
      if (order.partner[r].empty()) continue;
      index_[r].resize(trace.given[r].events.size());
      for (std::uint32_t i = 0; i < order.sequence[r].size(); ++i)
        index_[r][order.sequence[r][i]] = i;
    }
    out_.of.resize(trace.given.size());
    for (std::uint32_t r = 0; r < trace.given.size(); ++r)
      for (std::uint32_t i = 0; i < order.partner[r].size(); ++i) {
        const TraceEvent& event = trace.given[r].events[i];
        if (event.kind != TraceKind::send || order.partner[r][i] == kNoIndex) continue;
        const MessageKey key(event.group, event.tag, event.stated);
        Pair& pair =
            pairs_.try_emplace({r, given_of_.at(WorldRank(event.peer))}, Pair{key}).first->second;
        pair.mixed |= pair.first != key;
      }
  }

  // First fit, in the order of the sender.
  void send(std::uint32_t r, std::uint32_t event) {
    const TraceEvent& one = trace_.given[r].events[event];
    if (one.kind != TraceKind::send || order_.partner[r][event] == kNoIndex) return;
    const Message message{r, given_of_.at(WorldRank(one.peer)), event, order_.partner[r][event]};
    const MessageKey key(one.group, one.tag, one.stated);
    const std::uint32_t received = index_[message.to][message.receive];
    auto& [first, mixed, lanes] = pairs_.at({r, message.to});
    const auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const Lane& open) {
      return open.received < received &&
             follows_all(message, open.key == key ? open.before : open.latest);
    });
    const auto tag = static_cast<std::size_t>(lane - lanes.begin());
    if (tag == kMostTags)
      throw Error(position_text(trace_, trace_.given[r], one) + ": more than " +
                  std::to_string(kMostTags) + " messages to rank " + std::to_string(one.peer) +
                  " of different tags or sizes that follow each other in no fixed order");
    add(message, key, mixed, lane == lanes.end() ? lanes.emplace_back() : *lane);
    if (tag == 0) return;
    set(r, event, tag);
    set(message.to, message.receive, tag);
    out_.count = std::max(out_.count, static_cast<std::uint16_t>(tag + 1));
  }

  // All messages of the next step follow all of this one.
  void end_step() {
    for (auto& [ends, pair] : pairs_) pair.lanes.clear();
  }

  MessageTags take() { return std::move(out_); }

 private:
  bool follows(const Message& earlier, const Message& later) const {
    return follows_(later.from, earlier.send, later.send) &&
           follows_(later.to, earlier.receive, later.receive);
  }
  bool follows_all(const Message& later, const std::vector<Message>& all) const {
    return std::all_of(all.begin(), all.end(),
                       [&](const Message& earlier) { return follows(earlier, later); });
  }

  void add(const Message& message, const MessageKey& key, bool mixed, Lane& lane) const {
    if (lane.key != key) {
      lane.key = key;
      lane.before = std::exchange(lane.latest, {});
    }
    lane.received = index_[message.to][message.receive];
    if (!mixed) return;
    std::erase_if(lane.latest, [&](const Message& earlier) { return follows(earlier, message); });
    lane.latest.push_back(message);
  }

  void set(std::uint32_t r, std::uint32_t event, std::size_t tag) {
    out_.of[r].resize(trace_.given[r].events.size());
    out_.of[r][event] = static_cast<std::uint16_t>(tag);
  }

  const Trace& trace_;
  const TraceOrder& order_;
  const Follows& follows_;
  std::map<WorldRank, std::uint32_t> given_of_;
  std::vector<std::vector<std::uint32_t>> index_;  // by given rank and event: place in its sequence
  std::map<std::pair<std::uint32_t, std::uint32_t>, Pair> pairs_;  // by from, to
  MessageTags out_;
};

}  // namespace

MessageTags message_tags(const Trace& trace, const TraceOrder& order,
                         const std::vector<std::vector<std::vector<std::uint32_t>>>& sequences,
                         const Follows& follows) {
  Tagging tagging(trace, order, follows);
  for (std::uint32_t step = 0; step < trace.steps; ++step) {
    for (std::uint32_t r = 0; r < sequences.size(); ++r)
      for (const std::uint32_t event : sequences[r][step]) tagging.send(r, event);
    tagging.end_step();
  }
  return tagging.take();
}

}  // namespace ghostrank
