#include "emulator/shard/windows.h"

#include "emulator/common/monotonic.h"

namespace ghostrank {
namespace {

// Meetings are numbered from 1 to kLast, and then from 0 on; a shard that has left says kLeft.
constexpr std::uint32_t kLast = 0x7fff'ffff, kLeft = kLast + 1;
constexpr int kLooksPerClockRead = 8;
constexpr int kLess = 16;  // least patience, as a part of the most
constexpr int kLong = 4;   // times the most: a wait that shows that others have no core

// Lets the other hyperthread of a core run while this one spins.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Windows::Windows(int shards, std::chrono::nanoseconds spin)
    : shards_(shards), spin_ns_(spin.count()), own_(index(shards), Own{0, spin_ns_}) {
  for (Board& board : boards_) {
    board.lines = std::vector<Line>(index(shards));
    board.mail = std::vector<Mail>(index(shards * shards));
  }
}

std::int64_t Windows::meet(int self, const Told& told) {
  Own& own = own_[index(self)];
  Board& board = written(self);
  own.met = (own.met + 1) & kLast;
  Line& line = board.lines[index(self)];
  line.told = told;
  line.meeting.exchange(own.met);  // ordered before notify_all() looks for who sleeps
  line.meeting.notify_all();
  std::int64_t waited = 0;
  for (int other = 0; other < shards_; ++other)
    if (other != self) waited += wait_for(board.lines[index(other)].meeting, own.met, own);
  for (int to = 0; to < shards_; ++to) written(self).mail[index(self, to)].first = kNever;
  return waited;
}

// Waits until a shard's line says that it has come to the meeting. Returns nanoseconds.
std::int64_t Windows::wait_for(const std::atomic<std::uint32_t>& line, std::uint32_t meeting,
                               Own& own) {
  std::uint32_t said = 0;
  const auto come = [&] {
    said = line.load(std::memory_order_acquire);
    return said == meeting || said == kLeft;
  };
  if (come()) return 0;
  const std::int64_t began = monotonic_ns();
  std::int64_t now = began;
  for (int looks = 1; !come() && now - began < own.patience_ns; ++looks) {
    pause();
    if (looks % kLooksPerClockRead == 0) now = monotonic_ns();
  }
  while (!come()) line.wait(said, std::memory_order_acquire);
  const std::int64_t waited = monotonic_ns() - began;
  // Falling asleep and waking up may have been most of it, so only longer waits show that others
  // have no core.
  own.patience_ns = waited < kLong * spin_ns_ ? std::min(2 * own.patience_ns, spin_ns_)
                                              : std::max(own.patience_ns / 2, spin_ns_ / kLess);
  return waited;
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
  Event& event = mail.events.emplace_back(parcel.event);
  event.held = more ? 0 : kNil;
  if (more) mail.parcels.push_back(std::move(parcel));
}

}  // namespace ghostrank
