// A scheme whose actions depend on data, on packet loss, or on parties other than the ranks
// (servers, aggregators, switches), so that no Schedule can describe it. Each party of a
// communicator is a state machine, an Agent, with one function per event. During an event the agent
// is lent an Io and acts only through it. An agent knows no clock, socket or thread, so the same
// agent runs in memory, in virtual time, over a real network and in the checker
// (check/agents/checker.h).
//
//   program --on_call--> Agent of a rank --send--> Agent of a helper --send to all--> ... --done-->
//                          ^ on_timer                ^ on_note, on_timer, on_room
//
// Parties are numbered within the communicator: first the ranks in group order, 0 .. size-1, then
// the helpers in the order of Ends::helpers(). An agent lives for one segment of a run, over many
// calls: slots, credits and keys outlive a call. A switch outside ghostrank keeps its slots between
// segments: with one, ranks' agents live for the whole session.
//
// Units: elements, bytes, picoseconds of emulated time. Threading: an agent has one owner; an Ends
// is immutable and may be shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "collectives/common/data_type.h"
#include "collectives/schedule.h"
#include "collectives/tensor_content.h"

namespace ghostrank {

using Picoseconds = std::int64_t;

enum class PartyKind : std::uint8_t { rank, server, aggregator, network_switch };
std::string_view name_of(PartyKind kind);  // "rank", "server", "aggregator", "switch"

// How a note travels. `reliable`: as a message of the fabric, which is never lost and keeps its
// order from one party to another. `packet`: as one datagram, which may be lost, duplicated or
// reordered; the note must fit into it.
enum class Carriage : std::uint8_t { reliable, packet };

// A message from one party to others.
struct Note {
  std::uint8_t tag = 0;        // the kind of note; the scheme defines it
  std::uint32_t call = 0;      // Call::number
  std::uint32_t index = 0;     // a slot or a block; the scheme defines it
  DataType type{};             // type of the elements
  std::uint64_t elements = 0;  // number of tensor elements that the note carries
  // The elements if ranks hold real data; else empty: the elements travel, but nobody reads them.
  std::span<const std::byte> content{};
  // The scheme's other fields, always real; at most kMostWords bytes.
  std::span<const std::byte> words{};
};
inline constexpr std::size_t kMostWords = 32'768;

// Bytes of a note on the wire: overhead (Ends::overhead_bytes()), words and elements.
inline std::uint64_t note_bytes(const Note& note, std::uint64_t overhead) {
  return overhead + note.words.size() + note.elements * bytes_of(note.type);
}

// A call of a collective by the communicator's ranks. All ranks number their calls alike.
struct Call {
  std::uint32_t number = 0;  // counts the calls of communicator and scheme, from 0; wraps
  Collective collective;
  DataType type{};
  Sparsity sparsity{};  // density of the summed tensors, as the job states it; dense by default
  // The tensor that the call sums, numbered from 1 in its communicator, in every iteration alike;
  // 0: none is named.
  std::uint32_t tensor = 0;
};

// What the processor of a helper does with elements. `add`: adds them to as many others;
// `optimise`: a step of the optimizer over the weights that belong to them.
enum class Work : std::uint8_t { copy, add, optimise };
inline constexpr int kWorks = 3;

// The work buffer of a rank in a call; schedule.h lists its content before and after. An all-to-all
// has a separate input: read() reads that input, write() writes the work buffer.
class Tensor {
 public:
  virtual ~Tensor() = default;
  // Empty if ranks hold no real data. The result is valid until the next access.
  virtual std::span<const std::byte> read(std::uint64_t first, std::uint64_t elements) = 0;
  // Stores the elements from `first` on; does nothing if ranks hold no real data.
  virtual void write(std::uint64_t first, std::span<const std::byte> elements) = 0;
  // True if any of these elements may have been nonzero when the call began. Answers without real
  // data too, so that a scheme can build a bitmap of blocks of any size.
  virtual bool nonzero(std::uint64_t first, std::uint64_t elements) = 0;
};

// What ranks did about a switch that had stopped answering, for the report.
enum class Incident : std::uint8_t {
  restart,    // they agreed to go on under a new epoch
  fallback,   // they agreed to go on without the switch
  ring_call,  // a call, or the rest of one, that they played without it
};

// The stages of a part of a tensor at a rank, by BytePS's names.
enum class Stage : std::uint8_t {
  none,
  coordinate_reduce,  // waits for the other ranks of the node
  reduce,             // is summed within the node
  compress,
  push,  // to the server, until the server has it
  pull,  // from the server
  decompress,
  broadcast  // within the node
};
std::string_view name_of(Stage stage);  // "COORDINATE_REDUCE"; none: ""

class Io {
 public:
  virtual ~Io() = default;
  // Sends to other parties. One copy leaves if the network can copy it. Returns false and sends
  // nothing if there is no room; on_room() then tells when to retry. Copies content and words.
  virtual bool send(std::span<const GroupParty> to, const Note& note, Carriage carriage) = 0;
  bool send(GroupParty to, const Note& note, Carriage carriage) {
    return send(std::span(&to, 1), note, carriage);
  }
  // Calls on_timer(timer) after this time, unless the timer is re-armed or disarmed before.
  virtual void arm(std::uint32_t timer, Picoseconds after) = 0;
  virtual void disarm(std::uint32_t timer) = 0;
  // Keeps the party's processor busy for this time: later sends leave later, and the next event
  // waits.
  virtual void spend(Picoseconds time) = 0;
  // For helpers. An event runs on the party's first processor; the rest of it runs on this core of
  // the party's machine (modulo the number of cores), as soon as the core is free.
  virtual void run_on(int /*core*/) {}
  // For helpers: spends the time that work on this many bytes of elements takes on the party's
  // machine, whose cores share its memory. Takes no time where no machine is described.
  virtual void work(Work /*work*/, std::uint64_t /*bytes*/) {}
  // For helpers: the party holds this many more bytes, from now to the end of the segment.
  virtual void hold(std::uint64_t /*bytes*/) {}
  // For ranks: the report counts this. One rank tells of it for all.
  virtual void tell(Incident) {}
  // For ranks, for the trace: a part of the call's tensor leaves the stage that it is in, and
  // enters another one. Call it with Stage::none before done().
  virtual void enter(std::uint32_t /*call*/, std::uint32_t /*part*/, Stage) {}
  // For ranks: the run cannot go on, for this reason.
  virtual void give_up(const std::string& /*why*/) {}
  // For ranks: reports that the rank's part of the call is complete and its tensor holds the
  // result.
  virtual void done(std::uint32_t call) = 0;
  // For ranks, from on_call() to done(). The result is valid until the event ends.
  virtual Tensor& tensor(std::uint32_t call) = 0;
};

class Agent {
 public:
  virtual ~Agent() = default;
  // For ranks: the rank's program has reached the call. Calls may overlap if the program overlaps
  // them.
  virtual void on_call(Io&, const Call&) {}
  virtual void on_note(Io&, GroupParty /*from*/, const Note&) {}
  virtual void on_timer(Io&, std::uint32_t /*timer*/) {}
  virtual void on_room(Io&) {}
  // A note comes soon, with these fields: a hint to fetch from memory what on_note() will touch.
  virtual void expect(GroupParty /*from*/, std::uint32_t /*call*/, std::uint32_t /*index*/) const {}
};

// The faults of packets and switches under which the scheme's result stays correct.
struct Survives {
  bool loss = false, duplicates = false, delay = false, reordering = false;
  bool restart = false;  // a switch that forgets everything, or stays away for a while
};

struct Helper {
  PartyKind kind = PartyKind::server;
  GroupRank beside = kNoRank;  // on the node of this rank; kNoRank: on a server of the job
  // A switch in the modelled network: that of this rank's rail and of its rack of 32 nodes (level
  // 0), or the one above all racks of the rail (level 1). Communicators share these switches.
  // kNoRank: a switch of its own.
  GroupRank near = kNoRank;
  int level = 0;
  int slots = 0;  // number of slots that it takes of the switch's memory
};

// State that the agents of all communicators on one switch or server share, such as its memory.
// Holds one value of each type: the first get() makes it, and it lasts as long as the agents.
// Threading: as its agents, which have one owner.
class Site {
 public:
  template <class T>
  T& get() {
    std::shared_ptr<void>& value = values_[typeid(T)];
    if (!value) value = std::make_shared<T>();
    return *static_cast<T*>(value.get());
  }

