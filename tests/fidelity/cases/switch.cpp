// SwitchML on real packets: the nodes are hosts of a lab, a switch of ghostrank's that the run
// starts joins them, and their NICs pace the packets so that links are the bottleneck. Beside what
// the links allow, beside a ring whose messages pass the same switch as packets, and beside the
// same jobs in virtual time, which lose the same packets.
//
// Links are so slow that two cores carry the packets: kPackets of the largest a second leave all
// nodes together. Up to eight nodes and a switch wake up for single packets on these cores, so they
// have real-time priority where that is permitted.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sched.h>

#include "tests/fidelity/cases.h"
#include "tests/fidelity/peers.h"

namespace ghostrank::fidelity {
namespace {

using testing::Lab;

constexpr double kPackets = 10'000;
// Bytes of a packet beside its elements: UDP, IP, Ethernet with preamble, checksum and gap; the
// head of SwitchML's packets, and of those of other functions than all-reduce
// (switch/wire/switchml.h).
constexpr double kFrame = 66, kHead = 10, kOtherHead = 12;
constexpr double kMtuPayload = 1472;
constexpr int kSlice = 64 << 10, kLargest = 256;  // bytes of a ring's slice; elements of a packet
constexpr int kRepeats = 2;                       // of a run that was not faithful

struct Job {
  int nodes;
  std::vector<int> layers;  // parameters, float32
  std::string framework = "ddp", scheme = "switchml";
  int elements = kLargest, slots = 32, timeout_us = 50'000;
  double loss = 0;
  int warmup = 1, iterations = 2;

  double packet() const { return kFrame + kHead + 4 * elements; }  // bytes, of an all-reduce
  double rate() const { return kPackets / nodes * 8 * packet(); }
};

// `real`: the keys of a real switch; empty: in virtual time.
std::string text(const Job& job, const std::string& fabric, const std::string& real) {
  std::string layers;
  for (const int parameters : job.layers)
    layers += "    - {parameters: [" + std::to_string(parameters) +
              "], forward_us: 300, backward_us: 600}\n";
  const std::string& scheme = job.scheme;
  std::string keys = real;
  if (scheme != "ring")
    keys += "slots: " + std::to_string(job.slots) +
            ", timeout_us: " + std::to_string(job.timeout_us) +
            ", packet_elements: " + std::to_string(job.elements);
  const std::string loss = job.loss > 0 ? ", loss: " + std::to_string(job.loss) : "";
  return "schema: ghostrank/job/1\n"
         "model:\n  kind: layers\n  name: switched\n  dtype: float32\n  layers:\n" +
         layers + "cluster: {nodes: " + std::to_string(job.nodes) +
         ", gpus_per_node: 1, nics_per_node: 1, nic: {rate: " + std::to_string(job.rate() * 1e-6) +
         "Mbps, latency_us: 20}}\nparallel: {framework: " + job.framework +
         "}\ncollectives: {allreduce: " + scheme + ", reduce_scatter: " + scheme +
         ", all_gather: " + scheme + ", slice: " + std::to_string(kSlice) + "}\n" +
         (keys.empty() ? "" : "switch: {" + keys + "}\n") + "fabric: {kind: " + fabric +
         ", framing: udp, packets: {mtu: 1500" + loss +
         "}}\nscale: {dilation: 1}\nrun: {warmup: " + std::to_string(job.warmup) +
         ", iterations: " + std::to_string(job.iterations) + ", probe_ms: 0}\n";
}

json played(Lab& lab, const std::string& job) {
  const std::string file = lab.file("switched.yaml");
  std::ofstream(file) << job;
  return play(lab, 1, "run " + file);
}

// This process and those that it starts have real-time priority as long as this lives.
class RealTimePriority {
 public:
  RealTimePriority() {
    const sched_param some{.sched_priority = 10};
    permitted_ = sched_setscheduler(0, SCHED_RR, &some) == 0;
  }
  ~RealTimePriority() {
    const sched_param none{};
    if (permitted_) sched_setscheduler(0, SCHED_OTHER, &none);
  }
  RealTimePriority(const RealTimePriority&) = delete;
  RealTimePriority& operator=(const RealTimePriority&) = delete;
  bool permitted() const { return permitted_; }

