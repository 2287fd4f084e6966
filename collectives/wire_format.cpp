#include "collectives/wire_format.h"

namespace ghostrank {

std::string_view malformed(const Note& note, std::uint64_t bytes, std::uint64_t overhead) {
  if (static_cast<int>(note.type) >= kDataTypes) return "has elements of no type";
  if (note.words.size() > kMostWords) return "has more words than a note may have";
  if (note.elements > bytes || note_bytes(note, overhead) != bytes) return "has another length";
  if (!note.content.empty() && note.content.size() != note.elements * bytes_of(note.type))
    return "has content of another length than its elements";
  return "";
}

}  // namespace ghostrank
