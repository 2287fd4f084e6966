// A shard: one thread with its ranks, its NICs and its fabric endpoint. Everything that a rank does
// happens here; the loops are Shard::run_real and Shard::run_virtual in shard/shard.cpp.
//
// clang-format off
//
//   shard/shard.cpp       the loops; fires events
//   shard/setup.cpp       before and after a segment
//   shard/ranks.cpp       streams and events: what a rank does next
//   shard/flights.cpp     collectives in flight and their actors
//   shard/messages.cpp    how slices leave, arrive, are matched and combined
//   shard/credits.cpp     credits, and permissions of libraries that post receives
//   shard/notes.cpp       notes of agents
//   shard/links.cpp       how messages cross links between switches
//   shard/crossings.cpp   messages between a slice and the rest of the cluster
//   shard/fluids.cpp      calls that travel as flows
//   shard/by_packets.cpp  how messages go where the network is played packet by packet
//   shard/outbox.cpp      hands parcels to other shards, to the fabric and to packets
//   shard/standstill.cpp  when nothing moves: who learns of it, and which rank waits for which
//   shard/inline.h        functions of the hot path that several of these files call
//
//   Parts of a shard, each with a state of its own; they know nothing of the shard:
//   shard/events/         pending events and their queues
//   shard/ranks/          the state of ranks, and the rules for how far they may go
//   shard/on_the_way/     messages between their sender and their receiver
//   shard/shared/         what the shards of a process share
//   shard/measured/       counters, spans, stalls
//
// clang-format on
//
// A function that lets something else go on pushes it to the ReadyQueue and returns; after each
// event go_on() runs what the queue holds. Shards of a process share only SPSC rings (real time) or
// mail between windows (virtual time), and the counters in ShardShared.
//
// Units: emulated picoseconds, bytes. Errors: trouble during a segment goes to ShardShared::failure
// and stops the run. Threading: one thread calls prepare() and play(); in virtual time the threads
// of other shards may play windows of this one while its own sleeps in play(). Read the rest
// between segments.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/agents/agent_runner.h"
#include "emulator/common/clock.h"
#include "emulator/fabric/fabric.h"
#include "emulator/host/run_delay.h"
#include "emulator/network/flowlets.h"
#include "emulator/network/gpu_links.h"
#include "emulator/network/links.h"
#include "emulator/packets/packets.h"
#include "emulator/shard/events/ready_queue.h"
#include "emulator/shard/events/tied_events.h"
#include "emulator/shard/events/timer_queue.h"
#include "emulator/shard/flights.h"
#include "emulator/shard/fluid_calls.h"
#include "emulator/shard/measured/held_up.h"
#include "emulator/shard/measured/lost_turns.h"
#include "emulator/shard/measured/pacing.h"
#include "emulator/shard/measured/quiet_watch.h"
#include "emulator/shard/measured/spans.h"
#include "emulator/shard/measured/statistics.h"
#include "emulator/shard/measured/switch_slips.h"
#include "emulator/shard/measured/unanswered.h"
#include "emulator/shard/node_calls.h"
#include "emulator/shard/node_transfers.h"
#include "emulator/shard/on_the_way/connections.h"
#include "emulator/shard/on_the_way/helper_backlogs.h"
#include "emulator/shard/on_the_way/in_order.h"
#include "emulator/shard/on_the_way/misfortune.h"
#include "emulator/shard/on_the_way/note_order.h"
#include "emulator/shard/on_the_way/on_links.h"
#include "emulator/shard/on_the_way/pair_paths.h"
#include "emulator/shard/on_the_way/slice_edge.h"
#include "emulator/shard/ranks/early_messages.h"
#include "emulator/shard/ranks/first_sends.h"
#include "emulator/shard/ranks/known_calls.h"
#include "emulator/shard/ranks/node_meetings.h"
#include "emulator/shard/ranks/note_payloads.h"
#include "emulator/shard/ranks/rank.h"
#include "emulator/shard/shared/open_iterations.h"
#include "emulator/shard/shared/outboxes.h"
#include "emulator/shard/shared/shared.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/flows.h"
#include "emulator/traffic/ledger.h"
#include "emulator/traffic/schedules.h"
#include "emulator/verify/spare_buffers.h"

