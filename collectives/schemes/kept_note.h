// A note that outlives its event, with its bytes: one that came too early, or found no room to
// leave.
//
// Threading: one owner.
#pragma once

#include <cstddef>
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

}  // namespace ghostrank
