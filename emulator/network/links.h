// Models the links between switches, and counts what crosses them.
//
// A message starts on a link when its first byte arrives and the messages whose first byte arrived
// earlier have had their time. It takes the link for as long as its bytes take at the link's rate.
// Bytes that arrive more slowly than that leave room for other messages in between. The last byte
// of a message leaves when it has arrived and everything before it has had its time.
//
//   NIC    ██████████            a message of 10, from a NIC half as fast as the link
//   link    █▒█▒█▒█▒█▒           ▒ room for others: two such messages do not delay each other
//
// A link passes whole messages, not packets, so a short message waits for all of a long one that
// came first.
//
// Units: emulated picoseconds, bytes. Threading: one owner (the shard that plays the link).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "emulator/common/moment.h"
#include "emulator/network/queue_count.h"
#include "profiles/units.h"

namespace ghostrank {

// An event's target is a rank, by local index, or a link, numbered downwards from this.
inline constexpr std::uint32_t kMostTargets = 1u << 24;

struct LinkCount {  // of one link
  std::uint64_t bytes = 0, messages = 0;
  Picoseconds busy = 0, longest_wait = 0;
  // `passed`: messages, packets or, where these are flows, calls, each of which may have waited;
  // `waited`: how long in all, at most 106 days.
  std::uint64_t passed = 0;
  Picoseconds waited = 0;
  QueueCount queue;  // where packets are played
  void merge(const LinkCount& other) {
    bytes += other.bytes;
    messages += other.messages;
    busy += other.busy;
    longest_wait = std::max(longest_wait, other.longest_wait);
    passed += other.passed;
    waited += other.waited;
    queue.merge(other.queue);
  }
  void add_message(std::uint64_t its_bytes, Picoseconds duration, Picoseconds wait) {
    bytes += its_bytes;
    ++messages;
    busy += duration;
    longest_wait = std::max(longest_wait, wait);
    ++passed;
    waited += wait;
  }
};

// When the first and the last byte of a message pass a point, and the slip of the event that set
// these times.
struct Passage {
  Picoseconds head = 0, tail = 0, slip = 0;
};

// A message's turn on a link whose rate changes (network/link_rates.h).
struct LinkTurn {
  Moment start;
  Picoseconds duration = 0;  // of all its bytes, without a rest, from then on
  Picoseconds tail = 0;      // when its last byte has passed
};

// One cache line, because a large fabric has tens of thousands of links, and each message finds
// another one.
class alignas(64) Link {
 public:
  // Passes a message that arrives at `in` and takes `duration` at the link's rate; returns when it
  // leaves. A message that is not `counted` makes the link busy and no more.
  Passage pass(const Passage& in, Picoseconds duration, std::uint64_t bytes, bool counted = true) {
    const Moment start = later({in.head, in.slip}, free_);
    free_ = {start.at + duration, start.slip};
    const Picoseconds alone = std::max(in.tail, in.head + duration);
    const Picoseconds tail = std::max(in.tail, free_.at);
    // A message is as long as it arrived or as the link makes it, whichever is longer, and never
    // overtakes the head of an earlier one.
    head_ = std::max(tail - std::max(in.tail - in.head, duration), head_);
    busy_ += duration;
    if (counted) [[likely]] {
      ++messages_;
      bytes_ += bytes;
      longest_wait_ = std::max(longest_wait_, tail - alone);
      waited_ += tail - alone;
    }
    return {head_, tail, start.slip};
  }
  // Passes a message that has this turn. What it was held up by the link, with the time in which
  // nothing passed before it began, counts as a wait.
  Passage pass(const Passage& in, const LinkTurn& turn, std::uint64_t bytes, bool counted = true) {
    const Picoseconds own = turn.start.at + turn.duration;
    const Picoseconds tail = std::max({in.tail, own, turn.tail});
    free_ = {turn.tail > in.tail ? std::max(own, turn.tail) : own, turn.start.slip};
    head_ = std::max({tail - std::max(in.tail - in.head, turn.duration), turn.start.at, head_});
    busy_ += turn.duration;
    if (counted) {
      ++messages_;
      bytes_ += bytes;
      const Picoseconds wait = tail - std::max(in.tail, in.head + turn.duration);
      longest_wait_ = std::max(longest_wait_, wait);
      waited_ += wait;
    }
    return {head_, tail, turn.start.slip};
  }
  LinkCount count() const {
    return {.bytes = bytes_,
            .messages = messages_,
            .busy = busy_,
            .longest_wait = longest_wait_,
            .passed = messages_,
            .waited = waited_};
  }
  const Moment& free() const { return free_; }  // when the last message has had its time
  Picoseconds free_at() const { return free_.at; }

 private:
  Moment free_;           // when everything that has arrived has had its time
  Picoseconds head_ = 0;  // of the last message, as it left
  std::uint64_t bytes_ = 0, messages_ = 0;
  Picoseconds busy_ = 0, longest_wait_ = 0, waited_ = 0;
};
static_assert(sizeof(Link) == 64);

// The last note to many that crossed a link. Its copies come one after the other, at one time, and
// cross the link once.
class LastNote {
 public:
  // Passes copy `number` of a note that comes at `head`: the first one as `pass` does.
  template <typename Pass>
  Passage pass(std::uint64_t number, Picoseconds head, const Pass& pass_first) {
    if (number == number_ && head == head_) return out_;
    number_ = number;
    head_ = head;
    return out_ = pass_first();
  }

 private:
  std::uint64_t number_ = 0;
  Picoseconds head_ = 0;
  Passage out_;
};

}  // namespace ghostrank
