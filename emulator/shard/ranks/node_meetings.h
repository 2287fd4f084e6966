// Calls that play no messages: inside a node as one delay, or between nodes as a flow. A call
// begins when its last member has come. Members come to the calls of their group in one order, so
// few calls of a group are open at a time.
//
// Bounds: a small list per group of the job. Threading: one owner (a shard).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/common/moment.h"
#include "emulator/shard/ranks/rank.h"

namespace ghostrank {

class NodeMeetings {
 public:
  struct Meeting {
    std::uint32_t sequence = 0;
    int members = 0;          // members that have come
    Flight* first = nullptr;  // the member that came last; Flight::next_member links the others
    Moment last;              // the latest time at which a member was ready, as later() compares
  };

  explicit NodeMeetings(std::size_t groups) : open_(groups) {}

  void clear() {
    for (std::vector<Meeting>& open : open_) open.clear();
  }

  // Adds a member that comes to call `f.sequence` of its group at `f.start`. Returns the meeting
  // when all `members` have come, valid until the next call; else null.
  const Meeting* come(Flight& f, int members) {
    std::vector<Meeting>& open = open_[f.group];
    std::size_t i = 0;
    while (i < open.size() && open[i].sequence != f.sequence) ++i;
    if (i == open.size()) open.push_back({f.sequence});
    Meeting& m = open[i];
    f.next_member = m.first;
    m.first = &f;
    m.last = later(m.last, f.start);
    if (++m.members < members) return nullptr;
    met_ = m;
    m = open.back();
    open.pop_back();
    return &met_;
  }

 private:
  std::vector<std::vector<Meeting>> open_;  // by group
  Meeting met_;
};

}  // namespace ghostrank
