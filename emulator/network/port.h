// The LogGP model of one NIC or NVLink port. The port serialises at its rate each message that
// leaves, behind those that left before. Likewise each message that arrives, byte by byte: a short
// message does not wait for a long one that is still arriving, and takes its own time from it. The
// same arithmetic paces real sends (a message may leave when its turn ideally begins), models
// delays on the memory fabric and is the virtual network.
//
// Deadlines are absolute: a port remembers until when it is busy, so rounding and lateness never
// add up. A message that waits for a port takes over the slip of the message that keeps it busy,
// because that lateness delays it too. Units: emulated picoseconds, bytes. Threading: one owner
// (the shard of the port's node).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "emulator/common/moment.h"
#include "profiles/job/job.h"
#include "profiles/units.h"

namespace ghostrank {

struct LinkSpeed {
  double ps_per_byte = 0;  // 0: unlimited
  Picoseconds latency = 0;
  Framing framing{};  // bytes that the network adds to a message

  bool limited() const { return ps_per_byte > 0; }

  static LinkSpeed from_rate(double bits_per_second, Picoseconds latency, Framing framing = {}) {
    return {bits_per_second > 0 ? 8e12 / bits_per_second : 0, latency, framing};
  }
  Picoseconds serialise(std::uint64_t bytes) const {
    if (!limited()) return 0;
    if (!framing.none()) [[unlikely]]
      bytes = framing.on_wire(bytes);
    const auto size = static_cast<std::int64_t>(bytes);  // int64 converts to double faster
    return static_cast<Picoseconds>(static_cast<double>(size) * ps_per_byte + 0.5);
  }
};

// When an ingress was idle lately: bytes of a message came in then that has arrived as a whole only
// now, because it is long and others arrived between its bytes. Keeps a few spans of time; of more,
// the two with the least busy time between them become one, in which that time is spread evenly.
class IdleTimes {
 public:
  // Returns for how long the ingress was idle since `head`, and forgets that: the time is taken.
  Picoseconds take_since(Picoseconds head) {
    Picoseconds taken = 0;
    for (; count_ > 0 && spans_[count_ - 1].end > head; --count_) {
      Span& last = spans_[count_ - 1];
      if (last.begin >= head) {
        taken += last.idle();
        continue;
      }
      const Span since{head, last.end, last.busy_since(head)};
      taken += since.idle();
      last.busy -= since.busy;
      last.end = head;
      break;
    }
    return taken;
  }

  // Adds a span that follows all others.
  void add(Picoseconds begin, Picoseconds end) {
    if (count_ == kMost) join_two();
    spans_[count_++] = {begin, end, 0};
  }

 private:
  static constexpr int kMost = 4;
  struct Span {
    Picoseconds begin = 0, end = 0, busy = 0;
    Picoseconds idle() const { return end - begin - busy; }
    Picoseconds busy_since(Picoseconds t) const {
      return busy == 0 ? 0
                       : static_cast<Picoseconds>(static_cast<double>(busy) *
                                                  static_cast<double>(end - t) /
                                                  static_cast<double>(end - begin));
    }
  };
  void join_two() {
    int first = 0;
    for (int i = 1; i + 1 < count_; ++i)
      if (gap_after(i) < gap_after(first)) first = i;
    spans_[first].busy += gap_after(first) + spans_[first + 1].busy;
    spans_[first].end = spans_[first + 1].end;
    --count_;
    for (int i = first + 1; i < count_; ++i) spans_[i] = spans_[i + 1];
  }
  Picoseconds gap_after(int i) const { return spans_[i + 1].begin - spans_[i].end; }

  std::array<Span, kMost> spans_{};  // ascending
  int count_ = 0;
};

struct Port {
  Moment egress_free;
  Moment ingress_free;
  // When the last message that had to queue for the ingress is in.
  Picoseconds queued_until = -1;
  IdleTimes idle{};  // of the ingress

  // Takes the egress for `duration`, no earlier than `at`. Returns when the turn begins.
  Moment take_egress(const Moment& at, Picoseconds duration) {
    const Moment start = later(at, egress_free);
    egress_free = {start.at + duration, start.slip};
    return start;
  }

  // Takes the ingress for a message whose last byte arrives at `tail`, and whose bytes have come
  // for `duration`, while the ingress may have been busy with messages that arrived earlier.
  // Returns when the message is in: `tail`, or later where they kept it from coming in.
  Moment take_ingress(const Moment& tail, Picoseconds duration) {
    return take_ingress(tail, tail.at - duration, duration);
  }
  // The same where the port's rate changes: the bytes have come since `head`, and would take
  // `duration` from when the ingress is free.
  Moment take_ingress(const Moment& tail, Picoseconds head, Picoseconds duration) {
    if (head > ingress_free.at) {
      idle.add(ingress_free.at, head);
      return ingress_free = tail;
    }
    Picoseconds taken = idle.take_since(head);
    if (const Picoseconds came = tail.at - head; came != duration && taken > 0) [[unlikely]]
      taken = static_cast<Picoseconds>(static_cast<double>(taken) * static_cast<double>(duration) /
                                       static_cast<double>(came));
    const Picoseconds rest = duration - std::min(duration, taken);
    ingress_free = later(tail, {ingress_free.at + rest, ingress_free.slip});
    return ingress_free;
  }

  // Returns whether a message with its last byte at `tail` that is in at `in` must go back to the
  // queue: it is not in yet, or an earlier message is in at the same time and must be delivered
  // first.
  bool must_queue(Picoseconds tail, Picoseconds in) {
    if (in <= tail && queued_until != in) return false;
    queued_until = in;
    return true;
  }
};

}  // namespace ghostrank
