// A collective as data. For every rank of a group, a Schedule lists the messages that the rank
// receives and sends, in order; it knows nothing of time, sockets or memory.
//
//   collective  = function, group size, element count, root
//   schedule    = one or more actors per rank, each bound to one channel
//   actor       = a sequence of steps 0 .. steps-1, executed strictly in order
//   step        = receive one block from up to three peers, reduce or copy it,
//                 then send one block to up to three peers, in `slices` messages per peer
//
// A step is a pure function of (rank, actor, k): nothing is stored per rank. Within a step, an
// actor receives slice s from every peer before it sends slice s to any. The receiver matches the
// messages of one connection (channel, source, destination) in the order in which the sender sent
// them.
//
// Units: counts and offsets are elements; ranks are positions in the group, 0 .. size-1.
// Threading: a Schedule is immutable once made; any number of threads may share it.
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

#include "collectives/common/number.h"

namespace ghostrank {

enum class Func : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  all_to_all,
  send_recv,  // group of two or more: the root sends to the target
  barrier,
  gather,
  scatter,
  all_gather_v,
  all_to_all_v,
};
inline constexpr int kFuncs = 12;
std::string_view name_of(Func func);  // "allreduce", "reduce_scatter", "all_gather", ...

// The operation of a function that reduces. Libraries choose algorithms by it; the data played here
// is always summed.
enum class Reduction : std::uint8_t { sum, prod, min, max, avg, pre_mul_sum };
inline constexpr int kReductions = 6;
std::string_view name_of(Reduction reduction);  // "sum", "prod", "min", "max", "avg", "mulsum"
std::optional<Reduction> reduction_named(std::string_view name);  // nullopt: no such name

// What the elements of a call are. `usual`: integers of one byte, and floats of more.
enum class Numbers : std::uint8_t { usual, integers, floats };

// `count` follows NCCL's arguments: all-reduce, broadcast, reduce, send/recv: elements of the
// buffer; reduce-scatter: elements each rank receives; all-gather: elements each rank sends;
// all-to-all: elements per peer; barrier: ignored; gather, scatter: elements of one rank's block.
//
// The v-variants ignore `count` and take `counts`: all-gather-v: counts[j] elements of rank j;
// all-to-all-v: counts[i * size + j] elements from rank i to rank j. `counts` is null for every
// other function.
using Counts = std::shared_ptr<const std::vector<std::uint64_t>>;
struct Collective {
  Func func = Func::all_reduce;
  int size = 1;  // ranks in the group
  std::uint64_t count = 0;
  std::uint32_t element_bytes = 4;
  GroupRank root = 0;  // of a send_recv: the sender
  Counts counts{};
  GroupRank target = 1;  // send_recv: the receiver
  Reduction reduction = Reduction::sum;
  Numbers numbers = Numbers::usual;
  // send_recv: the communicator has these two ranks alone, the one with the lower number first.
  bool pair = false;

  bool integers() const {
    return numbers == Numbers::integers || (numbers == Numbers::usual && element_bytes == 1);
  }
};

// True if the function's blocks differ in size; such a function needs `counts`.
constexpr bool is_ragged(Func func) {
  return func == Func::all_gather_v || func == Func::all_to_all_v;
}
// True if the function sums the ranks' data.
constexpr bool reduces(Func func) {
  return func == Func::all_reduce || func == Func::reduce || func == Func::reduce_scatter;
}
// Number of counts that the function needs for a group of this size; 0 if it takes none.
std::size_t counts_needed(Func func, int size);

// The data that a schedule finds before it starts and must leave after it, rank by rank. "Block j"
// is elements [j * count, (j + 1) * count) of a buffer; with counts, block j begins where block j-1
// ends (layout.h).
//
//                   before                                       after
//   all_reduce      work: own contribution                       work: sum of all
//   reduce_scatter  work: own contribution to every block        work, own block: sum of all
//   all_gather      work, own block: own data                    work, block j: data of rank j
//   broadcast       work of the root: its data                   work: the root's data
//   reduce          work: own contribution                       work of the root: sum of all
//   all_to_all      input, block j: data for rank j;             work, block j: data from rank j
//                   work, own block: copied from the input
//   send_recv       work of the root: its data                   work of the target: the same
//   barrier         nothing                                      every rank has heard of every rank
//   gather          work, own block: own data                    work of the root, block j: data of
//                                                                rank j
//   scatter         work of the root, block j: data for rank j   work, own block: the root's data
//   all_gather_v    as all_gather                                as all_gather
//   all_to_all_v    as all_to_all                                as all_to_all
//
// The table describes in-place schedules. An out-of-place schedule finds the data of the `before`
// column in the input buffer, at the same offsets; its work buffer is then undefined.
//
// Elements that the table does not list are undefined. A schedule never writes an input buffer, and
// it leaves unchanged the data that a rank may still read (the work buffer of the root or of the
// sender). In an all-to-all or all-to-all-v a rank sends no message to itself: the player of the
// schedule copies the own block from the input before the first step.

