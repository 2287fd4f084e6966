// What a collective is: data. A Schedule says, for every rank of a group, which messages it
// receives and sends and in what order; it knows nothing of time, sockets or memory.
//
//   collective  = function, group size, element count, root
//   schedule    = one or more actors per rank, each bound to one channel
//   actor       = a sequence of steps 0 .. steps-1, executed strictly in order
//   step        = receive one block from up to three peers, reduce or copy it,
//                 then send one block to up to three peers, in `slices` messages per peer
//
// A step is a pure function of (rank, actor, k): nothing is stored per rank. Within a step, slice s
// is received from every peer before slice s is sent to any. Messages of one connection (channel,
// source, destination) are matched in the order in which they were sent.
//
// Units: counts and offsets are elements; ranks are positions in the group, 0 .. size-1.
// Threading: a Schedule is immutable once made and may be shared by any number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ghostrank {

using Rank = std::int32_t;
inline constexpr Rank kNoRank = -1;

enum class Func : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  all_to_all,
  send_recv,  // group of two or more: position 0 sends to position 1
  barrier,
  gather,
  scatter,
  all_gather_v,
  all_to_all_v,
};
inline constexpr int kFuncs = 12;
std::string_view name_of(Func func);  // "allreduce", "reduce_scatter", "all_gather", ...

// `count` follows NCCL's arguments: all-reduce, broadcast, reduce, send/recv: elements of the
// buffer; reduce-scatter: elements each rank receives; all-gather: elements each rank sends;
// all-to-all: elements per peer; barrier: ignored; gather, scatter: elements of one rank's block.
//
// The v-variants take `counts` instead, and ignore `count`: all-gather-v: counts[j] elements of
// rank j; all-to-all-v: counts[i * size + j] elements from rank i to rank j. Null everywhere else.
using Counts = std::shared_ptr<const std::vector<std::uint64_t>>;
struct Collective {
  Func func = Func::all_reduce;
  int size = 1;  // ranks in the group
  std::uint64_t count = 0;
  std::uint32_t element_bytes = 4;
  Rank root = 0;
  Counts counts{};
};

// Whether the blocks of the function differ in size: one that needs `counts`.
constexpr bool is_ragged(Func func) {
  return func == Func::all_gather_v || func == Func::all_to_all_v;
}
// Whether it adds up what ranks have.
constexpr bool reduces(Func func) {
  return func == Func::all_reduce || func == Func::reduce || func == Func::reduce_scatter;
}
// How many counts a group of this size needs; 0 where the function has none.
std::size_t counts_needed(Func func, int size);

// What a schedule starts from and must leave behind, rank by rank; "block j" is elements
// [j * count, (j + 1) * count) of a buffer; with counts it begins where the blocks before it end
// (layout.h).
//
//                   before                                       after
//   all_reduce      work: own contribution                       work: sum of all
//   reduce_scatter  work: own contribution to every block        work, own block: sum of all
//   all_gather      work, own block: own data                    work, block j: data of rank j
//   broadcast       work of the root: its data                   work: the root's data
//   reduce          work: own contribution                       work of the root: sum of all
//   all_to_all      input, block j: data for rank j;             work, block j: data from rank j
//                   work, own block: copied from the input
//   send_recv       work of rank 0: its data                     work of rank 1: the same
//   barrier         nothing                                      every rank has heard of every rank
//   gather          work, own block: own data                    work of the root, block j: data of
//                                                                rank j
//   scatter         work of the root, block j: data for rank j   work, own block: the root's data
//   all_gather_v    as all_gather                                as all_gather
//   all_to_all_v    as all_to_all                                as all_to_all
//
// So it is in place. An out-of-place schedule finds in the input buffer, at the same offsets, what
// is listed above under `before`; its work buffer is undefined then.
//
// What is not listed is undefined; an input buffer is never written, and what a rank may still read
// (the root's work buffer, the sender's) is left as it was. The own block of an all-to-all or
// all-to-all-v is no message: whoever plays a schedule copies it from the input before the first
// step.

