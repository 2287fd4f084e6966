// What the trace will show: spans of the ranks that are traced, as many as there is room for.
// Threading: one owner (a shard).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/result/result.h"

namespace ghostrank {

class Spans {
 public:
  explicit Spans(std::size_t most) : most_(most) {}

  void begin() {  // of a segment
    spans_.clear();
    dropped_ = 0;
  }

  // The place of a new one, valid until the next; null: there is no room, which is counted.
  Span* add() {
    if (spans_.size() < most_) return &spans_.emplace_back();
    ++dropped_;
    return nullptr;
  }

  std::uint64_t dropped() const { return dropped_; }
  std::vector<Span> take() { return std::move(spans_); }

 private:
  std::size_t most_;
  std::vector<Span> spans_;
  std::uint64_t dropped_ = 0;
};

}  // namespace ghostrank
