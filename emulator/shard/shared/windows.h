// The windows of virtual time (Shard::run_virtual). Between two windows all shards of the process
// meet once. Each tells the others what it knows, and takes the mail that they sent it in the
// window before:
//
//   shard 0   play ── told, mail ── waits   play ──────── told, mail
//   shard 1   play ────────────── told, mail play ── told, mail ── waits
//
// Shards write to one of two boards in a window, and read that board in the next window. So one
// meeting a window is enough, because nobody writes to a board again before another meeting.
// A shard meets the others by writing one cache line, with what it tells, and reading one of each.
//
// Each shard has a thread. Beside other programs a thread may have to wait for a core for thousands
// of windows, and two threads would wait for each other in every one. So while a shard's thread
// sleeps at a meeting, or has been woken and waits for a core, a thread that would wait for that
// shard plays its windows, too:
//
//   thread 0   plays 0, 1 ── plays 0, 1 ── plays 0 ── plays 0
//   thread 1   waits for a core ────────── plays 1 ── plays 1
//
// Threading: the thread that plays shard `self`, its own or another one, calls the functions that
// take `self`; wait() and leave() its own thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "emulator/shard/events/event.h"

namespace ghostrank {

class Windows {
 public:
  static constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();

  // `spin`: how long a thread spins for another one before it asks the kernel whether that one
  // runs. It spins on for a while if that one does, else it sleeps; 0: it sleeps at once.
  Windows(int shards, std::chrono::nanoseconds spin);

  struct Told {
    Picoseconds next = kNever;  // when its first event is due, mail left out
    // Before this time no rank of the shard sends to another shard; 0: unknown, and sends() is then
    // first().
    Picoseconds sends = 0;
    Picoseconds got_on = 0;  // when it got on last; of jobs with agents
    bool stopped = false;    // the run is
  };

  // The shard comes to its next meeting.
  void come(int self, const Told& told);
  // Plays a shard's window after the meeting to which it has come, until it comes to the next one.
  using Play = std::function<void(int shard)>;
  // Waits until all shards have come to the meeting of this one, and plays windows of those whose
  // threads sleep. Throws what another thread's Play threw that played this shard. Returns how long
  // the thread waited, in nanoseconds of wall time.
  std::int64_t wait(int self, const Play& play);
  // A shard leaves for ever; the others no longer wait for it, and see what it told before.
  void leave(int self);

  // ---- After a meeting, until the next one ----

  // Call it first.
  void begin(int self);

  const Told& told(int self, int shard) const { return read(self).lines[index(shard)].told; }
  // When the first event of the shard is due, mail included; when it may next send to others.
  Picoseconds first(int self, int shard) const;
  Picoseconds sends(int self, int shard) const;
  bool stopped(int self) const;

  // Sends mail to another shard; it is read after the next meeting.
  void send(int self, int to, Parcel&& parcel);
  // Calls take(event) or take(parcel) for each piece of mail, by sender, in the order of sending.
  template <typename Take>
  void take_mail(int self, const Take& take) {
    for (int from = 0; from < shards_; ++from) {
      Mail& mail = boards_[(met(self) + 1) % 2].mail[index(from, self)];
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
      for (const Event& event : written(self).mail[index(self, to)].events)
        if (is(event)) return true;
    return false;
  }

 private:
  // Most mail is an event alone. An event with more to it is in its parcel, and `held` says so.
  struct alignas(64) Mail {
    std::vector<Event> events;
    std::vector<Parcel> parcels;
    Picoseconds first = kNever;    // of its events
    Picoseconds passing = kNever;  // of its messages on links, which may pass on to any shard
  };
  // A shard writes here what it tells at a meeting, and last the number of that meeting.
  struct alignas(64) Line {
    Told told;
    std::atomic<std::uint32_t> meeting{0};
  };
  struct Board {
    std::vector<Line> lines;  // by shard
    std::vector<Mail> mail;   // from * shards + to
  };
  // Of one shard.
  struct alignas(64) Own {
    std::uint32_t met = 0;              // its meetings so far
    std::exception_ptr thrown;          // while another thread played it
    std::atomic<clockid_t> ran{kNone};  // its thread's processor time; others read it
  };
  // Who plays a shard.
  enum class Player : std::uint32_t {
    own,     // its thread
    any,     // whichever takes it: its thread sleeps, or has yet to run
    another  // another thread, until the next meeting
  };
  struct alignas(64) Rest {
    std::atomic<Player> player{Player::own};
    std::atomic<std::uint32_t> asleep{0};  // 1: its thread sleeps, or is about to
  };
  static constexpr clockid_t kNone = CLOCK_REALTIME;  // it has yet to come

  std::size_t index(int shard) const { return static_cast<std::size_t>(shard); }
  std::size_t index(int from, int to) const { return index(from * shards_ + to); }
  std::uint32_t met(int self) const { return own_[index(self)].met; }
  Board& written(int self) { return boards_[met(self) % 2]; }
  const Board& read(int self) const { return boards_[(met(self) + 1) % 2]; }
  Rest& rest(int shard) { return rests_[index(shard)]; }
  bool is_here(int self, int other) const;
  bool all_here(int self) const;
  std::int64_t wait_for(int self, int other, const Play& play);
  bool play_for(int self, int other, const Play& play);
  bool comes_by(int self, int other, std::int64_t end) const;
  void sleep(int self);
  void take_back(int self);
  void wake(int shard);
  std::int64_t ran_ns(int shard) const;

  int shards_;
  std::int64_t spin_ns_;
  std::vector<Own> own_;     // by shard
  std::vector<Rest> rests_;  // by shard
  std::array<Board, 2> boards_;
};

}  // namespace ghostrank
