// A worker's part over packets that may be lost (worker_part.h): a window of slots, each with a
// packet that waits for its result and is sent again after a while. switch/window.h is the window;
// what a packet holds, and what its result means, is the scheme's.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/schemes/shared/slot_timers.h"
#include "collectives/schemes/shared/worker_part.h"
#include "switch/window.h"

namespace ghostrank {

class WindowPart : public WorkerPart {
 public:
  // `alone`: there is no other worker on the rail, so that the node's sum is the result and nothing
  // is sent. `first_packet`: number of the first packet, a multiple of the window.
  WindowPart(int rail, bool alone, int window, Picoseconds timeout, std::uint32_t first_packet = 0);

  bool ended() const override { return alone_ ? completed_ == share_->chunks() : worker_.ended(); }
  void pieces_ready(Io& io, std::uint64_t pieces) override;
  MaybeChunk next_result(Io& io) override;
  void tick(Io& io) override;
  void on_room(Io& io) override;

 protected:
  using Chunk = switchml::Window::Chunk;

  // Begins a call with chunks of `per_chunk` elements; unless nothing is sent, send its packets
  // with begin_stream().
  void begin(const Call& call, const RailShare& share, bool real, std::uint64_t per_chunk);
  void begin_stream(Io& io, bool exponents);
  // Sends the chunk's packet, `again` or for the first time; returns false where there is no room.
  virtual bool send(Io& io, const Chunk& chunk, bool again) = 0;
  // Sends the chunk's packet, and once more if no answer comes or there is no room.
  void send_now(Io& io, const Chunk& chunk, bool again);
  // A result has come: sends what may leave now.
  void go_on(Io& io);
  // Sends every packet that waits in a slot as if it were new.
  void send_all_again(Io& io);

  bool alone() const { return alone_; }
  bool begun() const { return share_ != nullptr; }
  // A packet's number, over all calls. Numbers wrap at a multiple of the window, so that a number
  // modulo the window is always the packet's slot.
  std::uint32_t number_of(const Chunk& chunk) const {
    const std::uint64_t number = first_packet_ + chunk.packet;
    return static_cast<std::uint32_t>(number < numbers_ ? number : number % numbers_);
  }
  // The node's sum of a chunk of floats.
  std::span<const float> mine(std::uint64_t chunk) const {
    return sum_.floats(chunk).first(share_->chunk(chunk).elements);
  }

  Call call_;
  const RailShare* share_ = nullptr;
  bool real_ = false;        // the ranks of the call hold real data
  std::uint64_t ready_ = 0;  // chunks that may leave
  switchml::Window worker_;
  SlotTimers timers_;
  bool paused_ = false;          // nothing is sent
  std::vector<bool> set_aside_;  // slots whose packet is not sent again

 private:
  void send_all(Io& io);

  const bool alone_;
  const std::uint64_t numbers_;         // of packets, until they wrap
  std::uint64_t first_packet_;          // of the call
  std::uint64_t completed_ = 0;         // where the worker is alone
  std::vector<std::uint16_t> refused_;  // slots whose packet was refused for lack of room
};

}  // namespace ghostrank