 private:
  bool permitted_;
};

bool faithful(const json& result) { return result["fidelity"]["faithful"].get<bool>(); }

json in_real_time(Lab& lab, const std::string& target, const Job& job) {
  const std::string on_hosts =
      text(job, "packets, colocated: wire, namespaces: '" + lab.pattern() + "'",
           "target: " + target + ", address: 10.77.0.200, namespace: " + lab.switch_space() +
               ", ports: 'port{node}', ");
  json result = played(lab, on_hosts);
  for (int more = 0; more < kRepeats && !faithful(result); ++more) result = played(lab, on_hosts);
  return result;
}

json in_virtual_time(Lab& lab, const Job& job) { return played(lab, text(job, "virtual", "")); }

double step_of(const json& result) { return result["step_time"]["median"]; }
double mean_step_of(const json& result) { return result["step_time"]["mean"]; }
double compute_of(const json& result) { return result["iterations"].back()["compute_seconds"]; }

// ---- Seconds that the busier direction of a node's link needs ----

double chunks_of(const Job& job, double bytes) { return std::ceil(bytes / (4 * job.elements)); }

// Packets without a chunk, which agree on the first chunks' exponents.
double ahead_of(const Job& job, double bytes) {
  return std::min<double>(job.slots, chunks_of(job, bytes));
}

// An all-reduce around a ring: 2 (n - 1) messages of bytes / n leave each node, in slices.
double ring_seconds(const Job& job, double bytes) {
  double wire = 0;
  for (double left = bytes / job.nodes; left > 0; left -= kSlice) {
    const double slice = std::min<double>(kSlice, left);
    wire += slice + std::ceil(slice / kMtuPayload) * kFrame;
  }
  return 2 * (job.nodes - 1) * wire * 8 / job.rate();
}

// An all-reduce by SwitchML, but for the packets without a chunk.
double sum_seconds(const Job& job, double bytes) {
  return chunks_of(job, bytes) * job.packet() * 8 / job.rate();
}

// A call with all its packets.
double call_seconds(const Job& job, const std::string& op, double bytes) {
  const double chunks = chunks_of(job, bytes), ahead = ahead_of(job, bytes), n = job.nodes;
  const double credit = kFrame + kOtherHead, full = credit + 4 * job.elements;
  double wire = 0;
  if (op == "allreduce") wire = (chunks + ahead) * job.packet();
  if (op == "reduce_scatter") wire = chunks * full + ahead * (full / n + credit * (n - 1) / n);
  if (op == "all_gather") wire = chunks * (full * (n - 1) / n + credit / n);
  return wire * 8 / job.rate();
}

// ---- Tables ----

std::string formatted(const char* how, double value) {
  char text[64];
  std::snprintf(text, sizeof text, how, value);
  return text;
}
std::string share(double value) { return formatted("%.1f %%", value * 100); }
std::string count_of(const json& number) { return std::to_string(number.get<int>()); }
std::string yes(bool holds) { return holds ? "yes" : "no"; }

struct Place {
  std::string target;
  int nodes;
};

// The places whose target is built.
std::vector<Place> built(std::vector<Place> places) {
  const std::vector<std::string> targets = testing::targets();
  std::erase_if(places,
                [&](const Place& place) { return std::ranges::count(targets, place.target) == 0; });
  return places;
}

std::string name_of(const Place& place) {
  return place.target + ", " + std::to_string(place.nodes) + " nodes";
}

// The same job several times.
struct Rounds {
  std::vector<double> steps;
  double compute = 0;
  int faithful = 0;

