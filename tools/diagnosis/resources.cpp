// What a step needs of NICs, links and servers, and what other jobs on the fabric cost it.
#include <algorithm>
#include <charconv>

#include "tools/diagnosis/causes.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

// The busiest direction of all NICs of ranks, or of helpers; null: none has a known rate.
const NicUse* busiest_of(const StepFigures& step, bool helper) {
  const NicUse* busiest = nullptr;
  for (const NicUse& use : step.nics)
    if (use.helper == helper && use.busy && (!busiest || *use.busy > *busiest->busy))
      busiest = &use;
  return busiest;
}

double mean_bytes(const StepFigures& step, const NicUse& like) {
  double bytes = 0, count = 0;
  for (const NicUse& use : step.nics) {
    if (use.helper != like.helper || use.sends != like.sends || use.bytes <= 0) continue;
    bytes += use.bytes;
    ++count;
  }
  return count > 0 ? bytes / count : 0;
}

void find_nic(const StepFigures& step, bool helper, std::vector<Cause>& findings) {
  const NicUse* const use = busiest_of(step, helper);
  if (!use) return;
  const std::string name = nic_name(use->nic, step.run.result.nics_per_node);
  Cause finding{helper ? "server_nic" : "nic",
                (helper ? "busiest NIC of servers, " : "busiest NIC, ") + name,
                0,
                false,
                {},
                ""};
  finding.figures.push_back((use->sends ? "sends " : "receives ") + humane_bytes(use->bytes) +
                            " at " + humane_bits(use->bps) + ": busy " +
                            humane_percent(*use->busy) + " of the step");
  constexpr double kUneven = 1.2;
  const double mean = mean_bytes(step, *use);
  if (mean > 0 && use->bytes >= kUneven * mean)
    finding.figures.push_back("that is " + significant(use->bytes / mean, 3) +
                              " times the mean of its kind");
  finding.remedy = helper ? "more servers (servers.count) or NICs (servers.nics), or faster ones"
                          : "fewer bytes (compression, other parallelism), or faster NICs";
  add_resource(step, std::move(finding), *use->busy, findings);
}

void find_link(const StepFigures& step, std::vector<Cause>& findings) {
  const std::optional<NetworkReport>& network = step.run.result.network;
  if (!network || network->hottest.empty()) return;
  const LinkLoad& link = network->hottest.front();
  Cause finding{"link", "hottest link, " + link.link, 0, false, {}, ""};
  finding.figures.push_back("carries " + humane_bytes(link.bytes) + " a step, busy " +
                            humane_percent(link.utilisation) + " of the time");
  for (const LinkTier& tier : network->tiers) {
    std::string text = tier.name + ": " + humane_count(tier.links, "link") + ", busy " +
                       humane_percent(tier.utilisation_mean) + " on average, at most " +
                       humane_percent(tier.utilisation_max);
    if (tier.mean_wait_s.value_or(0) > 0)
      text += ", waits " + humane_seconds(*tier.mean_wait_s) + " on average";
    finding.figures.push_back(std::move(text));
  }
  finding.remedy =
      "more or faster links between switches, less oversubscription, or another "
      "cluster.topology.routing or placement";
  if (network->routing == "ecmp")
    finding.remedy +=
        "; where a few links are hot and others are not, several queue pairs "
        "(fabric.qps_per_connection)";
  add_resource(step, std::move(finding), link.utilisation, findings);
}

// Whether "n8" is a node behind those of ranks and servers.
bool is_modelled_switch(const StepFigures& step, const std::string& name) {
  int node = 0;
  const char* const end = name.data() + name.size();
  if (name.size() < 2 || name[0] != 'n') return false;
  const auto read = std::from_chars(name.data() + 1, end, node);
  return read.ec == std::errc() && read.ptr == end && node >= step.setting.all_nodes;
}

}  // namespace

void add_resource(const StepFigures& step, Cause finding, double busy,
                  std::vector<Cause>& findings) {
  const double seconds = busy * step.seconds;
  finding.at_most = busy < kSaturated;
  finding.seconds = finding.at_most ? std::min(seconds, step.waiting()) : seconds;
  if (step.matters(finding.seconds)) findings.push_back(std::move(finding));
}

void find_network(const StepFigures& step, std::vector<Cause>& findings) {
  find_nic(step, false, findings);
  find_link(step, findings);
}

void find_servers(const StepFigures& step, std::vector<Cause>& findings) {
  find_nic(step, true, findings);
  const std::vector<ServerReport>& servers = step.run.result.servers;
  if (servers.empty()) return;
  const ServerReport& busiest = *std::max_element(
      servers.begin(), servers.end(), [](const auto& a, const auto& b) { return a.busy < b.busy; });
  double mean = 0;
  for (const ServerReport& s : servers) mean += s.busy / static_cast<double>(servers.size());
  const bool is_switch = is_modelled_switch(step, busiest.name);
  Cause finding{
      is_switch ? "modelled_switch" : "server_cores",
      (is_switch ? "busiest modelled switch, " : "cores of the busiest server, ") + busiest.name,
      0,
      false,
      {"busy " + humane_percent(busiest.busy) + " of the time, the mean of " +
       humane_count(static_cast<double>(servers.size()), "machine") + " " + humane_percent(mean)},
      is_switch ? "fewer or larger packets, or a faster switch"
                : "more servers or cores (servers.count, servers.cores), or faster "
                  "memory (servers.memory_GBps)"};
  add_resource(step, std::move(finding), busiest.busy, findings);
}

void find_other_jobs(const StepFigures& step, std::vector<Cause>& findings) {
  for (const JobReport& job : step.run.result.jobs) {
    const double alone = mean_seconds(job.alone), beside = mean_seconds(job.iterations);
    if (alone <= 0 || beside - alone < kLeastShare * beside) continue;
    findings.push_back({"other_jobs",
                        "job " + job.name + ": the others on the fabric",
                        beside - alone,
                        false,
                        {"its mean step takes " + humane_seconds(alone) + " alone and " +
                         humane_seconds(beside) + " beside them, x " + significant(beside / alone)},
                        "other nodes for the jobs, or a fabric with less oversubscription",
                        beside});
  }
}

}  // namespace ghostrank
