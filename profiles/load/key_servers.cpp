#include "profiles/load/key_servers.h"

#include <algorithm>
#include <string>

namespace ghostrank {
namespace {

// BYTEPS_SCHEDULING_CREDIT is off by default. The best split assumes that what a node sends as a
// worker and as a server takes turns, which takes a window: enough pieces to keep every server
// busy.
constexpr std::uint64_t kPiecesPerServer = 2;

}  // namespace

void read_key_servers(const Settings& in, JobSpec& spec) {
  const Framework framework = spec.parallel.framework;
  if (!plays_at_servers(framework)) return;
  const std::string scheme(name_of(framework));
  const Setting& named = in.at("collectives.allreduce");
  const bool racks = framework == Framework::phub && named.text == "phub_racks";
  if (named.given && named.text != "auto" && named.text != scheme && !racks)
    fail(named.mark, "collectives.allreduce is " + quote(named.text) + ", but framework " + scheme +
                         " sums gradients by its own scheme; leave it out");
  spec.collectives.algorithm(Func::all_reduce) = racks ? named.text : scheme;
  if (spec.parallel.launch == Launch::flat)
    fail(in.at("parallel.launch").mark, "parallel.launch: framework " + scheme +
                                            " has no call for all gradients; use overlap or "
                                            "after_backward");
}

void settle_key_servers(const Settings& in, JobSpec& spec) {
  const ServerSpec& servers = spec.cluster.servers;
  const int nodes = spec.cluster.rank_nodes();
  const Setting& count = in.at("servers.count");
  if (servers.colocated && servers.count > nodes)
    fail(count.mark, "servers.count is " + count.text + ", but the cluster has " +
                         std::to_string(nodes) +
                         " nodes beside whose GPUs servers can be; use at most as many, or "
                         "servers.placement: dedicated");
  const Framework framework = spec.parallel.framework;
  if (!plays_at_servers(framework)) return;
  if (servers.places(nodes) == 0)
    fail(in.at("parallel.framework").mark,
         "framework " + std::string(name_of(framework)) +
             " needs servers, and servers.count is 0; set it, with "
             "servers.placement: dedicated, colocated or mixed");
  spec.collectives.at_servers = key_server_options(spec.parallel, servers.places(nodes));
}

AtServers key_server_options(const ParallelPlan& plan, int places) {
  AtServers out;
  if (!plays_at_servers(plan.framework)) return out;
  out.partition_bytes = out.chunk_bytes = plan.partition_bytes;
  if (plan.framework != Framework::byteps) return out;
  out.bound = plan.best_split;
  out.hash = plan.key_hash;
  out.schedules = plan.server_schedule;
  if (plan.own_credit)
    out.credit_bytes = std::max<std::uint64_t>(1, plan.credit_bytes);
  else if (out.bound)
    out.credit_bytes = kPiecesPerServer * out.partition_bytes * static_cast<std::uint64_t>(places);
  return out;
}

}  // namespace ghostrank
