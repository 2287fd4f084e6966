#include "switch/worker.h"

#include <algorithm>

#include "switch/assert.h"
#include "switch/wire/switchml.h"

namespace ghostrank::switchml {

Worker::Worker(int window) : window_(window), slots_(window) {
  GHOSTRANK_ASSERT(window >= 1 && window <= kMaxSlots);
}

std::uint64_t Worker::packets_of(std::uint64_t chunks, bool exponents, int window) {
  return chunks + (exponents ? std::min(chunks, static_cast<std::uint64_t>(window)) : 0);
}

void Worker::start(std::uint64_t chunks, bool exponents) {
  GHOSTRANK_ASSERT(ended());
  first_ = (first_ + packets_) % (2 * window_);
  chunks_ = chunks;
  ahead_ = exponents ? std::min(chunks, window_) : 0;
  packets_ = chunks + ahead_;
  ended_ = 0;
  done_.assign(packets_, false);
  left_.assign(packets_, false);
  ready_.clear();
  next_ = 0;
  for (std::uint64_t p = 0; p < std::min(packets_, window_); ++p) let_leave(p);
}

bool Worker::may_leave(std::uint64_t packet) const {
  if (packet >= packets_ || left_[packet]) return false;
  const bool free = packet < window_ || has_result(packet - window_);
  return free && (packet < ahead_ || ahead_ == 0 || has_result(packet - ahead_));
}

void Worker::let_leave(std::uint64_t packet) {
  if (!may_leave(packet)) return;
  left_[packet] = true;
  ready_.push_back(packet);
}

Worker::Chunk Worker::chunk_of(std::uint64_t packet) const {
  const std::uint64_t at = first_ + packet;
  Chunk chunk{packet, static_cast<std::uint16_t>(at % window_),
              static_cast<std::uint8_t>(at / window_ % 2)};
  if (packet >= ahead_) chunk.values = packet - ahead_;
  if (ahead_ > 0 && packet < chunks_) chunk.exponent = packet;
  return chunk;
}

std::optional<Worker::Chunk> Worker::upcoming() const {
  if (next_ == ready_.size()) return std::nullopt;
  return chunk_of(ready_[next_]);
}

std::optional<Worker::Chunk> Worker::next() {
  if (next_ == ready_.size()) {
    ready_.clear();
    next_ = 0;
    return std::nullopt;
  }
  const Chunk chunk = chunk_of(ready_[next_++]);
  slots_[chunk.slot] = {true, chunk.packet};
  return chunk;
}

std::optional<Worker::Chunk> Worker::in_flight(std::uint16_t slot) const {
  if (slot >= window_ || !slots_[slot].busy) return std::nullopt;
  return chunk_of(slots_[slot].packet);
}

std::optional<Worker::Chunk> Worker::result(std::uint16_t slot, std::uint8_t set) {
  const std::optional<Chunk> chunk = in_flight(slot);
  if (!chunk || chunk->set != set) return std::nullopt;
  slots_[slot].busy = false;
  done_[chunk->packet] = true;
  ++ended_;
  let_leave(chunk->packet + window_);
  if (ahead_ > 0 && ahead_ != window_) let_leave(chunk->packet + ahead_);
  return chunk;
}

}  // namespace ghostrank::switchml