// Elements of a rank's work buffer (size * count for all-gather, reduce-scatter, and so on), and of
// the separate input buffer that an in-place all-to-all or all-to-all-v has (0 for the other
// functions). Only in an all-to-all-v do these differ between ranks.
std::uint64_t work_elements(const Collective& c, GroupRank rank);
std::uint64_t input_elements(const Collective& c, GroupRank rank);
// The size of a call as nccl-tests counts it: the larger of a rank's buffers; for an all-to-all-v,
// the elements that a rank sends on average, rounded up.
std::uint64_t call_elements(const Collective& c);

// `scratch` belongs to one rank, holds Schedule::scratch_elements() elements and starts undefined.
// `none`: see Block.
enum class Buffer : std::uint8_t { work, input, scratch, none };

// Elements [offset, offset + count) of one of the rank's buffers. A piece of a scattered message
// may lie in Buffer::none: its elements travel, but nobody reads or writes them.
struct Block {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  Buffer buffer = Buffer::work;
  bool operator==(const Block&) const = default;
};

inline constexpr int kMaxPeers = 3;

// Up to three group ranks. A step receives from them, or sends to them, in this order.
class Peers {
 public:
  constexpr Peers() = default;
  constexpr Peers(GroupRank r) { push(r); }  // NOLINT: one peer is the common case; kNoRank is none
  constexpr void push(GroupRank r) {
    if (r != kNoRank) rank_[size_++] = r;
  }
  constexpr int size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr GroupRank operator[](int i) const { return rank_[i]; }
  constexpr const GroupRank* begin() const { return rank_.data(); }
  constexpr const GroupRank* end() const { return rank_.data() + size_; }
  // Inline and branch-free, because every walk of a schedule compares peers at each step.
  constexpr bool operator==(const Peers& other) const {
    return ((size_ ^ other.size_) | (rank_[0] ^ other.rank_[0]) | (rank_[1] ^ other.rank_[1]) |
            (rank_[2] ^ other.rank_[2])) == 0;
  }

 private:
  static_assert(kMaxPeers == 3);
  std::array<GroupRank, kMaxPeers> rank_{kNoRank, kNoRank, kNoRank};
  std::int32_t size_ = 0;
};

enum class Combine : std::uint8_t { copy, reduce };

// A step without any peer is allowed and does nothing.
struct Step {
  Peers recv_from;
  Peers send_to;
  Block recv;  // where the received elements go
  Block send;  // the elements to send; slice s leaves after slice s has arrived from every peer
  Combine on_recv = Combine::copy;
  std::uint32_t slices = 1;          // messages per peer and direction, empty ones included
  std::uint64_t slice_elements = 0;  // elements of every slice but the last; 0: the whole block
  // For messages gathered from several blocks: recv.count and send.count are the messages' lengths,
  // Schedule::pieces() lists the blocks. Such a step has one slice.
  bool scattered = false;
  bool depends = false;  // starts after the step that Schedule::dependency() names has ended
  bool local = false;    // runs Schedule::locals() after receiving, before sending; one slice
  bool operator==(const Step&) const = default;
};

// Local work of a rank: copies `from` to `to`, or adds it to `to`; both have the same count.
struct Local {
  Block from, to;
  Combine combine = Combine::copy;
};

// One step of one of the rank's own actors.
struct StepOf {
  int actor = 0, step = 0;
};

enum class Way : std::uint8_t { recv, send };

// Slice `s` of a block: slice_elements elements from s * slice_elements on, cut at the end of the
// block; possibly empty.
inline Block slice_of(const Block& block, const Step& step, std::uint32_t s) {
  const std::uint64_t length = step.slice_elements == 0 ? block.count : step.slice_elements;
  const std::uint64_t begin = std::min(block.count, s * length);
  return {block.offset + begin, std::min(length, block.count - begin), block.buffer};
}

