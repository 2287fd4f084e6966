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
#include "profiles/op.h"
#include "profiles/units.h"

namespace ghostrank {

struct Program {
  std::vector<std::string> stream_names;  // "compute", "nccl"
  std::vector<OpList> streams;
  std::vector<std::string> labels;
  std::uint32_t events = 0;
  std::vector<std::uint8_t> at_once;  // workers by stream, at most kMaxAtOnce; empty: one each
};
inline constexpr std::uint8_t kMaxAtOnce = 4;

// Iteration i plays iterations[min(n, size-1)], where n is i or what Workload::order says: DDP's
// first iterations differ from the steady state, which comes last. Or one of them is played for a
// while, by number.
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
  int servers = 0;  // the last so many of them store and load for the others, and do not train
  std::vector<Role> roles;
  std::vector<std::uint16_t> role_of;    // by rank
  std::vector<std::string> group_names;  // "dp", "tp", ...
  std::vector<Group> groups;             // every rank is in at most one group of each kind
  std::vector<Counts> counts;            // of the v-variants, as Collective::counts
  // Kinds of groups whose calls are plain transfers to and from a server, in no library's hands.
  std::vector<std::uint16_t> services;
  // Which of their programs the roles play in iteration i; after the end of the list its last
  // `cycle` entries again and again. Empty: program i.
  std::vector<std::uint32_t> order;
  std::uint32_t cycle = 1;
  double samples_per_iteration = 0;  // whole job; 0 = unknown
  double flops_per_iteration = 0;    // model FLOPs of the whole job; 0 = unknown
};

// The number of the programs that an iteration plays; a role with fewer plays its last.
std::size_t program_number(const Workload& workload, std::size_t iteration);
bool is_service(const Workload& workload, std::uint16_t kind);

// `count` of an op; of a v-variant all its counts together.
std::uint64_t elements_of(const Workload& workload, const Op& op);

}  // namespace ghostrank
