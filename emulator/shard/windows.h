// The windows of virtual time (Shard::run_virtual). Between two windows all shards of the process
// meet once. Each tells the others what it knows, and takes the mail that they sent it in the
// window before:
//
//   shard 0   play ── told, mail ── waits   play ──────── told, mail
//   shard 1   play ────────────── told, mail play ── told, mail ── waits
//
// What is told and sent in a window lies in one of two boards, and is read in the next window from
// there, so one meeting a window is enough: a board is written again only after another meeting.
//
// Threading: shard `self` calls the functions that take `self`, on its thread; told() and first()
// are for shards between two meetings of their own.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "emulator/shard/event.h"

namespace ghostrank {

class Windows {
 public:
  static constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();

  // `spin`: how long a shard waits awake for the others, at most, before it sleeps. The more often
  // they come later than that, because they have no core, the less it waits awake.
  Windows(int shards, std::chrono::nanoseconds spin);

  struct Told {
    Picoseconds next = kNever;  // its first event; mail is not among them
    // Before this time no rank of the shard sends to another shard; 0: unknown, and sends() is then
    // first().
    Picoseconds sends = 0;
    Picoseconds got_on = 0;  // when it got on last; of jobs with agents
    bool stopped = false;    // the run is
  };

  // Waits until all shards have come. Returns how long, in nanoseconds of wall time.
  std::int64_t meet(int self, const Told& told);
  // A shard leaves for ever; the others no longer wait for it, and see what it told before.
  void leave();

  // ---- After a meeting, until the next one ----

  const Told& told(int shard) const { return read().told[index(shard)]; }
  // When the first event of the shard is due, mail included; when it may next send to others.
  Picoseconds first(int shard) const;
  Picoseconds sends(int shard) const { return std::max(first(shard), told(shard).sends); }
  bool stopped() const;

  // Sends mail to another shard; it is read after the next meeting.
  void send(int self, int to, Parcel&& parcel);
  // Calls take(event) or take(parcel) for each piece of mail, by sender, in the order of sending.
  template <typename Take>
  void take_mail(int self, const Take& take) {
    for (int from = 0; from < shards_; ++from) {
      Mail& mail = read_side().mail[index(from, self)];
      std::size_t parcel = 0;
      for (Event& event : mail.events)
        event.held == kNil ? take(event) : take(std::move(mail.parcels[parcel++]));
      mail.events.clear();
      mail.parcels.clear();
    }
  }
  // Whether is(event) holds for mail that the shard has sent since the last meeting.
  template <typename Is>
  bool any_sent(int self, const Is& is) {
    for (int to = 0; to < shards_; ++to)
      for (const Event& event : written().mail[index(self, to)].events)
        if (is(event)) return true;
    return false;
  }

 private:
  // Most mail is an event alone. An event with more to it is in its parcel, and `held` says so.
  struct alignas(64) Mail {
    std::vector<Event> events;
    std::vector<Parcel> parcels;
    Picoseconds first = kNever;  // of its events
  };
  struct alignas(64) Line : Told {};
  struct Board {
    std::vector<Line> told;  // by shard
    std::vector<Mail> mail;  // from * shards + to
  };

  std::size_t index(int shard) const { return static_cast<std::size_t>(shard); }
  std::size_t index(int from, int to) const { return index(from * shards_ + to); }
  std::uint32_t met() const { return met_.load(std::memory_order_relaxed); }
  Board& written() { return boards_[met() % 2]; }
  Board& read_side() { return boards_[(met() + 1) % 2]; }
  const Board& read() const { return boards_[(met() + 1) % 2]; }
  void arrive(std::uint64_t change);

  struct alignas(64) Patience {
    std::int64_t ns;
  };

  int shards_;
  std::int64_t spin_ns_;
  std::vector<Patience> patience_;  // by shard
  std::array<Board, 2> boards_;
  // How many shards are awaited (upper half) and how many of these have come (lower half).
  alignas(64) std::atomic<std::uint64_t> state_;
  alignas(64) std::atomic<std::uint32_t> met_{0};  // meetings so far
};

}  // namespace ghostrank
