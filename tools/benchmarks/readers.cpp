// Readers of traces, on files made here: one core, from the file to events with their dependencies.
// Processor time, user and system; the file is in the page cache.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include <benchmark/benchmark.h>

#include "profiles/trace/readers/import.h"
#include "tools/benchmarks/found.h"
#include "tools/benchmarks/jobs.h"

namespace ghostrank::bench {
namespace {

namespace fs = std::filesystem;

// A file that `write` fills; removed at the end.
class MadeFile {
 public:
  MadeFile(const std::string& name, const std::function<void(std::ostream&)>& write)
      : path_(fs::temp_directory_path() /
              ("ghostrank-bench-" + std::to_string(getpid()) + "-" + name)) {
    std::ofstream out(path_, std::ios::binary);
    write(out);
  }
  ~MadeFile() { fs::remove(path_); }
  MadeFile(const MadeFile&) = delete;
  MadeFile& operator=(const MadeFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

template <class... Values>
void print(std::ostream& out, const char* form, Values... values) {
  char text[2048];
  const int size = std::snprintf(text, sizeof text, form, values...);
  out.write(text, size);
}

// 250 MB: a rank's collectives, verbose, each with the times of four channels.
void write_inspector(std::ostream& out) {
  constexpr const char* kCalls[] = {"AllReduce", "AllGather", "ReduceScatter"};
  long time = 1748030377748202;
  for (long i = 0; out.tellp() < 250'000'000; ++i, time += 1200) {
    print(out,
          R"({"header":{"id":"0x7f8c496ae9f661","rank":2,"n_ranks":8,"nnodes":1},"metadata":)"
          R"({"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":)"
          R"("profiler_plugin","dump_timestamp_us":%ld,"hostname":"h0","pid":1639453},"coll_perf":)"
          R"({"coll":"%s","coll_sn":%ld,"coll_msg_size_bytes":%ld,"coll_exec_time_us":900,)"
          R"("coll_timing_source":"kernel_gpu","coll_algobw_gbs":277.210914,"coll_busbw_gbs":)"
          R"(485.119099,"event_trace_ts":{"coll_start_ts":%ld,"coll_stop_ts":%ld,)"
          R"("kernel_events":[)",
          time, kCalls[i % 3], i / 3, 17'179'869'184 >> i % 9, time, time + 1000);
    for (int channel = 0; channel < 4; ++channel)
      print(
          out,
          R"(%s{"channel_id":%d,"kernel_start_ts":%ld,"kernel_stop_ts":%ld,"kernel_record_ts":%ld})",
          channel > 0 ? "," : "", channel, time + channel, time + 900 + channel, time + 950);
    out << "]}}}\n";
  }
}

// 1 GB: per kernel an op and a launch of the host and the arrow between launch and kernel, as
// PyTorch writes them; every fifth kernel is an all-reduce.
void write_kineto(std::ostream& out) {
  out << R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},)"
         "\n \"traceEvents\": [\n";
  double time = 7'310'000'000;
  for (long i = 0; out.tellp() < 1'000'000'000; ++i, time += 100) {
    const bool call = i % 5 == 4;
    print(out,
          R"(%s  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 4242, "tid": 4242,
    "ts": %.3f, "dur": 5.100, "args": {"External id": %ld, "Record function id": 0,
    "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": [[4096, 1], [1, 4096]],
    "Input Dims": [[8192, 4096], [4096, 4096]], "Ev Idx": %ld}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4242, "tid": 4242,
    "ts": %.3f, "dur": 3.200, "args": {"External id": %ld, "cbid": 211, "correlation": %ld}},
  {"ph": "s", "id": %ld, "pid": 4242, "tid": 4242, "ts": %.3f, "cat": "ac2g", "name": "ac2g"},
)",
          i > 0 ? ",\n" : "", time, i, i, time + 1, i, i, i, time + 1);
    print(out,
          R"(  {"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": %.3f,
    "dur": 90.500, "args": {"External id": %ld, "queued": 0, "device": 0, "context": 1,
    "stream": %d, "correlation": %ld, "registers per thread": 238, "shared memory": 147456,
    "blocks per SM": 1.939394, "warps per SM": 15.515152, "grid": [64, 4, 1],
    "block": [256, 1, 1], "est. achieved occupancy %%": 12%s}})",
          call ? "ncclDevKernel_AllReduce_Sum_bf16_RING_LL" : "cutlass_80_tensorop_bf16_gemm",
          time + 10, i, call ? 20 : 7, i,
          call ? R"(, "Collective name": "allreduce", "In msg nelems": 16777216,
    "Out msg nelems": 16777216, "Group size": 8, "dtype": "BFloat16", "In split size": "[]",
    "Out split size": "[]", "Process Group Name": "0", "Process Group Ranks":
    "[0, 1, 2, 3, 4, 5, 6, 7]")"
               : "");
  }
  out << "\n]}\n";
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out += static_cast<char>((value & 127) | 128);
  return out + static_cast<char>(value);
}
std::string field(int number, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(value);
}
std::string field(int number, const std::string& bytes) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}