namespace ghostrank {

class LinkRates;
class PacketConnections;
class RateCurve;
class SlowRanks;
struct NicRate;
class GradientStates;  // emulator/verify/gradient_states.h

// Force-inlined: calls cost 20 % per message.
#define GHOSTRANK_ON_THE_WAY [[gnu::always_inline]] inline

class Shard final : private NoteCarrier {
 public:
  struct Setup {
    const JobSpec& spec;
    const Workload& workload;
    const Cluster& cluster;
    Host host;
    int index = 0;  // of the shard in its process
    const Flows& flows;
    Fabric& fabric;
    std::uint64_t nonce = 0;  // of the run
    // The ranks whose spans the trace shows, and how many spans to keep per segment.
    std::vector<WorldRank> trace_ranks;
    std::size_t max_spans = 0;
    // Where the ledger spills to; see traffic/ledger.h.
    std::string spill_path;
    std::vector<int> cpus;       // binds the shard's thread to these; empty: no binding
    Packets* packets = nullptr;  // to other processes; null: no scheme of the job sends packets
    // To a switch outside ghostrank, by the numbers of Cluster::switch_ends(); null: it serves no
    // scheme.
    Packets* switch_packets = nullptr;
    GradientStates* states = nullptr;  // of verified runs; null: ranks carry nothing
    bool link_times = false;           // note when links are busy
    // Of the whole job, in virtual time: records what crosses into a slice, and keeps no ledger.
    CrossingRecorder* recorder = nullptr;
  };
  explicit Shard(const Setup& setup);
  ~Shard() override;

  int index() const { return index_; }

  // On the thread that will play: brings every rank to the state it has at emulated time 0. Sends
  // nothing through the fabric.
  void prepare(const Segment& segment, ShardShared& shared);
  // Plays the segment's iterations of every rank here, from emulated time 0 of `clock`. Returns
  // when these ranks have ended, nothing is left to send and no other shard needs this one (for
  // agents or links), or when the run is stopped.
  void play(const Clock& clock);

  Ledger& ledger() { return ledger_; }
  const ShardStats& stats() const { return stats_; }
  const std::vector<Schedules::Row>& rows() const { return schedules_.rows(); }
  std::vector<Span> take_spans() { return spans_.take(); }

 private:
  // shard/shard.cpp
  void run_real();
  void run_virtual();
  void come_to_meeting();
  bool play_window();
  void play_events();
  bool finished() const;
  bool stopped() const { return shared_->stop.load(std::memory_order_relaxed); }
  bool take_arrivals();
  Picoseconds lag_of_wait();
  bool fire_due();
  void sleep();
  HeldUp::Instant instant() const;
  // Force-inlined: out of line, GCC drops this call because it has no side effects.
  GHOSTRANK_ON_THE_WAY void prefetch() const;
  [[gnu::noinline]] void prefetch_flows() const;
  GHOSTRANK_ON_THE_WAY void fetch_rank(std::uint32_t local) const;
  Event& pop();
  GHOSTRANK_ON_THE_WAY void fire(Event& event);
  void fire_tied(const Event& first);
  void fire_in_order();
  void go_through_backlog();
  void fire_at_once(Event& event);
  GHOSTRANK_ON_THE_WAY void go_on();
  void go_on_with(const Ready& next);
  WorldParty sender_of(const Event& e) const;
  GHOSTRANK_ON_THE_WAY Event& schedule(Event::Kind kind, Moment t, std::uint32_t rank,
                                       MessageKind message = MessageKind::data);
  void schedule(const Event& event);
  // For the notes that come from a party, source `local`, and for those that have passed the NIC
  // of one, source ranks_.size() + `local`.
  GHOSTRANK_ON_THE_WAY Event& schedule_from(std::size_t source, Event::Kind kind, const Moment& t,
                                            std::uint32_t rank);
  Nic nic_of(const Event& e) const;
  void take_over(Event event);
  void take_over(Parcel parcel);
  void fail(const std::string& what, bool of_fabric = false);
  Picoseconds end_of_clock();  // fails

