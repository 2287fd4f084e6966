#include "tools/compare/ab/run.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>

#include "collectives/schemes/keyed/keys.h"
#include "profiles/error.h"
#include "profiles/median.h"
#include "profiles/model/model.h"
#include "profiles/planners/background/background.h"
#include "tools/compare/ab/statistics.h"
#include "tools/diagnosis/step_load.h"
#include "tools/report/job_hash.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

double number_or(const Json& json, const char* key, double otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
}

std::optional<double> number_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

double median_over(const Json& iterations, const char* key) {
  std::vector<double> values;
  for (const Json& i : iterations) values.push_back(number_or(i, key, 0));
  return median(std::move(values));
}

std::optional<double> collective_seconds(const Json& collectives) {
  double seconds = 0;
  bool timed = false;
  for (const Json& c : collectives) {
    const std::optional<double> one = number_in(c, "seconds_median");
    if (!one) continue;
    seconds += seconds_of_calls(number_or(c, "bytes", 0), number_or(c, "algbw_GBps", 0), *one,
                                number_or(c, "calls", 0));
    timed = true;
  }
  return timed ? std::optional(seconds) : std::nullopt;
}

// "allreduce ring, 2 channels, slices of 64KiB": lets a reader spot a weak baseline.
std::string schemes_of(const Json& result) {
  std::string text;
  std::set<std::string> named;
  for (const Json& c : result.at("collectives")) {
    const std::string one =
        c.at("op").get<std::string>() + " " + c.at("algorithm").get<std::string>();
    if (named.insert(one).second) text += (text.empty() ? "" : ", ") + one;
  }
  const Json& config = result.at("config").at("collectives");
  if (const double channels = number_or(config, "channels", 0); channels > 0)
    text += ", " + humane_count(channels, "channel");
  const std::string slice = config.value("slice", "0");  // several jobs have their own
  if (slice != "0") text += ", slices of " + slice;
  return text;
}

struct NicName {  // "n12.nic0"
  int node = 0, nic = 0;
};
NicName nic_of(const std::string& name) {
  NicName out;
  std::sscanf(name.c_str(), "n%d.nic%d", &out.node, &out.nic);
  return out;
}

// The bytes of an iteration are those of all jobs, but the step is the first one's; the others play
// before it and after it, too.
bool has_steps_of_several(const JobSpec& spec) {
  return spec.jobs.size() > 1 + static_cast<std::size_t>(has_background_beside(spec));
}

std::vector<NicTraffic> nics_in(const Json& traffic, int nics_per_node) {
  std::vector<NicTraffic> nics;
  for (const Json& nic : traffic.at("nics")) {
    const auto [node, index] = nic_of(nic.at("nic").get<std::string>());
    nics.push_back({Nic(node * nics_per_node + index), number_or(nic, "tx_bytes", 0),
                    number_or(nic, "rx_bytes", 0), number_or(nic, "tx_messages", 0),
                    number_or(nic, "rx_messages", 0)});
  }
  return nics;
}

// `seconds`: of all measured iterations.
void read_nics(AbRun& run, const Json& traffic, double seconds, const JobSpec& spec) {
  const NicSetting setting = nic_setting(spec);
  // Where rates change, so do steps: all of them together use the mean rate.
  const double step =
      setting.rates && run.iterations > 0 ? seconds / run.iterations : run.step_seconds;
  const bool timed = !has_steps_of_several(spec);
  for (const NicUse& use :
       nic_uses(nics_in(traffic, setting.nics_per_node), setting, timed ? step : 0, seconds)) {
    std::optional<double>& busy = use.helper ? run.helper_busy : run.nic_busy;
    if (use.busy) busy = std::max(busy.value_or(0), *use.busy);
    if (use.helper || use.bytes < run.busiest_nic_bytes) continue;
    if (use.bytes == run.busiest_nic_bytes && use.bps > run.nic_bps) continue;  // the slowest
    run.busiest_nic_bytes = use.bytes;
    run.nic_bps = use.bps;
    if (!setting.framing.none()) run.busiest_nic_wire_bytes = use.wire_bytes;
  }
}

