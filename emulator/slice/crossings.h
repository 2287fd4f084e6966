// What crosses between the nodes of a slice (scale.mode: slice), which are played, and the rest of
// the cluster, which is not: when its messages come to the slice. A play of the whole job in
// virtual time records it (CrossingRecorder, outside.h); the slice's shards replay it
// (shard/on_the_way/slice_edge.h).
//
//   slice     ── O ──┐                     ┌── X ──
//   outside          └─ ... its calls ... ─┘
//                    at                    at + delay
//
// An arrival X belongs to the departure O, if there is one: the last message of the slice on the
// chain of events that decided in that play when X came, none of which could have been earlier. X
// comes so long after O as it did there, so that the outside is late by what the slice has cost it.
// Where that chain never was in the slice, X comes so long after the start of the segment.
//
// A credit also belongs to the message that it answers: it comes no sooner than that one has come
// to the outside, though something else may have held it up in that play.
//
// Arrivals from one rank to another keep the order of that play: a line. Units: emulated
// picoseconds, bytes. Memory: 88 bytes an arrival, and up to 70 more for its departures. Threading:
// a recorder has one owner (the shard that plays); Crossings do not change.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/common/moment.h"
#include "emulator/fabric/wire.h"
#include "emulator/shard/events/event.h"
#include "emulator/traffic/cluster.h"

namespace ghostrank {

// The messages of one kind that a rank of the slice sends to one outside in a call; their order is
// the same in every play.
struct OutwardConnection {
  WorldRank rank;
  GroupRank peer = kNoRank;
  std::uint32_t group = 0, sequence = 0;  // as in Header
  std::uint32_t actor = 0;                // that sends data; kNil of credits and permissions
  std::uint16_t channel = 0;
  MessageKind kind = MessageKind::data;

  bool operator==(const OutwardConnection&) const = default;
  struct Hash {
    std::size_t operator()(const OutwardConnection& c) const;
  };
};

struct Crossings {
  // The messages that come to a rank of the slice from one outside.
  struct Line {
    WorldRank target;
    bool ends = false;                 // instead: the ends of the outside's iterations
    std::uint32_t first = 0, end = 0;  // in `arrivals`
  };
  struct Arrival {
    Event event;  // of an end: `sequence` is the iteration
    std::uint32_t line = 0;
    std::uint32_t parts = 0;  // departures that it belongs to, the start of the segment included
    // Of a credit, while it is recorded: the connection that it is for, and which message it
    // answers.
    std::uint32_t answers = kNil, answered = 0;
  };
  struct Released {
    std::uint32_t arrival = 0;
    Picoseconds delay = 0;  // after the departure
  };
  // Those that belong to one departure and come to one shard.
  struct Release {
    Host host;
    std::int32_t shard = 0;
    std::uint32_t first = 0, end = 0;  // in `released`
  };
  struct Departure {
    std::uint32_t number = 0;          // among the messages of its connection, from 0
    std::uint32_t first = 0, end = 0;  // in `releases`
  };
  struct Connection {
    std::uint32_t first = 0, end = 0;  // in `departures`
  };

  std::vector<Line> lines;
  std::vector<Arrival> arrivals;           // by line, in order
  std::vector<std::uint32_t> independent;  // arrivals whose t.at is since the start
  std::vector<Released> released;          // by release
  std::vector<Release> releases;           // by departure
  std::vector<Departure> departures;       // by connection, in order
  std::vector<Connection> connections;     // that have departures
  std::unordered_map<OutwardConnection, std::uint32_t, OutwardConnection::Hash> connection_of;
};

class CrossingRecorder {
 public:
  // `slice`: where the ranks of the slice are played; must outlive the recorder.
  explicit CrossingRecorder(const Cluster& slice) : slice_(slice) {}

  bool is_inside(Node node) const { return slice_.plays(node); }
  // The number of a connection; a new one for one not seen before.
  std::uint32_t connection(const OutwardConnection& connection);
  // A message has left the slice and comes to the outside at `at`. Returns what says so in the
  // slip of everything that it leads to: a later message has a greater one.
  Picoseconds left(std::uint32_t connection, Picoseconds at);
  // A message from outside will come to its NIC, as `e` says.
  void comes(const Event& e, WorldRank from, WorldRank target);
  // A rank outside has ended an iteration.
  void ended(std::uint32_t iteration, const Moment& at);
  // Returns what was recorded, and begins anew.
  Crossings take();

 private:
  struct Left {
    std::uint32_t connection = 0, number = 0;
    Picoseconds at = 0;
  };
  struct Dependence {  // of an arrival
    std::uint32_t connection = 0, number = 0;
    std::int32_t host = 0, shard = 0;
    std::uint32_t arrival = 0;
    Picoseconds delay = 0;
    auto operator<=>(const Dependence&) const = default;
  };

  void add_parts(std::uint32_t number, Crossings& out, std::vector<Dependence>& to) const;
  std::uint32_t line(WorldRank from, WorldRank target);
  void add_ends();
  void add_departures(std::vector<Dependence> all, Crossings& out) const;

  const Cluster& slice_;
  std::unordered_map<OutwardConnection, std::uint32_t, OutwardConnection::Hash> connection_of_;
  std::vector<std::uint32_t> sent_, credited_;  // messages and credits so far, by connection
  std::vector<Left> left_;                      // slip s: left_[s - 1]
  std::map<std::pair<WorldRank, WorldRank>, std::uint32_t> line_of_;
  Crossings made_;                        // its lines and arrivals, whose times are yet absolute
  std::map<std::uint32_t, Moment> ends_;  // of the last rank outside, by iteration
};

}  // namespace ghostrank