// For a library whose receiver announces every receive that it has posted, and whose sender waits
// for that announcement before it sends (gloo). The receiver sends one permission per message, in
// the order of the messages. The fields describe a rank that is in step k and has received the
// messages of step k. Such schedules have one actor per rank, which receives nothing in step 0.
struct Posting {
  // The rank has posted the receives of all steps up to k + receives; 0: sends need no permission.
  int receives = 0;
  // At most this many sends, the newest included, wait for permission; 0: no limit.
  int sends = 0;
  bool receives_first = false;  // a step posts its receives before its send; else after it

  bool needed() const { return receives > 0; }
};

// Limits of one connection (channel, source, destination), set by the library profile; 0 = no
// limit.
struct FlowControl {
  std::uint32_t credits = 0;  // messages sent that the receiver's actor has not consumed yet
  Posting posting{};
};

// How a library encodes elements in messages. `ll` and `ll128` mix flags with the data, so that the
// receiver sees the data arrive without a separate signal.
enum class Protocol : std::uint8_t { simple, ll, ll128 };
std::string_view name_of(Protocol protocol);                    // "Simple", "LL", "LL128"
std::optional<Protocol> protocol_named(std::string_view name);  // nullopt: no such name

// Bytes on the wire of a message of n elements of e bytes each.
//
//   simple   n e
//   ll       16 for every started 8 bytes of data (one line)
//   ll128    2048 for every started 1920 bytes of data
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
  int loop = 0;  // steps after which it begins again with other elements; 0: it never does
};

class Schedule {
 public:
  explicit Schedule(const Collective& c, FlowControl flow_control = {},
                    Protocol protocol = Protocol::simple)
      : collective_(c), flow_control_(flow_control), protocol_(protocol) {}
  virtual ~Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  const Collective& collective() const { return collective_; }
  FlowControl flow_control() const { return flow_control_; }
  // A message of n elements has message_bytes(protocol(), n, element_bytes) bytes.
  Protocol protocol() const { return protocol_; }
  // The algorithm that the schedule really plays, if that says more than the row's name, such as
  // "tree/LL128" for a row that chooses by size; else empty. The maker sets it before it shares the
  // schedule.
  const std::string& played() const { return played_; }
  void set_played(std::string name) { played_ = std::move(name); }
  // A channel serves the calls of a group (Communicator::together) one after the other, the lowest
  // turn first. The maker sets the turn before it shares the schedule.
  int turn() const { return turn_; }
  void set_turn(int turn) { turn_ = turn; }

  virtual int actors(GroupRank r) const = 0;
  virtual Actor actor(GroupRank r, int a) const = 0;
  virtual Step step(GroupRank r, int a, int k) const = 0;
  // Replaces `step` by step k; `step` must hold step k-1 or, for the first step of a walk,
  // anything. Faster than step(r, a, k) for a caller that walks all steps. It advances in place,
  // because copying the step would stall on store forwarding.
  virtual void next_step(GroupRank r, int a, int k, Step& step) const {
    ::new (&step) Step(this->step(r, a, k));
  }
  // Returns the actor of rank `dst` that receives the messages `src` sends to it on `channel`.
  virtual int receiver(GroupRank dst, int channel, GroupRank src) const = 0;
  // Sets `out` to the blocks that a scattered step gathers its message from (Way::send) or scatters
  // it to (Way::recv), in the message's order. Leaves `out` as it is if the step is not scattered.
  virtual void pieces(GroupRank, int /*a*/, int /*k*/, Way, std::vector<Block>& /*out*/) const {}
  // Returns the NIC through which a message from rank `from` to rank `to`, on another node, leaves
  // the sender's node (Way::send) or enters the receiver's node (Way::recv): a number below nics(),
  // kOwnNic for the NIC of the rank's GPU, or nic_of(r) for that of a rank r of the same node.
  static constexpr int kOwnNic = -1;
  static constexpr int nic_of(GroupRank r) { return -2 - r; }
  static constexpr bool is_nic_of(int nic) { return nic < kOwnNic; }
  static constexpr GroupRank rank_beside(int nic) { return -2 - nic; }
  virtual int nic(GroupRank /*from*/, GroupRank /*to*/, int /*channel*/, Way) const {
    return kOwnNic;
  }
  // NICs of the node for which the library laid out its channels; 0: it laid them out for no NICs.
  virtual int nics() const { return 0; }