  // shard/outbox.cpp
  bool flush();
  void hand_over(int outbox, Parcel&& parcel);
  void keep(int outbox, Parcel&& parcel);
  bool try_hand_over(int outbox, Parcel& parcel);
  bool try_send(int flow, Nic nic, Message& message);
  bool try_hand_to_shard(int shard, Parcel& parcel);

  // shard/standstill.cpp
  bool got_on();
  bool awaits_more_than_agents() const;
  void tell_whether_it_got_on();
  bool agents_repeat_themselves(Picoseconds first);
  void note_progress();
  void note_rest();
  void note_end();
  void tell_quiet(bool quiet, Picoseconds since, std::string stuck);
  std::string what_is_stuck() const;
  std::string what_is_awaited(const Flight& f, const ActorState& a) const;

  // shard/setup.cpp
  void find_helpers_alone();
  std::uint32_t begin_ranks();
  void watch_links();

  // shard/ranks.cpp
  void begin_iteration(RankState& r, Moment t);
  void end_iteration(RankState& r);
  void add_to_iteration(const IterationSums& one);
  void one_ended();
  void tell_ops();
  enum class Started : std::uint8_t {
    ended,    // at once
    delayed,  // when its delay ends
    busy,     // when its call ends
    in_queue  // the ready queue holds its actors and, behind them, its rank
  };
  void advance(RankState& r, std::size_t stream = 0, bool moved = false);
  bool advance_stream(RankState& r, std::uint8_t stream);
  bool has_room(StreamState& s, const Op* next) const;
  bool wait_for_clock(RankState& r, std::uint8_t stream, const Op* next);
  void delay(const RankState& r, StreamState& s, std::uint32_t ends = kNil);
  void end_delays(RankState& r, Picoseconds t);
  GHOSTRANK_ON_THE_WAY Started start_op(RankState& r, std::uint8_t stream, const Op& op);
  Picoseconds time_of(const RankState& r, std::uint8_t stream, const Op& op) const;
  Picoseconds with_jitter(const RankState& r, std::uint8_t stream, const Op& op) const;
  void trace(const RankState& r, std::uint8_t stream, const Op& op, std::uint32_t at,
             Picoseconds start, Picoseconds end, std::uint8_t slot = 0);

  // shard/flights.cpp
  Started start_flight(RankState& r, std::uint8_t stream, const Op& op);
  Started start_actors(RankState& r, Flight& f, const Step* steps);
  void begin_agents(RankState& r, Flight& f, const Schedules::Play& play);
  void begin_actor(Flight& f, int index, const Step*& steps);
  static PairCounter& pair_of(RankState& r, std::uint32_t group, GroupRank peer, bool receives);
  PairCounter& pair_of(RankState& r, const Op& op);
  void finish_flight(RankState& r, Flight& f);
  bool goes_before(const Flight& a, const Flight& b) const;
  template <typename Visit>
  void for_actors_on(Flight& f, int channel, Visit visit);
  void start_launch(RankState& r, std::uint8_t stream);
  void pass_turn(RankState& r, Flight& f, const ActorState& ended);
  const Schedules::Play& play_of(std::uint32_t group, const Op& op);
  bool is_one_delay(std::uint32_t group, const Op& op);
  void meet_in_node(RankState& r, Flight& f);
  void play_node_calls();
  TransferEnds* at_lone_ports(PairCounter& pair, GroupRank source, GroupRank target);
  bool is_at_lone_ports(RankState& r, const Op& op);
  void meet_at_lone_ports(RankState& r, Flight& f, TransferEnds& ends);
  void end_alone(Flight& f, Picoseconds at);
  bool between_nodes(std::uint32_t group, GroupRank a, GroupRank b) const;
  void end_calls(Flight* first, Moment t);
  void end_call_of(RankState& r, Flight& f);
  GHOSTRANK_ON_THE_WAY void load_step(Flight& f, ActorState& a);
  GHOSTRANK_ON_THE_WAY void run_actor(RankState& r, Flight& f, ActorState& a);
  bool walk_actor(RankState& r, Flight& f, ActorState& a);
  bool hold(ActorState& a);
  bool begin_step(Flight& f, ActorState& a);
  void next_step(RankState& r, Flight& f, ActorState& a);
  void wake_waiting(RankState& r, Flight& f, std::uint32_t from);
  void posted(Flight& f, ActorState& a);

