// See plan_report.h.
#include "tools/report/plan_report.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include "emulator/traffic/tensor_use.h"
#include "emulator/traffic/time_outs.h"
#include "profiles/device/device.h"
#include "profiles/load/idle_keys.h"
#include "profiles/load/load.h"
#include "profiles/model/model.h"
#include "profiles/planners/background/background.h"
#include "profiles/planners/memory_check.h"
#include "profiles/planners/plan.h"
#include "profiles/real.h"
#include "profiles/training/gradient_state.h"
#include "tools/report/files/output_files.h"
#include "tools/report/jobs_report.h"
#include "tools/report/network_text.h"
#include "tools/report/nic_traffic.h"
#include "tools/report/result_json.h"
#include "tools/report/tensor_report.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

constexpr std::size_t kPairsShown = 8;

StreamFacts count(const OpList& ops) {
  StreamFacts facts;
  const std::vector<std::uint64_t> times = ops.times();
  Picoseconds compute = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Op& op = ops.distinct()[i];
    switch (op.kind) {
      case Op::Kind::compute:
        facts.computes += times[i];
        compute += op.duration * static_cast<Picoseconds>(times[i]);
        break;
      case Op::Kind::collective:
        facts.collectives += times[i];
        break;
      case Op::Kind::send:
        facts.sends += times[i];
        break;
      case Op::Kind::recv:
        facts.receives += times[i];
        break;
      case Op::Kind::record:
      case Op::Kind::wait:
        break;
    }
  }
  facts.compute_seconds = seconds(compute);
  return facts;
}

std::vector<StreamFacts> stream_facts(const Workload& workload, std::size_t number) {
  std::vector<StreamFacts> list;
  for (std::size_t r = 0; r < workload.roles.size(); ++r) {
    const Role& role = workload.roles[r];
    if (role.iterations.empty()) continue;
    const Program& steady = role.iterations[std::min(number, role.iterations.size() - 1)];
    for (std::size_t s = 0; s < steady.streams.size(); ++s) {
      StreamFacts facts = count(steady.streams[s]);
      facts.role = role.name;
      facts.stream = steady.stream_names[s];
      facts.ranks = static_cast<int>(std::count(workload.role_of.begin(), workload.role_of.end(),
                                                static_cast<std::uint16_t>(r)));
      list.push_back(std::move(facts));
    }
  }
  return list;
}

std::vector<GroupFacts> group_facts(const Workload& workload) {
  std::vector<GroupFacts> list;
  for (const std::string& name : workload.group_names) list.push_back({name, 0, 0, 0});
  for (const Group& group : workload.groups) {
    GroupFacts& facts = list[group.kind];
    const std::size_t size = group.members.size();
    facts.smallest = facts.communicators == 0 ? size : std::min(facts.smallest, size);
    facts.largest = std::max(facts.largest, size);
    ++facts.communicators;
  }
  return list;
}

// Number of first iterations that no later one repeats.
std::size_t opening_iterations(const Workload& workload) {
  if (!workload.order.empty()) return workload.order.size() - workload.cycle;
  return static_cast<std::size_t>(distinct_iterations(workload)) - 1;
}

// Bytes of the service's chunks that one rank moves when it plays `program` once: those of its
// collectives, and those that it sends.
struct ServiceBytes {
  std::uint64_t collectives = 0, sent = 0;
};
ServiceBytes service_bytes(const Program& program, std::uint16_t kind) {
  ServiceBytes bytes;
  for (const OpList& stream : program.streams) {
    const std::vector<std::uint64_t> times = stream.times();
    for (std::size_t i = 0; i < times.size(); ++i) {
      const Op& op = stream.distinct()[i];
      if (op.group != kind) continue;
      if (op.kind == Op::Kind::collective) bytes.collectives += op.count * times[i];
      if (op.kind == Op::Kind::send) bytes.sent += op.count * times[i];
    }
  }
  return bytes;
}

