// The thread that moves the frames of a Control. See control/star.h.
#include <algorithm>
#include <cerrno>
#include <new>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "emulator/control/star.h"

namespace ghostrank::control {
namespace {

constexpr std::chrono::milliseconds kHeartbeat{1'000};

}  // namespace

void Star::run() {
  Lock lock(mutex_);
  for (bool well = false; !well;) {
    try {
      serve(lock);
      well = true;
    } catch (const std::bad_alloc&) {
      if (!lock.owns_lock()) lock.lock();
      end_for_want_of_memory();
    }
  }
}

// Frees the queued frames, so that there is memory to send the others the reason. If that fails
// too, closes the connections, which the others see.
void Star::end_for_want_of_memory() noexcept {
  for (Connection& c : connections_) {
    c.out.clear();
    if (starved_) c.socket.close();
  }
  starved_ = true;
  Stop none = Stop::none;
  if (stop_.compare_exchange_strong(none, Stop::machine, std::memory_order_acq_rel)) {
    try {
      reason_ = here() + ": " + kOutOfMemory;
    } catch (const std::bad_alloc&) {  // stop_reason() falls back to the host's name
    }
  }
  changed_.notify_all();
}

void Star::serve(Lock& lock) {
  for (Connection& c : connections_) take_frames(c);  // those that came with the greeting
  while (!quit_) {
    announce_stop(lock);
    heartbeat();
    fds_.assign(1, {alarm_.get(), POLLIN, 0});
    polled_.clear();
    for (Connection& c : connections_) {
      write_to(c);
      if (!c.alive()) continue;
      const int events = c.out.empty() ? POLLIN : POLLIN | POLLOUT;
      fds_.push_back({c.socket.get(), static_cast<short>(events), 0});
      polled_.push_back(&c);
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(next_heartbeat_ - steady_clock::now());
    const int timeout = polled_.empty() ? -1 : std::max(0, static_cast<int>(left.count()));
    lock.unlock();
    poll(fds_.data(), fds_.size(), timeout);
    lock.lock();
    eventfd_t count = 0;
    if (fds_[0].revents != 0) eventfd_read(alarm_.get(), &count);
    const auto now = steady_clock::now();
    for (std::size_t i = 0; i < polled_.size(); ++i) {
      Connection& c = *polled_[i];
      if ((fds_[i + 1].revents & ~POLLOUT) != 0)
        read_from(c);
      else if (now - c.heard > world_.silence)
        lose(c, "nothing heard for " + std::to_string(world_.silence.count() / 1000) + " s");
    }
  }
  announce_stop(lock);
  for (Connection& c : connections_) write_to(c);
}

void Star::announce_stop(Lock& lock) {
  tell_of_stop();
  if (stop() == Stop::none || !std::exchange(wake_due_, false)) return;
  lock.unlock();
  {
    const std::lock_guard call(wake_mutex_);
    if (wake_) wake_();
  }
  lock.lock();
}

void Star::heartbeat() {
  const auto now = steady_clock::now();
  if (now < next_heartbeat_) return;
  next_heartbeat_ = now + kHeartbeat;
  for (Connection& c : connections_)
    if (c.out.empty()) send(c, encode(FrameType::heartbeat));
}

// Ignores errors: the next read reports them, after the bytes that the peer sent before it closed.
void Star::write_to(Connection& to) {
  while (to.alive() && !to.out.empty()) {
    const std::string_view rest = to.out.front();
    const ssize_t sent =
        ::send(to.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) return to.out.clear();
    to.out.sent(sent);
  }
}

void Star::read_from(Connection& from) {
  const bool open = from.in.receive(from.socket.get());
  from.heard = steady_clock::now();
  take_frames(from);
  if (!open) lose(from, "its connection closed");
}

void Star::take_frames(Connection& from) {
  while (std::optional<Frame> frame = from.in.next()) {
    if (!from.alive()) return;
    if (!handle(from, std::move(*frame))) return lose(from, "it sent an unknown frame");
  }
  if (from.in.broken()) lose(from, "it sent an oversized frame");
}

void Star::lose(Connection& lost, const std::string& how) {
  if (!lost.alive()) return;
  lost.socket.close();
  lost.out.clear();
  if (!lost.said_goodbye && !closing_)
    stop_with(Stop::peer_lost, name_of(lost) + " was lost: " + how);
  changed_.notify_all();
}

// False: this peer may not send such a frame.
bool Star::handle(Connection& from, Frame frame) {
  const bool first = world_.rank == 0;
  BlobReader r(frame.payload);
  switch (frame.type) {
    case FrameType::heartbeat:
      return true;
    case FrameType::ping: {
      const auto sent = r.get<std::int64_t>();
      send(from, encode(FrameType::pong, BlobWriter().put(sent).put(monotonic_ns()).bytes()));
      return r.complete();
    }
    case FrameType::pong:
      return handle_pong(from, r);
    case FrameType::gather: {
      std::optional<std::string>& mine = gathering_[from.rank];
      if (!first || mine) return false;
      mine = std::move(frame.payload);
      complete_gather();
      check_departures();
      return true;
    }
    case FrameType::gathered: {
      const std::size_t rank = r.get<std::uint32_t>();
      auto blob = r.get<std::string>();
      if (first || !r.complete() || rank >= gathering_.size()) return false;
      gathering_[rank] = std::move(blob);
      complete_gather();
      return true;
    }
    case FrameType::publish:
      if (first) keep_published(from.rank, std::move(frame.payload));
      return first;
    case FrameType::stop: {
      const auto why = r.get<std::uint32_t>();
      const auto reason = r.get<std::string>();
      if (!r.complete() || why == 0 || why > static_cast<std::uint32_t>(Stop::machine))
        return false;
      stop_with(static_cast<Stop>(why), reason);
      return true;
    }
    case FrameType::told:
      told_.store(r.get<std::uint32_t>(), std::memory_order_release);
      return !first && r.complete();
    case FrameType::goodbye:
      from.said_goodbye = true;
      send(from, encode(FrameType::goodbye_ack));
      check_departures();
      return true;
    case FrameType::goodbye_ack:
      from.acknowledged = true;
      changed_.notify_all();
      return true;
    default:
      return false;
  }
}

bool Star::handle_pong(Connection& from, BlobReader& r) {
  const auto sent = r.get<std::int64_t>(), answered = r.get<std::int64_t>();
  if (!r.complete()) return false;
  estimate_.add(sent, answered, monotonic_ns());
  if (estimate_.rounds() < kPings)
    send(from, encode(FrameType::ping, BlobWriter().put(monotonic_ns()).bytes()));
  else
    changed_.notify_all();
  return true;
}

}  // namespace ghostrank::control
