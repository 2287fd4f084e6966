// One shard's side of what crosses into its slice (emulator/slice/crossings.h): which messages have
// left it, and when those from outside come. Threading: one owner (a shard).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/common/moment.h"
#include "emulator/slice/crossings.h"

namespace ghostrank {

class SliceEdge {
 public:
  void begin(const Crossings& crossings) {
    crossings_ = &crossings;
    early_.clear();
    halves_.clear();
    lines_.clear();
    for (const Crossings::Line& line : crossings.lines) lines_.push_back({line.first, {}});
    ways_.clear();
    for (const Crossings::Connection& c : crossings.connections) ways_.push_back({0, c.first});
  }
  const Crossings& crossings() const { return *crossings_; }

  // kNil: nothing that comes belongs to its messages.
  std::uint32_t connection(const OutwardConnection& connection) const {
    const auto found = crossings_->connection_of.find(connection);
    return found == crossings_->connection_of.end() ? kNil : found->second;
  }

  // The next message of the connection leaves. Returns [first, end) of the releases of its
  // departure.
  std::pair<std::uint32_t, std::uint32_t> left(std::uint32_t connection) {
    Way& way = ways_[connection];
    const std::uint32_t number = way.sent++;
    if (way.next == crossings_->connections[connection].end) return {0, 0};
    const Crossings::Departure& departure = crossings_->departures[way.next];
    if (departure.number != number) return {0, 0};
    ++way.next;
    return {departure.first, departure.end};
  }

  // A part of what an arrival belongs to lets it come at `at`. When all have, calls
  // comes(arrival, at) for it and those behind it on its line as soon as that is known of all
  // before them; none comes before another.
  template <typename Comes>
  void know(std::uint32_t arrival, Moment at, const Comes& comes) {
    if (crossings_->arrivals[arrival].parts > 1) {
      const auto [half, first] = halves_.try_emplace(arrival, at);
      if (first) return;
      at = later(half->second, at);
      halves_.erase(half);
    }
    const std::uint32_t number = crossings_->arrivals[arrival].line;
    Line& line = lines_[number];
    if (arrival != line.next) {
      early_.emplace(arrival, at);
      return;
    }
    for (;;) {
      if (line.last.at > at.at) at = line.last;
      line.last = at;
      comes(line.next, at);
      if (++line.next == crossings_->lines[number].end) return;
      const auto early = early_.find(line.next);
      if (early == early_.end()) return;
      at = early->second;
      early_.erase(early);
    }
  }

 private:
  struct Line {
    std::uint32_t next = 0;  // arrival
    Moment last;             // when the one before it came
  };
  struct Way {
    std::uint32_t sent = 0, next = 0;  // messages; the next departure
  };

  const Crossings* crossings_ = nullptr;
  std::vector<Line> lines_;                           // by line
  std::vector<Way> ways_;                             // by connection
  std::unordered_map<std::uint32_t, Moment> early_;   // known arrivals behind others
  std::unordered_map<std::uint32_t, Moment> halves_;  // arrivals of which one of two parts is known
};

}  // namespace ghostrank