// Elements of the work buffer of a rank (all-gather and reduce-scatter: size * count, and so on),
// and in place of its separate input buffer (all-to-all and all-to-all-v only; 0 otherwise). Only
// in an all-to-all-v do ranks differ.
std::uint64_t work_elements(const Collective& c, Rank rank);
std::uint64_t input_elements(const Collective& c, Rank rank);
// What nccl-tests calls the size of a call: the larger one of a rank's buffers, for an all-to-all-v
// what a rank sends on average.
std::uint64_t call_elements(const Collective& c);

// Scratch is a rank's own, undefined at first, as long as Schedule::scratch_elements() says.
enum class Buffer : std::uint8_t { work, input, scratch, none };

// Elements [offset, offset + count) of one of the rank's buffers. Among the pieces of a message
// there may be one that is nowhere: so many elements that travel and that nobody reads.
struct Block {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  Buffer buffer = Buffer::work;
  bool operator==(const Block&) const = default;
};

inline constexpr int kMaxPeers = 3;

// Up to three group ranks, in the order in which they are served.
class Peers {
 public:
  constexpr Peers() = default;
  constexpr Peers(Rank r) { push(r); }  // NOLINT: one peer is the common case; kNoRank is none
  constexpr void push(Rank r) {
    if (r != kNoRank) rank_[static_cast<std::size_t>(size_++)] = r;
  }
  constexpr int size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr Rank operator[](int i) const { return rank_[static_cast<std::size_t>(i)]; }
  constexpr const Rank* begin() const { return rank_.data(); }
  constexpr const Rank* end() const { return rank_.data() + size_; }
  // Without a call or a branch: who walks a schedule asks at every step.
  constexpr bool operator==(const Peers& other) const {
    return ((size_ ^ other.size_) | (rank_[0] ^ other.rank_[0]) | (rank_[1] ^ other.rank_[1]) |
            (rank_[2] ^ other.rank_[2])) == 0;
  }

 private:
  static_assert(kMaxPeers == 3);
  std::array<Rank, kMaxPeers> rank_{kNoRank, kNoRank, kNoRank};
  std::int32_t size_ = 0;
};

enum class Combine : std::uint8_t { copy, reduce };

// A step without any peer is allowed and does nothing.
struct Step {
  Peers recv_from;
  Peers send_to;
  Block recv;  // where what arrives belongs
  Block send;  // what leaves, after everything of this step (slice by slice) has arrived
  Combine on_recv = Combine::copy;
  std::uint32_t slices = 1;          // messages per peer and direction, empty ones included
  std::uint64_t slice_elements = 0;  // elements of every slice but the last; 0: the whole block
  // Messages that are put together from several places: recv.count and send.count are their
  // lengths, Schedule::pieces() says where the elements lie. One slice.
  bool scattered = false;
  bool depends = false;  // begins when the step that Schedule::dependency() names has ended
  bool local = false;    // does Schedule::locals() after receiving, before sending; one slice
  bool operator==(const Step&) const = default;
};

// Work of a rank on its own buffers: `from` is copied to `to`, or added to it; equal counts.
struct Local {
  Block from, to;
  Combine combine = Combine::copy;
};

// A step of an actor of the same rank.
struct StepOf {
  int actor = 0, step = 0;
};

enum class Way : std::uint8_t { recv, send };

// Slice `s` of a block: [s * slice_elements, ...) cut at the block's end; possibly empty.
inline Block slice_of(const Block& block, const Step& step, std::uint32_t s) {
  const std::uint64_t length = step.slice_elements == 0 ? block.count : step.slice_elements;
  const std::uint64_t begin = std::min(block.count, s * length);
  return {block.offset + begin, std::min(length, block.count - begin), block.buffer};
}

