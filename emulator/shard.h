// A shard: one thread, its ranks, its NICs, its fabric endpoint. Everything a rank does happens
// here; the loop is Shard::run_real and Shard::run_virtual in shard.cpp.
//
//   shard.cpp           the loops, timers
//   shard_outbox.cpp    what leaves for other shards and for the fabric
//   shard_ranks.cpp     streams and events: what a rank does next
//   shard_flights.cpp   collectives in flight and their actors
//   shard_messages.cpp  how slices leave, arrive, are matched and combined
//   shard_credits.cpp   credits, and permissions of libraries that post receives
//   shard_notes.cpp     notes of agents
//   shard_stalls.cpp    when nothing moves: since when, and who waits for whom
//
// Shards of a process meet only through SPSC rings (real time) or mailboxes swapped at a window
// barrier (virtual time), and through the counters in ShardShared.
#pragma once

#include <array>
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/agents/agent_host.h"
#include "emulator/clock.h"
#include "emulator/cluster.h"
#include "emulator/connections.h"
#include "emulator/fabric/fabric.h"
#include "emulator/flows.h"
#include "emulator/histogram.h"
#include "emulator/ledger.h"
#include "emulator/packets/packets.h"
#include "emulator/rank.h"
#include "emulator/result.h"
#include "emulator/sampled_seconds.h"
#include "emulator/schedules.h"
#include "emulator/spare_buffers.h"
#include "emulator/spsc.h"
#include "emulator/stalls.h"
#include "emulator/timer_queue.h"

namespace ghostrank {

// The way of a message through the shard is one function: calls would be a fifth of its time.
#define GHOSTRANK_ON_THE_WAY [[gnu::always_inline]] inline

// The iterations between two barriers.
struct Segment {
  std::uint32_t first = 0, count = 1;
  int program = kInOrder;    // of every role; kInOrder: the iterations' own, as Role says
  double dilation = 1;       // scales the lateness statistics to wall time; the clock has its own
  bool verify = false;       // real data, compared at the end of every collective
  std::uint64_t number = 0;  // among those of the run, from 1: packets carry it
};

// The end of one iteration as far as one shard (then one process) sees it; parts are summed.
struct IterationPart {
  std::uint32_t iteration = 0;
  std::uint32_t ranks = 0;
  Moment end;
  Picoseconds compute = 0, exposed = 0, bubble = 0;  // sums over ranks
  Picoseconds lasted = 0;  // sum over ranks, each from its own end of the iteration before
  Picoseconds rank0 = 0;   // the same of rank 0 alone
  Picoseconds earliest = std::numeric_limits<Picoseconds>::max();  // end of the first rank

  void merge(const IterationPart& other) {
    ranks += other.ranks;
    end = later(end, other.end);
    compute += other.compute;
    exposed += other.exposed;
    bubble += other.bubble;
    lasted += other.lasted;
    rank0 += other.rank0;
    earliest = std::min(earliest, other.earliest);
  }
};

// What the shards of a process share during one segment.
struct ShardShared {
  explicit ShardShared(int shards);

  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> steps{0};  // iterations ended by ranks here, for the progress line
  std::mutex mutex;                     // guards the four below
  std::condition_variable changed;      // one of them has, or a shard has ended
  std::vector<IterationPart> parts;
  std::string failure;     // first one wins
  bool of_fabric = false;  // is that failure
  int running = 0;         // shards

  int shards;
  std::barrier<> window;
  std::vector<std::atomic<Picoseconds>> next;            // virtual time: next event of each shard
  std::vector<std::unique_ptr<SpscRing<Parcel>>> rings;  // from * shards + to
  std::vector<std::vector<Parcel>> mail;                 // virtual time: from * shards + to
  struct Quiet {
    bool is = false;
    Picoseconds since = 0;
    std::string stuck;  // who waits for whom
  };
  std::vector<Quiet> quiet;  // by shard, real time only; guarded by `mutex`
  std::vector<std::unique_ptr<std::atomic<bool>>> asleep;
  std::vector<Fabric*> fabrics;  // to wake a neighbour

