#include "emulator/shard/windows.h"

#include "emulator/common/monotonic.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kOneAwaited = std::uint64_t{1} << 32, kOneCome = 1;
constexpr std::uint64_t kCome = kOneAwaited - 1;
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
    : shards_(shards),
      spin_ns_(spin.count()),
      patience_(index(shards), Patience{spin_ns_}),
      state_(kOneAwaited * static_cast<std::uint64_t>(shards)) {
  for (Board& board : boards_) {
    board.told.resize(index(shards));
    board.mail = std::vector<Mail>(index(shards * shards));
  }
}

std::int64_t Windows::meet(int self, const Told& told) {
  static_cast<Told&>(written().told[index(self)]) = told;
  const std::uint32_t before = met();
  arrive(kOneCome);
  std::int64_t waited = 0;
  if (met_.load(std::memory_order_acquire) == before) {
    const std::int64_t began = monotonic_ns();
    std::int64_t now = began;
    std::int64_t& patience = patience_[index(self)].ns;
    for (int looks = 1; met_.load(std::memory_order_acquire) == before; ++looks) {
      if (now - began >= patience) break;
      pause();
      if (looks % kLooksPerClockRead == 0) now = monotonic_ns();
    }
    while (met_.load(std::memory_order_acquire) == before)
      met_.wait(before, std::memory_order_acquire);
    waited = monotonic_ns() - began;
    // Falling asleep and waking up may have been most of it, so only longer waits show that others
    // have no core.
    patience = waited < kLong * spin_ns_ ? std::min(2 * patience, spin_ns_)
                                         : std::max(patience / 2, spin_ns_ / kLess);
  }
  for (int to = 0; to < shards_; ++to) written().mail[index(self, to)].first = kNever;
  return waited;
}

void Windows::leave() { arrive(~kOneAwaited + 1); }

// Adds `change` to the state. The shard that makes the numbers of awaited and come shards equal,
// which happens once a meeting, ends the meeting.
void Windows::arrive(std::uint64_t change) {
  const std::uint64_t now = state_.fetch_add(change, std::memory_order_acq_rel) + change;
  const std::uint64_t come = now & kCome;
  if (come != now >> 32 || come == 0) return;
  state_.fetch_sub(come, std::memory_order_relaxed);
  met_.fetch_add(1, std::memory_order_release);
  met_.notify_all();
}

Picoseconds Windows::first(int shard) const {
  Picoseconds first = told(shard).next;
  for (int from = 0; from < shards_; ++from)
    first = std::min(first, read().mail[index(from, shard)].first);
  return first;
}

bool Windows::stopped() const {
  return std::any_of(read().told.begin(), read().told.end(),
                     [](const Told& told) { return told.stopped; });
}

void Windows::send(int self, int to, Parcel&& parcel) {
  Mail& mail = written().mail[index(self, to)];
  const bool more = parcel.message.payload || parcel.event.kind == Event::Kind::link ||
                    parcel.event.kind == Event::Kind::landing;
  mail.first = std::min(mail.first, parcel.event.t.at);
  Event& event = mail.events.emplace_back(parcel.event);
  event.held = more ? 0 : kNil;
  if (more) mail.parcels.push_back(std::move(parcel));
}

}  // namespace ghostrank
