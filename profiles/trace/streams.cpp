#include "profiles/trace/streams.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "profiles/trace/replay.h"

namespace ghostrank {
namespace {

// The engine numbers streams with one byte; kMostMessageStreams of them are kept free for messages.
constexpr std::size_t kMostStreams = 250;
constexpr std::size_t kMostTracks = kMostStreams - kMostMessageStreams - 100;

}  // namespace

TraceStreams::TraceStreams(std::vector<std::string> tracks, std::size_t events, bool sends_leave)
    : sends_leave_(sends_leave), done_(events) {
  if (tracks.size() > kMostTracks) tracks.resize(kMostTracks);
  for (std::string& track : tracks) add_stream(std::move(track), kTrack);
}

std::uint32_t TraceStreams::add_stream(std::string name, std::uint32_t kind) {
  const auto taken = [&](const std::string& one) {
    return std::any_of(streams_.begin(), streams_.end(),
                       [&](const Stream& stream) { return stream.name == one; });
  };
  std::string unique = name;
  for (int i = 2; taken(unique); ++i) unique = name + "." + std::to_string(i);
  streams_.emplace_back().name = std::move(unique);
  streams_.back().kind = kind;
  for (Stream& stream : streams_) stream.learnt.resize(streams_.size());
  return static_cast<std::uint32_t>(streams_.size() - 1);
}

// How many items of stream `of` have ended when the point `at` is reached.
std::uint32_t TraceStreams::known(const Point& at, std::uint32_t of) const {
  if (at.first == of) return at.second;
  const auto& learnt = streams_[at.first].learnt[of];
  const auto after = std::upper_bound(
      learnt.begin(), learnt.end(), at.second,
      [](std::uint32_t position, const Learnt& one) { return position < one.position; });
  return after == learnt.begin() ? 0 : std::prev(after)->known;
}

// Fills after_ with at most one point per stream, and without points that another one implies.
void TraceStreams::collect(const std::uint32_t* deps, std::size_t count) {
  after_.clear();
  const auto add = [&](const Point& point) {
    for (Point& one : after_)
      if (one.first == point.first) {
        one.second = std::max(one.second, point.second);
        return;
      }
    after_.push_back(point);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const Point& done = done_[deps[i]];
    if (done.first != kNoIndex) {
      add(done);
    } else {
      for (const Point& point : joins_[done.second]) add(point);
    }
  }
  if (after_.size() < 2 || after_.size() > 32) return;
  std::erase_if(after_, [&](const Point& point) {
    return std::any_of(after_.begin(), after_.end(), [&](const Point& other) {
      return other.first != point.first && known(other, point.first) >= point.second;
    });
  });
}

void TraceStreams::join(std::uint32_t event, const std::uint32_t* deps, std::size_t count) {
  collect(deps, count);
  if (after_.size() == 1) {
    done_[event] = after_.front();
    return;
  }
  done_[event] = {kNoIndex, static_cast<std::uint32_t>(joins_.size())};
  joins_.push_back(after_);
}

// Notes that from its next item on, the stream comes after `from` and all that `from` implies.
void TraceStreams::learn(std::uint32_t stream, const Point& from) {
  Stream& to = streams_[stream];
  const auto position = static_cast<std::uint32_t>(to.items.size() + 1);
  for (std::uint32_t s = 0; s < streams_.size(); ++s) {
    const std::uint32_t now = known(from, s);
    auto& learnt = to.learnt[s];
    if (s == stream || now == 0 || (!learnt.empty() && learnt.back().known >= now)) continue;
    if (!learnt.empty() && learnt.back().position == position)
      learnt.back().known = now;
    else
      learnt.push_back({position, now});
  }
}

void TraceStreams::append(std::uint32_t event, std::uint32_t stream, const Op& op) {
  Item item{op, event, static_cast<std::uint32_t>(waits_.size()), 0};
  for (const Point& point : after_) {
    if (point.first == stream) continue;
    const auto& learnt = streams_[stream].learnt[point.first];
    if (!learnt.empty() && learnt.back().known >= point.second) continue;
    // A stream waits for later and later points of another, so one event serves all of them.
    const auto number = static_cast<std::uint32_t>(event_of_.size());
    const std::uint32_t tie = event_of_.try_emplace({point.first, stream}, number).first->second;
    streams_[point.first].records.emplace_back(point.second, tie);
    waits_.push_back(tie);
    ++item.waits;
    learn(stream, point);
  }
  streams_[stream].items.push_back(item);
  if (op.kind != Op::Kind::send)
    streams_[stream].received = static_cast<std::uint32_t>(streams_[stream].items.size());
  done_[event] = {stream, static_cast<std::uint32_t>(streams_[stream].items.size())};
}

void TraceStreams::on_track(std::uint32_t event, std::size_t track, const Op& op,
                            const std::uint32_t* deps, std::size_t count) {
  collect(deps, count);
  append(event, static_cast<std::uint32_t>(std::min(track, kMostTracks - 1)), op);
}

void TraceStreams::on_communicator(std::uint32_t event, std::uint16_t kind, const std::string& name,
                                   const Op& op, const std::uint32_t* deps, std::size_t count) {
  collect(deps, count);
  auto at = of_kind_.find(kind);
  if (at == of_kind_.end()) {
    const bool room = streams_.size() + kMostMessageStreams - messages_.size() < kMostStreams;
    at = of_kind_.emplace(kind, room ? add_stream(name, kind) : of_kind_.begin()->second).first;
  }
  append(event, at->second, op);
}

void TraceStreams::on_message_stream(std::uint32_t event, const Op& op, const std::uint32_t* deps,
                                     std::size_t count) {
  collect(deps, count);
  const std::uint32_t stream = message_stream(op);
  append(event, stream, op);
  for (const Point& point : after_)
    if (point.first != stream && !is_without_turn(op))
      streams_[point.first].items[point.second - 1].frees = stream;
}

// Whether it does not matter which message of its moment begins first: a receive takes no NIC.
bool TraceStreams::is_without_turn(const Op& op) const {
  return sends_leave_ && op.kind == Op::Kind::recv;
}

// Whether the stream's last message is a send that starts no later than `op`, which comes after
// after_. Where sends are over when they start, it holds up nothing.
bool TraceStreams::sends_before(std::uint32_t stream, const Op& op) const {
  const Stream& its = streams_[stream];
  if (!sends_leave_ || op.kind != Op::Kind::send || its.items.back().op.kind != Op::Kind::send)
    return false;
  const auto ended = [&](std::uint32_t of, std::uint32_t items) {
    return items == 0 || std::any_of(after_.begin(), after_.end(),
                                     [&](const Point& point) { return known(point, of) >= items; });
  };
  if (!ended(stream, its.received)) return false;
  for (std::uint32_t s = 0; s < streams_.size(); ++s)
    if (const auto& learnt = its.learnt[s];
        s != stream && !learnt.empty() && !ended(s, learnt.back().known))
      return false;
  return true;
}

// A stream whose last message does not hold up one that comes after after_, else a new stream, else
// a shared one. Of streams that are free at one moment the engine starts those of lower numbers
// first, so a message takes one behind those of the messages before it that wait for the same;
// sends take one stream, if they can, and have its order.
std::uint32_t TraceStreams::message_stream(const Op& op) {
  const auto number = [&](std::uint32_t stream) {  // grows with it
    return streams_[stream].items.front().event + std::uint64_t{1};
  };
  std::uint64_t before = 0;
  for (const Point& point : after_)
    if (const std::uint32_t stream = streams_[point.first].items[point.second - 1].frees;
        stream != kNoIndex && !is_without_turn(op))
      before = std::max(before, number(stream));
  std::uint32_t free = kNoIndex, out_of_turn = kNoIndex;
  for (const std::uint32_t stream : messages_) {
    const auto last = static_cast<std::uint32_t>(streams_[stream].items.size());
    const bool sends = sends_before(stream, op);
    const bool ended = std::any_of(after_.begin(), after_.end(), [&](const Point& point) {
      return known(point, stream) == last;
    });
    if (!ended && !sends) continue;
    if (number(stream) < before)
      out_of_turn = stream;
    else if (sends)
      return stream;
    else if (free == kNoIndex)
      free = stream;
  }
  if (free != kNoIndex) return free;
  if (messages_.size() < kMostMessageStreams) {
    messages_.push_back(add_stream("p2p", kMessages));
    return messages_.back();
  }
  if (out_of_turn != kNoIndex) return out_of_turn;
  ++crowded_;
  return messages_[next_message_++ % messages_.size()];
}

bool TraceStreams::follows(std::uint32_t earlier, std::uint32_t later) const {
  const Point &first = done_[earlier], &then = done_[later];
  return first.first == then.first ? first.second < then.second
                                   : known(then, first.first) >= first.second;
}

// Tracks, then communicators by kind, then messages by their first event: ranks that do the same
// get the same order, however they came to it.
std::vector<std::uint32_t> TraceStreams::final_order() const {
  std::vector<std::uint32_t> order(streams_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::uint32_t at) {
    const Stream& stream = streams_[at];
    const std::uint32_t part = stream.kind == kTrack ? 0 : stream.kind == kMessages ? 2 : 1;
    return std::tuple(part, part == 1 ? stream.kind : part == 2 ? stream.items.front().event : at);
  };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  return order;
}

Program TraceStreams::take(std::vector<std::string> labels, std::vector<GroupedCalls>& launches) {
  Program out;
  out.labels = std::move(labels);
  out.events = static_cast<std::uint32_t>(event_of_.size());
  std::vector<std::uint32_t> number(out.events, kNoIndex);  // of events, in the order of first use
  std::uint32_t numbered = 0, messages = 0;
  for (const std::uint32_t at : final_order()) {
    Stream& stream = streams_[at];
    std::sort(stream.records.begin(), stream.records.end());
    OpList list;
    std::size_t record = 0;
    const auto tie = [&](Op::Kind kind, std::uint32_t event) {
      if (number[event] == kNoIndex) number[event] = numbered++;
      Op op;
      op.kind = kind;
      op.event = number[event];
      list.push_back(op);
    };
    for (std::size_t i = 0; i < stream.items.size();) {
      const Item& item = stream.items[i];
      for (std::uint32_t w = 0; w < item.waits; ++w)
        tie(Op::Kind::wait, waits_[item.first_wait + w]);
      std::vector<Op> calls;
      const auto joins = [&](const Item& next) {
        return calls.empty() ||
               (next.op.launch_index > 0 && next.waits == 0 && calls.size() < kMostTogether);
      };
      for (; i < stream.items.size() && joins(stream.items[i]); ++i) {
        calls.push_back(stream.items[i].op);
        calls.back().launch_index = 0;
      }
      make_launch(calls, launches);
      for (const Op& op : calls) list.push_back(op);
      for (; record < stream.records.size() && stream.records[record].first <= i; ++record)
        tie(Op::Kind::record, stream.records[record].second);
    }
    list.shrink_to_fit();
    out.stream_names.push_back(stream.kind == kMessages ? "p2p " + std::to_string(messages++)
                                                        : stream.name);
    out.streams.push_back(std::move(list));
  }
  return out;
}

}  // namespace ghostrank
