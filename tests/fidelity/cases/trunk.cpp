// A job over a trunk that several connections share, in real time on links that the kernel shapes
// and in virtual time on the same topology: four hosts on two leaves whose trunk is as fast as one
// of them. Neighbours in the ring are on different leaves, so two messages always share the trunk
// in each direction.
//
//   h0, h2 ── leaf ══ trunk ══ leaf ── h1, h3
#include <fstream>

#include "tests/fidelity/cases.h"
#include "tests/fidelity/peers.h"

namespace ghostrank::fidelity {
namespace {

using testing::Lab;

constexpr double kMost = 0.03;
constexpr int kIterations = 4, kWarmup = 2;

// 6 MB of gradients in buckets of 1 MB, some under the backward.
constexpr char kJob[] =
    "schema: ghostrank/job/1\n"
    "model: {kind: layers, name: trunk, layers: [\n"
    "  {parameters: [500000], forward_us: 10000, backward_us: 20000},\n"
    "  {parameters: [500000], forward_us: 10000, backward_us: 20000},\n"
    "  {parameters: [500000], forward_us: 10000, backward_us: 20000}], optimizer_us: 1000}\n"
    "parallel: {framework: ddp, bucket_cap_mb: 1}\n"
    "collectives: {library: gloo}\n";

std::string job_on(const std::string& cluster, const std::string& fabric) {
  return std::string(kJob) + "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1, " + cluster +
         "}\nfabric: {kind: " + fabric +
         "}\nscale: {dilation: 1}\nrun: {iterations: " + std::to_string(kIterations) +
         ", warmup: " + std::to_string(kWarmup) + ", probe_ms: 0}\n";
}

json played(Lab& lab, int processes, const std::string& job) {
  std::ofstream(lab.file("trunk.yaml")) << job;
  return play(lab, processes, "run " + lab.file("trunk.yaml"));
}

Bytes ledger_of(const json& result) {
  Bytes bytes;
  const auto node = [](const std::string& nic) { return std::stoi(nic.substr(1)); };
  for (const json& pair : result["traffic"]["pairs"])
    bytes[{node(pair["src"]), node(pair["dst"])}] += pair["bytes"].get<double>();
  return bytes;
}

// Bytes that every host has sent, as its port of the switch counts them.
std::vector<double> sent_by_hosts(const Lab& lab) {
  std::vector<double> sent;
  for (int h = 0; h < lab.hosts(); ++h) sent.push_back(static_cast<double>(lab.sent_by(h)));
  return sent;
}

// The ports must have carried the payload and no more than headers, acknowledgements of what the
// host received, and what was sent again.
void hold_counters(Findings& findings, const std::string& what, const Bytes& ledger,
                   const std::vector<double>& sent, double again) {
  constexpr double kFrame = 1514, kControl = 256e3;  // control: meeting, reports
  constexpr double kAcks = 66.0 / 1448;              // at most one for each segment
  for (int h = 0; h < std::ssize(sent); ++h) {
    double out = 0, in = 0;
    for (const auto& [pair, bytes] : ledger) {
      if (pair.first == h) out += bytes * (kIterations + kWarmup);
      if (pair.second == h) in += bytes * (kIterations + kWarmup);
    }
    const double most = out / kGoodput + in * kAcks + again * kFrame + kControl;
    if (sent[static_cast<std::size_t>(h)] >= out && sent[static_cast<std::size_t>(h)] <= most)
      continue;
    findings.misses.push_back(what + ": host " + std::to_string(h) + " has sent " +
                              std::to_string(sent[static_cast<std::size_t>(h)]) +
                              " bytes, which are not from " + std::to_string(out) + " to " +
                              std::to_string(most));
  }
}

}  // namespace

Findings compare_trunk(const Options& options) {
  Findings out;
  Lab lab;
  lab.keep_windows();
  lab.add_leaf();
  std::vector<Row> rows{{"links and trunk", "real step", "segments sent again", "`loggp`", "",
                         "`flow`", "", "`packet`", "", "faithful"}};
  for (const double rate : {kSlow, 2 * kSlow}) {
    const std::string what = "a trunk of " + megabits(rate);
    lab.shape({rate, kBurst});
    const std::vector<double> before = sent_by_hosts(lab);
    const auto again_before = lab.segments_sent_again();
    const json real = played(
        lab, 4,
        job_on("nic: {rate: unlimited, latency_us: " + std::to_string(kLatency_us) + "}", "ofi"));
    const auto again = static_cast<double>(lab.segments_sent_again() - again_before);
    std::vector<double> sent = sent_by_hosts(lab);
    for (std::size_t h = 0; h < sent.size(); ++h) sent[h] -= before[h];
    const Bytes ledger = ledger_of(real);
    hold_counters(out, what, ledger, sent, again);
    const double step = real["step_time"]["median"];
    Row row{megabits(rate), milliseconds(step), std::to_string(static_cast<int>(again))};
    const std::string cluster =
        "nic: {rate: " + std::to_string(rate * kGoodput * 1e-6) +
        "Mbps, latency_us: " + std::to_string(kLatency_us) +
        "}, topology: {kind: leaf_spine, leaves: 2, spines: 1, oversubscription: 2, placement: "
        "spread}";
    for (const std::string network : {"loggp", "flow", "packet"}) {
      // TCP's own time-outs are far above the time in the kernel's queues.
      const std::string queues = ", queues: {congestion_control: none, retransmit_us: 1000000}";
      const json modelled = played(
          lab, 1,
          job_on(cluster, "virtual, network: " + network + (network == "packet" ? queues : "")));
      hold_bytes(out, what + ", " + network, ledger_of(modelled), ledger);
      const double in_model = modelled["step_time"]["median"];
      row.push_back(milliseconds(in_model));
      row.push_back(percent(hold(out, what + ", " + network, in_model, step, kMost)));
    }
    row.push_back(real["fidelity"]["faithful"].get<bool>() ? "yes" : "no");
    rows.push_back(row);
    if (options.quick) break;
  }
  out.markdown =
      "Four ranks of a DDP job over gloo's schedules, two on each leaf, one process a host; "
      "every "
      "link and the trunk shaped by htb, so that leaves are oversubscribed 2:1.\n\n" +
      markdown_table(rows);
  return out;
}

}  // namespace ghostrank::fidelity
