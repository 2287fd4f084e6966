// A bounded single-producer single-consumer ring, the only connection between two shards of a
// process. Capacity is a power of two; try_push() returns false when the ring is full. Threading:
// one thread pushes, one other thread pops.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

namespace ghostrank {

template <typename T>
class SpscRing {
 public:
  explicit SpscRing(std::size_t capacity_log2) : slots_(std::size_t{1} << capacity_log2) {}

  bool try_push(T& value) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ == slots_.size()) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail - head_seen_ == slots_.size()) return false;
    }
    slots_[tail & (slots_.size() - 1)] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  bool try_pop(T& value) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_seen_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head == tail_seen_) return false;
    }
    value = std::move(slots_[head & (slots_.size() - 1)]);
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

 private:
  std::vector<T> slots_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::size_t tail_seen_ = 0;  // the consumer's last look at tail_
  alignas(64) std::atomic<std::size_t> tail_{0};
  alignas(64) std::size_t head_seen_ = 0;  // the producer's last look at head_
};

}  // namespace ghostrank
