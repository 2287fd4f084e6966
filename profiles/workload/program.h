// The work of one rank in one training step, op by op: the form in which planners and importers
// hand work to the engine. Immutable and shared: all ranks of a role run the same Program.
//
// A Program has one op list per stream. Ops of one stream run in order; streams run concurrently.
// Events order ops across streams, as in CUDA: `record` marks a point of one stream, and `wait`
// blocks another stream until the first reaches that point. One stream records an event and one
// stream waits for it, equally often: the n-th wait is for the n-th record, however many records
// are ahead of it. So two streams need one event, however often one waits for the other. Events do
// not survive their iteration, except for `previous` waits (below).
//
//   compute   F0 e F1 e F2 e F3 e            e: record; compute is up to three records ahead
//   send      w S0 ----- w S1 ----- w S2     w: wait
//
// Several workers may serve one stream (`at_once`): its collectives then start in order, at most
// one per worker at a time; any other op except a wait starts after all of them have ended. A
// rank's iteration ends when all its streams have ended; stream 0 is the compute stream.
//
// A stream may outlive its iteration (`outlives`), because DeAR, ByteScheduler and asynchronous
// checkpoints communicate during the next forward pass: the iteration then ends without that
// stream. Its ops of iteration i + 1 start after iteration i has ended and after its own ops of
// iteration i. It lags by one iteration at most: iteration i + 1 does not end before the stream's
// ops of iteration i. A wait may name an event of the `previous` iteration: once per iteration, on
// any stream.
//
//   compute   F0 | B0 |        F1 | wait | B1 |        F2 |       wait of e: previous, after F
//   comm                 K0 ------->          K1 ------->         outlives; records e after K
//   iteration  0            1                    2
//
// The engine plays iterations in segments: the warm-up, then the measured ones. The first iteration
// of a segment inherits nothing, so its `previous` waits pass at once; the last one ends when every
// stream has ended.
//
// Units: counts are elements of `dtype`, following the collective's convention
// (collectives/schedule.h). Threading: immutable after construction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/common/number.h"
#include "collectives/compressor.h"
#include "collectives/schedule.h"
#include "profiles/units.h"
#include "profiles/workload/op.h"

