// See run_report.h.
#include "tools/report/run_report.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/load/load.h"
#include "tools/report/jobs_report.h"
#include "tools/report/result_json.h"
#include "tools/report/run_facts.h"
#include "tools/text/csv.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

std::string fabric_line(const LoadedJob& job, const Result& result) {
  std::set<std::string> transports;
  for (const HostReport& host : result.hosts) {
    transports.insert(host.provider == host.transport ? host.provider
                                                      : host.provider + ", " + host.transport);
  }
  const std::string through = join(std::vector(transports.begin(), transports.end()), ", ");
  switch (job.spec.fabric.kind) {
    case FabricKind::memory:
      return "memory";
    case FabricKind::virtual_time:
      return "virtual: a modelled network in virtual time";
    default:
      return std::string(name_of(job.spec.fabric.kind)) + ": " + through;
  }
}

std::string dilation_line(const LoadedJob& job, const Result& result) {
  if (job.spec.fabric.kind == FabricKind::virtual_time) return "none: virtual time";
  std::string text = significant(result.dilation);
  if (job.spec.dilation == 0) text += " (auto)";
  if (result.dilation == 1) return text + ": emulated time is wall time";
  return text + ": 1 s of the emulated cluster takes " + humane_seconds(result.dilation) + " here";
}

std::string size_line(const LoadedJob& job, const Result& result) {
  const ClusterSpec& cluster = job.spec.cluster;
  const auto processes = static_cast<double>(std::max<std::size_t>(result.hosts.size(), 1));
  const std::string played = result.slice ? ", " + humane_count(result.slice->nodes_played) +
                                                " of " + humane_count(result.slice->of_nodes) +
                                                " nodes (" + result.slice->nodes + ") played by "
                                          : ", played by ";
  return humane_count(result.ranks, "rank") + " on " +
         humane_count(cluster.nodes, "emulated node") + " (" +
         humane_count(cluster.gpus_per_node, "GPU") + ", " +
         humane_count(cluster.nics_per_node, "NIC") + " each)" + played +
         humane_count(processes, "process", "processes");
}

void add_job_facts(std::vector<Fact>& facts, const LoadedJob& job, const Result& result) {
  facts.push_back({"job", job.spec.file});
  for (Fact& fact : job_facts(job.spec)) facts.push_back(std::move(fact));
  if (job.spec.jobs.empty()) facts.push_back({"model", model_text(job.spec)});
  facts.push_back({"ranks", size_line(job, result)});
  facts.push_back({"fabric", fabric_line(job, result)});
  facts.push_back({"dilation", dilation_line(job, result)});
  facts.push_back({"wall time", humane_seconds(result.wall_seconds)});
}

bool has_wrong_sums(const Result& result) {
  return result.verify && result.verify->wrong_elements > 0;
}

}  // namespace

std::string verdict(const Result& result) {
  const Fidelity& f = result.fidelity;
  const std::string valid =
      f.valid_for.empty()
          ? ""
          : "; valid for " + join(f.valid_for, ", ") +
                (result.slice ? " of nodes " + result.slice->nodes + " beside modelled ones" : "");
  if (!result.interrupted.empty()) {
    std::string played = std::to_string(static_cast<std::uint64_t>(iterations_played(result)));
    if (result.iterations_asked > 0) played += " of " + std::to_string(result.iterations_asked);
    if (!result.jobs.empty()) {  // each plays on until all have enough
      played.clear();
      for (const JobReport& job : result.jobs)
        played +=
            (played.empty() ? "" : ", ") + job.name + " " + std::to_string(job.iterations.size());
    }
    return "INCOMPLETE: " + played + " iterations; " + result.interrupted;
  }
  if (has_wrong_sums(result)) {
    return "WRONG: verification found " +
           humane_count(static_cast<double>(result.verify->wrong_elements)) + " wrong elements";
  }
  if (f.modelled) return kModelledVerdict + valid;
  if (f.faithful) return kFaithfulVerdict + valid;
  return "NOT faithful: " + (f.reason.empty() ? "no reason was recorded" : f.reason) + valid;
}