  // Features that few schedules have; see Step and the table above.
  virtual bool out_of_place() const { return false; }
  virtual std::uint64_t scratch_elements(GroupRank) const { return 0; }
  virtual StepOf dependency(GroupRank, int /*a*/, int /*k*/) const { return {}; }
  virtual void locals(GroupRank, int /*a*/, int /*k*/, std::vector<Local>& /*out*/) const {
  }  // sets out

 private:
  Collective collective_;
  FlowControl flow_control_;
  Protocol protocol_;
  int turn_ = 0;
  std::string played_;
};

// Elements of a rank's input buffer, that of an out-of-place schedule included.
std::uint64_t input_elements(const Schedule& schedule, GroupRank r);
// Environment variables that a library reads, by name ("NCCL_ALGO").
using Environment = std::map<std::string, std::string>;

struct NcclGraphs;   // nccl/machine/graphs.h
struct NodeLinks;    // node_links.h
struct NcclMachine;  // nccl/machine/machine.h

// In-network aggregation: what the communicator may use of a switch that sums packets.
struct InSwitch {
  int slots = 512;            // each has two sets, and a set holds the sum of one packet
  int packet_elements = 256;  // 32, 64 or 256
  std::int64_t timeout_ps = 10'000'000'000;  // a worker resends a packet after this time; 10 ms
  int first_slot = 0;           // of a switch outside ghostrank, which communicators share
  int memory_slots = 8192;      // of one switch, for all communicators that it serves
  double packet_rate = 0;       // packets per second that one switch takes; 0: unlimited
  int trees = 1;                // for streaming, active at a time (SHARP)
  bool trees_per_port = false;  // `trees` is per port of a switch; else per switch
  // A guarded switch (switch/compiled/pool.h) may restart: its workers then agree on the packets to
  // resend.
  bool guarded = true;
  // SwitchML: workers give up a switch that none of them has heard from for this long; 0: never.
  std::int64_t fallback_ps = 1'000'000'000'000;
};

// Hashes by which BytePS assigns keys to servers (schemes/keyed/keys.h).
enum class KeyHash : std::uint8_t { djb2, naive, sdbm, built_in, mixed };

// A step of SGD with Nesterov's momentum (schemes/keyed/nesterov.h).
struct Nesterov {
  float rate = 0.1F, momentum = 0.9F;
};

// Servers that sum: what the communicator's schemes may use of them, and how.
struct AtServers {
  int places = 0;  // helper i is on place i modulo `places`
  int beside = 0;  // this many places, the last ones, each share NICs with the GPUs of a node
  int nics = 1;    // of each of the other places; helper i uses NIC i / places modulo `nics`
  int cores = 1;   // of each place
  // Tensors that calls name, by Call::tensor - 1. Empty where calls name none.
  struct Tensor {
    std::uint64_t elements = 0;
    std::uint32_t element_bytes = 4;
  };
  std::vector<Tensor> tensors{};

  std::uint64_t partition_bytes = 4'096'000;  // byteps: of the largest partition of a tensor
  std::uint64_t credit_bytes = 0;             // byteps: in flight, of a node; 0: unlimited
  KeyHash hash = KeyHash::djb2;               // byteps
  bool bound = false;      // byteps: the best split of bytes over servers, not the hash
  bool schedules = false;  // byteps: servers sum the key with the fewest pushes first
  std::uint64_t big_array = 1'000'000;   // parameter_server: elements from which all servers share
  std::uint64_t chunk_bytes = 32 << 10;  // phub: of the largest chunk of a tensor
  Nesterov optimizer{};                  // phub: the servers' steps
  int rack_nics = 0;  // phub_racks: this many NICs of a box, the last ones, are for other racks
  bool waits = true;  // byteps: a pull waits for the pushes of all nodes, not of its own alone
  std::int64_t timeout_ps = 0;  // byteps: a server silent for this long is dead; 0: none is
  bool elastic = false;         // byteps: the others take its keys; else the run ends
  std::shared_ptr<const struct PieceCompression> compression{};  // byteps; null: none
};

// What a job says of OmniReduce (schemes/omnireduce.h).
struct OmniReduceSpec {
  int block = 256;                           // elements of a block
  int columns = 4;                           // blocks of a message; with packets one
  int slots = 64;                            // of each aggregator
  bool packets = false;                      // Algorithm 2, over packets that may be lost
  std::int64_t timeout_ps = 10'000'000'000;  // a rank resends a packet after this time; 10 ms
};

