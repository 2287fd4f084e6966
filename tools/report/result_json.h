// A result as JSON (schema ghostrank/result/1), written in result_json.cpp and read in
// result_file.cpp; and the lines that a run appends to FILE.partial.jsonl while it goes on.
//
// Times are seconds of the emulated cluster unless the key says wall. Unknown values are null.
//
// Threading: pure functions, except those that take the name of a file to read or write.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "emulator/result/result.h"

namespace ghostrank {

inline constexpr std::size_t kMaxPairsInJson = 10'000;

std::string result_json(const Result& result);  // indented, ends in a newline

// 16 hex digits that stand for everything that a run in virtual time played: the JSON without wall
// times, versions and the machine. Runs of one job have the same, with any number of shards. Empty:
// the run was in real time, or ended early.
std::string result_hash(const Result& result);

// value_at() returns the number at a dotted path ("step_time.median",
// "fidelity.critical_lateness"), 1 or 0 for a boolean, and nothing for null. In a list a name takes
// the place of the key ("servers.NAME.busy"). is_result_path() tells whether results have a number,
// a boolean or null at that path; any name may be one of a job, host, server, tier, link or figure.
bool is_result_path(const std::string& path);
std::optional<double> value_at(const Result& result, const std::string& path);

// Model FLOPs of an iteration, divided by the FLOPs that all GPUs could do in `step_seconds`; empty
// when either is unknown.
std::optional<double> model_flops_utilization(const Result& result, double step_seconds);

// Lines of FILE.partial.jsonl: one header, then one line per measured iteration.
std::string partial_header(const Result& started);
std::string partial_iteration(int index, const IterationReport& report);

// "n0.nic1", from a NIC's number in the cluster.
std::string nic_name(Nic nic, int nics_per_node);

// The pairs as CSV: src,dst,bytes,messages. Throws Error(environment).
void write_pairs_csv(const std::string& path, const Result& result);
std::string pairs_csv(const std::vector<PairTraffic>& pairs, int nics_per_node);

// The part of a result file that `compare` needs.
struct StoredResult {
  std::string file, version, job, fabric, provider, transport;
  int ranks = 0, processes = 0;
  double dilation = 0, wall_seconds = 0;
  std::optional<double> step_median, compute, exposed, bubble;  // medians over iterations
  double wire_bytes = 0, messages = 0;                          // per iteration
  bool faithful = false, modelled = false;
  std::string reason, interrupted;
  struct Call {
    std::string op, group, algorithm;
    double calls = 0, bytes = 0;  // per iteration
  };
  std::vector<Call> collectives;
  bool pairs_known = false;
  std::map<std::pair<std::string, std::string>, std::pair<double, double>>
      pairs;  // bytes, messages
};
// Throws Error(usage) that names the file and the key or line.
StoredResult read_result(const std::string& file);

// The same in two steps, for readers of more than `compare` needs: the JSON of a result, and from
// it what `file` stores. The pairs may stand in a CSV beside it.
nlohmann::json read_result_json(const std::string& file);
StoredResult stored_result(const nlohmann::json& json, const std::string& file);

}  // namespace ghostrank
