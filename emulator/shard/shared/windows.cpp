#include "emulator/shard/shared/windows.h"

#include <pthread.h>

#include "emulator/common/futex.h"
#include "emulator/common/monotonic.h"

namespace ghostrank {
namespace {

// Meetings are numbered from 1 to kLast, and then from 0 on; a shard that has left says kLeft.
constexpr std::uint32_t kLast = 0x7fff'ffff, kLeft = kLast + 1;
constexpr int kLooksPerClockRead = 8;
// A thread spins while the other one runs, but no longer than this many times Windows::spin_ns_:
// the other one may have much more to do.
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
    : shards_(shards), spin_ns_(spin.count()), own_(index(shards)), rests_(index(shards)) {
  for (Board& board : boards_) {
    board.lines = std::vector<Line>(index(shards));
    board.mail = std::vector<Mail>(index(shards * shards));
  }
}

void Windows::come(int self, const Told& told) {
  Own& own = own_[index(self)];
  Line& line = written(self).lines[index(self)];
  own.met = (own.met + 1) & kLast;
  line.told = told;
  line.meeting.exchange(own.met);  // ordered before this thread looks for others, and for sleepers
  if (!all_here(self)) return;
  for (int other = 0; other < shards_; ++other)
    if (other != self) wake(other);
}

bool Windows::is_here(int self, int other) const {
  const std::uint32_t said = read(self).lines[index(other)].meeting.load();
  return said == met(self) || said == kLeft;
}

bool Windows::all_here(int self) const {
  for (int other = 0; other < shards_; ++other)
    if (other != self && !is_here(self, other)) return false;
  return true;
}

std::int64_t Windows::wait(int self, const Play& play) {
  Own& own = own_[index(self)];
  if (own.ran.load(std::memory_order_relaxed) == kNone) note_clock(own.ran);
  std::int64_t waited = 0;
  for (int other = 0; other < shards_;) {
    if (other == self || is_here(self, other)) {
      ++other;
      continue;
    }
    waited += wait_for(self, other, play);
    if (own.thrown) std::rethrow_exception(own.thrown);
    other = 0;  // another thread may have played this shard
  }
  return waited;
}

void Windows::begin(int self) {
  for (int to = 0; to < shards_; ++to) {
    Mail& mail = written(self).mail[index(self, to)];
    mail.first = mail.passing = kNever;
  }
}

// Waits for a shard to come to the meeting, or for others to play this one. Returns nanoseconds.
// Spins while the other shard's thread runs: waking up takes as long as many a window does, and a
// shard that wakes up late comes late to the next meeting, where the other one then falls asleep.
std::int64_t Windows::wait_for(int self, int other, const Play& play) {
  if (play_for(self, other, play)) return 0;
  const std::int64_t began = monotonic_ns();
  const auto waited = [&] { return monotonic_ns() - began; };
  std::int64_t ran = kUnknown;
  for (int spins = 1; spin_ns_ > 0 && spins <= kMostSpins; ++spins) {
    if (comes_by(self, other, began + spins * spin_ns_)) return waited();
    if (rest(other).player == Player::any) return waited();
    const std::int64_t before = std::exchange(ran, ran_ns(other));
    if (ran == before) break;  // it does not run
  }
  sleep(self);
  return waited();
}

// Spins until the shard has come or the time has. Returns whether the shard has.
bool Windows::comes_by(int self, int other, std::int64_t end) const {
  for (int looks = 1; !is_here(self, other); ++looks) {
    pause();
    if (looks % kLooksPerClockRead == 0 && monotonic_ns() >= end) return is_here(self, other);
  }
  return true;
}

// Plays the other shard's window if its thread sleeps. Returns whether that is so. All shards have
// come to the meeting before that window, else this one would still be there.
bool Windows::play_for(int self, int other, const Play& play) {
  Rest& theirs = rest(other);
  Player any = Player::any;
  if (theirs.player != any || !theirs.player.compare_exchange_strong(any, Player::another))
    return false;
  if (!is_here(self, other)) {  // no other thread has played it meanwhile
    try {
      play(other);
    } catch (...) {
      own_[index(other)].thrown = std::current_exception();
      leave(other);
    }
  }
  theirs.player = Player::any;
  wake(other);  // if it waits to take the shard back
  return true;
}

// Leaves the shard to other threads until it has come to a meeting with all the others and this
// thread has a core.
void Windows::sleep(int self) {
  Rest& own = rest(self);
  own.asleep = 1;
  if (!all_here(self)) {
    own.player = Player::any;
    while (own.asleep == 1) futex_wait(own.asleep, 1);
    take_back(self);
  }
  own.asleep = 0;
}

void Windows::take_back(int self) {
  Rest& own = rest(self);
  const auto taken = [&own] {
    Player any = Player::any;
    return own.player.compare_exchange_strong(any, Player::own);
  };
  const std::int64_t end = monotonic_ns() + spin_ns_;
  while (!taken()) {
    if (monotonic_ns() < end) {
      pause();
      continue;
    }
    own.asleep = 1;
    if (own.player == Player::another) futex_wait(own.asleep, 1);
  }
}

void Windows::wake(int shard) {
  std::atomic<std::uint32_t>& asleep = rest(shard).asleep;
  if (asleep != 0 && asleep.exchange(0) != 0) futex_wake(asleep);
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
  for (Board& board : boards_) board.lines[index(self)].meeting.exchange(kLeft);
  for (int shard = 0; shard < shards_; ++shard) wake(shard);
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