  // shard/messages.cpp
  // What a message states about itself, besides what its flight states.
  struct Leaving {
    MessageKind kind;
    std::uint16_t number;  // as in Header
    std::uint32_t actor;   // index of the actor that sends the data
    std::uint16_t channel;
    std::uint64_t bytes;
    const Moment& ready;

    void describe(const Flight& f, Event& e) const {  // sets all but the kind
      e.set_size(bytes, number);
      e.group = f.group;
      e.sequence = f.sequence;
      e.source = f.position;
      e.actor = actor;
      e.channel = channel;
      e.held = kNil;
    }
  };
  GHOSTRANK_ON_THE_WAY void send_slice(RankState& r, Flight& f, ActorState& a, GroupRank peer,
                                       const Block& slice);
  void find_route(const RankState& r, Flight& f, int channel, GroupRank peer, bool back,
                  Route& route);
  void settle(const Flight& f, Route& route);
  void leave(RankState& r, Flight& f, Route& route, const Leaving& m, Payload* content = nullptr);
  void leave_changing_nic(RankState& r, Flight& f, Route& route, const Leaving& m,
                          Payload* content);
  void leave_by_gpu_link(Flight& f, Route& route, const Leaving& m, Payload* content);
  GHOSTRANK_ON_THE_WAY void come_in(Flight& f, Route& route, const Leaving& m, const Moment& t,
                                    Event::Kind kind, Payload* content);
  void credit_by_links(Flight& f, Route& route, const Leaving& m, Picoseconds duration);
  Flight* flight_at_target(Route& route, const Event& e);
  GHOSTRANK_ON_THE_WAY Picoseconds time_at_nic(Nic nic, Picoseconds start,
                                               std::uint64_t bytes) const;
  NicRate rate_of(Nic nic) const;
  Picoseconds time_between(const NicPair& nics, Picoseconds latency, Picoseconds start,
                           std::uint64_t bytes) const;
  Moment enter_nic(Nic nic, const Event& event, Picoseconds head);
  void leave_with_content(RankState& r, Flight& f, ActorState& a, const Leaving& m,
                          const Block& slice);
  void leave_process(RankState& r, Flight& f, const Route& route, const Leaving& m,
                     const Moment& start, Payload* content);
  void copy_as_much(std::uint64_t bytes);
  void do_locals(Flight& f, ActorState& a);
  void arrive_from_wire(Message message);
  void arrive(RankState& r, const Event& e);
  GHOSTRANK_ON_THE_WAY void accept(RankState& r, Flight& f, ActorState& a, int bit, const Event& e);
  void refuse_overtaken(const RankState& r, const ActorState& a, int bit, const Event& e);
  bool take_early(RankState& r, Flight& f, ActorState& a);
  void adopt_early(RankState& r, Flight& f);

  // shard/credits.cpp
  void control_arrived(RankState& r, Flight* f, const Event& e);
  bool take_credit(RankState& r, Flight& f, ActorState& a);
  void return_credit(RankState& r, Flight& f, ActorState& a, const Event& consumed);
  void credit_arrived(RankState& r, Flight& f, const Event& e);
  bool exchange(RankState& r, Flight& f, ActorState& a);
  bool post_receives(RankState& r, Flight& f, ActorState& a);
  void permit(RankState& r, Flight& f, ActorState& a, GroupRank source);
  void permission_arrived(RankState& r, Flight& f, const Event& e);
  bool keep_permission(Flight& f, const Event& e);
  bool send_permitted(RankState& r, Flight& f, ActorState& a);
  void deliver(const Event& e, const Moment& at);
  void send_on_connection(RankState& r, Flight& f, ActorState& a, GroupRank peer,
                          const Block& slice);

  // shard/queue_pairs.cpp
  template <typename Send>
  void for_each_part(const RoutedConnection& connection, const Event& whole, const Send& send);
  void leave_by_pairs(RankState& r, Flight& f, Route& route, const Leaving& m, const Moment& start,
                      Picoseconds duration, Payload* content);
  void send_by_pairs(const RoutedConnection& connection, const NicPair& nics, const Event& whole,
                     Picoseconds ready, Payload* content);
  void come_in_turn(WorldParty target, std::uint32_t number, const Event& event);