// All that a schedule may know of its group besides the size.
struct Communicator {
  std::vector<std::int32_t> node_of;  // emulated node of each group rank; empty: one rank per node
  int channels = 1;                   // wanted channels; the data is split evenly over them
  std::uint64_t slice_bytes = 0;  // cut every block into messages of at most this; 0: whole blocks
  FlowControl flow_control;

  // For the libraries "nccl-*" only: they cut slices and grant credits by their own rules. If
  // `channels` is less than 1, they use the node's own number of channels.
  std::optional<Protocol> protocol{};  // nullopt: the tuner chooses it for the algorithm
  int max_channels = 0;                // a task's limit (NCCL's nMaxChannels); 0: the tuner's
  std::string node = "auto";           // template of a node, see nccl/machine/templates.h
  // A described node, which replaces the template; null: none.
  std::shared_ptr<const NcclMachine> machine{};
  // The GPU of each rank, by number on its node; empty: a node's ranks are on its first GPUs.
  std::vector<std::int32_t> gpu_of{};
  // A parsed graph dump, which replaces the template for groups that fill their nodes; null: none.
  std::shared_ptr<const NcclGraphs> graphs{};
  Environment environment{};  // see nccl/environment.h
  // The calls of one ncclGroup on this communicator, in the order in which they were submitted, and
  // which of them the call is; null: it is alone. See nccl/group.h.
  std::shared_ptr<const std::vector<Collective>> together{};
  std::size_t launch_index = 0;

  // The links between a node's GPUs, which gpu_of numbers; null: all are alike.
  std::shared_ptr<const NodeLinks> links{};

  // For schemes of the library kSchemes.
  InSwitch in_switch{};
  AtServers at_servers{};
  // The NIC of each rank, numbered over the cluster; empty: every rank has its own.
  std::vector<std::int32_t> nic_of{};
  OmniReduceSpec omnireduce{};
  // The switches at the ranks' NICs; without leaf_of none are modelled.
  struct Switches {
    std::vector<std::int32_t> leaf_of, port_of;  // by rank; leaves are numbered pod by pod
    int pods = 1, leaves = 1, spines = 1;        // leaves and spines of a pod
    int cores = 1;                               // that a spine has links to
    int ports = 1;                               // of the largest leaf, for NICs
    bool regular = true;  // false: these numbers do not tell how they are joined
  } switches{};
};

// Closed-form costs, written independently of the schedule; the tests compare the two.
struct Cost {
  int steps = 0;               // rounds, in each of which an actor sends and receives one message
  std::uint64_t bytes = 0;     // payload sent by all ranks together
  std::uint64_t messages = 0;  // sent by all ranks together, over one channel, unsliced
  bool most_steps = false;     // `steps` is an upper bound, because some messages are left out
};

// One row of the registry.
struct Algorithm {
  std::string_view library;  // "generic"
  Func func = Func::all_reduce;
  std::string_view name;                          // "ring"
  std::string_view steps_formula, bytes_formula;  // for people: "2(n-1)", "2(n-1) S"
  // Throws std::invalid_argument for a call it cannot serve.
  std::function<std::unique_ptr<Schedule>(const Collective&, const Communicator&)> make;
  std::function<Cost(const Collective&)> cost;  // empty where it depends on nodes, or is not given
  // Set in place of `make` if the row belongs to a scheme with agents (agent.h). A scheme has one
  // row per function that it serves; rows of one name share one Ends per communicator. `size`:
  // ranks. Throws std::invalid_argument for a communicator it cannot serve.
  std::function<std::unique_ptr<class Ends>(int size, const Communicator&)> ends;
};

// The library of the built-in schemes: with agents, or of schedules. A job may name one of them
// whatever library it uses.
inline constexpr std::string_view kSchemes = "schemes";

std::span<const Algorithm> registry();
// Returns null if there is no such row. `name` "auto" returns the library's first row for the
// function: the algorithm that the library plays by default, by its own choice if it has one.
const Algorithm* find_algorithm(std::string_view library, Func func, std::string_view name);
// If the library has no row for the function: advice on what users of that library do instead.
// Empty if it has a row, or if there is no advice.
std::string_view why_absent(std::string_view library, Func func);
// `row` made `schedule`; returns the row of the algorithm that the schedule really plays, whose
// formulas hold for it.
const Algorithm& played_row(const Algorithm& row, const Schedule& schedule);

}  // namespace ghostrank
