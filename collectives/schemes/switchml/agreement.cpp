#include "collectives/schemes/switchml/agreement.h"

#include <algorithm>
#include <limits>

#include "switch/wire/udp.h"

namespace ghostrank::switchml {
namespace {

constexpr std::size_t kHead = 5, kEach = 5;  // bytes of the list's own fields, and of a slot
constexpr unsigned kPartsBit = 4;            // beside Waiting

}  // namespace

std::vector<std::byte> SlotList::bytes(std::size_t first, std::size_t count) const {
  std::vector<std::byte> bytes(kHead + count * kEach);
  store32(bytes.data(), ticks);
  bytes[4] = static_cast<std::byte>(decision);
  for (std::size_t i = 0; i < count; ++i) {
    const SlotState& slot = slots[first + i];
    std::byte* const at = bytes.data() + kHead + i * kEach;
    store32(at, slot.completed);
    at[4] =
        static_cast<std::byte>(static_cast<unsigned>(slot.waiting) | (slot.parts ? kPartsBit : 0));
  }
  return bytes;
}

bool SlotList::add(std::span<const std::byte> bytes) {
  if (bytes.size() < kHead || (bytes.size() - kHead) % kEach != 0) return false;
  ticks = load32(bytes.data());
  decision = static_cast<Decision>(bytes[4]);
  for (std::size_t at = kHead; at < bytes.size(); at += kEach) {
    const auto flags = std::to_integer<unsigned>(bytes[at + 4]);
    slots.push_back({load32(bytes.data() + at), static_cast<Waiting>(flags & (kPartsBit - 1)),
                     (flags & kPartsBit) != 0});
  }
  return true;
}

bool Agreement::whole() const {
  return std::ranges::all_of(states_,
                             [this](const SlotList& s) { return s.slots.size() == slots_; });
}

std::uint32_t Agreement::latest(std::size_t slot) const {
  std::uint32_t latest = states_.front().slots[slot].completed;
  for (const SlotList& state : states_) {
    const std::uint32_t one = state.slots[slot].completed;
    if (static_cast<std::int32_t>(one - latest) > 0) latest = one;
  }
  return latest;
}

std::vector<int> Agreement::lacking(std::size_t slot) const {
  std::vector<int> workers;
  const std::uint32_t newest = latest(slot);
  for (std::size_t w = 0; w < states_.size(); ++w)
    if (states_[w].slots[slot].completed != newest) workers.push_back(static_cast<int>(w));
  return workers;
}

// True if every worker has completed, or sent long ago, the oldest packet that some lack.
bool Agreement::failed(std::size_t slot) const {
  const std::uint32_t newest = latest(slot);
  const bool apart = std::ranges::any_of(
      states_, [&](const SlotList& s) { return s.slots[slot].completed != newest; });
  return std::ranges::all_of(states_, [&](const SlotList& s) {
    const SlotState& state = s.slots[slot];
    return state.waiting == Waiting::long_since || (apart && state.completed == newest);
  });
}

SlotList Agreement::decide(std::uint32_t fallback) const {
  SlotList agreed;
  bool any = false;
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    agreed.slots.push_back({latest(slot), Waiting::nothing, !lacking(slot).empty()});
    any |= failed(slot);
  }
  if (!any) return agreed;
  std::uint32_t silence = std::numeric_limits<std::uint32_t>::max();
  for (const SlotList& state : states_)
    if (std::ranges::any_of(state.slots,
                            [](const SlotState& slot) { return slot.waiting != Waiting::nothing; }))
      silence = std::min(silence, state.ticks);
  agreed.decision = fallback > 0 && silence >= fallback ? Decision::fall_back : Decision::restart;
  return agreed;
}

}  // namespace ghostrank::switchml