  // Of jobs with agents, which serve others when their own ranks have ended: shards whose ranks
  // have; notes on their way in this process, packets that are still to leave it among them; notes
  // to and from others, and packets, of which some are lost; whether all is at rest.
  std::atomic<int> ended{0};
  std::atomic<std::int64_t> notes_open{0};
  std::atomic<std::uint64_t> notes_sent{0}, notes_received{0};
  std::atomic<std::uint64_t> packets_sent{0}, packets_received{0};
  std::atomic<bool> at_rest{false};
};

struct RowStats {
  std::uint64_t calls = 0, bytes = 0;
  double total_seconds = 0;
  SampledSeconds seconds;  // of the calls seen by group rank 0
};

struct ShardStats {
  Histogram lateness_ns;  // wall, of compute delays
  Moment end;             // of the last rank
  double wall_seconds = 0, idle_seconds = 0, cpu_seconds = 0;
  double run_queue_seconds = 0;  // < 0: unreadable
  Picoseconds wall_behind = 0;   // emulated: how far the clock was past the last rank's ideal end
  Picoseconds paced = 0, pace_error = 0;  // pace_error: signed growth of lateness in busy periods
  std::uint64_t events = 0, messages = 0;
  std::uint64_t checked = 0, wrong = 0;
  std::uint64_t spans_dropped = 0;
  PacketCounts packets;
  std::vector<RowStats> rows;
  std::vector<Gap> gaps;  // real time: longer than the threshold of a stall; the last is endless
};

class Shard final : private NoteCarrier {
 public:
  struct Setup {
    const JobSpec& spec;
    const Workload& workload;
    const Cluster& cluster;
    int host = 0, index = 0;
    const Flows& flows;
    Fabric& fabric;
    std::uint64_t nonce = 0;
    std::vector<Rank> trace_ranks;
    std::size_t max_spans = 0;
    std::string spill_path;
    std::vector<int> cpus;       // where its thread is kept; empty: anywhere
    Packets* packets = nullptr;  // to other processes; null: no scheme of the job sends any
  };
  explicit Shard(const Setup& setup);

  // On the thread that plays: brings every rank to what it does at emulated time 0. Nothing leaves.
  void prepare(const Segment& segment, ShardShared& shared);
  // Plays the segment's iterations of every rank, from emulated time 0 of `clock`. Returns when all
  // of them have ended here or the run was stopped.
  void play(const Clock& clock);

  Ledger& ledger() { return ledger_; }
  const ShardStats& stats() const { return stats_; }
  const std::vector<Schedules::Row>& rows() const { return schedules_.rows(); }
  std::vector<Span> take_spans() { return std::move(spans_); }

 private:
  // shard.cpp
  void run_real();
  void run_virtual();
  bool finished() const;
  bool stopped() const { return shared_->stop.load(std::memory_order_relaxed); }
  bool take_arrivals();
  bool fire_due();
  void sleep();
  // Inlined, or the compiler thinks that it does nothing and leaves it out.
  GHOSTRANK_ON_THE_WAY void prefetch() const;
  Event& pop();
  GHOSTRANK_ON_THE_WAY void fire(Event& event);
  void fire_tied(const Event& first);
  Rank sender_of(const Event& e) const;
  GHOSTRANK_ON_THE_WAY Event& schedule(Event::Kind kind, Moment t, std::uint32_t rank);
  void schedule(const Event& event);
  std::size_t nic_of(const RankState& r, const Event& e) const;
  void take_over(Parcel parcel);
  void fail(const std::string& what, bool of_fabric = false);

  // shard_outbox.cpp
  bool flush();
  void hand_over(int lane, Parcel&& parcel);
  void keep(int lane, Parcel&& parcel);
  bool try_hand_over(int lane, Parcel& parcel);
  bool try_send(int flow, int nic, Message& message);
  void note_pace(int nic, Picoseconds start, Picoseconds duration, Picoseconds late);
  bool try_hand_to_shard(int shard, Parcel& parcel);

  // shard_stalls.cpp
  void note_progress();
  void note_rest();
  void note_end();
  void tell_quiet(bool quiet, Picoseconds since, std::string stuck);
  std::string what_is_stuck() const;
  std::string what_is_awaited(const Flight& f, const ActorState& a) const;

  // shard_ranks.cpp
  void begin_iteration(RankState& r, Moment t);
  void end_iteration(RankState& r);
  void advance(RankState& r);
  void advance_stream(RankState& r, std::uint8_t stream);
  bool has_room(StreamState& s, const Op* next) const;
  GHOSTRANK_ON_THE_WAY bool start_op(RankState& r, std::uint8_t stream, const Op& op);
  Picoseconds slowed(const RankState& r, std::uint8_t stream, Picoseconds duration) const;
  Picoseconds with_jitter(const RankState& r, std::uint8_t stream, const Op& op) const;
  void trace(const RankState& r, std::uint8_t stream, const Op& op, Picoseconds start,
             Picoseconds end, std::uint8_t lane = 0);

