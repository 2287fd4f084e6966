// A scheme that is no Schedule: what it does depends on data, on what is lost, or on others than
// the ranks (servers, aggregators, switches). Each party of a communicator is a state machine, an
// Agent, with one function per event; for the time of an event it is lent an Io, by which alone it
// acts. It knows no clock, socket or thread, so that the same agent runs in memory, in virtual
// time, over a real network and in the checker (agent_checker.h).
//
//   program --on_call--> Agent of a rank --send--> Agent of a helper --send to all--> ... --done-->
//                          ^ on_timer                ^ on_note, on_timer, on_room
//
// Parties are numbered within the communicator: its ranks as in the group, 0 .. size-1, then the
// helpers in the order of Ends::helpers(). An agent lives as long as a segment of a run, over many
// calls: slots, credits and keys outlive a call.
//
// Units: elements, bytes, picoseconds of emulated time. Threading: an agent has one owner; an Ends
// is immutable and shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/data_type.h"
#include "collectives/schedule.h"
#include "collectives/tensor_content.h"

namespace ghostrank {

using Picoseconds = std::int64_t;
using Party = std::int32_t;

enum class PartyKind : std::uint8_t { rank, server, aggregator, network_switch };
std::string_view name_of(PartyKind kind);  // "rank", "server", "aggregator", "switch"

// How a note travels: as a message of the fabric, which is never lost and keeps its order on the
// way from one party to another; or as a packet, which may be lost, doubled or overtaken, and must
// fit one datagram of the network.
enum class Carriage : std::uint8_t { reliable, packet };

// What one party tells others.
struct Note {
  std::uint8_t tag = 0;        // what it says; the scheme's own
  std::uint32_t call = 0;      // Call::number
  std::uint32_t index = 0;     // the scheme's own: a slot, a block
  DataType type{};             // of the elements
  std::uint64_t elements = 0;  // of a tensor, which it carries
  // The elements, where ranks hold real data; else empty: they travel, and nobody reads them.
  std::span<const std::byte> content{};
  // What else the scheme must say, always real; at most kMostWords bytes.
  std::span<const std::byte> words{};
};
inline constexpr std::size_t kMostWords = 4096;

// Bytes of a note on the wire: words, elements and what Ends::overhead_bytes() says.
inline std::uint64_t note_bytes(const Note& note, std::uint64_t overhead) {
  return overhead + note.words.size() + note.elements * bytes_of(note.type);
}

// A collective that the communicator's ranks make. All of them number their calls alike.
struct Call {
  std::uint32_t number = 0;  // of the communicator and scheme, from 0; wraps
  Collective collective;
  DataType type{};
  Sparsity sparsity{};  // what the job says of what is summed up; dense unless it does
};

// The work buffer of a rank in a call; before and after it holds what schedule.h lists. In an
// all-to-all, whose input is a buffer apart, read() reads that input and write() the work buffer.
class Tensor {
 public:
  virtual ~Tensor() = default;
  // Empty where ranks hold no real data. Valid until the next access.
  virtual std::span<const std::byte> read(std::uint64_t first, std::uint64_t elements) = 0;
  // Puts elements there, from `first` on; nothing where there are none.
  virtual void write(std::uint64_t first, std::span<const std::byte> elements) = 0;
  // Whether any of these elements may have been other than zero when the call began, real data or
  // not: what a bitmap of blocks, of whatever size, says.
  virtual bool nonzero(std::uint64_t first, std::uint64_t elements) = 0;
};

class Io {
 public:
  virtual ~Io() = default;
  // To parties other than oneself. One copy leaves where the network can copy it. False: there is
  // no room, nothing was sent, and on_room() tells when to try again. Content and words are copied.
  virtual bool send(std::span<const Party> to, const Note& note, Carriage carriage) = 0;
  bool send(Party to, const Note& note, Carriage carriage) {
    return send(std::span(&to, 1), note, carriage);
  }
  // on_timer(timer) after so long, unless it is armed anew or disarmed before.
  virtual void arm(std::uint32_t timer, Picoseconds after) = 0;
  virtual void disarm(std::uint32_t timer) = 0;
  // The party's processor is busy for so long: what it sends from here on leaves later, and the
  // next event waits for it.
  virtual void spend(Picoseconds time) = 0;
  // Of a rank: its part of the call is over, its tensor is as promised.
  virtual void done(std::uint32_t call) = 0;
  // Of a rank, from on_call() to done(). Valid until the event ends.
  virtual Tensor& tensor(std::uint32_t call) = 0;
};

class Agent {
 public:
  virtual ~Agent() = default;
  // Of a rank: its program has come to the call. Calls may overlap where a program has them do so.
  virtual void on_call(Io&, const Call&) {}
  virtual void on_note(Io&, Party /*from*/, const Note&) {}
  virtual void on_timer(Io&, std::uint32_t /*timer*/) {}
  virtual void on_room(Io&) {}
};

// Which misfortunes of packets an agent's sums survive.
struct Survives {
  bool loss = false, duplicates = false, delay = false, reordering = false;
};

struct Helper {
  PartyKind kind = PartyKind::server;
  Rank beside = kNoRank;  // on the node of this rank; kNoRank: on a server of the job
};

class WireFormat;  // wire_format.h

// What a scheme gives for one communicator.
class Ends {
 public:
  explicit Ends(int size) : size_(size) {}
  virtual ~Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  int size() const { return size_; }  // ranks
  virtual std::vector<Helper> helpers() const { return {}; }
  virtual std::unique_ptr<Agent> agent(Party party) const = 0;

  // What one call sends where no packet is lost, summed by sender and receiver: messages and their
  // bytes as note_bytes() counts them, one of each per receiver of a note to many.
  struct Edge {
    Party from = 0, to = 0;
    std::uint64_t bytes = 0, messages = 0;
    Carriage carriage = Carriage::reliable;
  };
  virtual std::vector<Edge> traffic(const Call& call) const = 0;
  virtual bool exact() const { return true; }  // false: traffic() is a mean, which data decides
  virtual std::uint64_t overhead_bytes() const { return 0; }  // of every note: its own header
  // Of its packets; null: ghostrank's own, words and then elements. Lives as long as the Ends.
  virtual const WireFormat* wire_format() const { return nullptr; }
  // File name of the P4 program that plays its switches, as its author ships it; empty: none.
  virtual std::string_view p4_program() const { return ""; }
  virtual Survives survives() const { return {}; }
  // By how much an element of a float may differ from the exact sum, before it is rounded to its
  // type, where no rank's is larger than `largest` in magnitude; 0: it is exact.
  virtual double error_bound(const Call& /*call*/, double /*largest*/) const { return 0; }
  // Why such a call cannot be served; empty: it can.
  virtual std::string refuses(const Call& /*call*/) const { return ""; }

 private:
  int size_;
};

// What arrives added up: real where content is, else counted. Several may be under way at once.
class Sum {
 public:
  void clear() { content_.clear(); }
  void add(const Note& note) {
    if (note.content.empty()) return;
    if (content_.empty()) {
      content_.assign(note.content.begin(), note.content.end());
    } else {
      add_elements(note.type, content_.data(), note.content.data(), note.elements);
    }
  }
  std::span<const std::byte> content() const { return content_; }

 private:
  std::vector<std::byte> content_;
};

}  // namespace ghostrank
