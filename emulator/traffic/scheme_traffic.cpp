#include "emulator/traffic/scheme_traffic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "emulator/verify/call_content.h"

namespace ghostrank {
namespace {

// Of a run's iterations so many are looked at, in the middle of as many equal parts.
constexpr int kMostLooks = 16;

struct EdgeSum {
  double bytes = 0, messages = 0;
};

}  // namespace

std::vector<Ends::Edge> scheme_traffic(const JobSpec& all, const Workload& workload, const Op& op,
                                       const Ends& ends, const Collective& collective,
                                       std::uint64_t elements) {
  const JobSpec& spec = settings_of(all, workload, op.group);
  const int size = collective.size;
  const auto traffic = [&](const Sparsity& sparsity) {
    return ends.traffic({0, collective, op.dtype, sparsity, op.tensor});
  };
  const bool changes =
      op.tensor != 0 && spec.tensors && spec.last_density > 0 && !layout_of(workload, op);
  if (!changes) return traffic(mean_sparsity(all, workload, op, size, elements));
  const int iterations = spec.run.iterations, looks = std::min(iterations, kMostLooks);
  std::map<std::tuple<GroupParty, GroupParty, Carriage, std::uint32_t>, EdgeSum> sums;
  for (int look = 0; look < looks; ++look) {
    const std::int64_t at = (2 * look + 1) * std::int64_t{iterations} / (2 * looks);
    const auto iteration = static_cast<std::uint32_t>(spec.run.warmup + at);
    for (const Ends::Edge& edge :
         traffic(in_whole_blocks(sparsity_in(spec, iteration), size, elements))) {
      EdgeSum& sum = sums[{edge.from, edge.to, edge.carriage, edge.copies}];
      sum.bytes += static_cast<double>(edge.bytes);
      sum.messages += static_cast<double>(edge.messages);
    }
  }
  const auto mean = [&](double sum) {
    return static_cast<std::uint64_t>(std::llround(sum / looks));
  };
  std::vector<Ends::Edge> edges;
  for (const auto& [key, sum] : sums) {
    const auto& [from, to, carriage, copies] = key;
    const std::uint64_t least = sum.messages > 0 ? 1 : 0;  // 0: an edge that nothing uses
    edges.push_back(
        {from, to, mean(sum.bytes), std::max(least, mean(sum.messages)), carriage, copies});
  }
  return edges;
}

}  // namespace ghostrank