  // shard_flights.cpp
  bool start_flight(RankState& r, std::uint8_t stream, const Op& op);
  void begin_agents(RankState& r, Flight& f, const Schedules::Play& play);
  void begin_actor(Flight& f, int index, const Step*& row);
  std::uint32_t next_of_pair(RankState& r, std::uint32_t group, Rank peer, bool receives);
  void finish_flight(RankState& r, Flight& f);
  void meet_in_node(RankState& r, Flight& f);
  void end_calls(Flight* first, Moment t);
  GHOSTRANK_ON_THE_WAY void load_step(Flight& f, ActorState& a);
  GHOSTRANK_ON_THE_WAY void run_actor(RankState& r, Flight& f, ActorState& a);
  bool walk_actor(RankState& r, Flight& f, ActorState& a);
  bool begin_step(Flight& f, ActorState& a);
  void wake_waiting(RankState& r, Flight& f);
  void posted(Flight& f, ActorState& a);

  // shard_messages.cpp
  struct Leaving {  // what a message says of itself, besides what its flight does
    MessageKind kind;
    std::uint16_t number;  // as Header has it
    std::uint32_t actor;   // of the sender of the data
    std::uint16_t channel;
    std::uint64_t bytes;
    const Moment& ready;

    void describe(const Flight& f, Event& e) const {
      e.bytes = bytes & kMostBytes;
      e.number = number;
      e.group = f.group;
      e.sequence = f.sequence;
      e.source = f.position;
      e.actor = actor;
      e.channel = channel;
      e.message = kind;
      e.held = kNil;
    }
  };
  GHOSTRANK_ON_THE_WAY void send_slice(RankState& r, Flight& f, ActorState& a, Rank peer,
                                       const Block& slice);
  void find_route(const RankState& r, Flight& f, int channel, Rank peer, bool back, Route& route);
  void settle(const Flight& f, Route& route);
  void leave(RankState& r, Flight& f, Route& route, const Leaving& m, Payload payload);
  void leave_process(RankState& r, Flight& f, const Route& route, const Leaving& m,
                     Picoseconds start, Payload payload);
  void do_locals(Flight& f, ActorState& a);
  void arrive_from_wire(Message message);
  Flight* find_flight(const RankState& r, const Event& e) const;
  void arrive(RankState& r, const Event& e);
  GHOSTRANK_ON_THE_WAY void accept(RankState& r, Flight& f, ActorState& a, int bit, const Event& e);
  bool in_order(const RankState& r, ActorState& a, int bit, const Event& e);
  bool take_early(RankState& r, Flight& f, ActorState& a);
  void adopt_early(RankState& r, Flight& f);
  void push_early(EarlyList& list, const Event& e);
  Event unlink_early(EarlyList& list, std::uint32_t before, std::uint32_t i);

  // shard_credits.cpp
  void control_arrived(RankState& r, Flight* f, const Event& e);
  bool take_credit(RankState& r, Flight& f, ActorState& a);
  void return_credit(RankState& r, Flight& f, ActorState& a, const Event& consumed);
  void credit_arrived(RankState& r, Flight& f, const Event& e);
  bool exchange(RankState& r, Flight& f, ActorState& a);
  bool post_receives(RankState& r, Flight& f, ActorState& a);
  void permit(RankState& r, Flight& f, ActorState& a, Rank source);
  void permission_arrived(RankState& r, Flight& f, const Event& e);
  bool keep_permission(Flight& f, const Event& e);
  bool send_permitted(RankState& r, Flight& f, ActorState& a);
  void deliver(const Event& e, Picoseconds at);
  void send_on_connection(RankState& r, Flight& f, ActorState& a, Rank peer, const Block& slice);