  // shard/links.cpp
  std::uint64_t next_on_links(std::uint32_t local);
  std::uint64_t number_for_routing(const RoutedConnection& connection, std::uint64_t message,
                                   Picoseconds start, Picoseconds end);
  RoutedConnection connection_of(const Event& e, WorldParty target) const;
  void find_path(const RankState& r, const Flight& f, int channel, MessageKind kind,
                 Route& route) const;
  void leave_by_links(RankState& r, Flight& f, Route& route, const Leaving& m, const Moment& start,
                      Picoseconds duration, Payload* content);
  // What all copies of a note to many share.
  struct NoteTree {
    std::uint64_t number = 0;
    std::uint32_t path = 0, paths = 0;  // of the first receiver: the choice, and out of how many
  };
  void note_by_links(const LeavingNote& note, NoteTree& tree, WorldParty party, const Moment& start,
                     Picoseconds duration);
  void depart(Event& event, OnLinks& way, Moment start, Picoseconds duration, Flight* sender);
  void put_on_links(Event& event, const OnLinks& way);
  void drop_from_links(const Event& event);
  Parcel parcel_of(const Event& event, const OnLinks& way);
  void take_over_on_links(Parcel&& parcel);
  void prefetch_on_links(const Event& event) const;
  void prefetch_path(const Event& event) const;
  KnownPath path_of(const OnLinks& way) const;
  std::uint32_t next_link(const OnLinks& way) const;
  Nic nic_to(const Event& e, WorldParty party) const;
  Passage pass_changing(Link& link, const RateCurve& curve, const Passage& in, std::uint64_t bytes,
                        bool counted) const;
  void pass_link(const Event& event);
  bool land(const RankState& r, Event& event, Picoseconds head);

  // shard/crossings.cpp
  bool crosses(const Location& from, const Location& to) const;
  static OutwardConnection outward(const RankState& r, const Flight& f, const Route& route,
                                   const Leaving& m);
  void leave_crossing(RankState& r, Flight& f, Route& route, const Leaving& m);
  void leave_slice(const RankState& r, const Flight& f, Route& route, const Leaving& m,
                   const Moment& t);
  void tell_passed(std::uint32_t release, const Moment& at);
  void passed_from_wire(const Header& h);
  void passed_outside(const Event& e);
  void know_arrival(std::uint32_t arrival, const Moment& at);
  void comes_from_outside(const Crossings::Arrival& arrival, const Moment& at);
  void outside_ended(std::uint32_t iteration, const Moment& end);
  void begin_slice();

  // shard/fluids.cpp
  void meet_as_fluid(RankState& r, Flight& f);
  void transfer_as_fluid(RankState& r, Flight& f, PairCounter& pair);
  void begin_fluid(std::uint32_t number, const Flight& f, Picoseconds at);
  void fluid_due(const Event& e);
  void flow_begins(const Event& e);
  void flow_ends(std::uint32_t number, Picoseconds t);
  void end_member(Flight& f, Picoseconds at);
  void want_rates(Picoseconds at);
  void give_rates(Picoseconds now);

  // shard/by_packets.cpp
  void leave_by_packets(RankState& r, Flight& f, Route& route, const Leaving& m, Payload* content);
  void packets_due(Picoseconds now);
  void want_packets();