// Of a library whose data leaves only for a receive that has been posted: the receiver tells the
// sender, a permission per message and in the messages' order. Says what a rank that stands in step
// k, and has received what that step receives, has posted. Such schedules have one actor per rank,
// which receives nothing in step 0.
struct Posting {
  int receives = 0;  // those of all steps up to k + receives; 0: no permission is needed
  int sends = 0;     // this one and the earlier ones that may still wait for theirs; 0: any number
  bool receives_first = false;  // a step's receive before its send; else after it

  bool needed() const { return receives > 0; }
};

// Limits of one connection (channel, source, destination), as data of the library profile; 0 =
// none.
struct FlowControl {
  std::uint32_t credits = 0;  // messages sent and not yet consumed by the receiver's actor
  Posting posting{};
};

// How a library's messages carry their elements. All but `simple` mix flags with the data, so that
// the receiver sees it arrive without a separate signal.
enum class Protocol : std::uint8_t { simple, ll, ll128 };
std::string_view name_of(Protocol protocol);                    // "Simple", "LL", "LL128"
std::optional<Protocol> protocol_named(std::string_view name);  // of those names; none: no such

// Bytes on the wire of one message of so many elements.
//
//   simple   n e
//   ll       16 for every 8 bytes of data, begun lines counted whole
//   ll128    2048 for every 1920 bytes of data, begun units counted whole
inline std::uint64_t message_bytes(Protocol protocol, std::uint64_t elements,
                                   std::uint32_t element_bytes) {
  const std::uint64_t bytes = elements * element_bytes;
  switch (protocol) {
    case Protocol::simple:
      return bytes;
    case Protocol::ll:
      return (bytes + 7) / 8 * 16;
    case Protocol::ll128:
      return (bytes + 1919) / 1920 * 2048;
  }
  return bytes;
}

struct Actor {
  int channel = 0;
  int steps = 0;
};

class Schedule {
 public:
  explicit Schedule(const Collective& c, FlowControl flow = {},
                    Protocol protocol = Protocol::simple)
      : collective_(c), flow_(flow), protocol_(protocol) {}
  virtual ~Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  const Collective& collective() const { return collective_; }
  FlowControl flow() const { return flow_; }
  // A message of so many elements has message_bytes(protocol(), elements, element_bytes) bytes.
  Protocol protocol() const { return protocol_; }
  // What is really played where that says more than the row's name, as in "tree/LL128" of a row
  // that chooses by size; else empty. Set by who makes the schedule, before anybody shares it.
  const std::string& played() const { return played_; }
  void set_played(std::string name) { played_ = std::move(name); }

  virtual int actors(Rank r) const = 0;
  virtual Actor actor(Rank r, int a) const = 0;
  virtual Step step(Rank r, int a, int k) const = 0;
  // Makes step k of step k-1, the first of whatever is there: a shorter way to step(r, a, k) for
  // who walks. In its place: a copy would wait for what has just been written.
  virtual void next_step(Rank r, int a, int k, Step& step) const {
    ::new (&step) Step(this->step(r, a, k));
  }
  // Which actor of rank `dst` receives what `src` sends to it on `channel`.
  virtual int receiver(Rank dst, int channel, Rank src) const = 0;
  // The places a scattered step's message comes from, or goes to, in the message's order. Sets
  // `out`; leaves it as it is where the step is not scattered.
  virtual void pieces(Rank, int /*a*/, int /*k*/, Way, std::vector<Block>& /*out*/) const {}
  // The NIC of a node by which messages from a rank of one node to a rank of another leave it
  // (Way::send) or come in (Way::recv), as a number below nics(); kOwnNic: that of the rank's GPU.
  static constexpr int kOwnNic = -1;
  virtual int nic(Rank /*from*/, Rank /*to*/, int /*channel*/, Way) const { return kOwnNic; }
  // NICs of the node for which the library laid out its channels; 0: it did not.
  virtual int nics() const { return 0; }

