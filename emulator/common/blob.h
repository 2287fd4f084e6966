// Flat binary blobs for the control plane: plain values, strings and vectors in the order in which
// they were put. Both ends run the same build. A Reader never reads past its end and allocates no
// more than what is there can fill: it goes bad instead.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ghostrank {

class BlobWriter {
 public:
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  void put(const std::string& text) { put(std::string_view(text)); }
  template <typename T>
  void put(const std::vector<T>& values) {
    put(static_cast<std::uint64_t>(values.size()));
    for (const T& v : values) put(v);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class BlobReader {
 public:
  explicit BlobReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void get(T& value) {
    if (rest_.size() < sizeof value) return go_bad();
    std::memcpy(static_cast<void*>(&value), rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
  }
  void get(bool& value) {  // not every byte is one
    std::uint8_t byte = 0;
    get(byte);
    if (byte > 1) go_bad();
    value = byte == 1;
  }
  void get(std::string& text) {
    const std::uint64_t size = get_size(1);
    text.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  template <typename T>
  void get(std::vector<T>& values) {
    values.resize(get_size(std::is_trivially_copyable_v<T> ? sizeof(T) : sizeof(std::uint64_t)));
    for (T& v : values) {
      get(v);
      if (bad_) return;
    }
  }
  bool bad() const { return bad_; }
  bool complete() const { return !bad_ && rest_.empty(); }

 private:
  std::uint64_t get_size(std::uint64_t least_bytes) {
    std::uint64_t size = 0;
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
