#include "profiles/planners/kfac/calls.h"

#include "profiles/planners/schedulers/fusion.h"

namespace ghostrank {
namespace {

constexpr std::uint32_t kElementBytes = 4;  // fp32
constexpr double kMebibyte = 1 << 20;

struct Ready {
  std::size_t factor = 0;
  Picoseconds after = 0;  // since the one before it became ready
};

// In the order in which factors become ready.
using Pass = std::vector<Ready>;

std::vector<Pass> passes(const KfacScheme& scheme, const std::vector<Module>& modules,
                         const std::vector<Factor>& factors, const KfacCompute& compute) {
  if (!scheme.overlap) {
    Pass all;  // nothing is sent before the last is ready
    for (std::size_t f = 0; f < factors.size(); ++f) all.push_back({f, 0});
    return {all};
  }
  Pass forward, backward;
  Picoseconds since = 0;
  std::size_t next = 0;
  for (std::size_t m = 0; m < modules.size(); ++m) {
    if (next < factors.size() && factors[next].module == m) {
      forward.push_back({next, since + compute.factor(factors[next])});
      since = 0;
      next += 2;
    }
    since += modules[m].forward;
  }
  since = 0;
  for (std::size_t m = modules.size(); m-- > 0;) {
    since += modules[m].backward;
    if (next < 2 || factors[next - 1].module != m) continue;
    backward.push_back({next - 1, since + compute.factor(factors[next - 1])});
    since = 0;
    next -= 2;
  }
  return {forward, backward};
}

std::uint64_t packed(const std::vector<Factor>& factors, const FactorCall& call) {
  std::uint64_t sum = 0;
  for (const std::size_t f : call.factors) sum += factors[f].packed();
  return sum;
}

void fuse(const Pass& pass, const std::vector<Factor>& factors, std::uint64_t most,
          std::vector<FactorCall>& out) {
  std::uint64_t open = 0;
  for (const Ready& one : pass) {
    const std::uint64_t more = factors[one.factor].packed();
    if (open == 0 || open + more > most) {
      out.emplace_back();
      open = 0;
    }
    out.back().factors.push_back(one.factor);
    open += more;
  }
}

// merge_calls() walks its list from the end, so the pass is handed over in reverse.
void merge(const Pass& pass, const std::vector<Factor>& factors, const AllReduceCost& cost,
           std::vector<FactorCall>& out) {
  std::vector<ReadyTensor> list;
  for (auto one = pass.rbegin(); one != pass.rend(); ++one)
    list.push_back({factors[one->factor].packed(), 0, one->after});
  const std::vector<FusedGroup> groups = merge_calls(list, kElementBytes, cost, 0);
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    out.emplace_back();
    for (std::size_t i = group->end; i-- > group->first;)
      out.back().factors.push_back(pass[pass.size() - 1 - i].factor);
  }
}

void fuse_layers(const Pass& pass, std::vector<FactorCall>& out) {
  for (std::size_t i = 0; i < pass.size(); ++i) {
    if (i % 2 == 0) out.emplace_back();
    out.back().factors.push_back(pass[i].factor);
  }
}

// A call for every run of factors with one owner.
std::vector<FactorCall> split_by_owner(const std::vector<FactorCall>& calls,
                                       const std::vector<int>& owners) {
  std::vector<FactorCall> out;
  for (const FactorCall& call : calls)
    for (std::size_t i = 0; i < call.factors.size(); ++i) {
      const int owner = owners[call.factors[i]];
      if (i == 0 || owner != out.back().root) out.push_back({{}, 0, owner});
      out.back().factors.push_back(call.factors[i]);
    }
  return out;
}

}  // namespace

std::vector<FactorCall> factor_calls(const JobSpec& spec, const KfacScheme& scheme,
                                     const std::vector<Module>& modules,
                                     const std::vector<Factor>& factors,
                                     const std::vector<int>& owners, const KfacCompute& compute) {
  std::vector<FactorCall> out;
  if (scheme.reduction == FactorReduction::none) return out;
  const std::vector<Pass> all = passes(scheme, modules, factors, compute);
  for (const Pass& pass : all) {
    const bool backward = &pass != &all.front();
    switch (backward && !scheme.fuses_g ? FactorFusion::none : scheme.fusion) {
      case FactorFusion::optimal:
        merge(pass, factors, assumed_cost(spec), out);
        break;
      case FactorFusion::threshold:
        fuse(pass, factors,
             static_cast<std::uint64_t>(spec.parallel.kfac.fusion_mb * kMebibyte / kElementBytes),
             out);
        break;
      case FactorFusion::layer:
        fuse_layers(pass, out);
        break;
      case FactorFusion::automatic:
      case FactorFusion::none:
        fuse(pass, factors, 0, out);
    }
  }
  if (scheme.reduction == FactorReduction::reduce) out = split_by_owner(out, owners);
  for (FactorCall& call : out) call.packed = packed(factors, call);
  return out;
}

}  // namespace ghostrank
