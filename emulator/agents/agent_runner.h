// Runs the agents of a shard's parties (collectives/agent.h): makes them, calls them for each
// event, and lends them an Io for its duration. It knows no fabric and no queue: it passes what an
// agent asks for to a NoteCarrier, which the shard implements.
//
// Time is ideal: an agent handles an event when the event comes or, if later, when its party's
// processor is free; Io::spend() moves the time at which the agent goes on. Each rank has a
// processor of its own; the helpers on one node share one, and the machine's cores (Io::run_on).
// The cores share the memory, which serves their work in the order in which events come: what waits
// for a core takes its share of the memory meanwhile.
//
// Life: the runner makes an agent at its first event and drops it between segments; where a switch
// outside ghostrank, which remembers, plays the helpers, it keeps the agents. Where the job lets
// modelled switches fail (SwitchSpec::fails_at), the agent of a switch is dropped and made anew at
// its first event after the failure; what comes while the switch is away is lost. Errors: a
// request that a scheme must not make goes to NoteCarrier::refuse() and ends the run. Threading:
// owned by one shard.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/agent.h"
#include "collectives/common/by_call.h"
#include "emulator/agents/helper_count.h"
#include "emulator/agents/pair_counts.h"
#include "emulator/common/moment.h"
#include "emulator/result/result.h"
#include "emulator/traffic/cluster.h"
#include "emulator/verify/rank_data.h"
#include "profiles/job/job.h"

namespace ghostrank {

struct Flight;

inline constexpr std::uint32_t kUdpAndIp = 28;  // bytes of IPv4 and UDP headers

// Names an agent: a party of a scheme, on this shard.
struct AgentAddress {
  std::uint32_t local = 0;   // local index of the party
  std::uint32_t scheme = 0;  // index into Cluster::schemes()
};

// A note as its sender hands it over. The note and what it refers to are valid during the call
// only.
struct LeavingNote {
  AgentAddress sender;
  WorldParty party;                // the sender
  const Location& from;            // where it is
  GroupParty position = 0;         // the sender, in its communicator
  std::span<const GroupParty> to;  // receivers
  const Note& note;
  std::uint64_t bytes;  // on the wire
  Carriage carriage;
  Moment ready;
  std::uint32_t row;  // of its sender, for AgentRunner::count()
};

// How fast the machines with servers are.
struct ServerMachine {
  int cores = 1;
  // By Work: picoseconds per byte on a core, and bytes that pass the memory per byte of elements.
  std::array<double, kWorks> core{}, passes{};
  double memory = 0;  // picoseconds per byte
  // Server s has place s % places; those at place `stops` (-1: none) stop at `stops_at`.
  int stops = -1, places = 1;
  Picoseconds stops_at = 0;
};
ServerMachine server_machine(const ServerSpec& servers, int rank_nodes);

class NoteCarrier {
 public:
  virtual ~NoteCarrier() = default;
  // Returns false, and sends nothing, when an outbox to a receiver is full; call
  // AgentRunner::give_room() when it may have room again.
  virtual bool carry(const LeavingNote& note) = 0;
  // Schedules AgentRunner::on_timer(who, timer, armed) at `at`.
  virtual void wake(AgentAddress who, std::uint32_t timer, std::uint64_t armed, Moment at) = 0;
  // `local`: the rank's.
  virtual void end_call(std::uint32_t local, Flight& flight, Moment at) = 0;
  // Whether the party is traced; adds to its trace a stage of a part of a call's tensor.
  virtual bool traces(std::uint32_t local) const = 0;
  virtual void trace_stage(const Flight& flight, std::uint32_t part, Stage stage, Moment from,
                           Moment to) = 0;
  // Enters notes between nodes into the ledger.
  virtual void enter(const AgentAddress& sender, GroupParty receiver, const LedgerCell& notes) = 0;
  virtual void refuse(const std::string& what) = 0;  // ends the run
};

class AgentRunner {
 public:
  // `ranks`, `helpers`: the shard's, by local index. `most_in_packet`: the
  // most bytes of a packet that `mtu` allows.
  AgentRunner(const Cluster& cluster, const std::vector<WorldRank>& ranks,
              const std::vector<WorldParty>& helpers, const ServerMachine& machine,
              std::uint32_t mtu, std::uint64_t most_in_packet, const SwitchSpec& network_switch,
              NoteCarrier& carrier);

  // Call between segments, when all is at rest. `fail`: in the next segment switches and servers
  // fail as the job says.
  void clear(bool fail);
  bool serves() const { return !cluster_.schemes().empty(); }
  // Ends::overhead_bytes() of a scheme.
  std::uint64_t overhead(std::uint32_t scheme) const { return overhead_[scheme]; }
  // Prefetch for the next note of a party: expect_party() its state and agent; expect_note(),
  // called well after that, the data to which these point.
  void expect_party(std::uint32_t local) const;
  void expect_note(AgentAddress who, GroupParty from, std::uint32_t call,
                   std::uint32_t index) const;
  // Grows while calls make progress: with each reliable note, and when a rank reads elements of its
  // tensor past all that it has read, or writes some; not with timers or with packets that are
  // sent again.
  std::uint64_t progress() const { return progress_; }

