// The JSON of bench. For collectives it has exactly nccl-tests' form: booleans are strings, the
// root is a text of six characters, times are microseconds. Patterns use schema ghostrank/bench/1.
// See bench/table.h and bench/pattern.h.
#include "tools/report/json/json.h"

#include <array>
#include <cstdio>

#include "collectives/nccl/settings/versions.h"
#include "tools/report/json/machine_json.h"
#include "tools/verbs/bench/pattern.h"
#include "tools/verbs/bench/table.h"
#include "tools/version.h"

namespace ghostrank {
namespace {

constexpr int kJsonVersion = 2;

std::string truth(bool value) { return value ? "true" : "false"; }

// The version number of the NCCL release whose schedules are played; null for other libraries.
Json nccl_version(const std::string& library) {
  const NcclLibrary* nccl = nccl_library(library);
  return nccl ? Json(nccl->release) : Json(nullptr);
}

Json host_json(const HostReport& host) {
  Json json{{"index", host.index.value()},
            {"hostname", host.hostname},
            {"provider", host.provider},
            {"transport", host.transport},
            {"ranks", host.ranks}};
  add_machine(json, host);
  return json;
}

Json config_json_of(const BenchIdentity& identity, const BenchHead& head) {
  Json config{{"nthreads", head.threads},
              {"ngpus", head.gpus},
              {"minimum_bytes", head.sizes.first},
              {"maximum_bytes", head.sizes.last}};
  if (head.sizes.factor > 1) {
    config["step_factor"] = head.sizes.factor;
  } else {
    config["step_bytes"] = head.sizes.increment;
  }
  config["warmup_iters"] = head.warmup;
  config["iterations"] = head.iterations;
  config["aggregated_iterations"] = head.aggregated;
  config["validation"] = head.checks;
  config["graph"] = 0;
  config["blocking_collectives"] = truth(false);
  config["per_iter_timing"] = truth(head.per_iteration);
  config["per_iter_skip"] = head.skipped;
  config["parallel_init"] = truth(false);
  Json devices = Json::array();
  int rank = 0;
  for (const HostReport& host : identity.hosts) {
    devices.push_back({{"rank", rank},
                       {"group", 0},
                       {"pid", nullptr},
                       {"hostname", host.hostname},
                       {"device", host.index.value()},
                       {"device_hex", ""},
                       {"device_info", std::to_string(host.ranks) + " ghost ranks, " +
                                           host.provider + ", " + host.transport}});
    rank += host.ranks;
  }
  config["devices"] = std::move(devices);
  return config;
}

// The members that -I adds, in microseconds; statistics of no iterations are null.
Json each_json(const BenchHead& head, const BenchRow& row) {
  const IterationStats stats = stats_of(head, row);
  const auto figure = [known = has_stats(head, row)](double value) {
    return known ? Json(value) : Json(nullptr);
  };
  Json times = Json::array();
  for (const double seconds : row.each) times.push_back(seconds * 1e6);
  return {{"skipped_iterations", head.skipped},   {"min_us", figure(stats.min * 1e6)},
          {"max_us", figure(stats.max * 1e6)},    {"avg_us", figure(stats.mean * 1e6)},
          {"p50_us", figure(stats.p50 * 1e6)},    {"p95_us", figure(stats.p95 * 1e6)},
          {"p99_us", figure(stats.p99 * 1e6)},    {"stdev_us", figure(stats.stdev * 1e6)},
          {"cv_pct", figure(stats.cv_percent())}, {"times_us", std::move(times)}};
}

// How far the figures of each_json() may be off because of this machine, as shares of themselves;
// the deviation's, of the mean. Null: there are no figures.
Json errors_json(const BenchHead& head, const BenchRow& row) {
  if (!has_stats(head, row)) return nullptr;
  const IterationStats errors = errors_of(head, row);
  return {{"min_us", errors.min},    {"max_us", errors.max}, {"avg_us", errors.mean},
          {"p50_us", errors.p50},    {"p95_us", errors.p95}, {"p99_us", errors.p99},
          {"stdev_us", errors.stdev}};
}

Json row_json(const BenchHead& head, const BenchRow& row) {
  const Json measured{
      {"time", row.seconds * 1e6},
      {"alg_bw", row.algbw_GBps},
      {"bus_bw", row.busbw_GBps},
      {"nwrong", row.wrong ? Json(static_cast<double>(*row.wrong)) : Json(nullptr)}};
  std::array<char, 16> root{};
  std::snprintf(root.data(), root.size(), "%6d", shown_root(head.func, row.call));
  Json json{{"size", row.size.size}, {"count", row.size.count},
            {"type", row.call.type}, {"redop", shown_redop(head.func, row.call)},
            {"root", root.data()},   {"out_of_place", measured}};
  if (head.per_iteration) json["out_of_place_per_iter"] = each_json(head, row);
  json["in_place"] = measured;
  if (head.per_iteration) json["in_place_per_iter"] = each_json(head, row);
  json["actual_iterations"] = row.iterations;
  json["experiment_name"] = perf_name(head.func);
  json["ghostrank"] = {{"dilation", row.dilation},
                       {"messages", row.messages},
                       {"bytes", row.bytes},
                       {"faithful", row.fidelity.faithful},
                       {"modelled", row.fidelity.modelled},
                       {"reason", row.fidelity.reason}};
  if (head.per_iteration) json["ghostrank"]["errors"] = errors_json(head, row);
  return json;
}

// One object per row.
Json objects(const NumberTable& numbers) {
  Json list = Json::array();
  for (const auto& row : numbers.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i) object[numbers.columns[i]] = row[i];
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace

std::string bench_json(const BenchIdentity& identity, const BenchHead& head,
                       const std::vector<BenchRow>& rows) {
  Json results = Json::array();
  for (const BenchRow& row : rows) results.push_back(row_json(head, row));
  const std::uint64_t wrong = wrong_elements(rows);
  const std::optional<bool> fast = fast_enough(head, rows);
  Json errors = Json::array();
  if (!head.interrupted.empty()) errors.push_back(incomplete(head, rows));
  if (const std::string reason = unfaithful_reason(rows); !reason.empty())
    errors.push_back("not faithful: " + reason);
  Json hosts = Json::array();
  for (const HostReport& host : identity.hosts) {
    hosts.push_back(host_json(host));
  }
  const Json json{
      {"version", kJsonVersion},
      {"start_time", identity.start_time},
      {"args", identity.argv},
      {"env", Json::array()},
      {"nccl_version", nccl_version(identity.library)},
      {"config", config_json_of(identity, head)},
      {"results", std::move(results)},
      {"out_of_bounds", {{"count", wrong}, {"okay", truth(wrong == 0)}}},
      {"average_bus_bandwidth",
       {{"bandwidth", average_busbw(rows)}, {"okay", fast ? truth(*fast) : "unchecked"}}},
      {"errors", std::move(errors)},
      {"ghostrank",
       {{"version", identity.version},
        {"build", build_json(identity.build)},
        {"config", Json::parse(identity.config_json)},
        {"hosts", std::move(hosts)}}},
      {"end_time", identity.end_time}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string pattern_json(const PatternReport& report, const std::string& config_json) {
  Json hosts = Json::array();
  for (const HostReport& host : report.hosts) hosts.push_back(host_json(host));
  const Json json{{"schema", "ghostrank/bench/1"},
                  {"pattern", report.pattern},
                  {"ranks", report.ranks},
                  {"rows", objects(report.table)},
                  {"flows", objects(report.flows)},
                  {"outliers", report.remarks},
                  {"interrupted", report.interrupted.empty() ? Json() : Json(report.interrupted)},
                  {"messages", report.messages},
                  {"bytes", report.bytes},
                  {"dilation", {report.least_dilation, report.greatest_dilation}},
                  {"fidelity",
                   {{"faithful", report.unfaithful == 0},
                    {"modelled", report.modelled},
                    {"phases", report.phases},
                    {"unfaithful_phases", report.unfaithful},
                    {"reason", report.reason}}},
                  {"version", GHOSTRANK_VERSION},
                  {"build", build_json(build_facts())},
                  {"hosts", std::move(hosts)},
                  {"config", Json::parse(config_json)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ghostrank