std::string report(const LoadedJob& job, const Result& result, const Paint& paint) {
  const std::string first = verdict(result);
  const bool good = result.interrupted.empty() && !has_wrong_sums(result) &&
                    (result.fidelity.modelled || result.fidelity.faithful);
  std::vector<Fact> head, times = time_facts(result), traffic;
  add_job_facts(head, job, result);
  for (Fact& fact : event_facts(result)) times.push_back(std::move(fact));
  if (!result.iterations.empty()) {
    traffic = traffic_facts(result);
    for (Fact& fact : fidelity_facts(result)) traffic.push_back(std::move(fact));
    if (const std::string hash = result_hash(result); !hash.empty())
      traffic.push_back({"hash", hash});
  }
  std::string text =
      (good ? paint.good(first) : paint.bad(first)) + "\n\n" + render(head) + "\n" + render(times);
  if (!result.jobs.empty()) text += render(jobs_table(result));
  if (!result.collectives.empty()) text += "\n" + render(collectives_table(result));
  if (!traffic.empty()) text += "\n" + render(traffic);
  if (!result.notes.empty()) text += "\nnotes\n";
  for (const std::string& note : result.notes) text += "  - " + note + "\n";
  return text;
}

std::string announcement(const LoadedJob& job, const Result& started, const Paint& paint) {
  if (job.spec.fabric.kind == FabricKind::virtual_time)
    return "";  // virtual time does not depend on this host's speed
  const Capacity& c = started.capacity;
  std::vector<Fact> facts;
  std::string can, needs;
  const auto add = [](std::string& text, const std::string& part) {
    text += (text.empty() ? "" : ", ") + part;
  };
  if (c.wire_bytes_per_second > 0) add(can, humane_bits(c.wire_bytes_per_second * 8));
  if (c.seconds_per_message > 0)
    add(can, humane_count(1 / c.seconds_per_message, "message") + "/s");
  if (c.wire_messages > 0) {
    add(needs, humane_bytes(c.wire_bytes) + " in " + humane_count(c.wire_messages, "message") +
                   " on the wire");
  }
  if (c.local_messages > 0) {
    add(needs, humane_count(c.local_messages, "message") + " between its own ranks");
  }
  if (!can.empty()) facts.push_back({"this host can source", can});
  if (!needs.empty()) {
    facts.push_back({"the busiest process needs",
                     needs + " in a step of at least " + humane_seconds(c.step_seconds_at_least) +
                         (job.spec.run.jitter > 0 ? " without jitter" : "")});
  }
  if (c.cap_dilation > 0)
    facts.push_back({"most from an interface", humane_bits(job.spec.max_nic_bps) +
                                                   " (safety.max_rate_per_nic): dilation " +
                                                   significant(c.cap_dilation) + " or more"});
  facts.push_back({"least dilation", significant(c.dilation_needed)});
  facts.push_back({"dilation", dilation_line(job, started)});
  return paint.dim(render(facts)) + "\n";
}

std::string iterations_csv(const Result& result) {
  std::string text =
      "job,provider,transport,ranks,dilation,iteration,seconds,compute_seconds,"
      "exposed_comm_seconds,bubble_seconds,faithful\n";
  const HostReport host = result.hosts.empty() ? HostReport{} : result.hosts.front();
  char row[256];
  const bool sampled = result.open_end && !result.open_end->numbers.empty();
  for (std::size_t i = 0; i < result.iterations.size(); ++i) {
    const IterationReport& it = result.iterations[i];
    std::snprintf(
        row, sizeof row, ",%d,%.10g,%zu,%.10g,%.10g,%.10g,%.10g,%s\n", result.ranks,
        result.dilation, sampled ? result.open_end->numbers[i] : i, it.seconds, it.compute_seconds,
        it.exposed_comm_seconds, it.bubble_seconds,
        result.fidelity.modelled ? "modelled" : (result.fidelity.faithful ? "true" : "false"));
    text += csv_cell(result.job_name) + "," + host.provider + "," + host.transport + row;
  }
  return text;
}

}  // namespace ghostrank