// Bytes that left by the machines' interfaces in an iteration; nothing if one cannot be read or is
// the loopback, which every other program of the machine uses, too. Several processes of one
// machine may report the same interface.
std::optional<double> interface_bytes(const Json& result, int iterations) {
  std::set<std::string> seen;
  double bytes = 0;
  for (const Json& i : result.at("interfaces")) {
    const auto host = static_cast<std::size_t>(number_or(i, "host", 0));
    const Json& hosts = result.at("hosts");
    const std::string machine =
        host < hosts.size() ? hosts[host].at("hostname").get<std::string>() : "";
    const std::string name = machine + " " + i.at("namespace").get<std::string>() + " " +
                             i.at("device").get<std::string>();
    if (!seen.insert(name).second) continue;
    const std::optional<double> sent = number_in(i, "tx_bytes");
    if (!sent || i.at("loopback").get<bool>()) return std::nullopt;
    bytes += *sent;
  }
  if (seen.empty() || iterations == 0) return std::nullopt;
  return bytes / iterations;
}

void read_packets(AbRun& run, const Json& result, const JobSpec& spec) {
  const Framing& framing = spec.fabric.framing;
  if (!framing.none()) {
    Framed all;
    for (const Json& nic : result.at("traffic").at("nics")) {
      const Framed one =
          framed(framing, number_or(nic, "tx_bytes", 0), number_or(nic, "tx_messages", 0));
      all.packets += one.packets;
      all.bytes += one.bytes;
    }
    run.packets = all.packets;
    if (all.bytes > 0) {
      run.header_share = 1 - run.bytes / all.bytes;
      run.header_basis = "modelled";
    }
  } else if (is_network(spec.fabric.kind)) {
    const std::optional<double> sent = interface_bytes(result, run.iterations);
    if (sent && *sent >= run.bytes && *sent > 0) {
      run.header_share = 1 - run.bytes / *sent;
      run.header_basis = "interfaces";
    }
  }
  const Json& packets = result.at("packets");
  if (!packets.is_object() || run.iterations == 0) return;
  if (!run.packets) run.packets = number_or(packets, "sent", 0) / run.iterations;
  if (!run.switch_target.empty()) {
    if (const auto again = number_in(result.at("switch"), "packets_sent_again"))
      run.retransmissions = *again / run.iterations;
    return;
  }
  // A lower bound: a scheme also resends packets whose timer expired too early.
  run.retransmissions =
      (number_or(packets, "lost_on_purpose", 0) + number_or(packets, "dropped", 0)) /
      run.iterations;
}

void read_links(AbRun& run, const Json& network) {
  if (!network.is_object() || network.at("hottest").empty()) return;
  const Json& hottest = network.at("hottest").front();
  run.link_busy = number_in(hottest, "utilisation");
  run.hottest_link = hottest.at("link").get<std::string>();
}

// A switch that the run has started uses the same processors as the ranks. It handles one batch of
// frames after another, so one that is always busy limits the step, whatever else does.
void read_switch(AbRun& run, const Json& sw) {
  if (!sw.is_object()) return;
  run.switch_target = sw.at("target").get<std::string>();
  run.switch_busy = number_in(sw, "busy");
  if (run.switch_busy.value_or(0) < kSaturated || !run.faithful) return;
  run.faithful = false;
  run.reason = "the switch used " + humane_percent(*run.switch_busy) + " of a core";
}

void read_hosts(AbRun& run, const Json& result) {
  double cpu = 0;
  std::set<std::string> transports;
  for (const Json& host : result.at("hosts")) {
    cpu += number_or(host, "cpu_seconds", 0);
    const std::string provider = host.at("provider").get<std::string>();
    const std::string transport = host.at("transport").get<std::string>();
    transports.insert(provider == transport ? transport : transport + " (" + provider + ")");
  }
  for (const std::string& t : transports) run.transport += (run.transport.empty() ? "" : ", ") + t;
  if (run.fabric == "ofi" && result.at("packets").is_object()) run.transport += " + UDP";
  if (result.contains("switch") && result.at("switch").is_object())
    cpu += number_or(result.at("switch"), "cpu_seconds", 0);
  const double bytes = run.bytes * run.iterations;
  if (!run.modelled && bytes > 0) run.cpu_seconds_per_GB = cpu / (bytes * 1e-9);
}

