// How fast a connection may send over a network that is played packet by packet (fabric.network:
// packet). Each policy is a row, like an algorithm. A shared object may bring its own rows
// (plugin.h); a job names one in fabric.queues.congestion_control.
//
//   sender ──packet──> queues: may mark or drop it ──> receiver
//     ▲                                                   │
//     └──────── answer: its round trip, a notice ─────────┘
//
// Units: bytes on the wire, picoseconds of emulated time, bytes per picosecond. Threading: rows are
// constant data; a SenderRate has one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace ghostrank {

using Picoseconds = std::int64_t;

// What a sender hears of one of its packets.
struct PacketAnswer {
  Picoseconds round_trip = 0;  // since its first byte left the NIC
  bool notice = false;         // a queue has marked a packet; see CongestionControl
};

// The sender's end of one connection. Its rates must follow from what it is told alone, so that
// runs can be repeated.
class SenderRate {
 public:
  virtual ~SenderRate() = default;

  // The rate of the next packet, in bytes per picosecond. At the NIC's rate or above, the
  // connection sends at every turn that its NIC gives it. Below kLeastShare of the NIC's rate it
  // sends at that share, so it never stops.
  virtual double rate() const = 0;

  virtual void on_sent(std::uint64_t bytes, Picoseconds now) = 0;
  virtual void on_answer(const PacketAnswer& answer, Picoseconds now) = 0;
  // The receiver misses a packet, or no answer has come for too long. Packets are sent again from
  // the first that is missing.
  virtual void on_loss(Picoseconds now) = 0;

  static constexpr double kLeastShare = 1e-4;
};

struct CongestionControl {
  std::string_view name;
  // The sender of a connection whose NIC has this rate; null: nothing slows senders down, and
  // queues mark no packet.
  std::unique_ptr<SenderRate> (*make)(double nic_rate) = nullptr;
  // A receiver that gets marked packets sends a connection no more than one notice in this time.
  Picoseconds between_notices = 0;
};

// The built-in rows, the default first: dcqcn, none.
std::span<const CongestionControl> congestion_controls();

}  // namespace ghostrank
