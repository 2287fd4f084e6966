// The JSON forms of a result (schema ghostrank/result/1), both ways, and of the lines that stream
// while it grows: written in result_json.cpp, read in result_file.cpp.
//
// Times are seconds of the emulated cluster unless the key says wall. What is unknown is null.
//
// Threading: pure functions, but for those that name a file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/result/result.h"

namespace ghostrank {

inline constexpr std::size_t kMaxPairsInJson = 10'000;

std::string result_json(const Result& result);  // indented, ends in a newline

// The value behind a dotted path of numbers and truths ("step_time.median",
// "fidelity.critical_lateness"); empty when it is null. `is_result_path` tells whether there is
// such a path at all.
bool is_result_path(const std::string& path);
std::optional<double> value_at(const Result& result, const std::string& path);

// Model FLOPs over what the GPUs could do in a step of so many seconds; empty where one of them is
// unknown.
std::optional<double> model_flops_utilization(const Result& result, double step_seconds);

// Lines of FILE.partial.jsonl: one header, then one line per measured iteration.
std::string partial_header(const Result& started);
std::string partial_iteration(int index, const IterationReport& report);

// "n0.nic1", from a NIC's number in the cluster.
std::string nic_name(int nic, int nics_per_node);

// The pairs as CSV: src,dst,bytes,messages. Throws Error(environment).
void write_pairs_csv(const std::string& path, const Result& result);

// What `compare` reads from a result file.
struct StoredResult {
  std::string file, version, job, fabric, provider, transport;
  int ranks = 0, processes = 0;
  double dilation = 0, wall_seconds = 0;
  std::optional<double> step_median, compute, exposed, bubble;  // medians over iterations
  double wire_bytes = 0, messages = 0;                          // per iteration
  bool faithful = false, modelled = false;
  std::string reason, interrupted;
  bool pairs_known = false;
  std::map<std::pair<std::string, std::string>, std::pair<double, double>>
      pairs;  // bytes, messages
};
// Throws Error(usage) naming the file and the place.
StoredResult read_result(const std::string& file);

}  // namespace ghostrank
