#include "collectives/schemes/window_lane.h"

#include <algorithm>
#include <utility>

#include "collectives/schemes/numbers.h"

namespace ghostrank {

WindowLane::WindowLane(int rail, bool alone, int window, Picoseconds timeout)
    : Lane(rail), worker_(window), alone_(alone), timers_(alone ? 0 : window, timeout) {}

void WindowLane::begin(Io& io, const Call& call, const RailShare& share, bool real,
                       std::uint64_t per_chunk, bool exponents) {
  call_ = call;
  share_ = &share;
  real_ = real;
  ready_ = completed_ = 0;
  refused_.clear();
  if (real) sum_.start(share.chunks(), per_chunk, call.type, reduces(call.collective.func));
  if (alone_) return;
  first_packet_ += static_cast<std::uint32_t>(worker_.packets());
  worker_.start(share.chunks(), exponents);
  timers_.start_call();
  if (!worker_.ended()) timers_.arm(io);
}

void WindowLane::pieces_ready(Io& io, std::uint64_t pieces) {
  ready_ = share_->first_of(pieces);
  if (!alone_) send_all(io);
}

void WindowLane::send_all(Io& io) {
  while (const auto next = worker_.upcoming()) {
    if (std::max(next->values, next->exponent) >= static_cast<std::int64_t>(ready_)) return;
    send_now(io, *worker_.next(), false);
  }
}

void WindowLane::send_now(Io& io, const Chunk& chunk, bool again) {
  if (!send(io, chunk, again)) refused_.push_back(chunk.slot);
  timers_.sent(chunk.slot);
}

void WindowLane::go_on(Io& io) {
  send_all(io);
  if (worker_.ended()) io.disarm(0);
}

std::optional<std::uint64_t> WindowLane::next_result(Io&) {
  if (!alone_ || completed_ >= ready_) return std::nullopt;
  const std::uint64_t chunk = completed_++;
  if (real_ && is_float(call_.type) && reduces(call_.collective.func))
    sum_.put(chunk, bytes_of_floats(call_.type, mine(chunk)));
  return chunk;
}

void WindowLane::tick(Io& io) {
  for (std::uint16_t slot = 0; slot < worker_.window(); ++slot)
    if (const auto chunk = worker_.in_flight(slot); chunk && timers_.expired(slot))
      send_now(io, *chunk, true);
  timers_.arm(io);
}

void WindowLane::on_room(Io& io) {
  for (const std::uint16_t slot : std::exchange(refused_, {}))
    if (const auto chunk = worker_.in_flight(slot)) send_now(io, *chunk, true);
}

}  // namespace ghostrank
