// The LogGP model of one NIC or NVLink port. The port serialises at its rate each message that
// leaves, behind those that left before. Likewise each message that arrives, byte by byte: a short
// message does not wait for a long one that is still arriving, and takes its own time from it;
// bytes that come more slowly than the port takes them leave room for others. The same arithmetic
// paces real sends (a message may leave when its turn ideally begins), models delays on the memory
// fabric and is the virtual network.
//
// Deadlines are absolute: a port remembers until when it is busy, so rounding and lateness never
// add up. A message that waits for a port takes over the slip of the message that keeps it busy,
// because that lateness delays it too. Units: emulated picoseconds, bytes. Threading: one owner
// (the shard of the port's node).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

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
  std::uint64_t on_wire(std::uint64_t bytes) const {
    if (!framing.none()) [[unlikely]]
      return framing.on_wire(bytes);
    return bytes;
  }
  Picoseconds serialise(std::uint64_t bytes) const {
    if (!limited()) return 0;
    const auto size = static_cast<std::int64_t>(on_wire(bytes));  // int64 converts to double faster
    return picoseconds(static_cast<double>(size) * ps_per_byte);
  }
};

// How much an ingress takes in, as time: what it would take for a message alone, whose bytes come
// evenly. Where rates change, bytes are measured instead, and come as the NICs' rates let them.
struct AtOneRate {
  static double between(Picoseconds begin, Picoseconds end) {
    return static_cast<double>(end - begin);
  }
  // How much of a message that is `work` and comes from `head` to `tail` has come until `t`.
  static double come(double work, Picoseconds head, Picoseconds t, Picoseconds tail) {
    return work / between(head, tail) * between(head, t);
  }
  static Picoseconds duration(Picoseconds /*start*/, double work) { return picoseconds(work); }
  static Picoseconds next_change(Picoseconds /*after*/) {
    return std::numeric_limits<Picoseconds>::max();
  }
};

// When an ingress was idle lately: bytes of a message came in then that has arrived as a whole only
// now, because it is long and others arrived between its bytes. Keeps a few spans of time; of more,
// the two with the least work between them become one. The work of a span is spread evenly in it.
class IdleTimes {
 public:
  // Takes what the ingress could have taken in of a message that came from `head` to `tail` and is
  // so much work, while it was idle. Returns how much that is.
  template <typename Rate>
  double take(Picoseconds head, Picoseconds tail, double work, const Rate& rate) {
    int first = count_;
    while (first > 0 && spans_[first - 1].end > head) --first;
    if (first == count_) return 0;
    if (spans_[first].begin < head) cut(first++, head, rate);
    double taken = 0;
    int kept = first;
    for (int i = first; i < count_; ++i) {
      const double come = std::min(work, rate.come(work, head, spans_[i].end, tail));
      const double idle = spans_[i].idle(rate), takes = std::min(idle, come - taken);
      taken += takes;
      if (idle - takes < 1) continue;  // no time is left
      spans_[i].work += takes;
      spans_[kept++] = spans_[i];
    }
    count_ = kept;
    if (count_ > kMost) join_two(rate);
    return taken;
  }

  // Adds a span that follows all others, in which the ingress did so much work.
  template <typename Rate>
  void add(Picoseconds begin, Picoseconds end, double work, const Rate& rate) {
    if (count_ == kMost) join_two(rate);
    spans_[count_++] = {begin, end, work};
  }

 private:
  static constexpr int kMost = 4;
  struct Span {
    Picoseconds begin = 0, end = 0;
    double work = 0;
    template <typename Rate>
    double idle(const Rate& rate) const {
      return rate.between(begin, end) - work;
    }
  };
  // Makes two spans of one, before and from `at`.
  template <typename Rate>
  void cut(int number, Picoseconds at, const Rate& rate) {
    Span& span = spans_[number];
    const Span rest{at, span.end,
                    span.work == 0 ? 0
                                   : span.work * rate.between(at, span.end) /
                                         rate.between(span.begin, span.end)};
    span.work -= rest.work;
    span.end = at;
    for (int i = count_++; i > number + 1; --i) spans_[i] = spans_[i - 1];
    spans_[number + 1] = rest;
  }
  template <typename Rate>
  void join_two(const Rate& rate) {
    int first = 0;
    double least = 0;
    for (int i = 0; i + 1 < count_; ++i) {
      const double between = rate.between(spans_[i].end, spans_[i + 1].begin);
      if (i > 0 && between >= least) continue;
      first = i;
      least = between;
    }
    spans_[first].work += least + spans_[first + 1].work;
    spans_[first].end = spans_[first + 1].end;
    --count_;
    for (int i = first + 1; i < count_; ++i) spans_[i] = spans_[i + 1];
  }

  std::array<Span, kMost + 1> spans_{};  // ascending; one more while a span is cut in two
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
    const Picoseconds head = tail.at - duration;
    if (head < ingress_free.at)
      return take_ingress(tail, head, static_cast<double>(duration), AtOneRate{});
    if (head == ingress_free.at)  // right behind the last one, as from a sender without a pause
      return ingress_free = later(tail, {tail.at, ingress_free.slip});
    idle.add(ingress_free.at, head, 0, AtOneRate{});
    return ingress_free = tail;
  }
  // The same of a message whose bytes have come since `head`, more slowly than the ingress takes
  // them or at a rate that changes. `work`: what `rate` measures.
  template <typename Rate>
  Moment take_ingress(const Moment& tail, Picoseconds head, double work, const Rate& rate) {
    if (head > ingress_free.at) {
      idle.add(ingress_free.at, head, 0, rate);
      ingress_free = {head, tail.slip};
    }
    double taken = idle.take(head, tail.at, work, rate);
    Picoseconds at = ingress_free.at;
    for (Picoseconds until = 0; at < tail.at; at = until) {
      until = std::min(tail.at, rate.next_change(at));
      const double come = until == tail.at ? work : rate.come(work, head, until, tail.at);
      const double most = rate.between(at, until), takes = std::min(most, come - taken);
      if (most - takes >= 1) idle.add(at, until, takes, rate);
      taken += takes;
    }
    const Picoseconds end = at + rate.duration(at, work - taken);
    return ingress_free = later(tail, {end, ingress_free.slip});
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
