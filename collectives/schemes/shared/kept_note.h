// A note that outlives its event, with its bytes: one that came too early, or found no room to
// leave.
//
// Threading: one owner.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank {

struct KeptNote {
  KeptNote(GroupParty who, const Note& note)
      : party(who),
        head(note),
        content(note.content.begin(), note.content.end()),
        words(note.words.begin(), note.words.end()) {}

  // Valid as long as this is.
  Note note() const {
    Note note = head;
    note.content = content;
    note.words = words;
    return note;
  }

  GroupParty party;  // from, or to
  Note head;         // its spans are not valid
  std::vector<std::byte> content, words;
};

// Reliable notes of an agent, in the order in which it sends them: those that find no room wait.
class Outbox {
 public:
  void send(Io& io, std::span<const GroupParty> to, const Note& note) {
    if (!waiting_.empty() || !io.send(to, note, Carriage::reliable))
      waiting_.push_back({{to.begin(), to.end()}, {to.front(), note}});
  }
  void send(Io& io, GroupParty to, const Note& note) { send(io, std::span(&to, 1), note); }
  // Call it when there may be room. Returns true if nothing waits then.
  bool flush(Io& io) {
    for (; !waiting_.empty(); waiting_.pop_front())
      if (!io.send(waiting_.front().to, waiting_.front().kept.note(), Carriage::reliable))
        return false;
    return true;
  }

 private:
  struct Waiting {
    std::vector<GroupParty> to;
    KeptNote kept;
  };
  std::deque<Waiting> waiting_;
};

}  // namespace ghostrank