  // shard/notes.cpp
  static constexpr Picoseconds kNotYet = -1;
  // What all receivers of a note share.
  struct NoteOnWay {
    Moment started{kNotYet, 0};  // at its NIC; once for all receivers on the modelled network
    Picoseconds duration = 0;    // that it takes there
    NoteTree tree;
    std::uint32_t payload = kNil;  // in note_payloads_, once a receiver on this shard needed it
  };
  bool has_room(const LeavingNote& note) const;
  bool carry(const LeavingNote& note) override;
  void pass_note_inside(const LeavingNote& note, NoteOnWay& way, const Location& to);
  GHOSTRANK_ON_THE_WAY void start_note(const LeavingNote& note, NoteOnWay& way);
  GHOSTRANK_ON_THE_WAY void pass_note(const LeavingNote& note, NoteOnWay& way, WorldParty party,
                                      bool wire, Picoseconds late);
  [[gnu::noinline]] void pass_as_packet(const LeavingNote& note, NoteOnWay& way, WorldParty party,
                                        bool wire);
  void wake(AgentAddress who, std::uint32_t timer, std::uint64_t armed, Moment at) override;
  void end_call(std::uint32_t local, Flight& flight, Moment at) override;
  void enter(const AgentAddress& sender, GroupParty receiver, const LedgerCell& notes) override;
  bool traces(std::uint32_t local) const override { return ranks_[local].traced; }
  void trace_stage(const Flight& flight, std::uint32_t part, Stage stage, Moment from,
                   Moment to) override;
  void refuse(const std::string& what) override { fail(what); }
  int outbox_of(const LeavingNote& note, WorldParty to) const;
  void deliver_note(const LeavingNote& note, const Location& to, const Moment& at, Event::Kind kind,
                    std::uint32_t& payload);
  static void describe(const LeavingNote& note, Event& e);
  void count_open_notes(std::int64_t more);
  static Payload payload_of(const Note& note, std::uint64_t bytes);
  void note_to_process(const LeavingNote& note, WorldParty party, const Moment& start);
  bool try_send_packet(Packets& packets, int flow, Message& message);
  bool take_packets(Packets& packets, bool of_switch);
  bool read_format(Message& m) const;
  void from_switch(Message m);
  void count_packets(const Packets& packets, const PacketStats& before);
  void note_from_wire(Message m);
  bool belongs_here(const Header& note) const;
  void schedule_note(Message m, Carriage carriage);
  bool may_overtake(Nic from, Nic to) const;
  void note_arrived(const Event& e);
  void prefetch_notes(const Event& next, std::uint32_t second) const;

  const JobSpec& spec_;
  const Workload& workload_;
  const Cluster& cluster_;
  const Host host_;
  const int index_;
  const Flows& flows_;
  const std::vector<int> cpus_;
  Fabric& fabric_;
  Packets* const packets_;
  Packets* const switch_packets_;
  GradientStates* const states_;
  const std::uint64_t nonce_;
  const LinkSpeed nic_, intra_;
  GpuLinks gpu_links_;
  const NicRates* const rates_;                  // of NICs whose rates change; null: of none
  std::unique_ptr<const SlowRanks> slow_ranks_;  // null: none
  std::unique_ptr<const LinkRates> link_rates_;  // of links that events change; null: of none
  const bool virtual_, copy_payload_, reanchor_, wired_, model_nodes_, runs_ahead_;
  CrossingRecorder* const recorder_;
  const bool slice_;

