#include "emulator/shard/shared/windows.h"

#include <pthread.h>

#include "emulator/common/monotonic.h"

namespace ghostrank {
namespace {

// Meetings are numbered from 1 to kLast, and then from 0 on; a shard that has left says kLeft.
constexpr std::uint32_t kLast = 0x7fff'ffff, kLeft = kLast + 1;
constexpr int kLooksPerClockRead = 8;
// A shard spins while the other one runs, but no longer than this many times Windows::spin_ns_: the
// other one may have much more to do.
constexpr int kMostSpins = 20;
constexpr std::int64_t kUnknown = -1;  // processor time

// Lets the other hyperthread of a core run while this one spins.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void note_clock(std::atomic<clockid_t>& of_thread) {
  if (clockid_t clock; pthread_getcpuclockid(pthread_self(), &clock) == 0)
    of_thread.store(clock, std::memory_order_relaxed);
}

}  // namespace

Windows::Windows(int shards, std::chrono::nanoseconds spin)
    : shards_(shards), spin_ns_(spin.count()), own_(index(shards)) {
  for (Board& board : boards_) {
    board.lines = std::vector<Line>(index(shards));
    board.mail = std::vector<Mail>(index(shards * shards));
  }
}

std::int64_t Windows::meet(int self, const Told& told) {
  Own& own = own_[index(self)];
  Board& board = written(self);
  if (own.met == 0) note_clock(own.ran);
  own.met = (own.met + 1) & kLast;
  Line& line = board.lines[index(self)];
  line.told = told;
  line.meeting.exchange(own.met);  // ordered before notify_all() looks for sleepers
  line.meeting.notify_all();
  std::int64_t waited = 0;
  for (int other = 0; other < shards_; ++other)
    if (other != self) waited += wait_for(other, board.lines[index(other)].meeting, own.met);
  for (int to = 0; to < shards_; ++to) {
    Mail& mail = written(self).mail[index(self, to)];
    mail.first = mail.passing = kNever;
  }
  return waited;
}

// Waits until a shard's line says that it has come to the meeting. Returns nanoseconds. Spins while
// the other shard runs: waking up takes as long as many a window does, and a shard that wakes up
// late comes late to the next meeting, where the other one then falls asleep.
std::int64_t Windows::wait_for(int other, const std::atomic<std::uint32_t>& line,
                               std::uint32_t meeting) {
  std::uint32_t said = 0;
  const auto come = [&] {
    said = line.load(std::memory_order_acquire);
    return said == meeting || said == kLeft;
  };
  if (come()) return 0;
  const std::int64_t began = monotonic_ns();
  const auto comes_by = [&](std::int64_t end) {
    for (int looks = 1; !come(); ++looks) {
      pause();
      if (looks % kLooksPerClockRead == 0 && monotonic_ns() >= end) return come();
    }
    return true;
  };
  std::int64_t ran = kUnknown;
  for (int spins = 1; spin_ns_ > 0 && spins <= kMostSpins; ++spins) {
    if (comes_by(began + spins * spin_ns_)) return monotonic_ns() - began;
    const std::int64_t before = std::exchange(ran, ran_ns(other));
    if (ran == before) break;  // it does not run
  }
  while (!come()) line.wait(said, std::memory_order_acquire);
  return monotonic_ns() - began;
}

// Returns how much processor time the shard's thread has had; kUnknown: it has yet to come here, or
// the system does not tell.
std::int64_t Windows::ran_ns(int shard) const {
  const clockid_t clock = own_[index(shard)].ran.load(std::memory_order_relaxed);
  timespec t{};
  if (clock == kNone || clock_gettime(clock, &t) != 0) return kUnknown;
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void Windows::leave(int self) {
  for (Board& board : boards_) {
    std::atomic<std::uint32_t>& meeting = board.lines[index(self)].meeting;
    meeting.exchange(kLeft);
    meeting.notify_all();
  }
}

Picoseconds Windows::first(int self, int shard) const {
  Picoseconds first = told(self, shard).next;
  for (int from = 0; from < shards_; ++from)
    first = std::min(first, read(self).mail[index(from, shard)].first);
  return first;
}

Picoseconds Windows::sends(int self, int shard) const {
  Picoseconds passing = kNever;
  for (int from = 0; from < shards_; ++from)
    passing = std::min(passing, read(self).mail[index(from, shard)].passing);
  return std::min(std::max(first(self, shard), told(self, shard).sends), passing);
}

bool Windows::stopped(int self) const {
  const std::vector<Line>& lines = read(self).lines;
  return std::any_of(lines.begin(), lines.end(),
                     [](const Line& line) { return line.told.stopped; });
}

void Windows::send(int self, int to, Parcel&& parcel) {
  Mail& mail = written(self).mail[index(self, to)];
  const bool more = parcel.message.payload || parcel.event.kind == Event::Kind::link ||
                    parcel.event.kind == Event::Kind::landing;
  mail.first = std::min(mail.first, parcel.event.t.at);
  if (parcel.event.kind == Event::Kind::link)
    mail.passing = std::min(mail.passing, parcel.event.t.at);
  Event& event = mail.events.emplace_back(parcel.event);
  event.held = more ? 0 : kNil;
  if (more) mail.parcels.push_back(std::move(parcel));
}

}  // namespace ghostrank
