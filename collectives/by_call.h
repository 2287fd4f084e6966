// A value for each open call of a communicator, by the call's number. Numbers count up, so a ring
// of slots as long as the span of the open numbers is enough; a look-up takes one memory access.
//
// Bounds: the ring is a power of two and never shrinks. A value moves when the ring grows, in
// open(). Threading: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ghostrank {

template <typename T>
class ByCall {
 public:
  // Null: the call is not open.
  T* find(std::uint32_t call) {
    Slot& slot = slots_[call & (slots_.size() - 1)];
    return slot.open && slot.call == call ? &*slot.value : nullptr;
  }
  // Fetches the beginning of the call's value, or of where it would be: 64 bytes, on one cache line
  // or two.
  void prefetch(std::uint32_t call) const {
    const auto* const slot = reinterpret_cast<const char*>(&slots_[call & (slots_.size() - 1)]);
    __builtin_prefetch(slot);
    __builtin_prefetch(slot + 63);
  }
  // Throws std::out_of_range if the call is not open.
  T& at(std::uint32_t call) {
    T* const value = find(call);
    if (value == nullptr) throw std::out_of_range("call " + std::to_string(call) + " is not open");
    return *value;
  }
  // The call must not be open.
  template <typename... Arguments>
  T& open(std::uint32_t call, Arguments&&... arguments) {
    while (slots_[call & (slots_.size() - 1)].open) grow();
    Slot& slot = slots_[call & (slots_.size() - 1)];
    slot.call = call;
    slot.open = true;
    return slot.value.emplace(std::forward<Arguments>(arguments)...);
  }
  void close(std::uint32_t call) { slots_[call & (slots_.size() - 1)].close(); }
  void clear() {
    for (Slot& slot : slots_) slot.close();
  }
  // Calls visit(value) for every open call.
  template <typename Visit>
  void for_each(const Visit& visit) {
    for (Slot& slot : slots_)
      if (slot.open) visit(*slot.value);
  }

 private:
  struct Slot {
    std::uint32_t call = 0;
    bool open = false;  // as `value` knows, whose own mark is behind it, on another cache line
    std::optional<T> value;

    void close() {
      open = false;
      value.reset();
    }
  };

  void grow() {
    std::vector<Slot> longer(2 * slots_.size());
    for (Slot& slot : slots_)
      if (slot.open) longer[slot.call & (longer.size() - 1)] = std::move(slot);
    slots_ = std::move(longer);
  }

  std::vector<Slot> slots_ = std::vector<Slot>(2);
};

}  // namespace ghostrank
