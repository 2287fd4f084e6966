// The output of nccl-tests, so that programs that read it can read ours: sizes, counts, bandwidths,
// columns, footer and JSON keys. Derived from nccl-tests 2.19.6.
//
//   size    B   bytes of the larger buffer of a rank (send or receive)
//   count       elements, as the NCCL call's argument counts them
//   time    us  of one call; algbw = size / time, busbw = algbw x the collective's factor, GB/s
//               (10^9 bytes)
//   #wrong      elements that differ from the expected result; N/A when nothing was checked
//
// Times in the values below are seconds. Threading: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/result/result.h"
#include "profiles/workload/program.h"
#include "tools/verbs/bench/iterations.h"

namespace ghostrank {

// A type by nccl-tests' name, and the type of the same size that is played instead.
struct BenchType {
  std::string name;
  DataType played = DataType::float32;
  bool verifiable = true;
  bool floats = false;  // float elements, although integers may be played instead
};
bool has_root(Func func);
BenchType bench_type(const std::string& name);  // throws Error(usage)

// A kind of call: everything but its size.
struct BenchCall {
  std::string type = "float", redop = "sum";
  GroupRank root = 0;
};
// All kinds of call for -d, -o and -r, each of which may be "all": types vary slowest, roots
// fastest. A collective without operation or root gets one kind per type. Throws Error(usage).
std::vector<BenchCall> bench_calls(Func func, int ranks, const std::string& types,
                                   const std::string& redops, const std::string& roots);

// -b, -e, -f, -i.
struct SizeRange {
  std::uint64_t first = 32u << 20, last = 32u << 20;
  std::uint64_t factor = 1;            // > 1: each size is `factor` times the one before
  std::uint64_t increment = 1u << 20;  // else: `increment` bytes larger
};
std::vector<std::uint64_t> sizes_of(const SizeRange& range);  // throws Error(usage)

struct BenchSize {
  std::uint64_t size = 0, count = 0;
};
// The size and count that nccl-tests makes of `bytes`. A buffer with one block per rank gets blocks
// that are multiples of 16 bytes, so the size may come out smaller, even 0.
BenchSize bench_size(Func func, std::uint64_t bytes, std::uint32_t element_bytes, int ranks);

// Accepts "all_reduce_perf", "AllReduce", "alltoall"; throws Error(usage) for other names.
Func bench_func(const std::string& name);
std::string perf_name(Func func);  // "all_reduce_perf"

struct BenchRow {
  BenchCall call;
  BenchSize size;
  double seconds = 0;        // of one call
  std::vector<double> each;  // mean call of each iteration
  std::vector<double> late;  // by iteration, what this machine may have added; empty: nothing
  std::string timestamp;     // local time at the end of the measurement
  double algbw_GBps = 0, busbw_GBps = 0;
  std::optional<std::uint64_t> wrong;  // absent: not checked
  int iterations = 0;
  double dilation = 1;
  double messages = 0, bytes = 0;  // of one call: sent by all ranks, inside nodes too
  Fidelity fidelity;
};

// Fills the bandwidths from size and time; a call that took no time has none.
void add_bandwidths(Func func, int ranks, BenchRow& row);

// The table shows the mean of the calls, the engine judges the median: a row whose mean lateness
// put off by more than Figure::kMostError is not faithful either.
void judge_mean(BenchRow& row);

struct BenchHead {
  Func func = Func::all_reduce;
  SizeRange sizes;
  int threads = 1, gpus = 1;
  int warmup = 1, iterations = 20, aggregated = 1, checks = 0;
  bool per_iteration = false, timestamps = false;
  bool narrow = false;                  // one half, no redop, no root: fits 80 columns
  int skipped = 0;                      // leading iterations that -I leaves out
  std::optional<double> demanded_GBps;  // least average bus bandwidth; absent: none
  std::vector<std::string> facts;       // one per line, after nccl-tests' own header
  std::string interrupted;              // why it was stopped; empty: it was not
};

std::string bench_header(const BenchHead& head);
std::string bench_row(const BenchHead& head, const BenchRow& row);  // adds comment lines
std::string bench_footer(const BenchHead& head, const std::vector<BenchRow>& rows);
std::string bench_csv(const BenchHead& head, const std::vector<BenchRow>& rows);

struct BenchIdentity {
  std::vector<std::string> argv;
  std::string version, library, start_time, end_time, config_json;
  BuildFacts build = {};
  std::vector<HostReport> hosts;
};
// nccl-tests' JSON (its version 2), with the emulator's own facts under "ghostrank"; written in
// bench/json.cpp.
std::string bench_json(const BenchIdentity& identity, const BenchHead& head,
                       const std::vector<BenchRow>& rows);

// Over all rows, as in the footer.
std::uint64_t wrong_elements(const std::vector<BenchRow>& rows);
double average_busbw(const std::vector<BenchRow>& rows);
// Whether average_busbw() reaches demanded_GBps, with nccl-tests' tolerance of a tenth. Absent: no
// bandwidth was demanded.
std::optional<bool> fast_enough(const BenchHead& head, const std::vector<BenchRow>& rows);
// The reason of the first row that is not faithful; empty when all are.
std::string unfaithful_reason(const std::vector<BenchRow>& rows);

// "INCOMPLETE: 3 rows measured; why": of a bench that was stopped.
std::string incomplete(const BenchHead& head, const std::vector<BenchRow>& rows);

// The redop and root of a row; "none" and -1 for a collective without.
std::string shown_redop(Func func, const BenchCall& call);
int shown_root(Func func, const BenchCall& call);
// False: every iteration was skipped, because a size with many messages plays fewer than others.
bool has_stats(const BenchHead& head, const BenchRow& row);
// Statistics of the iterations after the skipped ones.
IterationStats stats_of(const BenchHead& head, const BenchRow& row);
// How far each of them may be off. The table leaves out those that may be by more than
// Figure::kMostError, and says so.
IterationStats errors_of(const BenchHead& head, const BenchRow& row);

// `value` in at most `width` characters: two decimals, fewer where it is large, then an exponent.
std::string fitted(double value, int width);

}  // namespace ghostrank