 private:
  std::map<std::type_index, std::shared_ptr<void>> values_;
};

class WireFormat;  // wire_format.h

// What a scheme asks of a switch outside ghostrank that plays its helpers, by packets of its
// wire_format() over UDP.
struct SwitchService {
  std::uint16_t port = 0;  // the switch's UDP port; answers come from it
  int slots = 0;           // per communicator, from Communicator::in_switch.first_slot on
  int elements = 0;        // of a packet
  // of_every: functions that every switch of the scheme plays, a user's own included; of_ours:
  // functions that ghostrank's own switches play.
  std::vector<Func> of_every, of_ours;
  // By rail: the ranks that exchange packets with the switch, in the order of their numbers. Rails
  // share slot numbers, but no sums: helper i sums for rail i.
  std::vector<std::vector<GroupRank>> rails;
  // Every worker sends these packets before the first call. The switch answers each one, with the
  // same Note::index, after all workers have sent it. The answers show that the switch is reset,
  // whatever it did before. The packets' words outlive the Ends.
  std::vector<Note> greeting;
  // The form of the packets, as a plan of `ghostrank switch run` names it; empty: SwitchML's.
  std::string_view format = {};
};

// The results of one tensor's calls where they are no sums, computed by other means than the
// agents, to check the agents. Threading: one owner.
class Expected {
 public:
  virtual ~Expected() = default;
  // The result of the next call. `given`: each rank's contribution, all of one length. The span is
  // valid until the next call; its numbers are not yet rounded to the tensor's type.
  virtual std::span<const float> next(std::span<const std::vector<float>> given) = 0;
};

// What a scheme provides for one communicator.
class Ends {
 public:
  explicit Ends(int size) : size_(size) {}
  virtual ~Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  int size() const { return size_; }  // ranks
  virtual std::vector<Helper> helpers() const { return {}; }
  virtual std::unique_ptr<Agent> agent(GroupParty party) const = 0;
  // For helpers that share something with others on their machine.
  virtual std::unique_ptr<Agent> agent_at(GroupParty party, Site&) const { return agent(party); }