  // What few schedules have; see Step and the table above.
  virtual bool out_of_place() const { return false; }
  virtual std::uint64_t scratch_elements(Rank) const { return 0; }
  virtual StepOf dependency(Rank, int /*a*/, int /*k*/) const { return {}; }
  virtual void locals(Rank, int /*a*/, int /*k*/, std::vector<Local>& /*out*/) const {}  // sets out

 private:
  Collective collective_;
  FlowControl flow_;
  Protocol protocol_;
  std::string played_;
};

// Elements of a rank's input buffer, also out of place.
std::uint64_t input_elements(const Schedule& schedule, Rank r);
// Variables that a library reads, by name ("NCCL_ALGO").
using Environment = std::map<std::string, std::string>;

struct NcclGraphs;  // nccl/graphs.h

// What a communicator has of a switch that sums up.
struct InSwitch {
  int slots = 512;                           // each holds a packet's sum twice
  int packet_elements = 256;                 // 32, 64 or 256
  std::int64_t timeout_ps = 10'000'000'000;  // after which a packet is sent again
};

// What a schedule may know of the group it runs in, besides its size.
struct Communicator {
  std::vector<std::int32_t> node_of;  // emulated node of each group rank; empty: one rank per node
  int channels = 1;                   // wanted channels: the data is split evenly over them
  std::uint64_t slice_bytes = 0;  // cut every block into messages of at most this; 0: whole blocks
  FlowControl flow;

  // For the libraries "nccl-*", which cut slices and give credits by their own rules. With fewer
  // than one channel the node's own number of channels is taken.
  std::optional<Protocol> protocol{};  // none: the tuner's choice for the algorithm
  int max_channels = 0;                // a task's limit (NCCL's nMaxChannels); 0: the tuner's
  std::string node = "auto";           // template of a node, see nccl/node.h
  // Of a graph dump, in place of a template for groups that fill their nodes; null: none.
  std::shared_ptr<const NcclGraphs> graphs{};
  Environment environment{};  // see nccl/environment.h

  InSwitch in_switch{};  // for schemes of the library kSchemes
};

// Closed forms, written apart from the schedule and compared with it in the tests.
struct Cost {
  int steps = 0;               // communication steps on the longest chain
  std::uint64_t bytes = 0;     // payload sent by all ranks together
  std::uint64_t messages = 0;  // sent by all ranks together, one channel, unsliced
  bool most_steps = false;     // `steps` is an upper bound: part of the messages are left out
};

// One row of the registry.
struct Algorithm {
  std::string_view library;  // "generic"
  Func func = Func::all_reduce;
  std::string_view name;                          // "ring"
  std::string_view steps_formula, bytes_formula;  // for people: "2(n-1)", "2(n-1) S"
  // Throws std::invalid_argument for a call it cannot serve.
  std::function<std::unique_ptr<Schedule>(const Collective&, const Communicator&)> make;
  std::function<Cost(const Collective&)> cost;  // a user's own row may have none
  // In place of `make`: the row is of a scheme with agents (agent.h). Rows of one name share them:
  // a scheme has a row per function that it serves, and a communicator one Ends for all of them.
  // Throws std::invalid_argument for a communicator it cannot serve. `size`: ranks.
  std::function<std::unique_ptr<class Ends>(int size, const Communicator&)> ends;
};

// The library of schemes with agents that are built in; a name of theirs is found in any library.
inline constexpr std::string_view kSchemes = "schemes";

std::span<const Algorithm> registry();
// Null when there is no such row. `name` "auto" gives the library's first row for the function:
// what the library does when nobody tells it, by its own choice where it has one.
const Algorithm* find_algorithm(std::string_view library, Func func, std::string_view name);
// What there is to say where a library has no row for a function, as what its users do instead;
// empty where it has one or there is nothing to say.
std::string_view why_absent(std::string_view library, Func func);
// The row whose formulas hold for a schedule that `row` made: that of what is really played.
const Algorithm& played_row(const Algorithm& row, const Schedule& schedule);

}  // namespace ghostrank
