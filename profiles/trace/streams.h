// The program of one rank of a trace: its events on streams, tied together by records and waits.
//
// Events must be appended in an order that respects all dependencies. The class tracks up to which
// item of every other stream a stream has waited, directly or through others, so it omits redundant
// waits. Threading: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiles/trace/trace.h"
#include "profiles/workload/program.h"

namespace ghostrank {

class TraceStreams {
 public:
  // `sends_leave`: a send is over when it starts, so that it holds up no later one.
  TraceStreams(std::vector<std::string> tracks, std::size_t events, bool sends_leave);

  // Each takes an event and its `deps`, the events of the same rank that it comes after. A join is
  // no op.
  void join(std::uint32_t event, const std::uint32_t* deps, std::size_t count);
  void on_track(std::uint32_t event, std::size_t track, const Op& op, const std::uint32_t* deps,
                std::size_t count);
  void on_communicator(std::uint32_t event, std::uint16_t kind, const std::string& name,
                       const Op& op, const std::uint32_t* deps, std::size_t count);
  void on_message_stream(std::uint32_t event, const Op& op, const std::uint32_t* deps,
                         std::size_t count);

  // An op on a communicator's stream whose `launch_index` is not 0 starts together with the one
  // before it there, if it waits for nothing else. Adds new launches to `launches`.
  Program take(std::vector<std::string> labels, std::vector<GroupedCalls>& launches);
  // True if the message `earlier` has ended when `later` starts.
  bool follows(std::uint32_t earlier, std::uint32_t later) const;
  std::uint64_t crowded() const { return crowded_; }  // messages that had to share a stream

 private:
  using Point = std::pair<std::uint32_t, std::uint32_t>;  // stream, number of its items so far
  struct Item {
    Op op;
    std::uint32_t event = 0;
    std::uint32_t first_wait = 0, waits = 0;  // in waits_
    std::uint32_t frees = kNoIndex;  // of the streams whose messages come after it, the last one
  };
  struct Learnt {  // from item `position` on, the stream comes after `known` items of another
    std::uint32_t position = 0, known = 0;
  };
  struct Stream {
    std::string name;
    std::uint32_t kind = 0;  // its communicator's kind, kTrack or kMessages
    std::vector<Item> items;
    std::uint32_t received = 0;  // number of items up to the last that is no send
    // number of items before it, event
    std::vector<std::pair<std::uint32_t, std::uint32_t>> records;
    std::vector<std::vector<Learnt>> learnt;  // by stream
  };

  static constexpr std::uint32_t kTrack = 0x10000, kMessages = 0x10001;

  std::uint32_t add_stream(std::string name, std::uint32_t kind);
  std::vector<std::uint32_t> final_order() const;
  std::uint32_t known(const Point& at, std::uint32_t of) const;
  void collect(const std::uint32_t* deps, std::size_t count);
  void append(std::uint32_t event, std::uint32_t stream, const Op& op);
  std::uint32_t message_stream(const Op& op);
  bool is_without_turn(const Op& op) const;
  bool sends_before(std::uint32_t stream, const Op& op) const;
  void learn(std::uint32_t stream, const Point& from);

  bool sends_leave_ = false;
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> messages_;  // streams of messages
  std::size_t next_message_ = 0;
  std::unordered_map<std::uint16_t, std::uint32_t> of_kind_;
  std::vector<Point> done_;                // by event; stream kNoIndex: index into joins_
  std::vector<std::vector<Point>> joins_;  // each with at most one point per stream
  std::vector<Point> after_;               // points that the event being appended comes after
  std::vector<std::uint32_t> waits_;       // events, by item
  // By the streams that record it and wait for it.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> event_of_;
  std::uint64_t crowded_ = 0;
};

}  // namespace ghostrank
