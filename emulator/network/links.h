// Links between switches at work, and what has gone over them.
//
// A message takes a link when its first byte comes: behind those whose first byte came before, for
// as long as its bytes take at the link's rate. Bytes that come more slowly than the link is leave
// it room for others meanwhile; the last byte of a message is through when it has come and all that
// is before it has had its time.
//
//   NIC    ██████████            a message of 10, from a NIC half as fast as the link
//   link    █▒█▒█▒█▒█▒           ▒ for others: of two such messages none is held up
//
// Messages, not packets, are what a link lets through, so a short one waits for all of a long one
// that came before it.
//
// Units: emulated picoseconds, bytes. Threading: one owner (the shard that plays the link).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "profiles/units.h"

namespace ghostrank {

// Events of a shard are for ranks, by local index, and for links, which are counted down from here.
inline constexpr std::uint32_t kMostTargets = 1u << 24;

struct LinkCount {  // of one link
  std::uint64_t bytes = 0, messages = 0;
  Picoseconds busy = 0, longest_wait = 0;
  void merge(const LinkCount& other) {
    bytes += other.bytes;
    messages += other.messages;
    busy += other.busy;
    longest_wait = std::max(longest_wait, other.longest_wait);
  }
};

// When a message passes a place: its first and its last byte.
struct Passage {
  Picoseconds head = 0, tail = 0;
};

class Link {
 public:
  // What comes at `in`, and takes `duration` at the link's rate, leaves when? `note`: of one to
  // many, whose copies share it; 0: of none.
  Passage pass(const Passage& in, Picoseconds duration, std::uint64_t bytes, std::uint64_t note) {
    if (note != 0 && note == note_ && in.head == note_head_) return out_;
    free_ = std::max(in.head, free_) + duration;
    const Picoseconds alone = std::max(in.tail, in.head + duration);
    const Picoseconds tail = std::max(in.tail, free_);
    // As long as it came, or as the link makes it; never before one that came first.
    const Picoseconds head = tail - std::max(in.tail - in.head, duration);
    out_ = {std::max(head, out_.head), tail};
    count_.merge({bytes, 1, duration, tail - alone});
    note_ = note;
    note_head_ = in.head;
    return out_;
  }
  const LinkCount& count() const { return count_; }

 private:
  Picoseconds free_ = 0;  // when all that has come has had its time
  Passage out_;           // of the last one
  std::uint64_t note_ = 0;
  Picoseconds note_head_ = 0;
  LinkCount count_;
};

}  // namespace ghostrank
