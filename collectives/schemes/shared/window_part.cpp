#include "collectives/schemes/shared/window_part.h"

#include <algorithm>
#include <utility>

#include "collectives/schemes/shared/numbers.h"

namespace ghostrank {

WindowPart::WindowPart(int rail, bool alone, int window, Picoseconds timeout,
                       std::uint32_t first_packet)
    : WorkerPart(rail),
      worker_(window),
      timers_(alone ? 0 : window, timeout),
      set_aside_(alone ? 0 : static_cast<std::size_t>(window)),
      alone_(alone),
      numbers_((std::uint64_t{1} << 32) / static_cast<std::uint64_t>(window) *
               static_cast<std::uint64_t>(window)),
      first_packet_(first_packet) {}

void WindowPart::begin(const Call& call, const RailShare& share, bool real,
                       std::uint64_t per_chunk) {
  call_ = call;
  share_ = &share;
  real_ = real;
  ready_ = completed_ = 0;
  refused_.clear();
  if (real && !in_place())
    sum_.start(share.chunks(), per_chunk, call.type, reduces(call.collective.func));
}

void WindowPart::begin_stream(Io& io, bool exponents) {
  if (alone_) return;
  first_packet_ = (first_packet_ + worker_.packets()) % numbers_;
  worker_.start(share_->chunks(), exponents);
  timers_.start_call();
  if (!worker_.ended()) timers_.arm(io);
}

void WindowPart::pieces_ready(Io& io, std::uint64_t pieces) {
  ready_ = share_->first_of(pieces);
  if (!alone_) send_all(io);
}

void WindowPart::send_all(Io& io) {
  if (paused_) return;
  while (const auto next = worker_.upcoming()) {
    if (std::max(next->values, next->exponent) >= static_cast<std::int64_t>(ready_)) return;
    send_now(io, *worker_.next(), false);
  }
}

void WindowPart::send_now(Io& io, const Chunk& chunk, bool again) {
  if (!send(io, chunk, again)) refused_.push_back(chunk.slot);
  timers_.sent(chunk.slot);
  if (!again) timers_.begin(chunk.slot);
}

void WindowPart::go_on(Io& io) {
  send_all(io);
  if (worker_.ended()) io.disarm(0);
}

MaybeChunk WindowPart::next_result(Io&) {
  if (!alone_ || completed_ >= ready_) return std::nullopt;
  const std::uint64_t chunk = completed_++;
  if (real_ && is_float(call_.type) && reduces(call_.collective.func))
    sum_.put(chunk, bytes_of_floats(call_.type, mine(chunk)));
  return chunk;
}

void WindowPart::send_all_again(Io& io) {
  timers_.start_call();
  for (std::uint16_t slot = 0; slot < worker_.window(); ++slot) {
    const auto chunk = worker_.in_flight(slot);
    if (!chunk || set_aside_[slot]) continue;
    timers_.begin(slot);
    send_now(io, *chunk, true);
  }
  send_all(io);
}

void WindowPart::tick(Io& io) {
  for (std::uint16_t slot = 0; slot < worker_.window() && !paused_; ++slot)
    if (const auto chunk = worker_.in_flight(slot);
        chunk && !set_aside_[slot] && timers_.expired(slot))
      send_now(io, *chunk, true);
  timers_.arm(io);
}

void WindowPart::on_room(Io& io) {
  if (paused_) return;
  for (const std::uint16_t slot : std::exchange(refused_, {}))
    if (const auto chunk = worker_.in_flight(slot); chunk && !set_aside_[slot])
      send_now(io, *chunk, true);
}

}  // namespace ghostrank
