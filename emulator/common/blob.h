// Plain values, strings and vectors as bytes, in the order of put(). Processes exchange them over
// the control plane, in its frames and in the blobs that these carry.
//
//   value    = its bytes in memory: both ends have the same byte order
//   text     = length (4 bytes) | bytes
//   vector   = count (4 bytes) | elements
//
// Invariant: a reader never reads past its end, and whatever length a peer claims, it allocates no
// more elements than the remaining bytes can fill. After a false claim it is bad and returns empty
// values.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "switch/assert.h"

namespace ghostrank {

// No arrays or pointers: a string literal would lose its length.
template <typename T>
concept BlobValue = std::is_trivially_copyable_v<T> && !std::is_array_v<T> && !std::is_pointer_v<T>;

class BlobWriter {
 public:
  template <BlobValue T>
  BlobWriter& put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  BlobWriter& put(std::string_view text) {
    put_size(text.size());
    bytes_.append(text);
    return *this;
  }
  BlobWriter& put(const std::string& text) { return put(std::string_view(text)); }
  BlobWriter& put(const char* text) { return put(std::string_view(text)); }
  template <typename T>
  BlobWriter& put(const std::vector<T>& values) {
    put_size(values.size());
    for (const T& v : values) put(v);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void put_size(std::size_t size) {
    GHOSTRANK_ASSERT(size <= std::numeric_limits<std::uint32_t>::max());
    put(static_cast<std::uint32_t>(size));
  }

  std::string bytes_;
};

class BlobReader {
 public:
  explicit BlobReader(std::string_view bytes) : rest_(bytes) {}

  template <BlobValue T>
  void get(T& value) {
    if (rest_.size() < sizeof value) return go_bad();
    std::memcpy(static_cast<void*>(&value), rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
  }
  void get(bool& value) {  // no byte but 0 and 1 is a bool
    std::uint8_t byte = 0;
    get(byte);
    if (byte > 1) go_bad();
    value = byte == 1;
  }
  void get(std::string& text) {
    const std::size_t size = get_size(1);
    text.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  template <typename T>
  void get(std::vector<T>& values) {
    values.resize(get_size(std::is_trivially_copyable_v<T> ? sizeof(T) : sizeof(std::uint32_t)));
    for (T& v : values) {
      get(v);
      if (bad_) return;
    }
  }
  template <typename T>
  T get() {
    T value{};
    get(value);
    return value;
  }
  bool bad() const { return bad_; }
  bool complete() const { return !bad_ && rest_.empty(); }

 private:
  std::size_t get_size(std::size_t least_bytes) {
    std::uint32_t size = 0;
    get(size);
    if (size > rest_.size() / least_bytes) {
      go_bad();
      return 0;
    }
    return size;
  }
  void go_bad() {
    bad_ = true;
    rest_ = {};
  }

  std::string_view rest_;
  bool bad_ = false;
};

}  // namespace ghostrank