  void add(const json& result) {
    steps.push_back(step_of(result));
    compute = compute_of(result);
    faithful += fidelity::faithful(result);
  }
  double step() const { return median(steps); }
};

// One all-reduce of 2 MiB a step.
std::string compare_with_wire(Findings& out, int rounds) {
  constexpr double kLeast = 0.95, kSpread = 0.03, kOff = 0.05, kBytes = 2 << 20;
  std::vector<Row> rows{{"switch", "nodes", "links", "SwitchML's step", "goodput", "ring's step",
                         "goodput", "ring / SwitchML", "by the wire", "", "faithful"}};
  std::map<std::string, std::vector<double>> goodputs;
  for (const Place& place :
       built({{"compiled", 2}, {"compiled", 4}, {"compiled", 8}, {"dpdk", 4}})) {
    Lab lab(place.nodes);
    lab.leave_bridge();
    const Job job{.nodes = place.nodes, .layers = {static_cast<int>(kBytes / 4)}};
    Job around = job;
    around.scheme = "ring";
    Rounds sums, rings;
    for (int round = 0; round < rounds; ++round) {
      sums.add(in_real_time(lab, place.target, job));
      rings.add(in_real_time(lab, place.target, around));
    }
    const double sum = sum_seconds(job, kBytes), ring = ring_seconds(job, kBytes);
    const double goodput = sum / (sums.step() - sums.compute);
    if (!(goodput >= kLeast))
      out.misses.push_back(name_of(place) + ": SwitchML's goodput is " + share(goodput) +
                           " of what the wire allows, at least " + share(kLeast) + " is wanted");
    goodputs[place.target].push_back(goodput);
    const double ratio = rings.step() / sums.step();
    const double by_wire = (ring + rings.compute) / (sum + sums.compute);
    rows.push_back(
        {place.target, std::to_string(place.nodes), megabits(job.rate()), milliseconds(sums.step()),
         share(goodput), milliseconds(rings.step()), share(ring / (rings.step() - rings.compute)),
         formatted("%.3f", ratio), formatted("%.3f", by_wire),
         percent(hold(out, name_of(place) + ", ring / SwitchML", ratio, by_wire, kOff)),
         std::to_string(sums.faithful + rings.faithful) + " of " + std::to_string(2 * rounds)});
  }
  for (const auto& [target, all] : goodputs) {
    const auto [least, most] = std::ranges::minmax(all);
    if (!(most - least <= kSpread))
      out.misses.push_back(target + ": SwitchML's goodput spreads over " + share(most - least) +
                           ", at most " + share(kSpread) + " is wanted");
  }
  return markdown_table(rows);
}

// Three all-reduces of 512 packets, whose losses differ.
std::string compare_with_virtual(Findings& out, int runs) {
  constexpr double kMost = 0.03;
  struct Point {
    int nodes;
    double loss;
    int elements;
  };
  constexpr Point kPoints[]{{2, 0, 256},    {2, 0.01, 64},  {4, 0, 64},     {4, 0.001, 256},
                            {4, 0.01, 256}, {4, 0.005, 64}, {8, 0.001, 64}, {8, 0.01, 256}};
  std::vector<Row> rows{{"nodes", "lost", "elements", "links", "real step", "least, most",
                         "virtual", "", "packets lost, real", "virtual", "faithful"}};
  for (const Point& point : kPoints) {
    Lab lab(point.nodes);
    lab.leave_bridge();
    // No warm-up: workers of real switches live on and number their packets from its start.
    const Job job{.nodes = point.nodes,
                  .layers = {512 * point.elements},
                  .elements = point.elements,
                  .slots = 16,
                  .timeout_us = 24'000,
                  .loss = point.loss,
                  .warmup = 0,
                  .iterations = 3};
    const json modelled = in_virtual_time(lab, job);
    std::vector<double> steps, lost;
    int good = 0;
    for (int run = 0; run < runs; ++run) {
      const json real = in_real_time(lab, "compiled", job);
      steps.push_back(mean_step_of(real));
      lost.push_back(real["packets"]["lost_on_purpose"]);
      good += faithful(real);
    }
    const auto [least, most] = std::ranges::minmax(steps);
    const std::string what = std::to_string(point.nodes) + " nodes, " + share(point.loss) +
                             " lost, " + std::to_string(point.elements) + " elements";
    rows.push_back(
        {std::to_string(point.nodes), share(point.loss), std::to_string(point.elements),
         formatted("%.2f Mbit/s", job.rate() * 1e-6), milliseconds(median(steps)),
         milliseconds(least) + ", " + milliseconds(most), milliseconds(mean_step_of(modelled)),
         percent(hold(out, what, mean_step_of(modelled), median(steps), kMost)),
         formatted("%.0f", median(lost)), count_of(modelled["packets"]["lost_on_purpose"]),
         std::to_string(good) + " of " + std::to_string(runs)});
  }
  return markdown_table(rows);
}

struct Calls {
  std::string op;
  double bytes = 0;
  double times = 1;  // a step
};

// The calls of one group wait for each other, so the times that they need add up. A step that plays
// other calls is a miss.
double bound_of(Findings& out, const std::string& what, const Job& job,
                const std::vector<Calls>& calls, const json& result) {
  double bound = compute_of(result);
  std::map<std::string, double> times;
  for (const Calls& some : calls) {
    bound += some.times * call_seconds(job, some.op, some.bytes);
    times[some.op] += some.times;
  }
  for (const json& row : result["collectives"])
    if (row["algorithm"] == "switchml") times[row["op"]] -= row["calls"].get<double>();
  for (const auto& [op, more] : times)
    if (more != 0) out.misses.push_back(what + ": the bound has other calls of " + op);
  return bound;
}

// Two layers of 512 KiB each.
std::string compare_with_sharding(Findings& out) {
  constexpr double kReal = 0.03, kVirtual = 0.01;
  constexpr int kLayer = 128 << 10;
  constexpr double kBytes = 4.0 * kLayer, kNumber = 4;
  struct Plan {
    std::string framework;
    std::vector<Calls> calls;
  };
  const Plan plans[]{
      {"zero1", {{"allreduce", 2 * kBytes}, {"allreduce", kNumber}, {"all_gather", 2 * kBytes}}},
      {"fsdp",
       {{"all_gather", kBytes, 4}, {"reduce_scatter", kBytes, 2}, {"allreduce", kNumber, 3}}}};
  std::vector<Row> rows{{"framework", "switch", "nodes", "links", "by the wire", "real step", "",
                         "virtual", "", "ring, virtual", "faithful"}};
  for (const Place& place : built({{"compiled", 4}, {"compiled", 8}, {"dpdk", 4}})) {
    Lab lab(place.nodes);
    lab.leave_bridge();
    for (const Plan& plan : plans) {
      const std::string what = plan.framework + ", " + name_of(place);
      const Job job{.nodes = place.nodes, .layers = {kLayer, kLayer}, .framework = plan.framework};
      Job around = job;
      around.scheme = "ring";
      const json real = in_real_time(lab, place.target, job), modelled = in_virtual_time(lab, job);
      const double bound = bound_of(out, what, job, plan.calls, real);
      rows.push_back({plan.framework, place.target, std::to_string(place.nodes),
                      megabits(job.rate()), milliseconds(bound), milliseconds(step_of(real)),
                      percent(hold(out, what, step_of(real), bound, kReal)),
                      milliseconds(step_of(modelled)),
                      percent(hold(out, what + ", virtual", step_of(modelled), bound, kVirtual)),
                      milliseconds(step_of(in_virtual_time(lab, around))), yes(faithful(real))});
    }
  }
  return markdown_table(rows);
}

}  // namespace

Findings compare_switch(const Options& options) {
  Findings out;
  const RealTimePriority priority;
  out.markdown =
      "Processes have " + std::string(priority.permitted() ? "real-time" : "normal") +
      " priority.\n\n"
      "One all-reduce of 2 MiB a step, medians of three runs; *goodput*: the chunks with their "
      "headers at the links' rate, over the time of the call; *by the wire*: that ratio where "
      "both reach it.\n\n" +
      compare_with_wire(out, options.quick ? 1 : 3) +
      "\nSteps of one all-reduce of 512 packets in real and in virtual time, means of three "
      "iterations and medians of five runs; *lost*: of the packets each way, of a worker, a chunk "
      "and an attempt alike in both.\n\n" +
      compare_with_virtual(out, options.quick ? 1 : 5) +
      "\nSteps of 1 MiB of parameters; *by the wire*: compute, and the busier direction of every "
      "call with all its packets.\n\n" +
      compare_with_sharding(out);
  return out;
}

}  // namespace ghostrank::fidelity