  // Traffic of one call if no packet is lost, per sender and receiver: messages, and their bytes as
  // note_bytes() counts them. A note to many counts once per receiver.
  struct Edge {
    GroupParty from = 0, to = 0;
    std::uint64_t bytes = 0, messages = 0;
    Carriage carriage = Carriage::reliable;
    // Edges of one sender and number carry the same notes, of which one copy leaves where the
    // network copies. 0: it is not known which notes go to many.
    std::uint32_t copies = 0;
  };
  virtual std::vector<Edge> traffic(const Call& call) const = 0;
  virtual bool exact() const { return true; }  // false: traffic() is an estimate
  // How it is counted where it is not exact; follows "messages and bytes are".
  virtual std::string_view estimate() const { return "means over the data"; }
  virtual std::uint64_t overhead_bytes() const { return 0; }  // the scheme's header, per note
  // Encoding of the scheme's packets; null: ghostrank's own, words followed by elements. Lives as
  // long as the Ends.
  virtual const WireFormat* wire_format() const { return nullptr; }
  // Empty: no switch outside ghostrank can play the helpers.
  virtual std::optional<SwitchService> switch_service() const { return std::nullopt; }
  // Path of the P4 program for the scheme's switches in its author's source tree; empty: none.
  virtual std::string_view p4_program() const { return ""; }
  virtual Survives survives() const { return {}; }
  // For the calls that name the same tensor as this one; null: they end with sums.
  virtual std::unique_ptr<Expected> expected(const Call& /*call*/) const { return nullptr; }
  // How much a float element may differ from the exact sum, before it is rounded to its type, if no
  // rank's element exceeds `largest` in magnitude; 0: the sum is exact.
  virtual double error_bound(const Call& /*call*/, double /*largest*/) const { return 0; }
  // Why the scheme cannot serve the call; empty: it can.
  virtual std::string refuses(const Call& /*call*/) const { return ""; }
  // True: the scheme is about notes that the network copies, which a real network does not.
  virtual bool needs_copies() const { return false; }

 private:
  int size_;
};

// Sums the arriving notes of one type; does nothing for notes without content. A scheme may have
// several sums in progress.
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