// A million nodes, each after the one and the three before it; every tenth is an all-reduce.
void write_chakra(std::ostream& out) {
  const auto message = [&](const std::string& bytes) { out << varint(bytes.size()) << bytes; };
  message(field(1, std::string("0.0.4")));
  for (std::uint64_t i = 1; i <= 1'000'000; ++i) {
    const bool call = i % 10 == 0;
    std::string node = field(1, i) + field(2, "node_" + std::to_string(i)) + field(3, call ? 7 : 4);
    if (i > 3) node += field(5, varint(i - 1) + varint(i - 3));
    node += field(7, 25) + field(10, field(1, std::string("is_cpu_op")) + field(27, 0));
    if (call)
      node += field(10, field(1, std::string("comm_type")) + field(9, 0)) +
              field(10, field(1, std::string("comm_size")) + field(9, 1 << 20));
    message(node);
  }
}

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void read(benchmark::State& state, const MadeFile& file) {
  for (auto _ : state) {
    const auto child = in_child([&] {
      const double before = processor_seconds();
      benchmark::DoNotOptimize(import_trace({file.path()}, "", 8));
      return processor_seconds() - before;
    });
    if (!child) return state.SkipWithError("the file was refused");
    state.SetIterationTime(child->said);
    state.counters["seconds"] = child->said;
    state.counters["MB_per_s"] =
        static_cast<double>(fs::file_size(file.path())) / 1e6 / child->said;
    state.counters["resident_MiB"] = child->most_resident_kib / 1024;
  }
}

void inspector(benchmark::State& state) {
  static const MadeFile file("calls.jsonl", write_inspector);
  read(state, file);
}
void kineto(benchmark::State& state) {
  static const MadeFile file("kineto.json", write_kineto);
  read(state, file);
}
void chakra(benchmark::State& state) {
  static const MadeFile file("trace.0.et", write_chakra);
  read(state, file);
}

void five(benchmark::internal::Benchmark* b) {
  b->UseManualTime()->Iterations(1)->Repetitions(5)->Unit(benchmark::kMillisecond);
}
BENCHMARK(inspector)->Apply(five);
BENCHMARK(kineto)->Apply(five);
BENCHMARK(chakra)->Apply(five);

report::Row row(const Found& found, const char* what, const char* name, const char* aim) {
  return {what, figure(found.median(name, "seconds"), 2) + " s",
          figure(found.median(name, "MB_per_s")) + " MB/s",
          figure(found.median(name, "resident_MiB")) + " MiB", aim};
}

}  // namespace

Section section(const Found& found) {
  return {
      "One thread, processor time, files made by the benchmark and in the page cache; medians "
      "of 5.\n\n" +
          report::markdown_table(
              {{"", "time", "rate", "most memory", "aim"},
               row(found, "NCCL Inspector, 250 MB of JSON lines", "inspector", "250 MB/s"),
               row(found, "Kineto, 1 GB of JSON", "kineto", "15 s, 1,024 MiB"),
               row(found, "Chakra, a million nodes", "chakra", "3 s")}),
      {}};
}

}  // namespace ghostrank::bench