BackgroundFacts service_facts(const Workload& workload, std::uint16_t kind) {
  BackgroundFacts facts;
  facts.group = workload.group_names[kind];
  const bool one = workload.jobs.empty();
  const std::size_t job = job_of_kind(workload, kind);
  const std::vector<std::uint32_t>& order = one ? workload.order : workload.jobs[job].order;
  if (!order.empty()) facts.cycle = one ? workload.cycle : workload.jobs[job].cycle;
  // By role: `members` of the service's groups, and `clients`, which leaves out the servers.
  std::vector<std::uint64_t> clients(workload.roles.size()), members(workload.roles.size());
  for (const Group& group : workload.groups)
    for (const WorldRank rank : group.members) {
      if (group.kind != kind) continue;
      ++members[workload.role_of[rank]];
      if (rank != group.members.front()) ++clients[workload.role_of[rank]];
    }
  for (std::size_t i = order.size(); i < order.size() + facts.cycle; ++i) {
    std::uint64_t bytes = 0, busy = 0;
    for (std::size_t r = 0; r < clients.size(); ++r) {
      const auto& programs = workload.roles[r].iterations;
      const std::size_t played = program_number(workload, workload.roles[r], i),
                        number = std::min(played, programs.size() - 1);
      const ServiceBytes moved = service_bytes(programs[number], kind);
      bytes += clients[r] * moved.collectives + members[r] * moved.sent;
      busy += moved.sent > 0 ? members[r] : clients[r];
    }
    facts.bytes += bytes;
    facts.steps += bytes > 0;
    facts.clients = std::max(facts.clients, busy);
  }
  return facts;
}

// Which rows are estimates, and how they are counted.
std::vector<std::string> estimate_notes(const TrafficPlan& traffic) {
  std::vector<std::string> notes;
  for (const CollectiveTraffic& c : traffic.collectives)
    if (c.calls > 0 && !c.estimate.empty())
      notes.push_back(c.op + " of " + c.group + " by " + c.algorithm + ": messages and bytes are " +
                      c.estimate + "; a run may differ");
  return notes;
}

std::string programs_table(const PlanFacts& facts) {
  Table table{{{"role"},
               {"ranks", Align::right},
               {"stream"},
               {"computes", Align::right},
               {"compute time", Align::right},
               {"collectives", Align::right},
               {"sends", Align::right},
               {"receives", Align::right}},
              {}};
  for (const StreamFacts& s : facts.streams) {
    table.rows.push_back({s.role, humane_count(s.ranks), s.stream, humane_count(real(s.computes)),
                          humane_seconds(s.compute_seconds), humane_count(real(s.collectives)),
                          humane_count(real(s.sends)), humane_count(real(s.receives))});
  }
  return render(table);
}

std::string groups_table(const PlanFacts& facts) {
  Table table{{{"group"}, {"communicators", Align::right}, {"members", Align::right}}, {}};
  for (const GroupFacts& g : facts.groups) {
    table.rows.push_back({g.name, humane_count(g.communicators),
                          g.smallest == g.largest ? humane_count(real(g.largest))
                                                  : humane_count(real(g.smallest)) + "-" +
                                                        humane_count(real(g.largest))});
  }
  return render(table);
}

std::string traffic_table(const PlanFacts& facts) {
  Table table{{{"collective"},
               {"group"},
               {"algorithm"},
               {"calls", Align::right},
               {"size/call", Align::right},
               {"messages", Align::right},
               {"bytes", Align::right},
               {"between nodes", Align::right},
               {"bytes", Align::right},
               {"takes at least", Align::right}},
              {}};
  for (const CollectiveTraffic& c : facts.traffic.collectives) {
    if (c.calls == 0) continue;  // occurs in opening iterations only
    table.rows.push_back({c.op, c.group, c.algorithm, humane_count(real(c.calls)),
                          c.calls > 0 ? humane_bytes(real(c.buffer_bytes) / real(c.calls)) : "-",
                          humane_count(real(c.messages)), humane_bytes(real(c.bytes)),
                          humane_count(real(c.wire_messages)), humane_bytes(real(c.wire_bytes)),
                          humane_seconds(c.seconds_at_least)});
  }
  return render(table);
}

