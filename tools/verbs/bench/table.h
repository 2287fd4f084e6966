// What nccl-tests prints and writes, so that whatever reads its output reads ours: which sizes are
// measured, how they become counts, bandwidths, columns, footer and JSON keys. Derived from
// nccl-tests 2.19.6.
//
//   size    B   bytes of the larger buffer of a rank (send or receive)
//   count       elements, as the NCCL call's argument counts them
//   time    us  of one call; algbw = size / time, busbw = algbw x the collective's factor, GB/s
//               (10^9 bytes)
//   #wrong      elements that were not as they should be; N/A when nothing was checked
//
// Times in the values here are seconds. Threading: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/result/result.h"
#include "profiles/workload/program.h"
#include "tools/verbs/bench/iterations.h"

namespace ghostrank {

// A type by the name that nccl-tests gives it, and what is played instead: a type of equal size.
struct BenchType {
  std::string name;
  DataType played = DataType::float32;
  bool verifiable = true;
};
bool has_root(Func func);
BenchType bench_type(const std::string& name);  // throws Error(usage)

// What a call is besides its size.
struct BenchCall {
  std::string type = "float", redop = "sum";
  Rank root = 0;
};
// -d, -o, -r, of which each may be "all": types first, then operations, then roots. What has no
// operation or no root has one of them. Throws Error(usage).
std::vector<BenchCall> bench_calls(Func func, int ranks, const std::string& types,
                                   const std::string& redops, const std::string& roots);

// -b, -e, -f, -i.
struct SizeRange {
  std::uint64_t first = 32u << 20, last = 32u << 20;
  std::uint64_t factor = 1;            // > 1: each size is so many times the one before
  std::uint64_t increment = 1u << 20;  // else so many bytes more
};
std::vector<std::uint64_t> sizes_of(const SizeRange& range);  // throws Error(usage)

struct BenchSize {
  std::uint64_t size = 0, count = 0;
};
// What nccl-tests makes of so many bytes: collectives whose buffer has one block per rank get
// blocks of whole 16 bytes, so the size may come out smaller, even 0.
BenchSize bench_size(Func func, std::uint64_t bytes, std::uint32_t element_bytes, int ranks);

// "all_reduce_perf", "AllReduce", "alltoall": throws Error(usage) for what is no collective.
Func bench_func(const std::string& name);
std::string perf_name(Func func);  // "all_reduce_perf"

struct BenchRow {
  BenchCall call;
  BenchSize size;
  double seconds = 0;        // of one call
  std::vector<double> each;  // of every iteration's calls, their mean; where asked for
  std::string timestamp;     // when it was measured; where asked for
  double algbw_GBps = 0, busbw_GBps = 0;
  std::optional<std::uint64_t> wrong;  // absent: not checked
  int iterations = 0;
  double dilation = 1;
  double messages = 0, bytes = 0;  // of one call: sent by all ranks, inside nodes too
  Fidelity fidelity;
};

// Fills the bandwidths from size and time; a call that took no time has none.
void add_bandwidths(Func func, int ranks, BenchRow& row);

struct BenchHead {
  Func func = Func::all_reduce;
  SizeRange sizes;
  int threads = 1, gpus = 1;
  int warmup = 1, iterations = 20, aggregated = 1, checks = 0;
  bool per_iteration = false, timestamps = false;
  bool narrow = false;  // what is in both halves once, no redop, no root: 80 columns suffice
  int skipped = 0;      // leading iterations that per-iteration statistics leave out
  std::optional<double> demanded_GBps;  // average bus bandwidth that the run shall have
  std::vector<std::string> facts;       // one per line, after nccl-tests' own header
};

std::string bench_header(const BenchHead& head);
std::string bench_row(const BenchHead& head, const BenchRow& row);  // with comments on lines of
                                                                    // their own
std::string bench_footer(const BenchHead& head, const std::vector<BenchRow>& rows);
std::string bench_csv(const BenchHead& head, const std::vector<BenchRow>& rows);

struct BenchIdentity {
  std::vector<std::string> argv;
  std::string version, library, start_time, end_time, config_json;
  std::vector<HostReport> hosts;
};
// nccl-tests' JSON (its version 2), with what only an emulator knows under "ghostrank"; written in
// bench/json.cpp.
std::string bench_json(const BenchIdentity& identity, const BenchHead& head,
                       const std::vector<BenchRow>& rows);

// Of all rows, as the footer counts them.
std::uint64_t wrong_elements(const std::vector<BenchRow>& rows);
double average_busbw(const std::vector<BenchRow>& rows);
// Whether that is what was demanded; nccl-tests allows a tenth less. Absent: nothing was demanded.
std::optional<bool> fast_enough(const BenchHead& head, const std::vector<BenchRow>& rows);
// Why the first row that is not faithful is not; empty: all are.
std::string unfaithful_reason(const std::vector<BenchRow>& rows);

// What a row says for redop and root: "none" and -1 where there is none.
std::string shown_redop(Func func, const BenchCall& call);
int shown_root(Func func, const BenchCall& call);
// Of the iterations that count.
IterationStats stats_of(const BenchHead& head, const BenchRow& row);

// `value` in at most `width` characters: two decimals, fewer where it is large, then an exponent.
std::string fitted(double value, int width);

}  // namespace ghostrank
