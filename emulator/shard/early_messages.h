// Messages that came before anybody was ready for them. They lie in lists, of a rank for the
// collectives that it has not begun, of an actor for its later steps; a list is in the order in
// which they came, which is how they are taken out.
//
// Bounds: memory grows to the most that were kept at one time and is kept. Threading: one owner (a
// shard).
#pragma once

#include <cstdint>

#include "emulator/common/pool.h"
#include "emulator/shard/event.h"

namespace ghostrank {

struct EarlyList {
  std::uint32_t head = kNil, tail = kNil;
  bool empty() const { return head == kNil; }
};

class EarlyMessages {
 public:
  // `e.t`: when it arrived.
  void push(EarlyList& list, const Event& e) {
    const std::uint32_t i = messages_.put({e, kNil});
    (list.empty() ? list.head : messages_[list.tail].next) = i;
    list.tail = i;
  }

  // Goes through the list and takes out what `take`(event) says true to, until `enough`(). `take`
  // may push to other lists.
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
