// Messages over datagrams that may be lost, doubled or reordered: both sides of one direction of a
// flow, as state machines without sockets and clock. Messages arrive in order, each once.
//
//   message = header (fabric/wire.h) | payload        cut into packets; a message begins a new one
//   packets are numbered; at most kWindow are under way
//   an acknowledgement says which number is awaited, and which of the 64 after it have come
//
// A packet counts as lost when the third after it or a later one has come, or after a timeout.
//
// Units: bytes, nanoseconds. Threading: one owner each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "emulator/fabric/wire.h"

namespace ghostrank {

struct Acknowledgement {
  std::uint32_t awaited = 0;  // all before it have come
  std::uint64_t come = 0;     // bit i: awaited + 1 + i has
};

class ReliableSender {
 public:
  static constexpr std::size_t kWindow = 64;
  static constexpr std::size_t kMostMessages = 256;  // taken and not acknowledged

  explicit ReliableSender(std::size_t most_in_packet) : most_in_packet_(most_in_packet) {}

  bool full() const { return messages_.size() >= kMostMessages; }
  bool empty() const { return messages_.empty(); }
  std::uint64_t bytes() const { return bytes_; }  // of messages that are not acknowledged
  void put(Message&& message);                    // requires !full()

  // A packet that is due: new, or to be sent again.
  struct Packet {
    std::uint32_t number = 0;
    const Header* header = nullptr;      // null: the packet is not a message's first
    const std::byte* payload = nullptr;  // null: synthetic
    std::size_t bytes = 0;               // of payload
    bool again = false;                  // it has left before
  };
  // The next one that is due; empty: none. Its pointers are valid until the next call of
  // acknowledge(). Call left() once it has left.
  std::optional<Packet> due();
  void left(std::int64_t now_ns);

  // Returns how many packets it has not been told of before.
  std::size_t acknowledge(const Acknowledgement& ack, std::int64_t now_ns);
  // When the oldest packet under way counts as lost; empty: none is under way.
  std::optional<std::int64_t> deadline_ns() const;
  // Marks the packets that have timed out to be sent again; returns how many.
  std::size_t time_out(std::int64_t now_ns);

  std::uint64_t sent_again() const { return sent_again_; }

 private:
  struct Sent {
    std::uint32_t number = 0;
    std::uint64_t message = 0;  // its number since the start
    std::uint64_t at = 0;       // offset in the payload
    std::size_t bytes = 0;
    bool first = false, last = false;  // of its message
    bool waits = true;                 // to be sent, for the first time or again
    bool come = false;
    int times = 0;
    std::int64_t sent_ns = 0;
  };
  void cut();
  Sent* waiting();
  std::int64_t patience_ns() const;

  const std::size_t most_in_packet_;
  std::deque<Message> messages_;                // not acknowledged as a whole
  std::uint64_t bytes_ = 0;                     // of messages_
  std::uint64_t first_message_ = 0;             // number of messages_.front()
  std::uint64_t cut_message_ = 0, cut_at_ = 0;  // where the next packet begins
  std::deque<Sent> window_;
  std::uint32_t next_ = 0;
  std::int64_t smoothed_ns_ = 0;  // round trip; 0: not measured
  int backoff_ = 1;
  std::uint64_t sent_again_ = 0;
};

class ReliableReceiver {
 public:
  // `keep_payload`: gives messages their bytes; else they stay synthetic but for the words of notes
  // (Header::number bytes).
  explicit ReliableReceiver(bool keep_payload) : keep_payload_(keep_payload) {}

  // Takes a packet; appends the messages that it completes. `first`: it begins with a header.
  // Returns false for one that fits no message: a stray.
  bool take(std::uint32_t number, bool first, std::span<const std::byte> bytes,
            std::vector<Message>& arrived);
  Acknowledgement acknowledgement() const;
  std::uint64_t taken() const { return taken_; }  // packets, each once

 private:
  struct Early {
    bool first = false;
    std::vector<std::byte> bytes;
  };
  bool append(bool first, std::span<const std::byte> bytes, std::vector<Message>& arrived);

  const bool keep_payload_;
  std::uint32_t awaited_ = 0;
  std::map<std::uint32_t, Early> early_;  // by packet number
  std::optional<Message> open_;           // the message that is arriving
  std::uint64_t got_ = 0;                 // of its payload
  std::uint64_t taken_ = 0;
};

}  // namespace ghostrank
