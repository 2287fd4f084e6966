// See result_json.h. The functions below follow the nesting of the schema from the outside in.
#include "tools/report/result_json.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "profiles/algorithms/algorithms.h"
#include "profiles/input/content_hash.h"
#include "profiles/load/named_files.h"
#include "tools/report/jobs_report.h"
#include "tools/report/json/json.h"
#include "tools/report/json/machine_json.h"
#include "tools/report/json/network_json.h"
#include "tools/report/tensor_report.h"
#include "tools/text/statistics.h"

namespace ghostrank {
namespace {

Json hosts_json(const Result& result) {
  Json list = Json::array();
  for (const HostReport& h : result.hosts) {
    list.push_back({{"index", h.index.value()},
                    {"hostname", h.hostname},
                    {"name", h.name.empty() ? h.hostname : h.name},
                    {"cores", h.cores},
                    {"bound", h.bound},
                    {"provider", h.provider},
                    {"transport", h.transport},
                    {"ranks", h.ranks},
                    {"rss_bytes", h.rss_bytes},
                    {"cpu_seconds", h.cpu_seconds}});
    add_machine(list.back(), h);
  }
  return list;
}

Json iteration_json(const IterationReport& i) {
  return {{"seconds", i.seconds},
          {"compute_seconds", i.compute_seconds},
          {"exposed_comm_seconds", i.exposed_comm_seconds},
          {"bubble_seconds", i.bubble_seconds}};
}

// Of a sample, each says which one it is.
Json iterations_json(const Result& result) {
  Json list = Json::array();
  for (const IterationReport& i : result.iterations) {
    list.push_back(iteration_json(i));
    if (result.open_end && !result.open_end->numbers.empty())
      list.back()["iteration"] = result.open_end->numbers[list.size() - 1];
  }
  return list;
}

Json open_end_json(const OpenEnd& end) {
  return {{"by", name_of(end.by)}, {"iterations", end.iterations}, {"kept_one_in", end.one_in}};
}

Json step_time_json(const Result& result) {
  std::vector<double> seconds;
  for (const IterationReport& i : result.iterations) seconds.push_back(i.seconds);
  const Summary s = result.deterministic ? summarize_exact(seconds) : summarize(seconds);
  Json json{{"median", or_null(s.median)},
            {"mean", or_null(s.mean)},
            {"cv", or_null(s.cv)},
            {"ci95", s.ci95 ? Json::array({s.ci95->first, s.ci95->second}) : Json(nullptr)},
            {"deterministic", result.deterministic},
            {"model_error",
             result.fidelity.model_error > 0 ? Json(result.fidelity.model_error) : Json(nullptr)},
            {"compute", result.fidelity.assumed_compute ? "assumed" : "calibrated"}};
  if (s.p99) json["p99"] = *s.p99;
  return json;
}

Json throughput_json(const Result& result) {
  std::vector<double> seconds;
  for (const IterationReport& i : result.iterations) seconds.push_back(i.seconds);
  const std::optional<double> step = summarize(seconds).median;
  const bool timed = step && *step > 0;
  Json json{{"samples_per_second", nullptr}, {"tflops_per_gpu", nullptr}, {"mfu", nullptr}};
  if (timed && result.samples_per_iteration > 0) {
    json["samples_per_second"] = result.samples_per_iteration / *step;
  }
  if (timed && result.flops_per_iteration > 0 && result.ranks > 0) {
    json["tflops_per_gpu"] = result.flops_per_iteration / *step / result.ranks * 1e-12;
  }
  if (timed) json["mfu"] = or_null(model_flops_utilization(result, *step));
  return json;
}

Json exactness_json(const Exactness& exactness) {
  return {{"level", name_of(exactness.level)}, {"basis", name_of(exactness.basis)}};
}

Json collectives_json(const Result& result) {
  Json list = Json::array();
  const auto timed_valid = [](const CollectiveReport& c, double error) {
    return c.seconds_median > 0 ? Json(error <= Figure::kMostError) : nullptr;
  };
  for (const CollectiveReport& c : result.collectives) {
    const auto timed = [&](double value) { return c.seconds_median > 0 ? Json(value) : nullptr; };
    list.push_back({{"op", c.op},
                    {"group", c.group},
                    {"algorithm", c.algorithm},
                    {"exactness", exactness_json(c.exactness)},
                    {"calls", count_json(c.calls)},
                    {"bytes", count_json(c.bytes)},
                    {"seconds_median", timed(c.seconds_median)},
                    {"seconds_ci95", c.seconds_median > 0 ? Json({c.seconds_interval.first,
                                                                  c.seconds_interval.second})
                                                          : nullptr},
                    {"algbw_GBps", timed(c.algbw_GBps)},
                    {"busbw_GBps", timed(c.busbw_GBps)},
                    {"seconds_valid", timed_valid(c, c.seconds_error)},
                    {"bandwidth_valid", timed_valid(c, c.bandwidth_error)}});
  }
  return list;
}

Json nics_json(const std::vector<NicTraffic>& nics, int nics_per_node) {
  Json list = Json::array();
  for (const NicTraffic& nic : nics) {
    list.push_back({{"nic", nic_name(nic.nic, nics_per_node)},
                    {"tx_bytes", count_json(nic.tx_bytes)},
                    {"rx_bytes", count_json(nic.rx_bytes)},
                    {"tx_messages", count_json(nic.tx_messages)},
                    {"rx_messages", count_json(nic.rx_messages)}});
  }
  return list;
}

Json pairs_json(const Result& result) {
  Json pairs = Json::array();
  for (const PairTraffic& p : result.pairs) {
    pairs.push_back({{"src", nic_name(p.source_nic, result.nics_per_node)},
                     {"dst", nic_name(p.target_nic, result.nics_per_node)},
                     {"bytes", count_json(p.bytes)},
                     {"messages", count_json(p.messages)}});
  }
  return pairs;
}

Json traffic_json(const Result& result) {
  Json json{
      {"wire_bytes_per_iteration", count_json(result.wire_bytes_per_iteration)},
      {"messages_per_iteration", count_json(result.messages_per_iteration)},
      {"intra_node_bytes_per_iteration", count_json(result.intra_node_bytes_per_iteration)},
      {"intra_node_messages_per_iteration", count_json(result.intra_node_messages_per_iteration)}};
  if (result.pairs_file.empty())
    json["pairs"] = pairs_json(result);
  else
    json["pairs_file"] = result.pairs_file;
  json["nics"] = nics_json(result.nics, result.nics_per_node);
  Json flows = Json::array();
  for (const FlowCount& f : result.flows)
    flows.push_back({{"hosts", {f.host.value(), f.peer.value()}}, {"count", f.flows}});
  json["flows"] = std::move(flows);
  return json;
}

Json slice_json(const SliceReport& slice) {
  return {{"nodes", slice.nodes},
          {"nodes_played", slice.nodes_played},
          {"ranks_played", slice.ranks_played},
          {"bytes_to_outside_per_iteration", count_json(slice.bytes_to_outside)},
          {"messages_to_outside_per_iteration", count_json(slice.messages_to_outside)},
          {"bytes_from_outside_per_iteration", count_json(slice.bytes_from_outside)},
          {"messages_from_outside_per_iteration", count_json(slice.messages_from_outside)}};
}

Json switch_json(const Result& result) {
  if (!result.network_switch) return nullptr;
  const SwitchReport& sw = *result.network_switch;
  const double wall = result.played_wall_seconds;
  return {{"target", sw.target},
          {"address", sw.address},
          {"cpu_seconds", or_null(sw.processor_seconds)},
          {"memory_bytes", sw.memory_bytes > 0 ? Json(sw.memory_bytes) : Json()},
          {"packets_sent_again", result.packets ? Json(result.packets->sent_again) : Json()},
          {"busy", sw.processor_seconds && wall > 0 ? Json(*sw.processor_seconds / wall) : Json()}};
}

Json troubles_json(const std::optional<SwitchTroubles>& troubles) {
  if (!troubles) return nullptr;
  const SwitchTroubles& t = *troubles;
  return {
      {"failures", t.failures},
      {"unheard_packets", t.unheard},
      {"restarts", t.restarts},
      {"fallbacks", t.fallbacks},
      {"first_fallback_s", t.first_fallback < 0 ? Json() : count_json(seconds(t.first_fallback))},
      {"ring_calls", t.ring_calls}};
}

Json servers_json(const std::vector<ServerReport>& servers) {
  Json list = Json::array();
  for (const ServerReport& s : servers)
    list.push_back({{"name", s.name},
                    {"rx_bytes", count_json(s.rx_bytes)},
                    {"tx_bytes", count_json(s.tx_bytes)},
                    {"busy", s.busy},
                    {"memory_bytes", s.memory_bytes}});
  return list;
}

Json packets_json(const std::optional<PacketCounts>& packets) {
  if (!packets) return nullptr;
  const PacketCounts& p = *packets;
  return {{"sent", p.sent},
          {"received", p.received},
          {"lost_on_purpose", p.lost_on_purpose},
          {"doubled_on_purpose", p.doubled_on_purpose},
          {"delayed_on_purpose", p.delayed_on_purpose},
          {"dropped", p.unreadable > 0 ? Json(nullptr) : Json(p.dropped)},
          {"refused", p.refused},
          {"strays", p.strays}};
}

Json stalls_json(const Result& result) {
  Json list = Json::array();
  for (const StallReport& s : result.stalls) {
    list.push_back({{"start_s", count_json(s.start_s)},
                    {"seconds", count_json(s.seconds)},
                    {"wall_start_s", count_json(s.wall_start_s)},
                    {"wall_seconds", count_json(s.wall_seconds)},
                    {"iterations", s.iterations}});
  }
  return list;
}

Json events_json(const Result& result) {
  Json list = Json::array();
  for (const EventReport& e : result.events)
    list.push_back({{"at_s", count_json(e.at_s)},
                    {"wall_s", or_null(e.wall_s)},
                    {"iteration", e.iteration ? Json(*e.iteration) : Json()},
                    {"kind", e.kind},
                    {"what", e.what}});
  return list;
}

Json interfaces_json(const Result& result) {
  Json list = Json::array();
  for (const InterfaceReport& i : result.interfaces) {
    Json iterations = Json::array(), counters = Json::object();
    for (const ByteCounts& c : i.iterations)
      iterations.push_back({{"tx_bytes", or_null(c.tx_bytes)}, {"rx_bytes", or_null(c.rx_bytes)}});
    for (const auto& [name, grown] : i.counters) counters[name] = grown;
    list.push_back({{"host", i.host.value()},
                    {"namespace", i.network_namespace},
                    {"device", i.device},
                    {"loopback", i.loopback},
                    {"tx_bytes", or_null(i.tx_bytes)},
                    {"rx_bytes", or_null(i.rx_bytes)},
                    {"iterations", std::move(iterations)},
                    {"counters", std::move(counters)}});
  }
  return list;
}

Json figures_json(const Fidelity& f) {
  Json figures = Json::object();
  for (const Figure& figure : f.figures)
    figures[figure.name] = {{"error", figure.error}, {"valid", figure.valid()}};
  return figures;
}
Json fidelity_json(const Result& result) {
  const Fidelity& f = result.fidelity;
  return {{"faithful", f.faithful},
          {"modelled", f.modelled},
          {"valid_for", f.valid_for},
          {"exactness", exactness_json(exactness_of(result))},
          {"lateness_us",
           {{"p50", f.lateness_us_p50}, {"p99", f.lateness_us_p99}, {"max", f.lateness_us_max}}},
          {"critical_lateness", f.critical_lateness},
          {"rate_error", f.rate_error},
          {"run_queue_wait", f.run_queue_wait < 0 ? Json(nullptr) : Json(f.run_queue_wait)},
          {"loop_busy", f.loop_busy},
          {"queued", f.queued < 0 ? Json(nullptr) : Json(f.queued)},
          {"throttled", f.throttled < 0 ? Json(nullptr) : Json(f.throttled)},
          {"figures", figures_json(f)},
          {"reason", f.reason}};
}

Json capacity_json(const Capacity& c) {
  return {{"wire_bytes_per_second",
           c.wire_bytes_per_second > 0 ? Json(c.wire_bytes_per_second) : Json(nullptr)},
          {"seconds_per_message", c.seconds_per_message},
          {"wire_bytes", count_json(c.wire_bytes)},
          {"wire_messages", count_json(c.wire_messages)},
          {"local_messages", count_json(c.local_messages)},
          {"step_seconds_at_least", c.step_seconds_at_least},
          {"dilation_needed", c.dilation_needed}};
}

Json config_json(const Result& result) {
  if (result.config_json.empty()) return Json::object();
  Json config = Json::parse(result.config_json);
  config.erase("files");  // which stand beside it
  return config;
}

Json files_json(const Result& result) {
  Json json = Json::object();
  for (const auto& [name, file] : files_in(result.config_json))
    json[name] = {{"path", file.path}, {"hash", file.hash}};
  return json;
}

Json to_json(const Result& result) {
  Json json{{"schema", "ghostrank/result/1"},
            {"version", result.version},
            {"build", build_json(result.build)},
            {"argv", result.argv},
            {"job", result.job_name},
            {"started_utc", result.started_utc},
            {"config", config_json(result)},
            {"files", files_json(result)},
            {"hosts", hosts_json(result)},
            {"ranks", result.ranks},
            {"dilation", count_json(result.dilation)},
            {"wall_seconds", result.wall_seconds},
            {"played_wall_seconds", result.played_wall_seconds},
            {"iterations", iterations_json(result)},
            {"step_time", step_time_json(result)}};
  if (result.open_end) json["open_end"] = open_end_json(*result.open_end);
  if (!result.jobs.empty()) json["jobs"] = jobs_json(result);
  json.update(throughput_json(result));
  json["collectives"] = collectives_json(result);
  json["traffic"] = traffic_json(result);
  if (result.slice) json["slice"] = slice_json(*result.slice);
  json["network"] = network_json(result.network);
  json["tensors"] = tensors_json(result.tensors);
  json["compression"] = compression_json(result.compression);
  json["training"] = training_json(result.training);
  json["servers"] = servers_json(result.servers);
  json["packets"] = packets_json(result.packets);
  json["switch_troubles"] = troubles_json(result.troubles);
  json["switch"] = switch_json(result);
  json["interfaces"] = interfaces_json(result);
  json["stalls"] = stalls_json(result);
  json["events"] = events_json(result);
  json["fidelity"] = fidelity_json(result);
  json["capacity"] = capacity_json(result.capacity);
  json["verify"] = result.verify ? Json{{"checked_elements", result.verify->checked_elements},
                                        {"wrong_elements", result.verify->wrong_elements}}
                                 : Json(nullptr);
  json["notes"] = result.notes;
  json["interrupted"] = result.interrupted.empty() ? Json(nullptr) : Json(result.interrupted);
  return json;
}

constexpr const char* kAnyName = "*";  // in the sample of is_result_path()

// The member `key` of an object, or of a list the member with that `name` or `link`. Null when
// there is none.
const Json* find_member(const Json& in, const std::string& key) {
  if (in.is_object() && in.contains(key)) return &in.at(key);
  if (in.is_object() && in.contains(kAnyName)) return &in.at(kAnyName);
  if (!in.is_array()) return nullptr;
  for (const Json& one : in) {
    if (!one.is_object()) continue;
    const Json name = one.contains("link") ? one.at("link") : one.value("name", Json());
    if (name == key || name == kAnyName) return &one;
  }
  return nullptr;
}

// Names may contain dots.
const Json* find_path(const Json& root, const std::string& path) {
  for (std::size_t end = path.find('.'); end != std::string::npos; end = path.find('.', end + 1)) {
    const Json* member = find_member(root, path.substr(0, end));
    const Json* found = member ? find_path(*member, path.substr(end + 1)) : nullptr;
    if (found) return found;
  }
  return find_member(root, path);
}

}  // namespace

std::string result_json(const Result& result) {
  Json json = to_json(result);
  const std::string hash = result_hash(result);
  json["hash"] = hash.empty() ? Json(nullptr) : Json(hash);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string result_hash(const Result& result) {
  // How far traffic had come when a run was stopped depends on its threads, and how many iterations
  // there were before a wall time on the machine.
  if (!result.fidelity.modelled || !result.interrupted.empty()) return "";
  if (result.open_end && result.open_end->by == EndedBy::max_seconds) return "";
  Json json = to_json(result);
  for (const char* key :
       {"version", "build", "argv", "job", "started_utc", "files", "hosts", "wall_seconds",
        "played_wall_seconds", "switch", "interfaces", "stalls", "fidelity", "capacity", "notes"})
    json.erase(key);
  if (json["config"].contains("run")) json["config"]["run"].erase("shards");
  if (json["network"].is_object()) json["network"].erase("topology");  // names a file by its path
  for (const char* key : {"pairs", "pairs_file"}) json["traffic"].erase(key);
  json["pairs"] = pairs_json(result);     // wherever they are written
  for (Json& call : json["collectives"])  // one of `jobs` has names of its own for its files
    if (Algorithms::names_file(call["algorithm"].get_ref<const std::string&>()))
      call.erase("algorithm");
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return content_hash_text(with_contents(text, files_in(result.config_json)));
}

bool is_result_path(const std::string& path) {
  Result sample;  // has every key; the values are null or zero, and names may be any
  constexpr std::size_t kEnoughForP99 = 100;
  sample.iterations.resize(kEnoughForP99);
  sample.verify = VerifyReport{};
  sample.packets = PacketCounts{};
  sample.network_switch = SwitchReport{};
  sample.troubles = SwitchTroubles{};
  sample.slice = SliceReport{};
  sample.tensors = TensorUse{};
  sample.tensors->last_density = 0;
  sample.compression = CompressionUse{};
  sample.training = TrainingUse{};
  sample.hosts.emplace_back().name = kAnyName;
  sample.jobs.emplace_back().name = kAnyName;
  sample.jobs.back().tensors = sample.tensors;
  sample.jobs.back().compression = sample.compression;
  sample.servers.emplace_back().name = kAnyName;
  sample.network = NetworkReport{};
  sample.network->hottest.emplace_back().link = kAnyName;
  sample.network->tiers.emplace_back().name = kAnyName;
  sample.network->tiers.back().queue = QueueCount{};
  sample.fidelity.figures = {{kAnyName}};
  const Json json = to_json(sample);
  const Json* found = find_path(json, path);
  return found != nullptr && (found->is_number() || found->is_boolean() || found->is_null());
}

std::optional<double> value_at(const Result& result, const std::string& path) {
  const Json json = to_json(result);
  const Json* found = find_path(json, path);
  if (found == nullptr) return std::nullopt;
  if (found->is_boolean()) return found->get<bool>() ? 1 : 0;
  if (!found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::optional<double> model_flops_utilization(const Result& result, double step_seconds) {
  const double possible = result.peak_flops * result.ranks * step_seconds;
  if (possible <= 0 || result.flops_per_iteration <= 0) return std::nullopt;
  return result.flops_per_iteration / possible;
}

std::string partial_header(const Result& started) {
  return Json{{"schema", "ghostrank/partial/1"},
              {"version", started.version},
              {"build", build_json(started.build)},
              {"argv", started.argv},
              {"job", started.job_name},
              {"started_utc", started.started_utc},
              {"config", config_json(started)},
              {"hosts", hosts_json(started)},
              {"ranks", started.ranks},
              {"dilation", count_json(started.dilation)}}
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::string partial_iteration(int index, const IterationReport& report) {
  Json line{{"iteration", index}};
  line.update(iteration_json(report));
  return line.dump() + "\n";
}

std::string nic_name(Nic nic, int nics_per_node) {
  const int per_node = nics_per_node > 0 ? nics_per_node : 1;
  return "n" + std::to_string(nic.value() / per_node) + ".nic" +
         std::to_string(nic.value() % per_node);
}

}  // namespace ghostrank
