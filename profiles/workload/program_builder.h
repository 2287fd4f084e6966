// Builds a Program in a planner's terms: append ops to a stream, and let one stream come after
// another.
//
// The builder interns labels. It tracks the work that each stream has already waited for, so it
// omits redundant waits. An ordered pair of streams has one event, and one more for every mark that
// another mark overtakes; a program's length adds none. Threading: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiles/workload/program.h"

namespace ghostrank {

class ProgramBuilder {
 public:
  // Numbers the streams in the order of the names.
  explicit ProgramBuilder(std::vector<std::string> stream_names);

  // Sets how many collectives of the stream run together; default 1.
  void at_once(std::size_t stream, std::uint8_t workers) { program_.at_once.at(stream) = workers; }

  // Lets the stream end after its iteration (Program::outlives).
  void outlives(std::size_t stream);

  std::uint32_t label(const std::string& text);
  // A label with the number of a micro-batch between `before`, which is not empty, and `after`
  // (Program::numerals).
  std::uint32_t label(const std::string& before, int micro_batch, const std::string& after = "");

  // Omits delays of 0, because they would only cost the engine an event.
  void compute(std::size_t stream, std::uint32_t label, Picoseconds duration);
  void compute(std::size_t stream, const std::string& text, Picoseconds duration) {
    compute(stream, label(text), duration);
  }
  void pace(std::size_t stream, const std::string& text, Picoseconds duration);  // Op::pace
  // `count` follows the collective's convention (collectives/schedule.h); `tensor` is Op::tensor.
  void collective(std::size_t stream, std::uint32_t label, Func func, std::uint16_t group,
                  DataType dtype, std::uint64_t count, std::int32_t root = 0,
                  std::size_t tensor = 0, Reduction reduction = Reduction::sum);
  void collective(std::size_t stream, const std::string& text, Func func, std::uint16_t group,
                  DataType dtype, std::uint64_t count, std::int32_t root = 0,
                  std::size_t tensor = 0, Reduction reduction = Reduction::sum) {
    collective(stream, label(text), func, group, dtype, count, root, tensor, reduction);
  }
  // A v-variant; `counts` is an index into Workload::counts.
  void ragged(std::size_t stream, std::uint32_t label, Func func, std::uint16_t group,
              DataType dtype, std::uint32_t counts);
  // To and from the member `offset` positions after this rank in the group (wraps).
  void send(std::size_t stream, std::uint32_t label, std::uint16_t group, std::int32_t offset,
            DataType dtype, std::uint64_t count, Op::Within within = Op::Within::group);
  void recv(std::size_t stream, std::uint32_t label, std::uint16_t group, std::int32_t offset,
            DataType dtype, std::uint64_t count, Op::Within within = Op::Within::group);

  // The calls appended between these two, to one stream, are one launch (Workload::launches).
  void begin_launch() { together_.emplace(); }
  void end_launch(std::vector<GroupedCalls>& launches);

  // Ops appended to `stream` from here on start after all ops that `other` holds so far.
  void after(std::size_t stream, std::size_t other);

  // after() in two halves: mark() fixes the point of `other` now, wait() adds the wait to `stream`.
  struct Mark {
    std::uint32_t event = 0;
    std::size_t stream = 0;            // the waiting stream
    std::vector<std::uint32_t> known;  // by stream: its ops before the point
  };
  Mark mark(std::size_t other, std::size_t stream);
  void wait(const Mark& mark);

  // Across iterations: ops appended to a stream after wait_previous() start after all ops that
  // another stream had before record() in the previous iteration. Each event from carried_event()
  // takes one record() and one wait_previous(), in either order.
  std::uint32_t carried_event();
  void record(std::size_t stream, std::uint32_t event);
  void wait_previous(std::size_t stream, std::uint32_t event);

  // Ops appended between begin_script() and end_script() go to a script instead of the program. A
  // script may hold anything except marks and events across iterations.
  struct Script {
    struct Entry {
      std::size_t stream = 0;
      std::optional<std::size_t> after;  // wait for this stream, as after(); empty: append `op`
      Op op;
    };
    std::vector<Entry> entries;
  };
  void begin_script() { script_.emplace(); }
  Script end_script() { return *std::exchange(script_, std::nullopt); }
  // Appends two scripts in turns: when one makes `stream` wait for `other`, the other script
  // continues until it does the same. Each thus computes while the other's call is in flight.
  void take_turns(const Script& one, const Script& two, std::size_t stream, std::size_t other);

  Program take();

 private:
  struct Event {
    std::size_t recorder = 0, waiter = 0;
    bool marked = false;  // its last record has no wait yet
  };

  struct Turn;
  bool play_until_wait(Turn& turn, std::size_t stream, std::size_t other);
  bool has_news(std::size_t stream, std::size_t other) const;
  void append(std::size_t stream, const Op& op);
  void transfer(Op::Kind kind, std::size_t stream, std::uint32_t label, std::uint16_t group,
                std::int32_t offset, DataType dtype, std::uint64_t count, Op::Within within);
  std::uint32_t event_between(std::size_t recorder, std::size_t waiter);

  Program program_;
  std::unordered_map<std::string, std::uint32_t> label_of_;
  std::vector<std::vector<std::uint32_t>> known_;  // [s][t]: ops of t that end before s continues
  std::vector<Event> events_;                      // by number
  std::optional<Script> script_;                   // the script being written
  struct Together {                                // the launch being written
    std::size_t stream;  // no initialiser: Clang could not construct it in an optional here
    std::vector<Op> calls;
  };
  std::optional<Together> together_;
};

}  // namespace ghostrank
