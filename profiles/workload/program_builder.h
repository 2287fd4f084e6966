// Writes a Program the way a planner thinks of it: append to a stream, and let another stream come
// after it.
//
// Labels are interned. The builder knows what each stream has already waited for, so it leaves out
// waits that say nothing new and uses an event again once its wait is certain to have passed: a
// program has as many events as are open at once, not as many as it records. Threading: one thread.
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
  // Streams get their numbers in the order of the names.
  explicit ProgramBuilder(std::vector<std::string> stream_names);

  // Collectives of the stream that run together; one unless said.
  void at_once(std::size_t stream, std::uint8_t workers) { program_.at_once.at(stream) = workers; }

  // The stream may end after its iteration.
  void outlives(std::size_t stream);

  std::uint32_t label(const std::string& text);

  // Delays of zero are left out: they would only cost the engine an event.
  void compute(std::size_t stream, std::uint32_t label, Picoseconds duration);
  void compute(std::size_t stream, const std::string& text, Picoseconds duration) {
    compute(stream, label(text), duration);
  }
  // `count` as the collective's convention has it (collectives/schedule.h); `tensor` as Op::tensor.
  void collective(std::size_t stream, std::uint32_t label, Func func, std::uint16_t group,
                  DataType dtype, std::uint64_t count, std::int32_t root = 0,
                  std::size_t tensor = 0);
  void collective(std::size_t stream, const std::string& text, Func func, std::uint16_t group,
                  DataType dtype, std::uint64_t count, std::int32_t root = 0,
                  std::size_t tensor = 0) {
    collective(stream, label(text), func, group, dtype, count, root, tensor);
  }
  // A v-variant, with list `counts` of the workload.
  void ragged(std::size_t stream, std::uint32_t label, Func func, std::uint16_t group,
              DataType dtype, std::uint32_t counts);
  // To and from the member `offset` places after this rank in the group.
  void send(std::size_t stream, std::uint32_t label, std::uint16_t group, std::int32_t offset,
            DataType dtype, std::uint64_t count);
  void recv(std::size_t stream, std::uint32_t label, std::uint16_t group, std::int32_t offset,
            DataType dtype, std::uint64_t count);

  // What is appended to `stream` from here on starts after all that `other` holds so far.
  void after(std::size_t stream, std::size_t other);

  // The same with the wait at another place: the point of `other` is now, `stream` waits at wait().
  struct Mark {
    std::uint32_t event = 0;
    std::size_t stream = 0;            // that waits
    std::vector<std::uint32_t> known;  // work of every stream that lies before the point
  };
  Mark mark(std::size_t other, std::size_t stream);
  void wait(const Mark& mark);

  // Across iterations: what is appended to a stream from wait_previous() on starts after all that
  // another one had before record() in the iteration before. One record() and one wait_previous()
  // for each event from carried_event(), in either order.
  std::uint32_t carried_event() { return program_.events++; }
  void record(std::size_t stream, std::uint32_t event);
  void wait_previous(std::size_t stream, std::uint32_t event);

  // What is appended between begin_script() and end_script() is kept apart; it may hold anything
  // but marks and what is across iterations.
  struct Script {
    struct Entry {
      std::size_t stream = 0;
      std::optional<std::size_t> after;  // such an `after`; empty: the op
      Op op;
    };
    std::vector<Entry> entries;
  };
  void begin_script() { script_.emplace(); }
  Script end_script() { return *std::exchange(script_, std::nullopt); }
  // Two scripts that take turns: where one has `stream` wait for `other` the other one goes on
  // until it does the same, so that either computes while what the other called for is under way.
  void take_turns(const Script& one, const Script& two, std::size_t stream, std::size_t other);

  Program take();

 private:
  struct Spent {  // an event whose wait has been written
    std::uint32_t event = 0;
    std::size_t stream = 0;  // that waits
    std::uint32_t work = 0;  // of that stream before the wait
  };

  struct Turn;
  bool play_until_wait(Turn& turn, std::size_t stream, std::size_t other);
  bool has_news(std::size_t stream, std::size_t other) const;
  void append(std::size_t stream, const Op& op);
  void transfer(Op::Kind kind, std::size_t stream, std::uint32_t label, std::uint16_t group,
                std::int32_t offset, DataType dtype, std::uint64_t count);
  std::uint32_t free_event(std::size_t recorder, std::size_t waiter);
  bool passed(const Spent& spent, std::size_t stream) const;

  Program program_;
  std::unordered_map<std::string, std::uint32_t> label_of_;
  std::vector<std::vector<std::uint32_t>> known_;  // [s][t]: work of t that ends before s goes on
  std::vector<Spent> spent_;
  std::optional<Script> script_;  // that is being written
};

}  // namespace ghostrank
