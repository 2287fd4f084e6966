// The agents of a shard's parties (collectives/agent.h): makes them, tells them what happens, and
// lends them an Io for each event. It knows no fabric and no queue: what an agent asks for goes to
// a NoteCarrier, which the shard is.
//
// Time is ideal: an event happens when it came, or when its party's processor is free; what an
// agent spends moves the time from which it goes on. Ranks have a processor each, the helpers of
// one server share one.
//
// Life: agents are made when something first happens to them, and forgotten between segments.
// Threading: owned by one shard.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/agent.h"
#include "emulator/common/moment.h"
#include "emulator/traffic/cluster.h"
#include "emulator/verify/rank_data.h"

namespace ghostrank {

struct Flight;

inline constexpr std::uint32_t kUdpAndIp = 28;  // bytes around a packet

// Who is told something: a party of a scheme, on this shard.
struct AgentAddress {
  std::uint32_t local = 0;   // of the shard's parties
  std::uint32_t scheme = 0;  // index into Cluster::schemes()
};

// A note as its sender hands it over; it and what it refers to are valid for the call only.
struct LeavingNote {
  AgentAddress sender;
  Rank party = kNoRank;       // the sender, of the job's parties
  Party position = 0;         // in its communicator
  std::span<const Party> to;  // positions
  const Note& note;
  std::uint64_t bytes;  // on the wire
  Carriage carriage;
  Moment ready;
};

class NoteCarrier {
 public:
  virtual ~NoteCarrier() = default;
  // False: some way is full; AgentHost::give_room() is called when it may be no more.
  virtual bool has_room(const LeavingNote& note) = 0;
  virtual void carry(const LeavingNote& note) = 0;
  // Calls AgentHost::on_timer() at `at` with these three.
  virtual void wake(AgentAddress who, std::uint32_t timer, std::uint64_t armed, Moment at) = 0;
  virtual void end_call(Flight& flight, Moment at) = 0;
  virtual void refuse(const std::string& what) = 0;  // the run ends
};

class AgentHost {
 public:
  // `ranks`, `helpers`: of the shard, by local index, as numbered over the job. A packet of
  // `most_in_packet` bytes is as large as `mtu` allows.
  AgentHost(const Cluster& cluster, const std::vector<Rank>& ranks,
            const std::vector<Rank>& helpers, std::uint32_t mtu, std::uint64_t most_in_packet,
            NoteCarrier& carrier);

  void clear();  // between segments
  bool serves() const { return !cluster_.schemes().empty(); }

  // A rank's program has come to a call of a scheme. `content`: of what is reduced, where it is
  // known. `data`: null where there is none.
  void on_call(AgentAddress who, const Collective& collective, DataType type,
               const std::optional<TensorContent>& content, Flight& flight, RankData* data,
               Moment at);
  void on_note(AgentAddress who, Party from, const Note& note, Moment at);
  void on_timer(AgentAddress who, std::uint32_t timer, std::uint64_t armed, Moment at);
  // Ways have room again, perhaps.
  bool wants_room() const { return !waiting_.empty(); }
  void give_room(Moment at);

 private:
  class RankTensor final : public Tensor {
   public:
    RankTensor(RankData* data, Func func, std::uint32_t element, Rank position,
               const std::optional<TensorContent>& content);
    std::span<const std::byte> read(std::uint64_t first, std::uint64_t elements) override;
    void write(std::uint64_t first, std::span<const std::byte> elements) override;
    bool nonzero(std::uint64_t first, std::uint64_t elements) override;

   private:
    RankData* data_;
    Buffer input_;  // where what the rank gives lies
    std::uint32_t element_;
    Rank position_;
    std::optional<TensorContent> content_;
    std::vector<std::byte> copy_;
  };
  struct OpenCall {
    std::uint32_t number;
    Flight* flight;
    RankTensor tensor;
  };
  struct Timer {
    std::uint32_t name;
    std::uint64_t armed;  // 0: it is not
  };
  struct State {
    AgentAddress address;
    const SchemeUse* use = nullptr;
    Rank party = kNoRank;
    Party position = 0;
    std::size_t processor = 0;
    std::unique_ptr<Agent> agent;
    std::uint32_t calls = 0;
    std::vector<std::unique_ptr<OpenCall>> open;
    std::vector<Timer> timers;
    bool waits_for_room = false;
  };
  class Lent;

  State& state_of(AgentAddress who);
  template <typename Tell>
  void tell(State& s, Moment at, const Tell& tell);

  const Cluster& cluster_;
  const std::vector<Rank>&ranks_, &helpers_;
  const std::uint32_t mtu_;
  const std::uint64_t most_in_packet_;
  NoteCarrier& carrier_;
  std::vector<std::size_t> processor_of_;  // by local index
  std::vector<Moment> free_;               // by processor: when it is
  std::deque<State> states_;
  std::unordered_map<std::uint64_t, State*> index_;
  std::vector<State*> waiting_;
  std::uint64_t armed_ = 0;  // timers, ever
};

}  // namespace ghostrank