  // Call when a rank's program comes to a call of a scheme. `content`: of the tensor to reduce,
  // where it is known; `data`: the rank's buffers, null outside verify mode.
  // `tensor`: as Call::tensor.
  void on_call(AgentAddress who, const Collective& collective, DataType type, std::uint32_t tensor,
               const std::optional<TensorContent>& content, Flight& flight, RankData* data,
               Moment at);
  void on_note(AgentAddress who, GroupParty from, const Note& note, Moment at);
  void on_timer(AgentAddress who, std::uint32_t timer, std::uint64_t armed, Moment at);
  // Outboxes may have room again: calls on_room() of the agents that wait for room.
  bool wants_room() const { return !waiting_.empty(); }
  void give_room(Moment at);

  // Counts a note that leaves its node. The ledger has it once enter_counts() was called.
  void count(std::uint32_t row, GroupParty receiver, std::uint64_t bytes) {
    if (counts_.add(row, receiver, bytes)) return;
    enter_counts();
    counts_.add(row, receiver, bytes);
  }
  void enter_counts();

  // For verify mode: what the calls of a tensor since clear() end with; null: sums.
  TensorResult* expected(std::uint32_t scheme, const Call& call);

  // Of the helpers that have heard anything since clear().
  std::vector<HelperCount> helper_counts() const;
  const SwitchTroubles& troubles() const { return troubles_; }  // since clear()

 private:
  class RankTensor final : public Tensor {
   public:
    RankTensor(RankData* data, Func func, std::uint32_t element, GroupRank position,
               const std::optional<TensorContent>& content, std::uint64_t& progress);
    std::span<const std::byte> read(std::uint64_t first, std::uint64_t elements) override;
    void write(std::uint64_t first, std::span<const std::byte> elements) override;
    bool nonzero(std::uint64_t first, std::uint64_t elements) override;

   private:
    struct Real {
      RankData& data;
      std::vector<std::byte> read;  // what read() returned last
    };

    // Short, because a party has one for each open call, and what a note touches comes first.
    std::unique_ptr<Real> real_;  // null: ranks hold no real data
    std::uint64_t* progress_;
    std::uint64_t read_to_ = 0;
    std::unique_ptr<const TensorContent> content_;  // null: it is not known
    std::uint32_t element_;
    GroupRank position_;
    Buffer input_;  // the buffer with the rank's contribution
  };
  struct OpenCall {
    Flight* flight;
    RankTensor tensor;
  };
  struct InStage {
    Stage stage = Stage::none;
    Moment since;
  };
  struct Timer {
    std::uint32_t name;
    std::uint64_t armed;  // 0: not armed
  };
  // How a job lets a party fail.
  enum class Fails : std::uint8_t { never, stops, goes_away };
  struct alignas(64) State {
    // A note touches these two cache lines alone.
    AgentAddress address;
    State* next = nullptr;  // of the same party
    std::unique_ptr<Agent> agent;
    const SchemeUse* use = nullptr;
    const Location* location = nullptr;
    GroupParty position = 0, parties = 0;  // its own, and how many there are
    std::uint32_t processor = 0;
    std::uint32_t row = 0;  // in counts_
    WorldParty party;
    Fails fails = Fails::never;
    bool traced = false, waits_for_room = false;
    HelperCount count{};
    ByCall<OpenCall> open;

    std::uint32_t calls = 0;
    std::vector<Timer> timers;
    std::map<std::pair<std::uint32_t, std::uint32_t>, InStage> stages;  // by call and part: traced
    std::ptrdiff_t failures = 0;  // of the switch, before its agent was made
  };
  // A party's states are a list, mostly of one element. `agent` is the first one's, so that both
  // are prefetched at once.
  struct Party {
    State* first = nullptr;
    const Agent* agent = nullptr;
  };
  class Lent;

  State* known_state(AgentAddress who) const;
  State& state_of(AgentAddress who);
  State& new_state(AgentAddress who);
  void enlist(State& state);
  std::uint32_t new_row(AgentAddress who);
  Fails fails(const State& state) const;
  void make_agent(State& state);
  bool hears(State& state, Picoseconds at);
  bool switch_hears(State& state, Picoseconds at);
  template <typename Tell>
  void tell(State& s, Moment at, const Tell& tell);

  const Cluster& cluster_;
  const std::vector<WorldRank>& ranks_;
  const std::vector<WorldParty>& helpers_;
  const std::uint32_t mtu_;
  const std::uint64_t most_in_packet_;
  NoteCarrier& carrier_;
  const ServerMachine machine_;
  std::vector<std::uint32_t> processor_of_;  // by local index; a node's cores follow its processor
  std::vector<Moment> free_;                 // by processor or core: when it is free
  std::vector<Picoseconds> memory_free_;     // likewise, of the node's memory, at its processor
  std::vector<Site> sites_;                  // likewise
  std::vector<std::uint64_t> overhead_;      // by scheme
  std::deque<State> states_;
  std::vector<Party> parties_;  // by local index
  std::vector<State*> waiting_;
  PairCounts counts_;
  std::vector<AgentAddress> of_row_;  // of counts_
  const SwitchSpec& switch_;
  bool fail_ = false;
  SwitchTroubles troubles_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, TensorResult> expected_;  // by scheme, tensor
  std::uint64_t armed_ = 0;                                                   // timers armed so far
  std::uint64_t progress_ = 0;
  RankTensor nothing_{nullptr, Func::all_reduce, 1, 0, std::nullopt, progress_};
};

}  // namespace ghostrank
