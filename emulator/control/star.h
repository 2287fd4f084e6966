// The control plane after the rendezvous. One thread moves the frames; the owner's calls and the
// thread share the state under one mutex, which the thread releases only while it waits in poll().
// Private to control/: the owner's calls are in control/control.cpp, the thread in
// control/thread.cpp.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/common/monotonic.h"
#include "emulator/control/control.h"
#include "emulator/control/frames.h"
#include "emulator/control/meet.h"
#include "switch/ports/fd.h"

namespace ghostrank::control {

using std::chrono::steady_clock;

inline constexpr int kPings = 16;

struct Connection : ControlLink {
  explicit Connection(ControlLink&& link) : ControlLink(std::move(link)) {
    in.set_limit(kMaxFrameBytes);
  }
  bool alive() const { return socket.is_open(); }

  SendQueue out;
  steady_clock::time_point heard = steady_clock::now();
  bool said_goodbye = false;  // the peer, to us
  bool acknowledged = false;  // the peer, our goodbye
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
  void tell(std::uint32_t word) override;
  std::uint32_t told() const noexcept override { return told_.load(std::memory_order_acquire); }
  void request_stop(Stop why) noexcept override;
  void fail(std::string reason, Stop why) override;
  Stop stop() const noexcept override { return stop_.load(std::memory_order_acquire); }
  std::string stop_reason() const override;
  void on_stop(std::function<void()> wake) override;
  std::uint64_t strays() const override { return strays_; }
  void close() override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  // The owner's thread calls these.
  void start_thread();
  void end_thread();
  void nudge() const noexcept;
  void estimate_clock();
  bool fits(std::string_view blob);

  // Either thread calls these, with the mutex locked.
  void stop_with(Stop why, const std::string& reason);
  void tell_of_stop();
  void send(Connection& to, std::string frame);
  void broadcast(std::string frame);
  void queue(Connection& to, const Bytes& frame);
  void keep_published(int rank, std::string blob);
  void complete_gather();
  void check_departures();
  std::string here() const;
  static std::string name_of(const Connection& c);

  // On the control thread.
  void run();
  void serve(Lock& lock);
  void end_for_want_of_memory() noexcept;
  void announce_stop(Lock& lock);
  void heartbeat();
  void read_from(Connection& from);
  void write_to(Connection& to);
  void lose(Connection& lost, const std::string& how);
  void take_frames(Connection& from);
  bool handle(Connection& from, Frame frame);
  bool handle_pong(Connection& from, BlobReader& payload);

  const World world_;
  const std::string hostname_ = this_hostname();
  std::int64_t clock_offset_ = 0;
  std::uint64_t strays_ = 0;
  Fd alarm_;  // eventfd: wakes the thread from poll()
  std::atomic<std::uint32_t> told_{0};
  std::atomic<Stop> stop_{Stop::none};
  static_assert(std::atomic<Stop>::is_always_lock_free);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Connection> connections_;
  std::string reason_;
  bool announced_ = false;  // told the others about the stop
  bool wake_due_ = false;
  bool waiting_ = false;  // the owner waits for a gather
  bool closing_ = false, quit_ = false;
  bool starved_ = false;  // the thread ran out of memory before
  // Arguments of poll(). Reserved for all connections, so that the thread can end a run without
  // memory.
  std::vector<pollfd> fds_;
  std::vector<Connection*> polled_;
  steady_clock::time_point next_heartbeat_ = steady_clock::now();
  std::vector<std::optional<std::string>> gathering_;  // by rank
  std::optional<std::vector<std::string>> gathered_;
  std::vector<std::pair<int, std::string>> published_;
  std::size_t published_bytes_ = 0;  // at most kMaxPublishedBytes
  ClockEstimate estimate_;

  std::mutex wake_mutex_;  // held during wake_(); never together with mutex_
  std::function<void()> wake_;

  std::thread thread_;
};

}  // namespace ghostrank::control
