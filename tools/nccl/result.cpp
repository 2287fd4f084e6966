#include "tools/nccl/result.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "collectives/libraries.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/planners/plan.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

// By operation and group: the algorithms, with their calls where these are the same in every
// iteration.
using Rows = std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>>;

std::string told(double calls, double bytes) {
  return humane_count(calls, "call") + " of " + humane_count(bytes) + " B in all";
}

Rows rows_of(const StoredResult& result, bool calls) {
  Rows rows;
  for (const StoredResult::Call& c : result.collectives)
    rows[{c.op, c.group}][c.algorithm] = calls ? told(c.calls, c.bytes) : "";
  return rows;
}

Rows rows_of(const TrafficPlan& plan, bool calls) {
  Rows rows;
  for (const CollectiveTraffic& c : plan.collectives)
    rows[{c.op, c.group}][c.algorithm] =
        calls ? told(static_cast<double>(c.calls), static_cast<double>(c.buffer_bytes)) : "";
  return rows;
}

std::string text_of(const Rows& rows, const Rows::key_type& key) {
  const auto row = rows.find(key);
  if (row == rows.end()) return "none";
  std::string text;
  for (const auto& [algorithm, calls] : row->second)
    text += (text.empty() ? "" : "; ") + algorithm + (calls.empty() ? "" : ", " + calls);
  return text;
}

// Removes what the result lacks, because it is unknown which iterations the result measured.
void leave_only(const Rows& there, Rows& here) {
  Rows left;
  for (const auto& [key, algorithms] : there)
    if (const auto row = here.find(key); row != here.end())
      for (const auto& [algorithm, calls] : row->second)
        if (algorithms.contains(algorithm)) left[key][algorithm] = calls;
  here = std::move(left);
}

}  // namespace

NcclFindings check_nccl_result(const StoredResult& result, const LoadedJob& job) {
  const JobSpec& spec = job.spec;
  if (!spec.jobs.empty())
    throw Error(result.file + ": a result of several jobs, which are not compared; give one's own");
  if (library_named(spec.collectives.library) != Library::nccl)
    throw Error(result.file + ": its job plays " + spec.collectives.library +
                " and nothing of NCCL; give the result of a job whose library is nccl-2.28 or "
                "nccl-2.30");
  const Workload workload = plan_workload(spec);
  const int iterations = distinct_iterations(workload);
  // A result has means over its iterations, so calls and traffic say something only where all
  // iterations are alike.
  const bool alike = iterations == 1;
  Rows here;
  TrafficPlan traffic;
  for (int i = 0; i < iterations; ++i) {
    traffic = plan_traffic(spec, workload, i);
    for (auto& [key, algorithms] : rows_of(traffic, alike)) here[key].merge(algorithms);
  }
  const Rows there = rows_of(result, alike);
  if (!alike) leave_only(there, here);

  NcclFindings findings{spec.collectives.library,
                        {{result.job, humane_count(result.ranks, "rank"), {}, {}}}};
  NcclCommFindings& out = findings.comms.front();
  std::set<Rows::key_type> keys;
  for (const Rows* rows : {&std::as_const(here), &there})
    for (const auto& [key, algorithms] : *rows) keys.insert(key);
  for (const Rows::key_type& key : keys) {
    const std::string a = text_of(there, key), b = text_of(here, key);
    out.calls.push_back({key.first + " in " + key.second, a, b, a == b});
  }
  const auto compare = [&](const char* what, double stored, std::uint64_t now) {
    const std::string a = humane_count(stored), b = humane_count(static_cast<double>(now));
    NcclFinding finding{what, a, b, std::llround(stored) == static_cast<long long>(now)};
    if (!alike) finding.note = "iterations differ";
    out.calls.push_back(std::move(finding));
  };
  compare("messages between nodes", result.messages, traffic.wire_messages);
  compare("bytes between nodes", result.wire_bytes, traffic.wire_bytes);
  count_nccl_findings(findings);
  return findings;
}

}  // namespace ghostrank
