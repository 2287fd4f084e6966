// What one rank does in one training step, op by op: the interchange form between planners,
// importers and the engine. Immutable and shared: ranks of one role run the same Program.
//
// A Program has one op list per stream. Ops of a stream run in order, streams run concurrently, and
// events tie them together as in CUDA: `record` marks a point of one stream, `wait` holds another
// until it is reached. A wait uses its event up: one wait per record, and after the wait the event
// may be recorded again. Events are forgotten between iterations. A stream may be a queue that
// several workers serve (`at_once`): then its collectives start in order, as many together as there
// are workers, and anything else of it but a wait comes after all of them have ended. An iteration
// of a rank ends when all its streams have ended; stream 0 is the compute stream.
//
// Units: counts are elements of `dtype`, following the collective's convention
// (collectives/schedule.h). Threading: immutable after construction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule.h"
#include "profiles/units.h"

namespace ghostrank {

enum class DataType : std::uint8_t { int32, float32, bfloat16, int64, uint8 };
std::uint32_t bytes_of(DataType type);
std::string_view name_of(DataType type);

struct Op {
  enum class Kind : std::uint8_t {
    compute,     // `duration`
    collective,  // `func`, `group`, `count` or `counts`, `dtype`, `peer` as the root
    send,    // `count` of `dtype` to the member `peer` places after this rank in `group` (wraps)
    recv,    // likewise, from the member `peer` places after (negative: before)
    record,  // `event`
    wait,    // `event`
  };
  Kind kind = Kind::compute;
  Func func = Func::all_reduce;
  DataType dtype = DataType::float32;
  std::uint16_t group = 0;   // index into Workload::group_names
  std::uint32_t label = 0;   // index into Program::labels: "forward", "bucket 12"
  std::uint32_t event = 0;   // record, wait
  std::int32_t peer = 0;     // send, recv: offset in the group; broadcast, reduce, ...: root
  std::uint32_t counts = 0;  // all_gather_v, all_to_all_v: index into Workload::counts
  std::uint64_t count = 0;
  Picoseconds duration = 0;
};

struct Program {
  std::vector<std::string> stream_names;  // "compute", "nccl"
  std::vector<std::vector<Op>> streams;
  std::vector<std::string> labels;
  std::uint32_t events = 0;
  std::vector<std::uint8_t> at_once;  // workers by stream, at most kMaxAtOnce; empty: one each
};
inline constexpr std::uint8_t kMaxAtOnce = 4;

// Iteration i plays iterations[min(i, size-1)]: DDP's first iterations differ from the steady
// state. Or one of them is played for a while, by number.
inline constexpr int kInOrder = -1;  // in place of such a number
struct Role {
  std::string name;
  std::vector<Program> iterations;
};

// One communicator: an instance of a symbolic group.
struct Group {
  std::uint16_t kind = 0;     // index into Workload::group_names
  std::vector<Rank> members;  // global ranks in group order
};

struct Workload {
  int ranks = 0;
  std::vector<Role> roles;
  std::vector<std::uint16_t> role_of;    // by rank
  std::vector<std::string> group_names;  // "dp", "tp", ...
  std::vector<Group> groups;             // every rank is in at most one group of each kind
  std::vector<Counts> counts;            // of the v-variants, as Collective::counts
  double samples_per_iteration = 0;      // whole job; 0 = unknown
  double flops_per_iteration = 0;        // model FLOPs of the whole job; 0 = unknown
};

// `count` of an op; of a v-variant all its counts together.
std::uint64_t elements_of(const Workload& workload, const Op& op);

}  // namespace ghostrank
