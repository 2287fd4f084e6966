// The world of agents/checker.h: its state, and the functions that agents/world.cpp (events),
// agents/io.cpp (an agent's actions in an event) and agents/checker.cpp (plays) share. Internal to
// the checker.
//
// Events are ordered by (time, number). A party whose processor is busy queues its events, in
// order, until the processor is free.
//
// Threading: one owner.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/check/agents/checker.h"
#include "collectives/check/agents/values.h"
#include "collectives/common/dice.h"

namespace ghostrank::checking {

inline constexpr Picoseconds kMicrosecond = 1'000'000;

struct AgentFailure {
  std::string text;
  AgentReport::Where at;
};

struct Parcel {
  GroupParty from = 0;
  Note note;  // its spans refer to the two vectors below
  Carriage carriage{};
  std::vector<std::byte> content, words;
};

struct Event {
  enum class Kind : std::uint8_t { start, note, timer, room, awake };
  Picoseconds at = 0;
  std::uint64_t number = 0;
  GroupParty party = 0;
  Kind kind{};
  std::uint32_t timer = 0;
  // Arming a timer gives it a new number; events of earlier armings are dropped.
  std::uint64_t arming = 0;
  std::shared_ptr<const Parcel> parcel{};

  bool operator>(const Event& other) const {
    return std::tie(at, number) > std::tie(other.at, other.number);
  }
};

class AgentWorld final : public Io {
 public:
  AgentWorld(const Ends& ends, std::span<const Call> calls, const AgentCheckOptions& options);

  // Throws AgentFailure.
  void run();
  AgentReport& report() { return report_; }
  AgentReport::Where here() const { return {options_.seed, report_.events, current_, -1}; }
  std::string named(GroupParty party) const;

  using Io::send;
  bool send(std::span<const GroupParty> to, const Note& note, Carriage carriage) override;
  void arm(std::uint32_t timer, Picoseconds after) override;
  void disarm(std::uint32_t timer) override;
  void spend(Picoseconds time) override;
  void tell(Incident incident) override;
  void done(std::uint32_t call) override;
  Tensor& tensor(std::uint32_t call) override;

 private:
  // A rank's part of an open call.
  class OpenTensor final : public Tensor {
   public:
    // `values` null: there is no real data.
    OpenTensor(AgentWorld& world, const Call& call, const CallValues* values, GroupRank rank);
    std::span<const std::byte> read(std::uint64_t first, std::uint64_t elements) override;
    void write(std::uint64_t first, std::span<const std::byte> elements) override;
    bool nonzero(std::uint64_t first, std::uint64_t elements) override;
    const Call& call() const { return call_; }
    const std::vector<std::byte>& work() const { return work_; }
    void lend(std::uint64_t event) { lent_in_ = event; }
    void take_back() { lent_in_ = 0; }

   private:
    void check_access(const char* verb, std::uint64_t first, std::uint64_t elements,
                      std::uint64_t all) const;

    AgentWorld& world_;
    const Call& call_;
    const GroupRank rank_;
    const std::optional<TensorContent> content_;
    const bool real_;
    std::uint64_t readable_, writable_;  // elements
    bool exchange_;                      // reads from a separate input
    std::vector<std::byte> work_, input_;
    // The result of the last read. The next access overwrites it, so that agents cannot keep it.
    std::vector<std::byte> shown_;
    std::uint64_t lent_in_ = 0;  // event number; 0: not lent
  };

  struct PartyState {
    PartyKind kind = PartyKind::rank;
    Site site;
    std::unique_ptr<Agent> agent;
    Picoseconds free_at = 0;
    std::deque<Event> waiting;
    std::map<std::uint32_t, std::uint64_t> timers;  // armed timers and the number of their arming
    bool waits_for_room = false;
    // For switches only.
    std::uint64_t heard = 0;  // notes
    Picoseconds away_until = 0;
    // For ranks only.
    std::size_t begun = 0;  // number of calls begun
    bool about_to_begin = false;
    std::map<std::uint32_t, std::unique_ptr<OpenTensor>> open;  // by the call's number
    // Tensors of completed calls: kept, because agents may still hold references to them.
    std::vector<std::unique_ptr<OpenTensor>> over;
  };
  struct Sent {
    std::uint64_t bytes = 0, messages = 0;
    bool operator==(const Sent&) const = default;
  };
  using Connection = std::tuple<GroupParty, GroupParty, Carriage>;  // from, to

  [[noreturn]] void fail(const std::string& what, std::int64_t call = -1) const;
  PartyState& current() { return parties_[current_]; }

  // agents/world.cpp
  void set_up();
  void check_calls() const;
  void push(Event event);
  void take(Event event);
  void fire(const Event& event);
  bool hears();
  void start_call();
  void plan_next_call(GroupParty rank);
  std::string describe_event() const;
  void check_end() const;
  std::string who_waits() const;
  void check_traffic() const;
  bool disturbed() const;
  std::map<Connection, Sent> promised() const;

  // agents/io.cpp
  void check_note(std::span<const GroupParty> to, const Note& note, Carriage carriage) const;
  bool refuse();
  std::shared_ptr<const Parcel> packed(const Note& note, Carriage carriage) const;
  void through_wire_format(Parcel& parcel) const;
  void garble(std::span<const std::byte> packet) const;
  void deliver(GroupParty to, const std::shared_ptr<const Parcel>& parcel);
  void arrive(GroupParty to, const std::shared_ptr<const Parcel>& parcel, Picoseconds after,
              bool in_order);
  Picoseconds latency() { return kMicrosecond + random_time(kMicrosecond); }
  Picoseconds long_time();
  Picoseconds random_time(Picoseconds most) {
    return static_cast<Picoseconds>(dice_.below(static_cast<std::uint64_t>(most)));
  }
  OpenTensor& open_tensor(std::uint32_t call, const char* verb);

  const Ends& ends_;
  std::span<const Call> calls_;
  AgentCheckOptions options_;
  AgentReport report_;
  Dice dice_, switch_dice_;
  std::uint64_t overhead_ = 0;
  std::vector<CallValues> values_;              // by index of the call
  std::map<std::uint32_t, std::size_t> index_;  // index of a call, by its number
  std::vector<PartyState> parties_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t pushed_ = 0, armings_ = 0;
  Picoseconds now_ = 0;      // time at the current party, including the time it spent
  GroupParty current_ = -1;  // -1: between events
  const Event* event_ = nullptr;
  bool timer_fired_ = false;
  std::map<Connection, Picoseconds> last_;  // arrival of the last note that keeps its order
  std::map<Connection, Sent> sent_;
};

}  // namespace ghostrank::checking