std::string pairs_table(const PlanFacts& facts) {
  std::vector<PairTraffic> pairs = facts.traffic.pairs;
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const PairTraffic& a, const PairTraffic& b) { return a.bytes > b.bytes; });
  Table table{{{"from"}, {"to"}, {"messages", Align::right}, {"bytes", Align::right}}, {}};
  for (std::size_t i = 0; i < std::min(pairs.size(), kPairsShown); ++i) {
    table.rows.push_back({nic_name(pairs[i].source_nic, facts.nics_per_node),
                          nic_name(pairs[i].target_nic, facts.nics_per_node),
                          humane_count(pairs[i].messages), humane_bytes(pairs[i].bytes)});
  }
  std::string text = render(table);
  if (pairs.size() > kPairsShown) {
    text += "and " + humane_count(real(pairs.size() - kPairsShown)) +
            " more pairs; --json lists them all\n";
  }
  return text;
}

std::string background_table(const PlanFacts& facts) {
  Table table{{{"background"},
               {"ranks", Align::right},
               {"in steps"},
               {"bytes/step then", Align::right},
               {"bytes/rank", Align::right},
               {"bytes/step on average", Align::right}},
              {}};
  for (const BackgroundFacts& b : facts.background) {
    const double then = real(b.bytes) / std::max<std::uint32_t>(1, b.steps);
    table.rows.push_back({b.group, humane_count(real(b.clients)),
                          std::to_string(b.steps) + " of " + std::to_string(b.cycle),
                          humane_bytes(then),
                          humane_bytes(then / real(std::max<std::uint64_t>(1, b.clients))),
                          humane_bytes(real(b.bytes) / b.cycle)});
  }
  return render(table);
}

// "interleaved, 8 stages of 2 chunks, 64 micro-batches; bubble 5.47 % of the compute, ..."
std::string pipeline_line(const Pipeline& p) {
  std::string text = p.schedule + ", " + humane_count(p.stages, "stage");
  if (p.chunks > 1) text += " of " + humane_count(p.chunks, "chunk");
  text += ", " + humane_count(p.micro_batches, "micro-batch", "micro-batches");
  if (const auto bubble = pipeline_bubble(p))
    text += "; bubble " + humane_percent(*bubble) + " of the compute where stages take alike";
  return text;
}

std::string flops_line(const PlanFacts& facts) {
  std::string text = humane_count(facts.flops * 1e-12) + " TFLOP per step";
  if (facts.mfu_at_most)
    text += ", MFU at most " + humane_percent(*facts.mfu_at_most) +
            (facts.jitters ? " without jitter" : "");
  return text;
}

std::string memory_line(const PlanFacts& facts) {
  const GpuMemory& m = *facts.memory;
  std::string text = humane_bytes(m.total());
  if (facts.device_memory_bytes > 0) text += " of " + humane_bytes(facts.device_memory_bytes);
  text += " on the fullest GPU: weights " + humane_bytes(m.weights) + ", gradients " +
          humane_bytes(m.gradients) + ", optimizer " + humane_bytes(m.optimizer);
  return text + (m.activations > 0 ? ", activations " + humane_bytes(m.activations)
                                   : "; activations are not counted");
}

