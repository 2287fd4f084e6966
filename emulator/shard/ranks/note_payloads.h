// Words and content of notes that stay on a shard. All receivers of a note to many share one copy,
// and a buffer whose receivers have all read it holds a later note.
//
// Bound: 2^31 buffers at one time. A buffer never shrinks. Threading: one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "emulator/common/pool.h"

namespace ghostrank {

// Bit of Event::held: it names a payload of a NotePayloads, not a parcel.
inline constexpr std::uint32_t kSharedPayload = 1U << 31;

class NotePayloads {
 public:
  // Returns the number of a copy that nobody shares yet. Call share() for every receiver.
  std::uint32_t put(std::span<const std::byte> words, std::span<const std::byte> content) {
    const std::uint32_t number = pool_.put_as_it_is();
    pool_.prefetch_next();
    Buffer& buffer = pool_[number];
    buffer.bytes = words.size() + content.size();
    buffer.users = 0;
    if (buffer.bytes > buffer.large_bytes && buffer.bytes > kSmall) {
      buffer.large_bytes = buffer.bytes;
      buffer.large = std::make_unique_for_overwrite<std::byte[]>(buffer.bytes);
    }
    std::byte* const to = std::copy(words.begin(), words.end(), buffer.data());
    std::copy(content.begin(), content.end(), to);
    return number;
  }
  void share(std::uint32_t number) { ++pool_[number].users; }
  // Valid until drop() was called as often as share().
  const std::byte* at(std::uint32_t number) { return pool_[number].data(); }
  void prefetch(std::uint32_t number) const { __builtin_prefetch(&pool_[number]); }
  void drop(std::uint32_t number) {
    if (--pool_[number].users == 0) pool_.drop(number);
  }

 private:
  static constexpr std::size_t kSmall = 32;

  // One cache line with the words of most notes.
  struct alignas(64) Buffer {
    std::unique_ptr<std::byte[]> large;
    std::size_t bytes = 0, large_bytes = 0;
    std::uint32_t users = 0;
    std::byte small[kSmall];

    std::byte* data() { return bytes > kSmall ? large.get() : small; }
  };
  static_assert(sizeof(Buffer) == 64);
  Pool<Buffer> pool_;
};

}  // namespace ghostrank