StepLoad load_of(const AbRun& run, const Json& servers, const JobSpec& spec) {
  StepLoad load;
  load.seconds = run.step_seconds;
  load.compute_seconds = run.compute_seconds;
  load.waiting_seconds = run.exposed_seconds + run.bubble_seconds;
  load.link_busy = std::max(run.nic_busy.value_or(0), run.link_busy.value_or(0));
  load.helper_busy = run.helper_busy.value_or(0);
  for (const Json& server : servers)
    load.helper_busy = std::max(load.helper_busy, number_or(server, "busy", 0));
  load.collective_seconds = run.collective_seconds;
  load.kept_up = run.faithful || run.modelled;
  load.of_several_jobs = has_steps_of_several(spec);
  load.compresses = spec.compression.has_value();
  return load;
}

// BytePS's theorem, which needs NICs of one rate and is of whole gradients.
std::optional<double> predicted_seconds(const JobSpec& spec) {
  const ClusterSpec& cluster = spec.cluster;
  const double bps = cluster.nic.rate_bps;
  const bool one_rate =
      !cluster.nic_rates && (cluster.servers.colocated || cluster.servers.count == 0 ||
                             cluster.servers.nic.rate_bps == bps);
  if (spec.parallel.framework != Framework::byteps || !spec.parallel.best_split || !spec.model ||
      spec.collectives.at_servers.compression || bps <= 0 || !one_rate)
    return std::nullopt;
  const int nodes = cluster.rank_nodes();
  const double bytes =
      static_cast<double>(spec.model->parameters()) * bytes_of(spec.precision.gradients);
  return best_time(cluster.servers.places(nodes), cluster.servers.beside(nodes), cluster.nodes) *
         bytes * 8 / bps;
}

AbRun read(const Json& result, const JobSpec& spec) {
  AbRun run;
  run.job_hash = played_hash(result);
  const Json& fidelity = result.at("fidelity");
  run.fabric = std::string(name_of(spec.fabric.kind));
  run.step_seconds = result.at("step_time").at("median").get<double>();
  run.deterministic = result.at("step_time").at("deterministic").get<bool>();
  run.nic_bps = spec.cluster.nic.rate_bps;
  run.iterations = static_cast<int>(result.contains("open_end")
                                        ? number_or(result.at("open_end"), "iterations", 0)
                                        : static_cast<double>(result.at("iterations").size()));
  run.compute_seconds = median_over(result.at("iterations"), "compute_seconds");
  run.exposed_seconds = median_over(result.at("iterations"), "exposed_comm_seconds");
  run.bubble_seconds = median_over(result.at("iterations"), "bubble_seconds");
  run.collective_seconds = collective_seconds(result.at("collectives"));
  run.predicted_seconds = predicted_seconds(spec);
  const Json& traffic = result.at("traffic");
  run.bytes = traffic.at("wire_bytes_per_iteration").get<double>();
  run.messages = traffic.at("messages_per_iteration").get<double>();
  run.dilation = result.at("dilation").get<double>();
  run.wall_seconds = result.at("wall_seconds").get<double>();
  run.faithful = fidelity.at("faithful").get<bool>();
  run.modelled = fidelity.at("modelled").get<bool>();
  run.reason = fidelity.at("reason").get<std::string>();
  run.critical_lateness = number_or(fidelity, "critical_lateness", 0);
  if (result.contains("switch")) read_switch(run, result.at("switch"));
  run.schemes = schemes_of(result);
  double seconds = 0;
  for (const Json& i : result.at("iterations")) seconds += number_or(i, "seconds", 0);
  if (const std::size_t kept = result.at("iterations").size(); kept > 0)
    seconds *= run.iterations / static_cast<double>(kept);  // of a sample
  read_nics(run, traffic, seconds, spec);
  read_packets(run, result, spec);
  read_links(run, result.at("network"));
  read_hosts(run, result);
  run.bottleneck = bottleneck_of(load_of(run, result.at("servers"), spec));
  return run;
}

std::optional<double> optional_in(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

}  // namespace

AbRun read_ab_run(const std::string& file, const JobSpec& spec) {
  std::ifstream in(file, std::ios::binary);
  try {
    return read(Json::parse(in), spec);
  } catch (const Json::exception& error) {
    throw Error(
        file + ": not what a run writes: " + error.what() + "; look whether the disk is full",
        ErrorKind::environment);
  }
}

