// The switch: packets of four workers, from memory and from pcap files, on the compiled switch and
// on DPDK. Counters give packets and bytes in; the switch sums every payload and copies every
// result to four ports. Rates are per second of user processor time, so that they hold on a busy
// machine; the kernel's time for files is not in them but in system_seconds.
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <benchmark/benchmark.h>

#include "switch/compiled/compiled.h"
#include "switch/dpdk/entries.h"
#include "switch/ports/live.h"
#include "switch/ports/pcap_file.h"
#include "switch/tables.h"
#include "tools/benchmarks/found.h"

namespace ghostrank::bench {
namespace {

namespace fs = std::filesystem;
using namespace switchml;

constexpr int kWorkers = 4;
constexpr Mac kSwitchMac{2, 0, 0, 0, 0xff, 1};
constexpr std::uint32_t kSwitchIp = 0x0a0000fe, kFirstIp = 0x0a000001;

int slots_for(int elements) { return elements == 256 ? 128 : 512; }
int packets_for(int elements) { return elements == 256 ? 200'000 : 1'000'000; }

Worker worker(int w) {
  const auto n = static_cast<std::uint8_t>(w);
  return {w, {2, 0, 0, 0, 0, n}, kFirstIp + n};
}

SwitchPlan plan_of(int elements) {
  SwitchPlan plan;
  plan.ports = kWorkers;
  plan.mac = kSwitchMac;
  plan.ip = kSwitchIp;
  JobPlan job{"a", elements, 0, slots_for(elements), kWorkerPort, {}, {}};
  for (int w = 0; w < kWorkers; ++w) job.workers.push_back(worker(w));
  plan.jobs.push_back(job);
  return plan;
}

// The n-th chunk of a worker.
void write_chunk(int w, int n, int elements, std::byte* frame) {
  Packet p;
  p.source = {worker(w).mac, worker(w).ip, kWorkerPort};
  p.target = {kSwitchMac, kSwitchIp, kUdpPort};
  p.id = static_cast<std::uint32_t>(n);
  p.slot = static_cast<std::uint16_t>(n % slots_for(elements));
  p.set = static_cast<std::uint8_t>(n / slots_for(elements) % 2);
  p.elements = elements;
  write_header(p, frame);
  for (int i = 0; i < elements; ++i)
    store32(frame + kHeaderBytes + 4 * i, static_cast<std::uint32_t>(w * 1000 + i));
}

struct Spent {
  double user = 0, system = 0;
};

Spent spent(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

void count(benchmark::State& state, int packets, int elements, double user, double system) {
  const double all = static_cast<double>(packets) * static_cast<double>(state.iterations());
  state.counters["messages"] = all;
  state.counters["bytes"] = all * static_cast<double>(frame_bytes(elements));
  state.counters["payload_touched"] = 1;
  state.counters["system_seconds"] = system;
  state.counters["packets_per_user_second"] = user > 0 ? all / user : 0;
}

// Counts frames, and writes them all to one buffer.
class Nowhere final : public Transmitter {
 public:
  std::byte* frame(int, std::size_t) override {
    ++frames;
    return bytes_.data();
  }
  std::uint64_t frames = 0;

 private:
  std::array<std::byte, 2048> bytes_{};
};

void CompiledInMemory(benchmark::State& state) {
  const auto elements = static_cast<int>(state.range(0));
  const int chunks = 2 * slots_for(elements);
  const std::size_t bytes = frame_bytes(elements);
  std::vector<std::byte> frames(static_cast<std::size_t>(chunks) * kWorkers * bytes);
  for (int n = 0; n < chunks; ++n) {
    for (int w = 0; w < kWorkers; ++w)
      write_chunk(w, n, elements,
                  frames.data() + static_cast<std::size_t>(n * kWorkers + w) * bytes);
  }
  CompiledSwitch sw(plan_of(elements));
  Nowhere out;
  const Spent before = spent(RUSAGE_THREAD);
  for (auto _ : state) {
    for (int i = 0; i < chunks * kWorkers; ++i)
      sw.receive(i % kWorkers, {frames.data() + static_cast<std::size_t>(i) * bytes, bytes}, out);
  }
  const Spent after = spent(RUSAGE_THREAD);
  if (sw.counters("a")->broadcasts * kWorkers != sw.counters("a")->received)
    state.SkipWithError("not every round became a sum");
  count(state, chunks * kWorkers, elements, after.user - before.user, after.system - before.system);
}

// A folder with the workers' captures; the destructor removes it.
class Captures {
 public:
  explicit Captures(int elements)
      : folder_(fs::temp_directory_path() / ("ghostrank-bench." + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    const std::size_t bytes = frame_bytes(elements);
    for (int w = 0; w < kWorkers; ++w) {
      PcapWriter writer(in(w));
      for (int n = 0; n < packets_for(elements) / kWorkers; ++n)
        write_chunk(w, n, elements,
                    writer.frame(static_cast<std::uint64_t>(n * kWorkers + w + 1), bytes));
    }
  }
  ~Captures() { fs::remove_all(folder_); }
  Captures(const Captures&) = delete;
  Captures& operator=(const Captures&) = delete;

  std::string in(int w) const { return file("in" + std::to_string(w) + ".pcap"); }
  std::string out(int w) const { return file("out" + std::to_string(w) + ".pcap"); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_;
};

void CompiledOnFiles(benchmark::State& state) {
  const auto elements = static_cast<int>(state.range(0));
  const Captures captures(elements);
  std::vector<PortName> ports;
  for (int w = 0; w < kWorkers; ++w) ports.push_back({{}, captures.in(w), captures.out(w)});
  const std::atomic<bool> stop{false};
  const Spent before = spent(RUSAGE_THREAD);
  for (auto _ : state) {
    CompiledSwitch sw(plan_of(elements));
    run(sw, *open_files(ports), {}, stop);
    benchmark::DoNotOptimize(sw.counters("a")->sent);
  }
  const Spent after = spent(RUSAGE_THREAD);
  count(state, packets_for(elements), elements, after.user - before.user,
        after.system - before.system);
}

// The runner itself reports the processor time it spent from the first packet on.
void DpdkOnFiles(benchmark::State& state) {
  const auto elements = static_cast<int>(state.range(0));
  const std::string runner =
      (fs::read_symlink("/proc/self/exe").parent_path() / "../ghostrank-dpdk").string();
  if (!fs::exists(runner)) return state.SkipWithError("built without DPDK");
  const Captures captures(elements);
  const SwitchPlan plan = plan_of(elements);
  Allocation allocation(elements, dpdk::register_slots(elements));
  {
    std::ofstream entries(captures.file("entries"));
    for (const std::string& line : dpdk::entries_of_plan(plan)) entries << line << '\n';
    const Tables tables = tables_of(plan.jobs[0], allocation.admit(plan.jobs[0]));
    for (const std::string& line : dpdk::entries_of_job(plan, tables)) entries << line << '\n';
    if (!entries.flush()) return state.SkipWithError("the entries cannot be written");
  }
  std::string line = runner + " " + GHOSTRANK_SWITCH_PROGRAMS + "/switchml_" +
                     std::to_string(elements) + ".spec " + captures.file("entries");
  for (int w = 0; w < kWorkers; ++w) line += " " + captures.in(w) + ":" + captures.out(w);
  Spent all;
  for (auto _ : state) {
    FILE* pipe = popen(line.c_str(), "r");
    double processor = 0, user = 0;
    const bool told =
        pipe != nullptr && std::fscanf(pipe, "{\"processor_seconds\":%lf,\"user_seconds\":%lf",
                                       &processor, &user) == 2;
    if (pipe != nullptr && (pclose(pipe) != 0 || !told)) state.SkipWithError("the runner failed");
    all.user += user;
    all.system += processor - user;
    state.SetIterationTime(processor);
  }
  count(state, packets_for(elements), elements, all.user, all.system);
}

BENCHMARK(CompiledInMemory)->Arg(32)->Arg(64)->Arg(256)->Repetitions(3);
BENCHMARK(CompiledOnFiles)->Arg(32)->Arg(256)->Iterations(1)->Repetitions(5);
BENCHMARK(DpdkOnFiles)->Arg(32)->Arg(256)->Iterations(1)->Repetitions(5)->UseManualTime();

report::Row rates(const Found& found, const std::string& what, const std::string& name,
                  const std::string& aim) {
  report::Row row{what};
  for (const char* elements : {"/32", "/256"})
    row.push_back(figure(found.median(name + elements, "packets_per_user_second"), 2, 1e6) + " M");
  row.push_back(aim);
  return row;
}

}  // namespace

Section section(const Found& found) {
  return {
      "Packets in per second of user processor time, four workers, every payload summed, every "
      "result copied to four ports; medians of 5 plays, in memory of 3.\n\n" +
          report::markdown_table(
              {{"", "32 elements", "256 elements", "aim"},
               rates(found, "compiled, memory to memory", "CompiledInMemory", "10 M, 4 M"),
               rates(found, "compiled, pcap files in and out", "CompiledOnFiles", ""),
               rates(found, "DPDK, p4c's output, pcap files in and out", "DpdkOnFiles",
                     "1.5 M, 0.3 M")}),
      {}};
}

}  // namespace ghostrank::bench