namespace ghostrank {

struct Program {
  std::vector<std::string> stream_names;  // "compute", "nccl"
  std::vector<OpList> streams;
  std::vector<std::string> labels;
  std::uint32_t events = 0;
  std::vector<std::uint8_t> at_once;  // workers by stream, at most kMaxAtOnce; missing: 1
  std::vector<bool> outlives;         // by stream, never stream 0; missing: false
  // By label: index where its micro-batch number begins; 0, or missing: it has none. In a stream's
  // body the number is the first repetition's, and each repetition adds `micro_batches`.
  std::vector<std::uint8_t> numerals;
  std::uint32_t micro_batches = 0;
};
// The label of the op at a position of a stream; empty if it has none.
std::string label_of(const Program& program, std::size_t stream, std::size_t position);
inline constexpr std::uint8_t kMaxAtOnce = 64;

inline std::uint8_t workers(const Program& program, std::size_t stream) {
  return stream < program.at_once.size() ? program.at_once[stream] : std::uint8_t{1};
}
inline bool outlives(const Program& program, std::size_t stream) {
  return stream < program.outlives.size() && program.outlives[stream];
}
bool carries_over(const Program& program);  // true if any of its streams outlives the iteration

// Calls that a rank hands to its library in one group (ncclGroupStart to ncclGroupEnd), in order.
// They are neighbours in a stream with one worker and start together. Labels, tensors and the
// numbers of launches are left out of these ops, so equal launches are equal lists.
using GroupedCalls = std::vector<Op>;
inline constexpr std::size_t kMostTogether = 64;  // calls of a launch
// Makes the calls one launch, which is added to `launches` if it is new. A single call is none.
void make_launch(std::span<Op> calls, std::vector<GroupedCalls>& launches);

// Iteration i plays iterations[min(n, size - 1)], where n is i or Workload::order's entry for i:
// DDP's first iterations differ from the steady state, which comes last. A caller may instead name
// one number to be played for a while.
inline constexpr int kInOrder = -1;   // no such number: play in order
inline constexpr int kEveryJob = -1;  // no such number of a job: all of them
struct Role {
  std::string name;
  std::vector<Program> iterations;
  std::uint16_t job = 0;  // index into Workload::jobs
};

// One communicator: an instance of a symbolic group.
struct Group {
  std::uint16_t kind = 0;          // index into Workload::group_names
  std::vector<WorldRank> members;  // by group rank
};

// A tensor whose calls exchange its compressed form (JobSpec::compression).
struct CompressedTensor {
  std::uint32_t tensor = 0;  // as Op::tensor
  DataType type = DataType::float32;
  std::uint64_t elements = 0;
  std::uint64_t rows = 0;          // of a matrix; 0: unknown
  std::vector<TensorShape> parts;  // of a bucket whose tensors are compressed one by one
  // Gradients reduced before it in an iteration; 0 where all gradients have one law.
  std::uint64_t first = 0;
  bool operator==(const CompressedTensor&) const = default;
};
// A method of several rounds exchanges the payload of round k of a tensor under the tensor's number
// plus k times this.
inline constexpr std::uint32_t kSecondRound = 1u << 20;
constexpr std::uint32_t number_of(std::uint32_t op_tensor) { return op_tensor % kSecondRound; }
constexpr int round_of(std::uint32_t op_tensor) {
  return static_cast<int>(op_tensor / kSecondRound);
}

struct TensorLayout;  // collectives/tensor_content.h

// One of several jobs that share a fabric (profiles/workload/merge.h). Its ranks have neighbouring
// numbers; ranks of different jobs are in no group together.
struct WorkloadJob {
  std::string name;  // unique; the names of its groups are "NAME/GROUP"
  WorldRank first;
  int ranks = 0;
  std::vector<std::uint32_t> order;  // as Workload::order, of this job
  std::uint32_t cycle = 1;
  double samples_per_iteration = 0, flops_per_iteration = 0;  // as in Workload, of this job
  std::uint16_t first_kind = 0;  // of its kinds of groups, which have neighbouring numbers
  // As in Workload, of this job: an Op::tensor is a number of its job.
  std::vector<CompressedTensor> compressed = {};
  std::vector<std::shared_ptr<const TensorLayout>> layouts = {};
};

struct Workload {
  int ranks = 0;
  int servers = 0;  // the last `servers` ranks store and load for the others, and do not train
  std::vector<Role> roles;
  VectorBy<WorldRank, std::uint16_t> role_of;  // by rank
  std::vector<std::string> group_names;        // "dp", "tp", ...
  std::vector<Group> groups;                   // every rank is in at most one group of each kind
  std::vector<Counts> counts;          // per member, of the v-variants, as Collective::counts
  std::vector<GroupedCalls> launches;  // by Op::launch - 1
  // Kinds of groups whose calls are background: plain transfers, outside any library.
  std::vector<std::uint16_t> services;
  // order[i] is the number of the programs that the roles play in iteration i; past its end the
  // last `cycle` entries repeat. Empty: iteration i plays program i.
  std::vector<std::uint32_t> order;
  std::uint32_t cycle = 1;
  std::vector<WorkloadJob> jobs;             // empty: all ranks are of one job
  std::vector<CompressedTensor> compressed;  // of one job
  // Layouts of tensors whose parts differ in content, by Op::tensor; null, or past the end: none.
  std::vector<std::shared_ptr<const TensorLayout>> layouts;
  double samples_per_iteration = 0;  // whole job; 0 = unknown
  double flops_per_iteration = 0;    // model FLOPs of the whole job; 0 = unknown
  // Least time of an iteration: compute, and waits for passes of other stages; 0: unknown.
  Picoseconds least = 0;
};

// Number of the programs that an iteration plays; a role with fewer programs plays its last. If
// there are several jobs, call the second form: each job has an order of its own.
std::size_t program_number(const Workload& workload, std::size_t iteration);
std::size_t program_number(const Workload& workload, const Role& role, std::size_t iteration);
// The number of jobs, and the job that a rank belongs to.
inline std::size_t jobs_of(const Workload& workload) {
  return workload.jobs.empty() ? 1 : workload.jobs.size();
}
inline std::uint16_t job_of(const Workload& workload, WorldRank rank) {
  return workload.roles[workload.role_of[rank]].job;
}
inline WorldRank first_rank(const Workload& workload, std::size_t job) {
  return workload.jobs.empty() ? WorldRank(0) : workload.jobs[job].first;
}
inline int ranks_of(const Workload& workload, std::size_t job) {
  return workload.jobs.empty() ? workload.ranks : workload.jobs[job].ranks;
}
// The job that a kind of group belongs to, and that job's name for it: "dp" of "a/dp".
std::size_t job_of_kind(const Workload& workload, std::uint16_t kind);
std::string own_name(const Workload& workload, std::uint16_t kind);
// Number of a group among those of its job.
std::uint32_t number_in_job(const Workload& workload, std::uint32_t group);
bool carries_over(const Workload& workload);  // true if any of its programs does
// The compressed tensor whose payloads the op exchanges; null if they are not compressed.
const CompressedTensor* compressed_tensor(const Workload& workload, const Op& op);
// The layout of the op's tensor, if its parts differ in content; null: they do not.
std::shared_ptr<const TensorLayout> layout_of(const Workload& workload, const Op& op);
bool is_service(const Workload& workload, std::uint16_t kind);

// Elements: `count` of an op; for a v-variant, the sum of its counts.
std::uint64_t elements_of(const Workload& workload, const Op& op);

}  // namespace ghostrank
