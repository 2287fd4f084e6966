// The control plane once all have met: one thread moves the frames, the owner gives and takes under
// one mutex. The thread holds it but while it waits in poll().
#include "emulator/control.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <utility>

#include "emulator/control_frames.h"
#include "emulator/control_meet.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::shared_ptr<const std::string>;

constexpr std::chrono::milliseconds kHeartbeat{1'000};
constexpr std::chrono::milliseconds kGoodbyePatience{5'000};
constexpr std::chrono::milliseconds kPingPatience{5'000};
constexpr int kPings = 16;

std::int64_t monotonic_ns() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

struct Connection : Link {
  explicit Connection(Link&& link) : Link(std::move(link)) { in.set_limit(kMaxFrameBytes); }
  bool alive() const { return socket.is_open(); }

  std::deque<Bytes> out;
  std::size_t out_offset = 0;  // of the first
  Clock::time_point heard = Clock::now();
  bool said_goodbye = false;  // they to us
  bool acknowledged = false;  // they our goodbye
};

class Star final : public Control {
 public:
  explicit Star(const World& world);
  ~Star() override;

  const World& world() const override { return world_; }
  std::vector<std::string> all_gather(std::string_view blob) override;
  std::int64_t clock_offset_ns() const override { return clock_offset_; }
  void publish(std::string_view blob) override;
  std::vector<std::pair<int, std::string>> take_published() override;
  void request_stop(Stop why) noexcept override;
  void fail(std::string reason) override;
  Stop stop() const noexcept override { return stop_.load(std::memory_order_acquire); }
  std::string stop_reason() const override;
  void on_stop(std::function<void()> wake) override;
  std::uint64_t strays() const override { return strays_; }
  void close() override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  // Owner.
  void start_thread();
  void end_thread();
  void nudge() const noexcept;
  void estimate_clock();
  bool fits(std::string_view blob);

  // Either, under the mutex.
  void stop_with(Stop why, const std::string& reason);
  void send(Connection& to, std::string frame);
  void broadcast(std::string frame);
  void complete_gather();
  void check_departures();
  std::string here() const;
  static std::string name_of(const Connection& c);

  // Control thread.
  void run();
  void announce_stop(Lock& lock);
  void heartbeat();
  void read_from(Connection& from);
  void write_to(Connection& to);
  void lose(Connection& lost, const std::string& how);
  void take_frames(Connection& from);
  bool handle(Connection& from, Frame frame);
  bool handle_pong(Connection& from, Reader& payload);

  const World world_;
  const std::string hostname_ = this_hostname();
  std::int64_t clock_offset_ = 0;
  std::uint64_t strays_ = 0;
  Socket alarm_;  // an eventfd: makes the thread look
  std::atomic<Stop> stop_{Stop::none};
  static_assert(std::atomic<Stop>::is_always_lock_free);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Connection> connections_;
  std::string reason_;
  bool announced_ = false;  // the stop, to the others
  bool wake_due_ = false;
  bool waiting_ = false;  // the owner, for a gather
  bool closing_ = false, quit_ = false;
  Clock::time_point next_heartbeat_ = Clock::now();
  std::vector<std::optional<std::string>> gathering_;  // by rank
  std::optional<std::vector<std::string>> gathered_;
  std::vector<std::pair<int, std::string>> published_;
  ClockEstimate estimate_;

  std::mutex wake_mutex_;  // held while wake_ is called; never together with mutex_
  std::function<void()> wake_;

  std::thread thread_;
};

Star::Star(const World& world)
    : world_(world),
      alarm_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      gathering_(static_cast<std::size_t>(world.size)) {
  if (!alarm_.is_open())
    throw Error(std::string("cannot open a file descriptor: ") + std::strerror(errno) +
                    "; raise the limit (ulimit -n)",
                ErrorKind::environment);
  if (world.size == 1) return;
  Meeting meeting = meet_others(world);
  strays_ = meeting.strays;
  for (Link& link : meeting.links) connections_.emplace_back(std::move(link));
  start_thread();
  if (world.rank != 0 && connections_.front().boot_id != boot_id_of(world)) estimate_clock();
}

Star::~Star() { end_thread(); }

// ---- owner

void Star::start_thread() {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void Star::end_thread() {
  {
    const Lock lock(mutex_);
    quit_ = true;
  }
  nudge();
  if (thread_.joinable()) thread_.join();
  for (Connection& c : connections_) c.socket.close();
}

void Star::nudge() const noexcept { eventfd_write(alarm_.get(), 1); }

void Star::estimate_clock() {
  Lock lock(mutex_);
  send(connections_.front(), encode(FrameType::ping, Writer().i64(monotonic_ns()).take()));
  nudge();
  changed_.wait_for(lock, kPingPatience,
                    [&] { return estimate_.rounds() >= kPings || stop() != Stop::none; });
  clock_offset_ = estimate_.offset_ns();
}

bool Star::fits(std::string_view blob) {
  constexpr std::size_t kRoom = 64;  // for what frames add
  if (blob.size() + kRoom <= kMaxFrameBytes) return true;
  fail("a control message of " + std::to_string(blob.size()) + " bytes exceeds the limit of " +
       std::to_string(kMaxFrameBytes));
  return false;
}

std::vector<std::string> Star::all_gather(std::string_view blob) {
  if (!fits(blob)) return {};
  Lock lock(mutex_);
  if (closing_ || stop() != Stop::none) return {};
  if (world_.size == 1) return {std::string(blob)};
  if (world_.rank == 0) {
    gathering_[0] = std::string(blob);
    complete_gather();
  } else {
    send(connections_.front(), encode(FrameType::gather, blob));
  }
  waiting_ = true;
  check_departures();
  nudge();
  changed_.wait(lock, [&] { return gathered_.has_value() || stop() != Stop::none; });
  waiting_ = false;
  if (!gathered_) return {};
  return *std::exchange(gathered_, std::nullopt);
}

void Star::publish(std::string_view blob) {
  if (!fits(blob)) return;
  const Lock lock(mutex_);
  if (world_.rank == 0)
    published_.emplace_back(0, std::string(blob));
  else
    send(connections_.front(), encode(FrameType::publish, blob));
  nudge();
}

std::vector<std::pair<int, std::string>> Star::take_published() {
  const Lock lock(mutex_);
  return std::exchange(published_, {});
}

void Star::request_stop(Stop why) noexcept {
  const int saved = errno;
  Stop none = Stop::none;
  stop_.compare_exchange_strong(none, why, std::memory_order_acq_rel);
  nudge();
  errno = saved;
}

void Star::fail(std::string reason) {
  {
    const Lock lock(mutex_);
    stop_with(Stop::failed, world_.size > 1 ? here() + ": " + reason : reason);
  }
  nudge();
}

std::string Star::stop_reason() const {
  const Lock lock(mutex_);
  if (!reason_.empty() || stop() == Stop::none) return reason_;
  return (stop() == Stop::interrupted ? "interrupted on " : "stopped on ") + here();
}

void Star::on_stop(std::function<void()> wake) {
  const bool wanted = wake != nullptr;
  {
    const std::lock_guard lock(wake_mutex_);
    wake_ = std::move(wake);
  }
  const Lock lock(mutex_);
  wake_due_ = !closing_ && wanted;
  if (!wake_due_) return;
  start_thread();
  nudge();
}

void Star::close() {
  {
    Lock lock(mutex_);
    if (closing_) return;
    closing_ = true;
    broadcast(encode(FrameType::goodbye));
    nudge();
    changed_.wait_for(lock, kGoodbyePatience, [&] {
      return std::all_of(connections_.begin(), connections_.end(),
                         [](const Connection& c) { return !c.alive() || c.acknowledged; });
    });
  }
  end_thread();
}

// ---- under the mutex

std::string Star::here() const {
  return "host " + std::to_string(world_.rank) + " (" + hostname_ + ")";
}

std::string Star::name_of(const Connection& c) {
  return "host " + std::to_string(c.rank) + " (" + c.hostname + ")";
}

// The first reason stays.
void Star::stop_with(Stop why, const std::string& reason) {
  Stop none = Stop::none;
  if (stop_.compare_exchange_strong(none, why, std::memory_order_acq_rel)) reason_ = reason;
}

void Star::send(Connection& to, std::string frame) {
  if (to.alive()) to.out.push_back(std::make_shared<const std::string>(std::move(frame)));
}

void Star::broadcast(std::string frame) {
  const Bytes shared = std::make_shared<const std::string>(std::move(frame));
  for (Connection& c : connections_)
    if (c.alive()) c.out.push_back(shared);
}

// Once everybody's blob is there; process 0 gives all to everybody.
void Star::complete_gather() {
  const auto there = [](const std::optional<std::string>& blob) { return blob.has_value(); };
  if (!std::all_of(gathering_.begin(), gathering_.end(), there)) return;
  std::vector<std::string> all;
  for (std::size_t r = 0; r < gathering_.size(); ++r) {
    if (world_.rank == 0)
      broadcast(encode(FrameType::gathered,
                       Writer().u32(static_cast<std::uint32_t>(r)).text(*gathering_[r]).take()));
    all.push_back(std::move(*gathering_[r]));
    gathering_[r].reset();
  }
  gathered_ = std::move(all);
  changed_.notify_all();
}

// Whoever said goodbye takes no more part: waiting for it would be for ever.
void Star::check_departures() {
  const bool begun = world_.rank == 0
                         ? std::any_of(gathering_.begin(), gathering_.end(),
                                       [](const auto& blob) { return blob.has_value(); })
                         : waiting_ && !gathered_;
  if (!begun || closing_) return;
  for (const Connection& c : connections_)
    if (c.said_goodbye && !gathering_[static_cast<std::size_t>(c.rank)])
      stop_with(Stop::failed, name_of(c) + " ended while others went on");
}

// ---- control thread

void Star::run() {
  Lock lock(mutex_);
  for (Connection& c : connections_) take_frames(c);  // what came right behind the greeting
  while (!quit_) {
    announce_stop(lock);
    heartbeat();
    std::vector<pollfd> fds{{alarm_.get(), POLLIN, 0}};
    std::vector<Connection*> polled;
    for (Connection& c : connections_) {
      write_to(c);
      if (!c.alive()) continue;
      const int events = c.out.empty() ? POLLIN : POLLIN | POLLOUT;
      fds.push_back({c.socket.get(), static_cast<short>(events), 0});
      polled.push_back(&c);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_heartbeat_ - Clock::now());
    const int timeout = polled.empty() ? -1 : std::max(0, static_cast<int>(left.count()));
    lock.unlock();
    poll(fds.data(), fds.size(), timeout);
    lock.lock();
    eventfd_t count = 0;
    if (fds[0].revents != 0) eventfd_read(alarm_.get(), &count);
    const auto now = Clock::now();
    for (std::size_t i = 0; i < polled.size(); ++i) {
      Connection& c = *polled[i];
      if ((fds[i + 1].revents & ~POLLOUT) != 0)
        read_from(c);
      else if (now - c.heard > world_.silence)
        lose(c, "nothing heard for " + std::to_string(world_.silence.count() / 1000) + " s");
    }
  }
  announce_stop(lock);
  for (Connection& c : connections_) write_to(c);
}

void Star::announce_stop(Lock& lock) {
  const Stop why = stop();
  if (why == Stop::none) return;
  if (!announced_) {
    announced_ = true;
    if (reason_.empty())
      reason_ = (why == Stop::interrupted ? "interrupted on " : "stopped on ") + here();
    broadcast(encode(FrameType::stop,
                     Writer().u32(static_cast<std::uint32_t>(why)).text(reason_).take()));
    changed_.notify_all();
  }
  if (!std::exchange(wake_due_, false)) return;
  lock.unlock();
  {
    const std::lock_guard call(wake_mutex_);
    if (wake_) wake_();
  }
  lock.lock();
}

void Star::heartbeat() {
  const auto now = Clock::now();
  if (now < next_heartbeat_) return;
  next_heartbeat_ = now + kHeartbeat;
  for (Connection& c : connections_)
    if (c.out.empty()) send(c, encode(FrameType::heartbeat));
}

// An error shows when reading: what the peer said before it closed is still to be read.
void Star::write_to(Connection& to) {
  while (to.alive() && !to.out.empty()) {
    const std::string& frame = *to.out.front();
    const ssize_t sent = ::send(to.socket.get(), frame.data() + to.out_offset,
                                frame.size() - to.out_offset, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) {
      to.out.clear();
      to.out_offset = 0;
      return;
    }
    to.out_offset += static_cast<std::size_t>(sent);
    if (to.out_offset < frame.size()) continue;
    to.out.pop_front();
    to.out_offset = 0;
  }
}

void Star::read_from(Connection& from) {
  const bool open = from.in.receive(from.socket.get());
  from.heard = Clock::now();
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

// False: not a frame that this peer may send.
bool Star::handle(Connection& from, Frame frame) {
  const bool first = world_.rank == 0;
  Reader r(frame.payload);
  switch (frame.type) {
    case FrameType::heartbeat:
      return true;
    case FrameType::ping: {
      const std::int64_t sent = r.i64();
      send(from, encode(FrameType::pong, Writer().i64(sent).i64(monotonic_ns()).take()));
      return r.complete();
    }
    case FrameType::pong:
      return handle_pong(from, r);
    case FrameType::gather: {
      std::optional<std::string>& mine = gathering_[static_cast<std::size_t>(from.rank)];
      if (!first || mine) return false;
      mine = std::move(frame.payload);
      complete_gather();
      check_departures();
      return true;
    }
    case FrameType::gathered: {
      const std::size_t rank = r.u32();
      std::string blob = r.text();
      if (first || !r.complete() || rank >= gathering_.size()) return false;
      gathering_[rank] = std::move(blob);
      complete_gather();
      return true;
    }
    case FrameType::publish:
      published_.emplace_back(from.rank, std::move(frame.payload));
      return first;
    case FrameType::stop: {
      const std::uint32_t why = r.u32();
      const std::string reason = r.text();
      if (!r.complete() || why == 0 || why > static_cast<std::uint32_t>(Stop::failed)) return false;
      stop_with(static_cast<Stop>(why), reason);
      return true;
    }
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

bool Star::handle_pong(Connection& from, Reader& r) {
  const std::int64_t sent = r.i64(), answered = r.i64();
  if (!r.complete()) return false;
  estimate_.add(sent, answered, monotonic_ns());
  if (estimate_.rounds() < kPings)
    send(from, encode(FrameType::ping, Writer().i64(monotonic_ns()).take()));
  else
    changed_.notify_all();
  return true;
}

}  // namespace

std::unique_ptr<Control> Control::meet(const World& world) { return std::make_unique<Star>(world); }

}  // namespace ghostrank
