// The common form of traces, which every reader produces: events of some ranks with their
// dependencies, in one vocabulary. A reader counts each thing of its file once: as used, or under a
// reason in `left_out`.
//
//   FILE ── a reader (readers/chakra.cpp, ...) ──► Trace ── replay.h ──► Workload
//
// An event starts when the events that it depends on have ended, and all events of earlier steps,
// too. Computations of one track (a host thread, a device stream) also take turns, and so do
// the collectives of one communicator. `stated` is what a format calls the size of a call; sized()
// converts it into the count of an Op.
//
// Units: bytes, picoseconds. Threading: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collectives/common/data_type.h"
#include "collectives/common/number.h"
#include "collectives/schedule.h"
#include "profiles/input/yaml.h"
#include "profiles/units.h"

namespace ghostrank {

inline constexpr std::uint32_t kNoIndex = 0xffffffff;

struct TraceEvent {
  enum class Kind : std::uint8_t { join, compute, collective, send, recv };  // join: takes no time
  Kind kind = Kind::join;
  Func func = Func::all_reduce;
  DataType dtype = DataType::uint8;  // type with which the elements are played
  bool blocks = false;               // `stated` is one rank's block, not the whole group's
  bool counted = true;               // false: only its time is used, not counted as an operation
  bool with_next = false;            // a call and the rank's next event are in one ncclGroup
  std::uint16_t track = 0;           // compute: index into TraceRank::tracks
  std::int32_t peer = 0;             // send, recv: global rank; collective: position of the root
  std::uint32_t group = kNoIndex;    // index into Trace::groups; collective: kNoIndex: all ranks
  std::uint32_t name = 0;            // index into Trace::names
  std::uint64_t tag = 0;             // send, recv: match only the same tag and the same group
  std::uint32_t splits = kNoIndex;   // all_to_all_v: index into Trace::splits
  std::uint32_t first_dep = 0, deps = 0;  // in TraceRank::deps
  std::uint32_t step = 0;                 // of training; below Trace::steps
  std::uint64_t stated = 0;               // bytes as in the file; compute: moved through memory
  Picoseconds start = -1, duration = 0;   // as traced; -1: unknown
  double flops = 0;                       // of a computation of unknown duration
  std::uint64_t position = 0;             // line, byte or number of the node in the file
};
using TraceKind = TraceEvent::Kind;

struct TraceRank {
  WorldRank rank;
  std::vector<WorldRank> also;  // ranks that do the same according to the file
  std::string file;
  std::vector<TraceEvent> events;
  std::vector<std::uint32_t> deps;  // indices into `events`
  std::vector<std::string> tracks;  // the first is the device's own computation
  std::unordered_map<std::string, std::uint16_t> track_of;  // of track_named(), by name
};

struct TraceGroup {
  std::string name;
  std::vector<WorldRank> members;  // empty: all ranks
};

struct Trace {
  std::string format;  // as in --format
  std::string unit;    // of the file's times and their clock: "microseconds, no common clock"
  std::string position_unit = "line";  // unit of TraceEvent::position: line, node, ...
  int ranks = 0;                       // of the whole job; 0: the file does not say
  std::uint32_t steps = 1;             // number of training steps, as the file marks them
  std::vector<TraceRank> given;
  std::vector<TraceGroup> groups;
  std::vector<std::string> names;
  std::vector<std::vector<std::uint64_t>> splits;  // by list: elements to each member
  std::map<std::string, std::uint64_t> left_out;   // number of things left out, by reason
  std::uint64_t used = 0;
  std::vector<std::string> notes;  // assumptions
  std::optional<YamlValue> model;  // for formats that describe layers: a model instead of events

  std::uint32_t name(std::string_view text);  // index of a text in `names`, added if new
  std::unordered_map<std::string, std::uint32_t> name_of;
};

// Appends an event that comes after `after` (indices into the rank's events); returns its index.
std::uint32_t add_event(TraceRank& rank, const TraceEvent& event,
                        const std::vector<std::uint32_t>& after);
// Index of the track `name`, which is added if new.
std::uint16_t track_named(TraceRank& rank, const std::string& name);

// Number of ranks in a group, in a job of `ranks`.
int size_of(const Trace& trace, std::uint32_t group, int ranks);

// Bytes that one rank of a collective of `size` ranks hands in and gets, and the count for its Op.
// A whole that does not divide evenly is rounded up.
struct CallSize {
  std::uint64_t in = 0, out = 0, count = 0;
};
CallSize sized(const Trace& trace, const TraceEvent& event, int size);

// "FILE: node 12" or "FILE:LINE:1": the position of an event, for errors.
std::string position_text(const Trace& trace, const TraceRank& rank, const TraceEvent& event);

// Totals for people and for --json: events by kind, over all files.
struct TraceSummary {
  std::map<std::string, std::uint64_t> ops, stated, in, out;  // by kind; the last three in bytes
  std::map<std::string, std::uint64_t> group_bytes;           // stated, by group
  Picoseconds compute = 0;
  double flops = 0;
};
TraceSummary summary_of(const Trace& trace, int ranks);

}  // namespace ghostrank
