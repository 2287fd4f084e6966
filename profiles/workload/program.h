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
// A stream may outlive its iteration (`outlives`), as DeAR, ByteScheduler and asynchronous
// checkpoints communicate under the next forward pass: it does not hold up the end of the
// iteration. Its ops of the next one start after that end and after all its own of this one, and it
// falls behind by one iteration at most: iteration i + 1 does not end before its ops of iteration i
// have. A wait may be for what the `previous` iteration recorded, once, wherever:
//
//   compute   F0 | B0 |        F1 | wait | B1 |        F2 |       wait of e: previous, after F
//   comm                 K0 ------->          K1 ------->         outlives; records e after K
//   iteration  0            1                    2
//
// Iterations are played in segments: the warm-up, those that are measured. Before the first of a
// segment nothing is carried over, and its waits for the previous one pass at once; the last one
// ends when every stream has ended.
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
#include "profiles/workload/op.h"

namespace ghostrank {

struct Program {
  std::vector<std::string> stream_names;  // "compute", "nccl"
  std::vector<OpList> streams;
  std::vector<std::string> labels;
  std::uint32_t events = 0;
  std::vector<std::uint8_t> at_once;  // workers by stream, at most kMaxAtOnce; left out: one
  std::vector<bool> outlives;         // by stream, never the first; left out: does not
};
inline constexpr std::uint8_t kMaxAtOnce = 4;

inline std::uint8_t workers(const Program& program, std::size_t stream) {
  return stream < program.at_once.size() ? program.at_once[stream] : std::uint8_t{1};
}
inline bool outlives(const Program& program, std::size_t stream) {
  return stream < program.outlives.size() && program.outlives[stream];
}
bool carries_over(const Program& program);  // whether any of its streams outlives the iteration

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

// A tensor whose calls exchange its compressed form (JobSpec::compression).
struct CompressedTensor {
  std::uint32_t tensor = 0;  // as Op::tensor
  DataType type = DataType::float32;
  std::uint64_t elements = 0;
  bool operator==(const CompressedTensor&) const = default;
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
  std::vector<CompressedTensor> compressed;
  double samples_per_iteration = 0;  // whole job; 0 = unknown
  double flops_per_iteration = 0;    // model FLOPs of the whole job; 0 = unknown
};

// The number of the programs that an iteration plays; a role with fewer plays its last.
std::size_t program_number(const Workload& workload, std::size_t iteration);
bool carries_over(const Workload& workload);  // any of its programs
// Null: what the op exchanges is not compressed.
const CompressedTensor* compressed_tensor(const Workload& workload, const Op& op);
bool is_service(const Workload& workload, std::uint16_t kind);

// `count` of an op; of a v-variant all its counts together.
std::uint64_t elements_of(const Workload& workload, const Op& op);

}  // namespace ghostrank
