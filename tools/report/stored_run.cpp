// See stored_run.h. The functions below follow the nesting of the schema from the inside out, as
// those in result_json.cpp that write it.
#include "tools/report/stored_run.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "emulator/result/figures.h"
#include "tools/text/statistics.h"

namespace ghostrank {
namespace {

// "n12.nic3". Throws Error(usage).
struct NicPlace {
  int node = 0, nic = 0;
};
NicPlace place_of(const Field& field) {
  const std::string name = field.text();
  NicPlace place;
  const char* const end = name.data() + name.size();
  const std::size_t dot = name.find(".nic");
  if (name.empty() || name[0] != 'n' || dot == std::string::npos) field.fail("is no NIC");
  const auto node = std::from_chars(name.data() + 1, name.data() + dot, place.node);
  const auto nic = std::from_chars(name.data() + dot + 4, end, place.nic);
  if (node.ec != std::errc() || node.ptr != name.data() + dot || nic.ec != std::errc() ||
      nic.ptr != end || place.node < 0 || place.nic < 0)
    field.fail("is no NIC");
  return place;
}

// Numbers NICs as the cluster does.
class Nics {
 public:
  Nics(const Field& traffic, int nics_per_node) : per_node_(std::max(1, nics_per_node)) {
    for (const Field& nic : traffic["nics"].items()) see(nic["nic"]);
    for (const Field& pair : traffic["pairs"].items()) see(pair["src"]), see(pair["dst"]);
  }
  int per_node() const { return per_node_; }
  Nic number(const Field& field) const {
    const NicPlace place = place_of(field);
    if (place.node > std::numeric_limits<int>::max() / per_node_ - 1) field.fail("is no NIC");
    return Nic(place.node * per_node_ + place.nic);
  }