  // shard_notes.cpp
  static constexpr Picoseconds kNotYet = -1;
  bool has_room(const LeavingNote& note) override;
  void carry(const LeavingNote& note) override;
  void wake(AgentAddress who, std::uint32_t timer, std::uint64_t armed, Moment at) override;
  void end_call(Flight& flight, Moment at) override;
  void refuse(const std::string& what) override { fail(what); }
  int lane_of(const LeavingNote& note, Rank to) const;
  std::array<Picoseconds, 2> misfortune(const LeavingNote& note, int from, int to);
  void deliver_note(const LeavingNote& note, Rank party, Moment at, Event::Kind kind);
  void note_to_process(const LeavingNote& note, Rank party, Picoseconds start);
  bool try_send_packet(int way, Message& message);
  bool take_packets();
  void count_packets();
  void note_from_wire(Message m);
  bool belongs_here(const Header& note) const;
  void schedule_note(Message m);
  void note_arrived(const Event& e);

  const JobSpec& spec_;
  const Workload& workload_;
  const Cluster& cluster_;
  const int host_, index_;
  const Flows& flows_;
  const std::vector<int> cpus_;
  Fabric& fabric_;
  Packets* const packets_;
  const std::uint64_t nonce_;
  const LinkSpeed nic_, intra_;
  const bool virtual_, copy_payload_, reanchor_, wired_, model_nodes_;

  Clock clock_ = Clock::virtual_time();
  Segment segment_;
  Picoseconds now_ = 0;  // the clock as last read
  ShardShared* shared_ = nullptr;
  Schedules schedules_;
  std::vector<RankState> ranks_;  // then helpers, which play no program
  std::size_t players_ = 0;       // the ranks among them
  AgentHost agents_;
  std::vector<std::uint16_t> scheme_row_;  // of the report, by scheme
  std::vector<std::uint64_t> packets_of_;  // sent, by local index
  std::vector<std::uint32_t> sequences_;   // collectives started: by rank, then by kind of group
  std::uint32_t ranks_left_ = 0;
  Picoseconds ended_ = 0;            // when the last rank here had, as the loop saw it
  std::vector<IterationPart> open_;  // iterations that not every rank here has ended
  TimerQueue<Event> timers_;
  struct Tied {
    Rank sender;
    Event event;
  };
  std::vector<Tied> tied_;   // in virtual time: what is due at one time at one rank
  std::vector<Port> nics_;   // of the whole cluster; only this shard's nodes are used
  Connections connections_;  // of libraries that need permissions, where the links have a rate
  struct Pace {              // of a NIC, in a busy period
    Picoseconds first_late = 0, last_late = 0, free_at = -1;
  };
  std::vector<Pace> pace_;
  // What a full ring or fabric did not take yet, by lane: first the shards of this process, then
  // the flows of this shard, then the ways of its packets.
  struct Outbox {
    std::deque<Parcel> queue;
    bool waiting = false;     // listed in waiting_
    std::uint32_t posts = 0;  // messages whose turn at their NIC is to come; nobody waits for them
  };
  std::deque<Outbox> outbox_;
  std::vector<int> waiting_, retried_;  // lanes with something in their outbox; those of this pass
  std::size_t outbox_size_ = 0, posts_ = 0;  // of all lanes
  int may_pass_ = 0;                         // messages that may still pass the outboxes
  std::vector<Message> arrived_;
  SpareBuffers spare_;                           // outlives the flights, which give theirs back
  std::deque<std::unique_ptr<Flight>> flights_;  // all there ever were, each beside its actors
  Flight* free_flights_ = nullptr;               // those not in use, by Flight::next
  struct Meeting {                               // members of a call inside a node that are there
    Flight* first = nullptr;
    int members = 0;
    Moment last;
  };
  std::unordered_map<std::uint64_t, Meeting> meetings_;  // by group and sequence
  Pool<EarlyMessage> early_;
  Pool<Parcel> held_;  // of events: messages to be posted, payload that has arrived
  Ledger ledger_;
  ShardStats stats_;
  PacketStats packets_before_;  // the segment
  std::vector<Span> spans_;
  std::size_t max_spans_;
  std::uint32_t handed_ = 0;             // to the fabric, since the clock was read
  const std::chrono::nanoseconds spin_;  // before the loop blocks
  std::vector<std::byte> scratch_;
  std::uint64_t moved_ = 0;                   // by the fabric, as last seen
  Picoseconds progressed_ = 0, awaited_ = 0;  // last event; end of the delay that comes next
  Picoseconds threshold_ = 0;                 // of a stall
  bool told_quiet_ = false;
  std::int64_t looked_ns_ = 0;  // when the loop last looked at the fabric, or woke
  Picoseconds poll_lag_ = 0;    // emulated: what has arrived may have waited for us this long
};

}  // namespace ghostrank
