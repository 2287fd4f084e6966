// A value for each open call of a communicator, by the call's number. Numbers count up, so a ring
// of slots as long as the span of the open numbers is enough; a look-up takes one memory access.
//
// Bounds: the ring is a power of two and never shrinks. A value moves when the ring grows, in
// open(). Threading: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace ghostrank {

template <typename T>
class ByCall {
 public:
  // Null: the call is not open.
  T* find(std::uint32_t call) {
    Slot& slot = slot_of(call);
    return slot.open && slot.call == call ? &*slot.value : nullptr;
  }
  // Fetches the beginning of the call's value, or of where it would be: 64 bytes, on one cache line
  // or two.
  void prefetch(std::uint32_t call) const {
    const auto* const slot = reinterpret_cast<const char*>(&slot_of(call));
    __builtin_prefetch(slot);
    __builtin_prefetch(slot + 63);
  }
  // Throws std::out_of_range if the call is not open.
  T& at(std::uint32_t call) {
    T* const value = find(call);
    if (value == nullptr) refuse(call);
    return *value;
  }
  // The call must not be open.
  template <typename... Arguments>
  T& open(std::uint32_t call, Arguments&&... arguments) {
    while (slot_of(call).open) grow();
    Slot& slot = slot_of(call);
    slot.call = call;
    slot.open = true;
    return slot.value.emplace(std::forward<Arguments>(arguments)...);
  }
  void close(std::uint32_t call) { slot_of(call).close(); }
  void clear() {
    for (std::size_t i = 0; i <= mask_; ++i) slots_[i].close();
  }
  // Calls visit(value) for every open call.
  template <typename Visit>
  void for_each(const Visit& visit) {
    for (std::size_t i = 0; i <= mask_; ++i)
      if (slots_[i].open) visit(*slots_[i].value);
  }

 private:
  struct Slot {
    std::uint32_t call = 0;
    bool open = false;  // value.has_value(), whose flag is behind the value, on another cache line
    std::optional<T> value;

    void close() {
      open = false;
      value.reset();
    }
  };

  Slot& slot_of(std::uint32_t call) const { return slots_[call & mask_]; }
  void grow() {
    const std::uint32_t mask = 2 * mask_ + 1;
    auto longer = std::make_unique<Slot[]>(std::size_t{mask} + 1);
    for (std::size_t i = 0; i <= mask_; ++i)
      if (slots_[i].open) longer[slots_[i].call & mask] = std::move(slots_[i]);
    slots_ = std::move(longer);
    mask_ = mask;
  }
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse(std::uint32_t call) {
    throw std::out_of_range("call " + std::to_string(call) + " is not open");
  }

  std::uint32_t mask_ = 1;  // slots, less one
  std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(2);
};

}  // namespace ghostrank
