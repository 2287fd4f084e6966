// Planning: from a job file to the checked programs of all ranks, the memory that these programs
// take, and the memory of a process that plays them. Rows differ in ranks; a row's `MiB` grows with
// the roles (here: pipeline stages), `MiB_of_groups` with the ranks.
#include "profiles/planners/plan.h"

#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "emulator/control/control.h"
#include "emulator/engine.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "tools/benchmarks/found.h"
#include "tools/benchmarks/jobs.h"

namespace ghostrank::bench {
namespace {

constexpr double kMiB = 1 << 20;

std::size_t bytes_of_programs(const Workload& workload) {
  std::size_t bytes = 0;
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations) {
      for (const auto& stream : program.streams) bytes += stream.occupied_bytes();
      for (const std::string& label : program.labels) bytes += sizeof label + label.capacity();
    }
  return bytes;
}

std::size_t bytes_of_groups(const Workload& workload) {
  std::size_t bytes = workload.role_of.rows().capacity() * sizeof workload.role_of.front();
  for (const Group& group : workload.groups)
    bytes += sizeof group + group.members.capacity() * sizeof group.members[0];
  return bytes;
}

void plan(benchmark::State& state, const std::string& job,
          const std::vector<std::string>& overrides) {
  Workload workload;
  for (auto _ : state) workload = plan_workload(load_job(job, overrides).spec);
  state.counters["ranks"] = workload.ranks;
  state.counters["roles"] = static_cast<double>(workload.roles.size());
  state.counters["MiB"] = static_cast<double>(bytes_of_programs(workload)) / kMiB;
  state.counters["MiB_of_groups"] = static_cast<double>(bytes_of_groups(workload)) / kMiB;
}

// Peak resident bytes of a process that plans a job and plays it in virtual time; empty: it failed.
std::optional<double> resident_bytes_of(const std::vector<std::string>& overrides) {
  const auto child = in_child([&] {
    std::vector<std::string> all{"fabric.kind=virtual"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    const LoadedJob job = load_job("gpt3-175b-megatron", all);
    const auto control = Control::meet(World{});
    Observer nobody;
    return static_cast<double>(
        run_job(job, plan_workload(job.spec), *control, {}, nobody).iterations.size());
  });
  if (!child || child->said != 1) return std::nullopt;
  return child->most_resident_kib * 1024;
}

// Resident bytes per rank of the GPT-3 job (programs, communicators, schedules, messages under
// way): the whole job, less a job of one node and one layer.
void gpt3_resident(benchmark::State& state) {
  for (auto _ : state) {
    const auto all = resident_bytes_of({});
    const auto few =
        resident_bytes_of({"model={base: gpt3-175b, layers: 1}", "cluster.nodes=1", "parallel.pp=1",
                           "parallel.dp=1", "parallel.global_batch=1"});
    if (!all || !few) return state.SkipWithError("the run did not end well");
    state.counters["resident_MiB"] = *all / kMiB;
    state.counters["bytes_per_rank"] = (*all - *few) / (1024 - 8);
  }
}
BENCHMARK(gpt3_resident)->Iterations(1)->Unit(benchmark::kMillisecond);

// GPT-3 175B with the plan of its job; more replicas leave the number of micro-batches as it is.
void gpt3(benchmark::State& state) {
  const std::int64_t replicas = state.range(0);
  plan(state, "gpt3-175b-megatron",
       {"cluster.nodes=" + std::to_string(16 * replicas), "parallel.dp=" + std::to_string(replicas),
        "parallel.global_batch=" + std::to_string(64 * replicas)});
}
BENCHMARK(gpt3)->ArgName("dp")->Arg(8)->Arg(32)->Arg(128)->Unit(benchmark::kMillisecond);

// Llama-3 405B on 16,384 GPUs, with its paper's plan: tp 8, pp 16, dp 128, 16 samples per replica.
void llama3_405b(benchmark::State& state) {
  plan(
      state, "gpt3-175b-megatron",
      {"model=llama3.1-405b", "cluster.nodes=2048", "parallel.dp=128", "parallel.global_batch=2048",
       "device.memory_bytes=0", "parallel.account_for_embedding_in_pipeline_split=true",
       "parallel.account_for_loss_in_pipeline_split=true"});
}
BENCHMARK(llama3_405b)->Unit(benchmark::kMillisecond);

report::Row planned(const Found& found, const std::string& what, const std::string& name) {
  return {what, figure(found.median(name, "ranks")),
          figure(found.median(name, "cpu_s"), 1, 1e-3) + " ms",
          figure(found.median(name, "MiB"), 2) + " MiB",
          figure(found.median(name, "MiB_of_groups"), 2) + " MiB"};
}

}  // namespace

Section section(const Found& found) {
  const auto resident = [&](const char* counter, double unit) {
    return figure(found.median("gpt3_resident", counter), 1, unit);
  };
  return {"From the job file to checked programs of all ranks, one thread.\n\n" +
              report::markdown_table(
                  {{"", "ranks", "processor time", "programs", "communicators"},
                   planned(found, "GPT-3 175B, tp 8, pp 16, 64 micro-batches, dp 8", "gpt3/dp:8"),
                   planned(found, "the same, dp 32", "gpt3/dp:32"),
                   planned(found, "the same, dp 128", "gpt3/dp:128"),
                   planned(found, "Llama-3 405B, tp 8, pp 16, 16 micro-batches, dp 128",
                           "llama3_405b")}) +
              "\nPlaying the first of them in virtual time, a process has " +
              resident("resident_MiB", 1) +
              " MiB resident at most: " + resident("bytes_per_rank", 1024) +
              " KiB a rank more than one that plays 8 ranks. Aim: 8 KiB.\n",
          {}};
}

}  // namespace ghostrank::bench
