// A list that is mostly short: its first values lie in the list itself, so that to read or add one
// touches no memory elsewhere. Longer lists lie in memory of their own, which they keep.
//
// Threading: one owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace ghostrank {

template <typename Value, std::uint32_t kHere>
class Few {
  static_assert(std::is_trivially_copyable_v<Value>);

 public:
  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool in_place() const { return size_ <= kHere; }

  Value* begin() { return in_place() ? here_.data() : elsewhere_.get(); }
  Value* end() { return begin() + size_; }
  const Value* begin() const { return in_place() ? here_.data() : elsewhere_.get(); }
  const Value* end() const { return begin() + size_; }
  Value& operator[](std::size_t i) { return begin()[i]; }
  Value& back() { return begin()[size_ - 1]; }
  const Value& back() const { return begin()[size_ - 1]; }

  void push_back(const Value& value) {
    if (size_ >= kHere) make_room();
    ++size_;
    back() = value;
  }
  void pop_back() {
    if (size_ == kHere + 1) std::copy_n(elsewhere_.get(), kHere, here_.data());
    --size_;
  }

 private:
  // For one more value than `kHere` or more. Those from here go elsewhere.
  [[gnu::noinline]] void make_room() {
    if (size_ == kHere && room_ > 0)
      return void(std::copy_n(here_.data(), kHere, elsewhere_.get()));
    if (size_ > kHere && size_ < room_) return;
    room_ = 2 * size_;
    std::unique_ptr<Value[]> longer(new Value[room_]);
    std::copy_n(begin(), size_, longer.get());
    elsewhere_ = std::move(longer);
  }

  std::unique_ptr<Value[]> elsewhere_;  // null until it is needed
  std::uint32_t size_ = 0;
  std::uint32_t room_ = 0;  // values that `elsewhere_` holds
  std::array<Value, kHere> here_{};
};

}  // namespace ghostrank
