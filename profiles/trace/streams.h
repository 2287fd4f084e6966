// The program of one rank of a trace: its events on streams, tied together by records and waits.
//
// Events come in an order that no dependency contradicts. For every stream is known up to which
// place of every other it has waited, and what that implies; a wait that says nothing new is left
// out. Threading: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiles/trace/trace.h"
#include "profiles/workload/program.h"

namespace ghostrank {

class TraceStreams {
 public:
  TraceStreams(std::vector<std::string> lanes, std::size_t events);

  // What the event comes after, as dependencies of its own rank.
  void join(std::uint32_t event, const std::uint32_t* deps, std::size_t count);
  void on_lane(std::uint32_t event, std::size_t lane, const Op& op, const std::uint32_t* deps,
               std::size_t count);
  void on_communicator(std::uint32_t event, std::uint16_t kind, const std::string& name,
                       const Op& op, const std::uint32_t* deps, std::size_t count);
  void on_message_stream(std::uint32_t event, const Op& op, const std::uint32_t* deps,
                         std::size_t count);

  Program take(std::vector<std::string> labels);
  std::uint64_t crowded() const { return crowded_; }  // messages that had to share a stream

 private:
  using Point = std::pair<std::uint32_t, std::uint32_t>;  // stream, place + 1 of an item of it
  struct Item {
    Op op;
    std::uint32_t event = 0;
    std::uint32_t first_wait = 0, waits = 0;  // in waits_
  };
  struct Learnt {  // from this place on the stream comes after so much of another
    std::uint32_t place = 0, known = 0;
  };
  struct Stream {
    std::string name;
    std::uint32_t kind = 0;  // of its communicator; kLane, kMessages
    std::vector<Item> items;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> records;  // place + 1, event
    std::vector<std::vector<Learnt>> learnt;                       // by stream
  };

  static constexpr std::uint32_t kLane = 0x10000, kMessages = 0x10001;

  std::uint32_t add_stream(std::string name, std::uint32_t kind);
  std::vector<std::uint32_t> final_order() const;
  std::uint32_t known(const Point& at, std::uint32_t of) const;
  void collect(const std::uint32_t* deps, std::size_t count);
  void append(std::uint32_t event, std::uint32_t stream, const Op& op);
  void learn(std::uint32_t stream, const Point& from);

  std::vector<Stream> streams_;
  std::vector<std::uint32_t> messages_;  // streams of them
  std::size_t next_message_ = 0;
  std::unordered_map<std::uint16_t, std::uint32_t> of_kind_;
  std::vector<Point> done_;                // by event; stream kNoIndex: entry of joins_
  std::vector<std::vector<Point>> joins_;  // each stream once
  std::vector<Point> after_;               // of the event that is appended
  std::vector<std::uint32_t> waits_;       // events
  std::uint32_t events_ = 0;
  std::uint64_t crowded_ = 0;
};

}  // namespace ghostrank
