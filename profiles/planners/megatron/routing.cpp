#include "profiles/planners/megatron/routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/planners/shared/expert_choice.h"

namespace ghostrank {
namespace {

// Log-normal loads with a mean of 1 and the given standard deviation. The normals are Box and
// Muller's, because the standard library's distributions differ between implementations.
std::vector<double> drawn_loads(std::size_t experts, double deviation, std::uint64_t seed,
                                std::uint64_t layer) {
  std::mt19937_64 random(seed * 1'000'003 + layer);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  const double sigma2 = std::log1p(deviation * deviation);
  std::vector<double> loads;
  for (std::size_t e = 0; e < experts; ++e) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double normal = radius * std::cos(2 * 3.14159265358979323846 * uniform());
    loads.push_back(std::exp(std::sqrt(sigma2) * normal - sigma2 / 2));
  }
  return loads;
}

std::vector<double> loads_of(const MegatronPlan& plan, std::uint64_t layer, std::size_t routed) {
  const JobSpec& spec = *plan.spec;
  const auto& table = spec.parallel.expert_load;
  if (table.empty())
    return drawn_loads(plan.model.experts.count, spec.parallel.expert_imbalance, spec.run.seed,
                       layer);
  return table.size() == 1 ? table.front() : table[routed];
}

void check_table(const MegatronPlan& plan) {
  const JobSpec& spec = *plan.spec;
  const auto& table = spec.parallel.expert_load;
  const auto refuse = [&](const std::string& what) {
    throw Error(spec.source_of("parallel.expert_load") + ": parallel.expert_load: " + what);
  };
  if (!table.empty() && spec.parallel.expert_imbalance > 0)
    refuse("the loads are given, so there is nothing to draw; leave out parallel.expert_imbalance");
  std::size_t layers = 0;
  for (std::uint64_t i = 0; i < plan.model.layers + plan.model.mtp; ++i)
    layers += plan.model.has_experts(i);
  if (table.size() > 1 && table.size() != layers)
    refuse("there are " + std::to_string(table.size()) + " lists but the model has " +
           std::to_string(layers) + " layers with experts; give one list, or one for each of them");
  for (const std::vector<double>& loads : table) {
    if (loads.size() != plan.model.experts.count)
      refuse("a list has " + std::to_string(loads.size()) + " loads but the model " +
             std::to_string(plan.model.experts.count) + " experts; give one for each");
    if (std::accumulate(loads.begin(), loads.end(), 0.0) <= 0)
      refuse("all loads of a list are 0; some expert has to work");
  }
}

constexpr std::size_t kDrawnTokens = 1024;

std::uint32_t add(Workload& workload, const std::vector<std::uint64_t>& rows, std::uint64_t width,
                  bool back) {
  const std::size_t n = rows.size();
  std::vector<std::uint64_t> counts(n * n);
  for (std::size_t from = 0; from < n; ++from)
    for (std::size_t to = 0; to < n; ++to) counts[from * n + to] = rows[back ? from : to] * width;
  workload.counts.push_back(std::make_shared<const std::vector<std::uint64_t>>(std::move(counts)));
  return static_cast<std::uint32_t>(workload.counts.size() - 1);
}

Lists add_both(Workload& workload, const std::vector<std::uint64_t>& rows, std::uint64_t width) {
  return {add(workload, rows, width, false), add(workload, rows, width, true)};
}

// Rows that each rank's experts receive from every rank.
std::vector<std::uint64_t> rows_of_ranks(const MegatronPlan& plan,
                                         const std::vector<double>& loads) {
  const std::vector<std::uint64_t> rows = apportioned(plan.routed_rows(), loads);
  const std::ptrdiff_t here = plan.experts_here();
  std::vector<std::uint64_t> out;
  for (auto at = rows.begin(); at != rows.end(); at += here)
    out.push_back(std::accumulate(at, at + here, std::uint64_t{0}));
  return out;
}

void add_lists(const MegatronPlan& plan, Workload& workload, ExpertRouting& out) {
  out.rows_lists = add_both(workload, out.rows, plan.model.hidden);
  out.weights_lists = add_both(workload, out.rows, 1);
}

// Between nodes: a row per token and node that it reaches. Inside a node: the rows from all nodes,
// handed on.
void add_lists_once(const MegatronPlan& plan, const Choices& choices, Workload& workload,
                    ExpertRouting& out) {
  const auto whole = [&](double share, std::size_t times) {
    return static_cast<std::uint64_t>(
        std::llround(static_cast<double>(plan.routed_tokens() * times) * share));
  };
  const std::size_t nodes = choices.nodes.size(), each = choices.ranks.size() / nodes;
  std::vector<std::uint64_t> rows;
  for (const double share : choices.nodes) rows.push_back(whole(share, 1));
  out.rail = add_both(workload, rows, plan.model.hidden);
  out.rail_weights = add_both(workload, rows, plan.model.experts.top_k);
  for (std::size_t node = 0; node < nodes; ++node) {
    rows.clear();
    for (std::size_t r = 0; r < each; ++r)
      rows.push_back(whole(choices.ranks[node * each + r], nodes));
    out.node.push_back(add_both(workload, rows, plan.model.hidden));
    out.node_weights.push_back(add_both(workload, rows, plan.model.experts.top_k));
  }
}

}  // namespace

