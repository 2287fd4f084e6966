// The spans of the traced ranks, at most `most` per segment. Threading: one owner (a shard).
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

  // Returns a new span for the caller to fill, valid until the next call; null: no room, which is
  // counted.
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
