#include "emulator/assemble/send_limit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "emulator/fabric/wire.h"
#include "emulator/host/hosts.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"

namespace ghostrank {
namespace {

// An interface of a real machine: that of a rail, of an emulated node if those have namespaces.
using RealNic = std::tuple<Host, Node, int>;

struct SentBytes {
  double bytes = 0, messages = 0;
};

}  // namespace

double dilation_of_cap(const JobSpec& spec, const TrafficPlan& plan, int processes,
                       double stream_bps) {
  if (spec.max_nic_bps <= 0 || stream_bps <= 0) return 0;
  const VectorBy<Node, Host> host_of = host_of_nodes(spec, processes);
  const int nics = spec.cluster.nics_per_node;
  std::map<RealNic, std::map<Nic, SentBytes>> sent;
  for (const PairTraffic& pair : plan.pairs) {
    const Node from(pair.source_nic.value() / nics), to(pair.target_nic.value() / nics);
    if (from.value() >= std::ssize(host_of.rows())) continue;  // a switch sends it
    const bool to_switch = to.value() >= std::ssize(host_of.rows());
    if (to_switch ? !spec.network_switch.outside()
                  : host_of[from] == host_of[to] && spec.fabric.colocated != Colocated::wire)
      continue;
    const HostEntry* entry = host_entry(spec, host_of[from], processes);
    const bool apart = !spec.fabric.namespaces.empty();
    const int rails = entry && !entry->nics.empty() ? static_cast<int>(entry->nics.size())
                      : apart                       ? nics
                                                    : 1;
    SentBytes& own = sent[{host_of[from], apart ? from : Node(-1),
                           pair.source_nic.value() % nics % rails}][pair.source_nic];
    own.bytes += pair.bytes;
    own.messages += pair.messages;
  }
  double most = 0;
  for (const auto& [real, of_nic] : sent) {
    double bps = 0;
    for (const auto& [nic, own] : of_nic) {
      const bool trains = nic.value() / nics < spec.cluster.rank_nodes();
      const double rate = trains ? spec.cluster.nic.rate_bps : spec.cluster.servers.nic.rate_bps;
      const double mean = 8 * own.bytes / std::max(plan.step_seconds_at_least, 1e-9);
      const double with_headers = own.bytes > 0 ? 1 + own.messages * sizeof(Header) / own.bytes : 1;
      bps += (rate > 0 ? rate : mean) * with_headers;
    }
    most = std::max(most, bps);
  }
  return most / stream_bps;
}

void check_cap(const JobSpec& spec, double least_dilation) {
  if (spec.dilation == 0 || spec.dilation >= least_dilation) return;
  const double least =
      least_dilation < 10 ? std::ceil(10 * least_dilation) / 10 : std::ceil(least_dilation);
  throw Error(spec.source_of("scale.dilation") + ": scale.dilation: at " +
              number_text(spec.dilation) +
              " the NICs that share an interface would send faster than safety.max_rate_per_nic, " +
              rate_text(spec.max_nic_bps) + "; the least dilation that fits is " +
              number_text(least) + ", or give a higher cap");
}

}  // namespace ghostrank