 private:
  void see(const Field& field) {
    const int nic = place_of(field).nic;
    if (nic > kMost) field.fail("is no NIC");
    per_node_ = std::max(per_node_, nic + 1);
  }
  static constexpr int kMost = 1 << 20;
  int per_node_;
};

Exactness exactness_in(const Field& field) {
  Exactness exactness;
  for (const auto level : {Exactness::Level::bytes, Exactness::Level::messages})
    if (field["level"].text() == name_of(level)) exactness.level = level;
  for (const auto basis : {Exactness::Basis::derived, Exactness::Basis::traced})
    if (field["basis"].text() == name_of(basis)) exactness.basis = basis;
  return exactness;
}

std::optional<std::uint64_t> count_in(const Field& field) {
  return field.missing() ? std::nullopt : std::optional(field.count());
}

HostReport host_in(const Field& host) {
  HostReport out;
  out.index = Host(host["index"].small());
  out.hostname = host["hostname"].text();
  out.name = host["name"].text();
  if (out.name == out.hostname) out.name.clear();
  out.cores = host["cores"].text();
  out.bound = host["bound"].truth();
  out.provider = host["provider"].text();
  out.transport = host["transport"].text();
  out.ranks = host["ranks"].small();
  out.rss_bytes = host["rss_bytes"].count();
  out.cpu_seconds = host["cpu_seconds"].number_or(0);
  out.cpu = host["cpu"].text();
  out.kernel = host["kernel"].text();
  out.libfabric = host["libfabric"].text();
  return out;
}

IterationReport iteration_in(const Field& iteration) {
  IterationReport out;
  out.seconds = iteration["seconds"].number_or(0);
  out.compute_seconds = iteration["compute_seconds"].number_or(0);
  out.exposed_comm_seconds = iteration["exposed_comm_seconds"].number_or(0);
  out.bubble_seconds = iteration["bubble_seconds"].number_or(0);
  return out;
}

CollectiveReport collective_in(const Field& call) {
  const auto error = [](const Field& valid) {
    return valid.missing() || valid.truth() ? 0 : kErrorUnknown;
  };
  CollectiveReport out;
  out.op = call["op"].text();
  out.group = call["group"].text();
  out.algorithm = call["algorithm"].text();
  out.exactness = exactness_in(call["exactness"]);
  out.calls = call["calls"].number_or(0);
  out.bytes = call["bytes"].number_or(0);
  out.seconds_median = call["seconds_median"].number_or(0);
  if (const std::vector<Field> ends = call["seconds_ci95"].items(); ends.size() == 2)
    out.seconds_interval = {ends[0].number_or(0), ends[1].number_or(0)};
  out.algbw_GBps = call["algbw_GBps"].number_or(0);
  out.busbw_GBps = call["busbw_GBps"].number_or(0);
  out.seconds_error = error(call["seconds_valid"]);
  out.bandwidth_error = error(call["bandwidth_valid"]);
  return out;
}

void read_traffic(Result& result, const Field& traffic, int nics_per_node) {
  result.wire_bytes_per_iteration = traffic["wire_bytes_per_iteration"].number_or(0);
  result.messages_per_iteration = traffic["messages_per_iteration"].number_or(0);
  result.intra_node_bytes_per_iteration = traffic["intra_node_bytes_per_iteration"].number_or(0);
  result.intra_node_messages_per_iteration =
      traffic["intra_node_messages_per_iteration"].number_or(0);
  result.pairs_file = traffic["pairs_file"].text();
  const Nics nics(traffic, nics_per_node);
  result.nics_per_node = nics.per_node();
  for (const Field& nic : traffic["nics"].items())
    result.nics.push_back({nics.number(nic["nic"]), nic["tx_bytes"].number_or(0),
                           nic["rx_bytes"].number_or(0), nic["tx_messages"].number_or(0),
                           nic["rx_messages"].number_or(0)});
  for (const Field& pair : traffic["pairs"].items())
    result.pairs.push_back({nics.number(pair["src"]), nics.number(pair["dst"]),
                            pair["bytes"].number_or(0), pair["messages"].number_or(0)});
  for (const Field& flow : traffic["flows"].items())
    if (const std::vector<Field> hosts = flow["hosts"].items(); hosts.size() == 2)
      result.flows.push_back(
          {Host(hosts[0].small()), Host(hosts[1].small()), flow["count"].small()});
}

LinkTier tier_in(const Field& tier) {
  LinkTier out;
  out.name = tier["name"].text();
  out.links = static_cast<std::uint32_t>(tier["links"].small());
  out.utilisation_mean = tier["utilisation_mean"].number_or(0);
  out.utilisation_max = tier["utilisation_max"].number_or(0);
  out.bytes = tier["bytes"].number_or(0);
  out.messages = tier["messages"].number_or(0);
  out.mean_wait_s = tier["mean_wait_seconds"].number();
  out.longest_wait_s = tier["longest_wait_seconds"].number();
  if (tier["packets"].missing()) return out;
  out.queue =
      QueueCount{.packets = tier["packets"].count(),
                 .again = tier["sent_again"].count(),
                 .drops = tier["drops"].count(),
                 .marks = tier["marks"].count(),
                 .pauses = tier["pauses"].count(),
                 .longest = tier["longest_queue_bytes"].count(),
                 .paused = picoseconds(std::max(0.0, tier["paused_seconds"].number_or(0)) * 1e12)};
  return out;
}

std::optional<NetworkReport> network_in(const Field& network) {
  if (network.missing()) return std::nullopt;
  NetworkReport out;
  out.model = network["model"].text();
  out.topology = network["topology"].text();
  out.routing = network["routing"].text();
  out.fluids = network["fluids"].count();
  for (const Field& tier : network["tiers"].items()) out.tiers.push_back(tier_in(tier));
  for (const Field& link : network["hottest"].items())
    out.hottest.push_back({link["link"].text(), link["utilisation"].number_or(0),
                           link["bytes"].number_or(0), link["messages"].number_or(0),
                           link["mean_wait_seconds"].number(),
                           link["longest_wait_seconds"].number()});
  return out;
}

std::optional<TensorUse> tensors_in(const Field& tensors) {
  if (tensors.missing()) return std::nullopt;
  return TensorUse{tensors["calls"].count(), tensors["bytes"].count(),
                   tensors["nonzero_bytes"].count(), tensors["union_density_mean"].number_or(0),
                   tensors["last_density"].number()};
}

std::vector<double> numbers_in(const Field& list) {
  std::vector<double> out;
  for (const Field& one : list.items()) out.push_back(one.number_or(0));
  return out;
}

std::optional<CompressionUse> compression_in(const Field& use) {
  if (use.missing()) return std::nullopt;
  return CompressionUse{use["method"].text(), use["payload_bytes_per_rank"].count(),
                        use["ratio_target"].number_or(1), use["ratio_mean"].number_or(1),
                        numbers_in(use["ratios"])};
}

std::optional<PacketCounts> packets_in(const Field& packets, const Field& sw) {
  if (packets.missing()) return std::nullopt;
  return PacketCounts{.sent = packets["sent"].count(),
                      .received = packets["received"].count(),
                      .lost_on_purpose = packets["lost_on_purpose"].count(),
                      .doubled_on_purpose = packets["doubled_on_purpose"].count(),
                      .delayed_on_purpose = packets["delayed_on_purpose"].count(),
                      .dropped = packets["dropped"].count(),
                      .refused = packets["refused"].count(),
                      .strays = packets["strays"].count(),
                      .unreadable = packets["dropped"].missing() ? 1u : 0u,
                      .sent_again = sw["packets_sent_again"].count()};
}

std::optional<SwitchTroubles> troubles_in(const Field& troubles) {
  if (troubles.missing()) return std::nullopt;
  const std::optional<double> first = troubles["first_fallback_s"].number();
  return SwitchTroubles{troubles["failures"].count(),
                        troubles["unheard_packets"].count(),
                        troubles["restarts"].count(),
                        troubles["fallbacks"].count(),
                        troubles["ring_calls"].count(),
                        first && *first >= 0 ? picoseconds(*first * 1e12) : Picoseconds{-1}};
}

std::optional<SwitchReport> switch_in(const Field& sw) {
  if (sw.missing()) return std::nullopt;
  return SwitchReport{sw["target"].text(), sw["address"].text(), sw["cpu_seconds"].number(),
                      sw["memory_bytes"].count()};
}

InterfaceReport interface_in(const Field& interface) {
  InterfaceReport out;
  out.host = Host(interface["host"].small());
  out.network_namespace = interface["namespace"].text();
  out.device = interface["device"].text();
  out.loopback = interface["loopback"].truth();
  out.tx_bytes = count_in(interface["tx_bytes"]);
  out.rx_bytes = count_in(interface["rx_bytes"]);
  for (const Field& one : interface["iterations"].items())
    out.iterations.push_back({count_in(one["tx_bytes"]), count_in(one["rx_bytes"])});
  for (const auto& [name, grown] : interface["counters"].members())
    out.counters.emplace_back(name, grown.count());
  return out;
}

std::optional<OpenEnd> open_end_in(const Field& root) {
  const Field end = root["open_end"];
  if (end.missing()) return std::nullopt;
  OpenEnd out;
  for (const auto& [by, name] : kEndedBy)
    if (end["by"].text() == name) out.by = by;
  out.iterations = end["iterations"].count();
  out.one_in = static_cast<std::uint32_t>(std::max(1, end["kept_one_in"].small()));
  if (out.one_in > 1)
    for (const Field& one : root["iterations"].items())
      out.numbers.push_back(static_cast<std::uint32_t>(one["iteration"].count()));
  return out;
}

StallReport stall_in(const Field& stall) {
  StallReport out{stall["start_s"].number_or(0),
                  stall["seconds"].number_or(0),
                  stall["wall_start_s"].number_or(0),
                  stall["wall_seconds"].number_or(0),
                  {}};
  for (const Field& iteration : stall["iterations"].items())
    out.iterations.push_back(iteration.small());
  return out;
}

EventReport event_in(const Field& event) {
  EventReport out;
  out.at_s = event["at_s"].number_or(0);
  out.wall_s = event["wall_s"].number();
  if (!event["iteration"].missing()) out.iteration = event["iteration"].small();
  out.kind = event["kind"].text();
  out.what = event["what"].text();
  return out;
}

// Only the mean steps of other jobs are stored: each iteration counts as one of them.
JobReport job_in(const Field& job) {
  JobReport out;
  out.name = job["name"].text();
  out.nodes = job["nodes"].text();
  out.ranks = job["ranks"].small();
  const auto iterations = [](const Field& time, double compute, double exposed) {
    constexpr std::uint64_t kMost = 1 << 20;
    IterationReport one;
    one.seconds = time["mean"].number_or(0);
    one.compute_seconds = compute;
    one.exposed_comm_seconds = exposed;
    return std::vector(std::min(kMost, time["iterations"].count()), one);
  };
  out.iterations = iterations(job["step_time"], job["compute_seconds"].number_or(0),
                              job["exposed_comm_seconds"].number_or(0));
  out.alone = iterations(job["alone"], 0, job["exposed_comm_alone"].number_or(0));
  out.wire_bytes_per_iteration = job["wire_bytes_per_iteration"].number_or(0);
  out.messages_per_iteration = job["messages_per_iteration"].number_or(0);
  out.samples_per_iteration = job["samples_per_second"].number_or(0) * mean_seconds(out.iterations);
  out.tensors = tensors_in(job["tensors"]);
  out.compression = compression_in(job["compression"]);
  return out;
}

Fidelity fidelity_in(const Field& fidelity, const Field& step) {
  const auto or_unreadable = [](const Field& share) { return share.number_or(-1); };
  Fidelity out;
  out.faithful = fidelity["faithful"].truth();
  out.modelled = fidelity["modelled"].truth();
  out.valid_for = fidelity["valid_for"].texts();
  const Field lateness = fidelity["lateness_us"];
  out.lateness_us_p50 = lateness["p50"].number_or(0);
  out.lateness_us_p99 = lateness["p99"].number_or(0);
  out.lateness_us_max = lateness["max"].number_or(0);
  out.critical_lateness = fidelity["critical_lateness"].number_or(0);
  out.rate_error = fidelity["rate_error"].number_or(0);
  out.run_queue_wait = or_unreadable(fidelity["run_queue_wait"]);
  out.loop_busy = fidelity["loop_busy"].number_or(0);
  out.queued = or_unreadable(fidelity["queued"]);
  out.throttled = or_unreadable(fidelity["throttled"]);
  for (const auto& [name, figure] : fidelity["figures"].members())
    out.figures.push_back({name, figure["error"].number_or(0)});
  out.reason = fidelity["reason"].text();
  out.model_error = step["model_error"].number_or(0);
  out.assumed_compute = step["compute"].text() == "assumed";
  return out;
}

void read_throughput(Result& result, const Field& root) {
  std::vector<double> seconds;
  for (const IterationReport& i : result.iterations) seconds.push_back(i.seconds);
  const double step = summarize(seconds).median.value_or(0);
  const double flops = root["tflops_per_gpu"].number_or(0) * 1e12, mfu = root["mfu"].number_or(0);
  result.samples_per_iteration = root["samples_per_second"].number_or(0) * step;
  result.flops_per_iteration = flops * result.ranks * step;
  if (mfu > 0) result.peak_flops = flops / mfu;
}

Capacity capacity_in(const Field& capacity) {
  Capacity out;
  out.wire_bytes_per_second = capacity["wire_bytes_per_second"].number_or(0);
  out.seconds_per_message = capacity["seconds_per_message"].number_or(0);
  out.wire_bytes = capacity["wire_bytes"].number_or(0);
  out.wire_messages = capacity["wire_messages"].number_or(0);
  out.local_messages = capacity["local_messages"].number_or(0);
  out.step_seconds_at_least = capacity["step_seconds_at_least"].number_or(0);
  out.dilation_needed = capacity["dilation_needed"].number_or(1);
  return out;
}

void read_schemes(Result& result, const Field& root) {
  result.tensors = tensors_in(root["tensors"]);
  result.compression = compression_in(root["compression"]);
  if (const Field training = root["training"]; !training.missing())
    result.training = TrainingUse{training["task"].text(), numbers_in(training["loss"])};
  for (const Field& server : root["servers"].items())
    result.servers.push_back({server["name"].text(), server["rx_bytes"].number_or(0),
                              server["tx_bytes"].number_or(0), server["busy"].number_or(0),
                              server["memory_bytes"].count()});
  result.packets = packets_in(root["packets"], root["switch"]);
  result.troubles = troubles_in(root["switch_troubles"]);
  result.network_switch = switch_in(root["switch"]);
}

Result result_in(const Field& root) {
  Result result;
  result.version = root["version"].text();
  const Field build = root["build"], config = root["config"], verify = root["verify"];
  result.build = {build["commit"].text(), build["compiler"].text(), build["type"].text()};
  result.argv = root["argv"].texts();
  result.job_name = root["job"].text();
  result.started_utc = root["started_utc"].text();
  for (const Field& host : root["hosts"].items()) result.hosts.push_back(host_in(host));
  result.ranks = root["ranks"].small();
  result.dilation = root["dilation"].number_or(0);
  result.wall_seconds = root["wall_seconds"].number_or(0);
  result.played_wall_seconds = root["played_wall_seconds"].number_or(0);
  for (const Field& one : root["iterations"].items())
    result.iterations.push_back(iteration_in(one));
  for (const Field& job : root["jobs"].items()) result.jobs.push_back(job_in(job));
  result.open_end = open_end_in(root);
  result.iterations_asked = result.open_end ? 0 : config["run"]["iterations"].small();
  result.deterministic = root["step_time"]["deterministic"].truth();
  for (const Field& call : root["collectives"].items())
    result.collectives.push_back(collective_in(call));
  read_traffic(result, root["traffic"], config["cluster"]["nics_per_node"].small());
  read_schemes(result, root);
  result.network = network_in(root["network"]);
  for (const Field& interface : root["interfaces"].items())
    result.interfaces.push_back(interface_in(interface));
  for (const Field& stall : root["stalls"].items()) result.stalls.push_back(stall_in(stall));
  for (const Field& event : root["events"].items()) result.events.push_back(event_in(event));
  result.fidelity = fidelity_in(root["fidelity"], root["step_time"]);
  if (!verify.missing())
    result.verify =
        VerifyReport{verify["checked_elements"].count(), verify["wrong_elements"].count()};
  result.capacity = capacity_in(root["capacity"]);
  read_throughput(result, root);
  result.notes = root["notes"].texts();
  result.interrupted = root["interrupted"].text();
  return result;
}

}  // namespace

StoredRun stored_run(const SortedJson& json, const std::string& file) {
  const Field root(json, file);
  const Field config = root["config"];
  (void)config.members();  // an object, or nothing
  return {stored_result(json, file), result_in(root),
          config.missing() ? SortedJson::object() : config.json(), root["hash"].text(),
          !root["fidelity"].missing()};
}

StoredRun read_run(const std::string& file) { return stored_run(read_result_json(file), file); }

}  // namespace ghostrank