std::vector<Fact> closing_facts(const PlanFacts& facts) {
  const TrafficPlan& t = facts.traffic;
  std::string nic = humane_bytes(real(t.busiest_nic_bytes));
  if (facts.nic_bps > 0) {
    nic += ", " + humane_seconds(real(t.busiest_nic_bytes) * 8 / facts.nic_bps) + " at " +
           humane_bits(facts.nic_bps);
  }
  std::vector<Fact> list{
      {"between nodes", humane_bytes(real(t.wire_bytes)) + " in " +
                            humane_count(real(t.wire_messages), "message") + ", " +
                            humane_count(real(t.pairs.size()), "NIC pair")},
      {"inside nodes", humane_bytes(real(t.intra_bytes)) + " in " +
                           humane_count(real(t.intra_messages), "message")},
      {"busiest NIC", nic}};
  if (const std::string nics = nic_line(nic_traffic(t.pairs), facts.nics_per_node); !nics.empty())
    list.push_back({"per NIC", nics});
  for (Fact& fact : network_facts(t.network)) list.push_back(std::move(fact));
  if (facts.tensors) list.push_back({"tensors", tensor_line(*facts.tensors)});
  if (facts.compression) list.push_back({"compression", compression_line(*facts.compression)});
  list.push_back({"compute", humane_seconds(t.compute_seconds) + ", the longest of any " +
                                 (facts.jobs.empty() ? "role" : "job's role")});
  if (facts.pipeline) list.push_back({"pipeline", pipeline_line(*facts.pipeline)});
  list.push_back({"step at least", humane_seconds(t.step_seconds_at_least) +
                                       (facts.jitters ? " without jitter" : "")});
  if (facts.parameters > 0)
    list.push_back({"model", humane_count(real(facts.parameters), "parameter")});
  if (facts.memory) list.push_back({"memory", memory_line(facts)});
  if (facts.flops > 0) list.push_back({"model FLOPs", flops_line(facts)});
  list.push_back(
      {"least dilation", "depends on the hosts: 'ghostrank run' measures it before it starts"});
  return list;
}

// That of the jobs without the traffic beside them, for whose steps nobody waits.
TrafficPlan traffic_of_jobs(JobSpec spec) {
  spec.jobs.pop_back();
  spec.background.clear();
  return plan_traffic(spec, plan_workload(spec));
}

}  // namespace

PlanFacts plan_facts(const LoadedJob& job, const Workload& workload) {
  PlanFacts facts;
  facts.job = job.spec.file;
  facts.model = job.spec.sources.contains("trace") ? "a trace" : job.spec.model_name;
  if (!job.spec.jobs.empty())
    facts.model = humane_count(
        static_cast<double>(job.spec.jobs.size() - has_background_beside(job.spec)), "job");
  facts.jobs = job_facts(job.spec);
  facts.ranks = workload.ranks - workload.servers;
  facts.nodes = job.spec.cluster.nodes;
  facts.storage_nodes = job.spec.cluster.storage_nodes;
  facts.nics_per_node = job.spec.cluster.nics_per_node;
  facts.nic_bps = job.spec.cluster.nic.rate_bps;
  facts.opening = opening_iterations(workload);
  facts.cycle = workload.order.empty() ? 1 : workload.cycle;
  facts.jitters = job.spec.run.jitter > 0;
  for (const std::uint16_t kind : workload.services)
    facts.background.push_back(service_facts(workload, kind));
  const SteadyProgram steady = steady_program(workload);
  facts.shown = steady.iterations;
  facts.streams = stream_facts(workload, static_cast<std::size_t>(steady.number));
  facts.groups = group_facts(workload);
  const std::optional<CompressionSpec>& compression = job.spec.compression;
  facts.mean = job.spec.jobs.empty() && compression && compression->method->measure &&
               steps_differ(job.spec);
  facts.traffic = facts.mean ? mean_traffic(job.spec, workload) : plan_traffic(job.spec, workload);
  if (has_background_beside(job.spec)) {
    const TrafficPlan jobs = traffic_of_jobs(job.spec);
    facts.traffic.compute_seconds = jobs.compute_seconds;
    facts.traffic.step_seconds_at_least = jobs.step_seconds_at_least;
  }
  if (job.spec.jobs.empty()) {  // of several jobs each has its own
    const RunSpec& run = job.spec.run;
    // Densities may change from one to the next: a run tells that of its first measured iteration.
    facts.tensors = tensor_use(job.spec, workload, static_cast<std::uint32_t>(run.warmup));
    facts.compression =
        steps_differ(job.spec)
            ? compression_use(job.spec, workload, static_cast<std::uint32_t>(run.warmup), 0,
                              static_cast<std::uint32_t>(run.iterations))
            : compression_use(job.spec, workload, static_cast<std::uint32_t>(steady.number));
  }
  if (!job.spec.program && job.spec.model) facts.parameters = job.spec.model->parameters();
  facts.flops = workload.flops_per_iteration;
  facts.peak_flops = matmul_peak_tflops(job.spec.device, job.spec.precision) * 1e12;
  facts.pipeline = pipeline_of(job.spec);
  if (job.spec.model && !job.spec.program) facts.memory = gpu_memory(job.spec);
  facts.device_memory_bytes = job.spec.device.memory_bytes;
  facts.notes = notes_of(job.spec, workload);
  if (facts.mean)
    facts.notes.emplace_back(
        "payloads differ from step to step: traffic is the mean of the measured iterations, "
        "programs are those of the last one");
  if (job.spec.compression && job.spec.compression->adapts)
    facts.notes.emplace_back(
        "compression.budget_ms: traffic is that of compression.least_ratio; steps send as much "
        "more as the network carries in time");
  if (job.spec.events) facts.notes.emplace_back("events: times here are without them");
  if (!job.spec.slice.empty())
    facts.notes.push_back(
        "scale.mode: slice: a run plays " + std::to_string(job.spec.slice.size()) +
        " of these nodes, by at most as many processes; traffic is that of the whole job");
  for (std::string& note : estimate_notes(facts.traffic)) facts.notes.push_back(std::move(note));
  if (facts.traffic.sends_packets || job.spec.network_switch.outside())
    for (std::string& note : short_time_outs(job.spec, workload, Cluster(job.spec, workload, 1)))
      facts.notes.push_back(std::move(note));
  const double possible = facts.peak_flops * facts.ranks * facts.traffic.step_seconds_at_least;
  if (facts.flops > 0 && possible > 0) facts.mfu_at_most = facts.flops / possible;
  return facts;
}