  Clock clock_ = Clock::virtual_time();
  Segment segment_;
  Picoseconds now_ = 0;  // the clock as last read
  ShardShared* shared_ = nullptr;
  Schedules schedules_;
  KnownCalls known_calls_;
  NodeCalls node_calls_;
  std::unique_ptr<NodeTransfers> node_transfers_;  // null: none pass lone ports
  // Ranks, then helpers; helpers play no program.
  std::vector<RankState> ranks_;
  std::size_t players_ = 0;  // number of ranks in ranks_
  AgentRunner agents_;
  std::vector<bool> helpers_alone_;  // by helper; empty: none runs ahead of the clock
  HelperBacklogs backlogs_;
  std::uint32_t backlog_of_ = kNil;        // the helper that has just taken a note of its backlog
  std::vector<std::uint16_t> scheme_row_;  // row of the report, by scheme
  Misfortune misfortune_;
  std::vector<std::uint32_t> sequences_;  // collectives started, by rank, then by kind of group
  std::uint32_t ranks_left_ = 0;  // with the outside of a slice, where this shard hears of its ends
  Picoseconds ended_ = 0;         // when the loop saw the last rank here end
  std::vector<OpenIterations> iterations_;  // by job
  TimerQueue<Event> timers_;
  ReadyQueue ready_;
  TiedEvents tied_;
  VectorBy<Nic, Port> nics_;         // of the whole cluster; this shard uses its nodes' only
  LostTurns lost_turns_;             // at these NICs
  std::vector<Nic> own_nic_;         // of ranks and helpers, by local index
  std::vector<Link> links_;          // of the whole cluster; this shard uses those that it plays
  bool links_change_ = false;        // in this segment, as link_rates_ says
  std::vector<LastNote> last_note_;  // by link; empty: no agents send
  std::vector<std::uint64_t> sent_on_links_;  // by local index
  VectorBy<Nic, Passage> entered_;            // when its last message came to its first link
  InOrder in_turn_;                           // connections whose messages take several paths
  PairPaths pair_paths_;                      // where they have queue pairs
  Flowlets flowlets_;
  SliceEdge edge_;  // of a slice
  // Of a slice, by process and shard: the flow that tells what has left it; -1: none.
  std::vector<int> flow_to_;
  std::uint32_t outside_ends_ = 0;  // of the outside's iterations, which this shard has yet to hear
  // Of libraries that need permissions, where links have a rate.
  Connections connections_;
  NoteOrder note_order_;
  Pacing pacing_;
  Outboxes outboxes_;
  int may_pass_ = 0;  // messages that may still overtake the outboxes
  std::vector<Message> arrived_;
  SpareBuffers spare_;  // outlives the flights, which return their buffers to it
  Flights flights_;
  NodeMeetings meetings_;
  std::unique_ptr<FluidCalls> fluids_;  // null: every call plays its messages
  Picoseconds rates_wanted_ = -1;       // when flows get their rates; -1: nothing has changed
  std::unique_ptr<PacketConnections> by_packets_;  // null: messages are not cut into packets
  Picoseconds packets_due_at_ = -1;                // when packets go on; -1: none is under way
  // Virtual time. lookahead_: least time from one shard to another; window_end_: from when others
  // may affect this one; busy_with_others_: calls in flight that FirstSends::leaves(), and their
  // messages on links here, counted only with first_sends_.
  Picoseconds lookahead_ = 0, window_end_ = 0;
  std::unique_ptr<FirstSends> first_sends_;  // null: programs do not tell
  std::uint32_t busy_with_others_ = 0;
  EarlyMessages early_;
  NotePayloads note_payloads_;
  // Event::held indexes held_ (messages to post, arrived payloads) or on_links_ (messages there).
  Pool<Parcel> held_;
  Pool<OnLinks> on_links_;
  Ledger ledger_;
  ShardStats stats_;
  const bool link_times_;
  // Ops started and not yet added to ShardShared::ops: added one by one, all shards would write to
  // its cache line for every op.
  static constexpr std::uint32_t kOpsTold = 64;
  std::uint32_t ops_untold_ = 0;
  PacketStats packets_before_, switch_packets_before_;  // at the start of the segment
  // By scheme: flows to a switch outside ghostrank, by group rank (-1: not here).
  std::vector<std::vector<int>> switch_flow_;
  SwitchSlips switch_slips_;
  Unanswered unanswered_;  // by a switch outside ghostrank
  std::size_t switch_flows_ = 0;
  Spans spans_;
  QuietWatch quiet_;
  std::uint64_t of_agents_ = 0;   // among stats_.events: timers of agents, and their notes
  std::uint64_t got_so_far_ = 0;  // what got_on() saw last
  Picoseconds got_on_at_ = 0, window_ = 0;  // virtual time: of the last progress; of the window
  bool suspects_agents_ = false;            // virtual time: of repeating themselves
  std::uint32_t handed_ = 0;  // messages handed to the fabric, to time the reads of the clock
  const std::chrono::nanoseconds spin_;  // how long the loop spins before it blocks; 0: shared core
  std::vector<std::byte> scratch_;
  std::uint64_t moved_ = 0;     // FabricStats::moved at the last poll
  std::int64_t looked_ns_ = 0;  // when the loop last polled the fabric, or woke
  // Emulated: an arrival may have waited this long for us to poll.
  Picoseconds poll_lag_ = 0;
  HeldUp held_up_;
  std::unique_ptr<RunDelay> run_delay_;  // of the thread that plays
  std::int64_t queued_ns_ = 0;           // what run_delay_ said last
  bool woke_ = false;                    // no poll since the last wait that blocked
};

}  // namespace ghostrank
