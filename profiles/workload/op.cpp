#include "profiles/workload/op.h"

#include <bit>
#include <stdexcept>

namespace ghostrank {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_of(const Op& op) {
  std::uint64_t hash = static_cast<std::uint64_t>(op.kind) << 48 |
                       static_cast<std::uint64_t>(op.func) << 40 |
                       static_cast<std::uint64_t>(op.dtype) << 32 |
                       static_cast<std::uint64_t>(op.previous) << 16 | op.group;
  hash = mixed(hash, static_cast<std::uint64_t>(op.label) << 32 | op.event);
  hash = mixed(hash,
               static_cast<std::uint64_t>(op.counts) << 32 | static_cast<std::uint32_t>(op.peer));
  hash = mixed(hash, op.count ^ static_cast<std::uint64_t>(op.tensor) << 40 ^
                         static_cast<std::uint64_t>(op.reduction) << 36 ^
                         static_cast<std::uint64_t>(op.within) << 34 ^
                         static_cast<std::uint64_t>(op.floats) << 33);
  hash = mixed(hash, static_cast<std::uint64_t>(op.launch) << 16 | op.launch_index);
  return mixed(hash, op.duration);
}

// Slot of `op`, or the free slot where it belongs; `slots` must have a free one.
std::size_t slot_of(const Op& op, const std::vector<std::uint32_t>& slots,
                    const std::vector<Op>& distinct) {
  std::size_t slot = hash_of(op) & (slots.size() - 1);
  while (slots[slot] != 0 && !(distinct[slots[slot] - 1] == op))
    slot = (slot + 1) & (slots.size() - 1);
  return slot;
}

}  // namespace

std::string_view type_name(const Op& op) {
  if (op.floats && op.dtype == DataType::int64) return "float64";
  if (op.floats && op.dtype == DataType::uint8) return "float8";
  return name_of(op.dtype);
}

std::uint32_t OpList::intern(const Op& op) {
  if (2 * distinct_.size() >= slots_.size()) {  // a power of two, at most half taken
    slots_.assign(distinct_.empty() ? 8 : std::bit_ceil(4 * distinct_.size()), 0);
    for (std::uint32_t i = 0; i < distinct_.size(); ++i)
      slots_[slot_of(distinct_[i], slots_, distinct_)] = i + 1;
  }
  const std::size_t slot = slot_of(op, slots_, distinct_);
  if (slots_[slot] == 0) {
    distinct_.push_back(op);
    slots_[slot] = static_cast<std::uint32_t>(distinct_.size());
  }
  return slots_[slot] - 1;
}

void OpList::repeat(std::size_t begin, std::size_t times) {
  if (body_.size > 0 || begin >= at_.size() || times == 0)
    throw std::logic_error("a list of ops repeats one body, which is not empty");
  body_ = {begin, at_.size() - begin, times};
}

OpList OpList::repeated(std::size_t times) const {
  OpList out = *this;
  if (body_.size > 0) out.body_.times = times;
  return out;
}

std::vector<std::uint64_t> OpList::times() const {
  std::vector<std::uint64_t> times(distinct_.size());
  for (std::size_t i = 0; i < at_.size(); ++i)
    times[at_[i]] += i >= body_.begin && i < body_.end() ? body_.times : 1;
  return times;
}

void OpList::shrink_to_fit() {
  distinct_.shrink_to_fit();
  at_.shrink_to_fit();
  slots_ = std::vector<std::uint32_t>();  // {} would keep the capacity
}

std::size_t OpList::occupied_bytes() const {
  return distinct_.capacity() * sizeof(Op) +
         (at_.capacity() + slots_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace ghostrank