std::string plan_text(const PlanFacts& facts, const Paint& paint) {
  std::string text =
      paint.bold("plan of " + facts.job) + ": " +
      (facts.model.empty() ? "" : printable(facts.model) + ", ") +
      humane_count(facts.ranks, "rank") + " on " + humane_count(facts.nodes, "node") +
      (facts.storage_nodes > 0 ? " beside " + humane_count(facts.storage_nodes, "storage node")
                               : "") +
      (facts.mean ? "; the mean of the measured iterations"
                  : "; one iteration of the steady state") +
      ", nothing was sent\n";
  if (!facts.mean && facts.cycle > 1) {
    text += "from iteration " + std::to_string(facts.opening) + " on, every " +
            std::to_string(facts.cycle) + " iterations are alike; shown is the step of " +
            std::to_string(facts.shown) + " of them\n";
  } else if (!facts.mean && facts.opening > 0) {
    text += "the steady state begins with iteration " + std::to_string(facts.opening) +
            "; before, the programs differ\n";
  }
  if (!facts.jobs.empty()) text += "\n" + render(facts.jobs);
  text += "\n" + programs_table(facts) + "\n" + groups_table(facts);
  if (!facts.traffic.collectives.empty()) text += "\n" + traffic_table(facts);
  if (!facts.background.empty()) text += "\n" + background_table(facts);
  if (!facts.traffic.pairs.empty()) text += "\n" + pairs_table(facts);
  text += "\n" + render(closing_facts(facts));
  if (!facts.notes.empty()) text += "\nnotes\n";
  for (const std::string& note : facts.notes) text += "  - " + note + "\n";
  return text;
}

void show_plan(const LoadedJob& job, const Workload& workload, const PlanOutput& output) {
  const PlanFacts facts = plan_facts(job, workload);
  if (!output.json.empty()) write_whole(output.json, plan_json(facts));
  if (!output.csv.empty())
    write_whole(output.csv, pairs_csv(facts.traffic.pairs, facts.nics_per_node));
  if (!output.quiet && output.json != "-" && output.csv != "-")
    std::fputs(plan_text(facts, paint_for(STDOUT_FILENO)).c_str(), stdout);
}

}  // namespace ghostrank
