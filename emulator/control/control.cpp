// The calls of a Control's owner. See control/star.h.
#include "emulator/control/control.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/eventfd.h>

#include "emulator/common/log.h"
#include "emulator/common/require_fd.h"
#include "emulator/control/signals_blocked.h"
#include "emulator/control/star.h"

namespace ghostrank::control {
namespace {

constexpr std::chrono::milliseconds kGoodbyePatience{5'000};
constexpr std::chrono::milliseconds kStoppedPatience{1'000};  // the failed process may not answer
constexpr std::chrono::milliseconds kPingPatience{5'000};

}  // namespace

Star::Star(const World& world)
    : world_(world),
      alarm_(require_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))),
      gathering_(static_cast<std::size_t>(world.size)) {
  if (world.size == 1) return;
  Meeting meeting = meet_others(world);
  strays_ = meeting.strays;
  for (ControlLink& link : meeting.links) connections_.emplace_back(std::move(link));
  start_thread();
  if (world.rank != 0 && connections_.front().boot_id != boot_id_of(world)) estimate_clock();
  if (clock_offset_ != 0)
    log_info("this clock is ", static_cast<double>(clock_offset_) * 1e-6,
             " ms ahead of process 0's");
}

Star::~Star() { end_thread(); }

// ---- owner

void Star::start_thread() {
  polled_.reserve(connections_.size());
  fds_.reserve(connections_.size() + 1);
  const SignalsBlocked of_the_thread;  // the control thread cannot handle signals
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
  send(connections_.front(), encode(FrameType::ping, BlobWriter().put(monotonic_ns()).bytes()));
  nudge();
  changed_.wait_for(lock, kPingPatience,
                    [&] { return estimate_.rounds() >= kPings || stop() != Stop::none; });
  clock_offset_ = estimate_.offset_ns();
}

bool Star::fits(std::string_view blob) {
  constexpr std::size_t kRoom = 64;  // for the fields that frames add
  if (blob.size() + kRoom <= kMaxFrameBytes) return true;
  fail("a control message of " + std::to_string(blob.size()) + " bytes exceeds the limit of " +
           std::to_string(kMaxFrameBytes),
       Stop::failed);
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
    keep_published(0, std::string(blob));
  else
    send(connections_.front(), encode(FrameType::publish, blob));
  nudge();
}

std::vector<std::pair<int, std::string>> Star::take_published() {
  const Lock lock(mutex_);
  published_bytes_ = 0;
  return std::exchange(published_, {});
}

void Star::tell(std::uint32_t word) {
  const Lock lock(mutex_);
  told_.store(word, std::memory_order_release);
  broadcast(encode(FrameType::told, BlobWriter().put(word).bytes()));
  nudge();
}

void Star::request_stop(Stop why) noexcept {
  const int saved = errno;
  Stop none = Stop::none;
  stop_.compare_exchange_strong(none, why, std::memory_order_acq_rel);
  nudge();
  errno = saved;
}

void Star::fail(std::string reason, Stop why) {
  {
    const Lock lock(mutex_);
    stop_with(why, world_.size > 1 ? here() + ": " + reason : reason);
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
    tell_of_stop();  // before the goodbye, which would be taken for the reason
    broadcast(encode(FrameType::goodbye));
    nudge();
    changed_.wait_for(lock, stop() == Stop::none ? kGoodbyePatience : kStoppedPatience, [&] {
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

// The first reason wins.
void Star::stop_with(Stop why, const std::string& reason) {
  Stop none = Stop::none;
  if (!stop_.compare_exchange_strong(none, why, std::memory_order_acq_rel)) return;
  reason_ = reason;
  log_error("stop: ", reason);
}

void Star::tell_of_stop() {
  const Stop why = stop();
  if (why == Stop::none || std::exchange(announced_, true)) return;
  if (reason_.empty())
    reason_ = (why == Stop::interrupted ? "interrupted on " : "stopped on ") + here();
  broadcast(encode(FrameType::stop,
                   BlobWriter().put(static_cast<std::uint32_t>(why)).put(reason_).bytes()));
  changed_.notify_all();
}

void Star::send(Connection& to, std::string frame) {
  queue(to, std::make_shared<const std::string>(std::move(frame)));
}

void Star::broadcast(std::string frame) {
  const Bytes shared = std::make_shared<const std::string>(std::move(frame));
  for (Connection& c : connections_) queue(c, shared);
}

// A peer that does not read ends the run. The stop is queued for it all the same: it may still
// read.
void Star::queue(Connection& to, const Bytes& frame) {
  if (!to.alive() || to.out.push(frame)) return;
  if (!to.said_goodbye && !closing_)
    stop_with(Stop::failed, name_of(to) + " does not read: more than " +
                                std::to_string(kMaxUnsentBytes >> 20) + " MiB wait for it");
}

void Star::keep_published(int rank, std::string blob) {
  const std::size_t bytes = blob.size() + kWaitingBytes;
  if (bytes > kMaxPublishedBytes - published_bytes_)
    return stop_with(Stop::failed, here() + " does not fetch what is published: more than " +
                                       std::to_string(kMaxPublishedBytes >> 20) +
                                       " MiB wait there");
  published_bytes_ += bytes;
  published_.emplace_back(rank, std::move(blob));
}

// When everybody's blob is there, process 0 sends all of them to everybody.
void Star::complete_gather() {
  const auto there = [](const std::optional<std::string>& blob) { return blob.has_value(); };
  if (!std::all_of(gathering_.begin(), gathering_.end(), there)) return;
  for (Connection& c : connections_)
    if (c.out.holds_gathered())
      return stop_with(Stop::failed, name_of(c) +
                                         " does not read: it takes part in an exchange "
                                         "without what the one before gave it");
  std::vector<std::string> all;
  for (std::size_t r = 0; r < gathering_.size(); ++r) {
    if (world_.rank == 0)
      broadcast(
          encode(FrameType::gathered,
                 BlobWriter().put(static_cast<std::uint32_t>(r)).put(*gathering_[r]).bytes()));
    all.push_back(std::move(*gathering_[r]));
    gathering_[r].reset();
  }
  gathered_ = std::move(all);
  changed_.notify_all();
}

// A process that said goodbye takes part in no further gather: waiting for it would never end.
void Star::check_departures() {
  const bool begun = world_.rank == 0
                         ? std::any_of(gathering_.begin(), gathering_.end(),
                                       [](const auto& blob) { return blob.has_value(); })
                         : waiting_ && !gathered_;
  if (!begun || closing_) return;
  for (const Connection& c : connections_)
    if (c.said_goodbye && !gathering_[c.rank])
      stop_with(Stop::failed, name_of(c) + " ended while others went on");
}

}  // namespace ghostrank::control

namespace ghostrank {

std::unique_ptr<Control> Control::meet(const World& world) {
  return std::make_unique<control::Star>(world);
}

std::vector<std::string> all_gather_or_throw(Control& control, std::string_view blob) {
  std::vector<std::string> all = control.all_gather(blob);
  if (all.empty()) throw_stopped(control);
  return all;
}

void throw_stopped(const Control& control) {
  throw Error("stopped before the start: " + control.stop_reason(), ErrorKind::environment);
}

}  // namespace ghostrank