std::vector<std::uint64_t> apportioned(std::uint64_t total, const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::uint64_t> out;
  std::vector<std::pair<double, std::size_t>> rests;
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double exact = static_cast<double>(total) * (shares[i] / sum);
    const double whole = std::floor(exact);
    rests.emplace_back(whole - exact, i);  // largest remainder first, then lowest index
    out.push_back(static_cast<std::uint64_t>(whole));
    given += out.back();
  }
  std::sort(rests.begin(), rests.end());
  for (std::size_t i = 0; given < total; ++i, ++given) ++out[rests[i % rests.size()].second];
  return out;
}

std::uint64_t rows_to_each(const MegatronPlan& plan, int shares) {
  const Experts& experts = plan.model.experts;
  const double reached = reach(experts, experts.count / shares);
  return static_cast<std::uint64_t>(
      std::ceil(static_cast<double>(plan.routed_tokens()) * reached - 1e-6));
}

std::vector<ExpertRouting> megatron_routing(const MegatronPlan& plan, int nodes,
                                            Workload& workload) {
  if (!plan.is_uneven()) return {};
  check_table(plan);
  const Experts& experts = plan.model.experts;
  const bool once = plan.spec->parallel.deduplicated && plan.ep > 1;
  std::vector<ExpertRouting> out(plan.model.layers + plan.model.mtp);
  std::size_t routed = 0;
  for (std::uint64_t layer = 0; layer < out.size(); ++layer) {
    if (!plan.model.has_experts(layer)) continue;
    std::vector<double> loads = loads_of(plan, layer, routed++);
    Choices choices;
    if (once || experts.group_top_k < experts.groups) {
      choices = drawn_choices(experts, loads, plan.ep, nodes, kDrawnTokens,
                              plan.spec->run.seed * 1'000'003 + layer);
      loads = choices.experts;
    }
    out[layer].rows = rows_of_ranks(plan, loads);
    if (plan.ep == 1) continue;
    once ? add_lists_once(plan, choices, workload, out[layer])
         : add_lists(plan, workload, out[layer]);
  }
  return out;
}

std::vector<std::vector<double>> read_expert_load(const YamlValue* value) {
  if (!value || value->children.empty()) return {};
  const bool nested = value->children.front().is_list();
  std::vector<std::vector<double>> table;
  const auto row = [&](const YamlValue& list) {
    if (!list.is_list()) fail(list.mark, "write a list of loads, as in [1, 1, 2.5, 0.5]");
    std::vector<double> loads;
    for (const YamlValue& one : list.children) {
      const auto load = parse_number(one.text);
      if (!one.is_scalar() || !load || *load < 0 || *load > 1e9)
        fail(one.mark, description(one) + " is no load; write a number from 0 to 1e9");
      loads.push_back(*load);
    }
    table.push_back(std::move(loads));
  };
  if (!nested) row(*value);
  if (nested)
    for (const YamlValue& list : value->children) row(list);
  return table;
}

}  // namespace ghostrank