Json to_json(const AbRun& r) {
  return {{"variant", r.variant},
          {"block", r.block},
          {"seed", r.seed},
          {"file", r.file.empty() ? Json(nullptr) : Json(r.file)},
          {"step_seconds", r.step_seconds},
          {"iterations", r.iterations},
          {"compute_seconds", r.compute_seconds},
          {"exposed_comm_seconds", r.exposed_seconds},
          {"bubble_seconds", r.bubble_seconds},
          {"collective_seconds", or_null(r.collective_seconds)},
          {"predicted_seconds", or_null(r.predicted_seconds)},
          {"bytes", count_json(r.bytes)},
          {"messages", count_json(r.messages)},
          {"packets", or_null(r.packets)},
          {"header_share", or_null(r.header_share)},
          {"header_basis", r.header_basis},
          {"retransmissions", or_null(r.retransmissions)},
          {"busiest_nic_bytes", count_json(r.busiest_nic_bytes)},
          {"busiest_nic_wire_bytes", or_null(r.busiest_nic_wire_bytes)},
          {"nic_bits_per_second", count_json(r.nic_bps)},
          {"nic_busy", or_null(r.nic_busy)},
          {"helper_busy", or_null(r.helper_busy)},
          {"link_busy", or_null(r.link_busy)},
          {"switch_busy", or_null(r.switch_busy)},
          {"switch", r.switch_target},
          {"hottest_link", r.hottest_link},
          {"cpu_seconds_per_GB", or_null(r.cpu_seconds_per_GB)},
          {"dilation", count_json(r.dilation)},
          {"critical_lateness", r.critical_lateness},
          {"wall_seconds", r.wall_seconds},
          {"transport", r.transport},
          {"schemes", r.schemes},
          {"fabric", r.fabric},
          {"faithful", r.faithful},
          {"modelled", r.modelled},
          {"deterministic", r.deterministic},
          {"retried", r.retried},
          {"reason", r.reason},
          {"bottleneck", r.bottleneck}};
}

AbRun ab_run_from(const Json& j) {
  AbRun r;
  r.variant = j.at("variant").get<std::size_t>();
  r.block = j.at("block").get<std::size_t>();
  r.seed = j.at("seed").get<std::uint64_t>();
  if (!j.at("file").is_null()) r.file = j.at("file").get<std::string>();
  r.step_seconds = j.at("step_seconds").get<double>();
  r.iterations = j.at("iterations").get<int>();
  r.compute_seconds = j.at("compute_seconds").get<double>();
  r.exposed_seconds = j.at("exposed_comm_seconds").get<double>();
  r.bubble_seconds = j.at("bubble_seconds").get<double>();
  r.collective_seconds = optional_in(j, "collective_seconds");
  if (j.contains("predicted_seconds")) r.predicted_seconds = optional_in(j, "predicted_seconds");
  r.bytes = j.at("bytes").get<double>();
  r.messages = j.at("messages").get<double>();
  r.packets = optional_in(j, "packets");
  r.header_share = optional_in(j, "header_share");
  r.header_basis = j.at("header_basis").get<std::string>();
  r.retransmissions = optional_in(j, "retransmissions");
  r.busiest_nic_bytes = j.at("busiest_nic_bytes").get<double>();
  r.busiest_nic_wire_bytes = optional_in(j, "busiest_nic_wire_bytes");
  r.nic_bps = j.at("nic_bits_per_second").get<double>();
  r.nic_busy = optional_in(j, "nic_busy");
  r.helper_busy = optional_in(j, "helper_busy");
  r.link_busy = optional_in(j, "link_busy");
  r.switch_busy = optional_in(j, "switch_busy");
  r.switch_target = j.at("switch").get<std::string>();
  r.hottest_link = j.at("hottest_link").get<std::string>();
  r.cpu_seconds_per_GB = optional_in(j, "cpu_seconds_per_GB");
  r.dilation = j.at("dilation").get<double>();
  r.critical_lateness = j.at("critical_lateness").get<double>();
  r.wall_seconds = j.at("wall_seconds").get<double>();
  r.transport = j.at("transport").get<std::string>();
  r.schemes = j.at("schemes").get<std::string>();
  r.fabric = j.at("fabric").get<std::string>();
  r.faithful = j.at("faithful").get<bool>();
  r.modelled = j.at("modelled").get<bool>();
  r.deterministic = j.at("deterministic").get<bool>();
  r.retried = j.value("retried", false);
  r.reason = j.at("reason").get<std::string>();
  r.bottleneck = j.at("bottleneck").get<std::string>();
  return r;
}

}  // namespace ghostrank
