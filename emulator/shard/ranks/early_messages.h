// Messages that arrived early. They lie in lists: a rank keeps one for collectives that it has not
// begun, an actor one for its later steps. A list is in order of arrival, and messages leave it in
// that order.
//
// Bounds: memory grows to the most messages that were kept at one time and is kept. Threading: one
// owner (a shard).
#pragma once

#include <cstdint>

#include "emulator/common/pool.h"
#include "emulator/shard/events/event.h"

namespace ghostrank {

struct EarlyList {
  std::uint32_t head = kNil, tail = kNil;
  bool empty() const { return head == kNil; }
};

class EarlyMessages {
 public:
  // Appends a message that arrived at `e.t`.
  void push(EarlyList& list, const Event& e) {
    const std::uint32_t i = messages_.put({e, kNil});
    (list.empty() ? list.head : messages_[list.tail].next) = i;
    list.tail = i;
  }

  // Walks the list and removes each message for which take(event) returns true, until enough()
  // does. `take` may push to other lists.
  template <typename Take, typename Enough>
  void take(EarlyList& list, const Take& take, const Enough& enough) {
    std::uint32_t before = kNil;
    for (std::uint32_t i = list.head; i != kNil && !enough();) {
      const bool taken = take(messages_[i].event);
      const std::uint32_t next = messages_[i].next;
      taken ? unlink(list, before, i) : static_cast<void>(before = i);
      i = next;
    }
  }

 private:
  struct Message {
    Event event;
    std::uint32_t next = kNil;
  };

  void unlink(EarlyList& list, std::uint32_t before, std::uint32_t i) {
    (before == kNil ? list.head : messages_[before].next) = messages_[i].next;
    if (list.tail == i) list.tail = before;
    messages_.drop(i);
  }

  Pool<Message> messages_;
};

}  // namespace ghostrank
