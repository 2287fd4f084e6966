#include "profiles/planners/kfac/kfac.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/planners/kfac/calls.h"
#include "profiles/planners/kfac/placement.h"
#include "profiles/planners/memory_check.h"
#include "profiles/planners/schedulers/fusion.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/planners/shared/two_streams.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kHost = 2;

struct Plan {
  const JobSpec& spec;
  KfacScheme scheme;
  KfacCompute compute;
  Picoseconds optimizer = 0;
  std::vector<Module> modules;
  std::vector<Factor> factors;
  std::vector<int> owners;  // by factor
  std::vector<FactorCall> calls;

  bool leaves_out(KfacExclude part) const { return spec.parallel.kfac.exclude >= part; }
  bool is_local(std::size_t f) const { return owners[f] == kEveryRank; }
};

// What one step of one rank does.
struct RankStep {
  int rank = 0;
  bool factors = true, inverses = true;  // are updated
};

class Writer {
 public:
  Writer(const Plan& plan, const RankStep& step)
      : plan_(plan), step_(step), out_({"compute", "comm", "host"}) {}

  Program write() {
    const bool hooks = plan_.scheme.overlap && step_.factors;
    forward(hooks);
    backward(hooks);
    out_.after(kCompute, kComm);
    if (step_.factors && !hooks) factors_after_backward();
    if (step_.factors) unpack_factors();
    if (step_.inverses && !plan_.leaves_out(KfacExclude::inverses)) invert();
    precondition();
    out_.compute(kCompute, "optimizer", plan_.optimizer);
    return out_.take();
  }

 private:
  bool is_mine(std::size_t f) const { return plan_.is_local(f) || plan_.owners[f] == step_.rank; }

  void factor(std::size_t f) {
    if (plan_.scheme.reduction == FactorReduction::none && !is_mine(f)) return;
    out_.compute(kCompute, "factor " + plan_.factors[f].name,
                 plan_.compute.factor(plan_.factors[f]));
  }

  void send(const FactorCall& call) {
    if (plan_.leaves_out(KfacExclude::factor_comm)) return;
    const bool reduce = plan_.scheme.reduction == FactorReduction::reduce;
    const std::string& first = plan_.factors[call.factors.front()].name;
    for (const std::size_t f : call.factors) pack(f);
    // PAD-KFAC reduces without Horovod. To Horovod a call that hooks fused is one tensor; factors
    // that are handed over after the backward it fuses itself.
    const bool asks = !reduce, hooks = plan_.scheme.overlap;
    if (asks && hooks) hand_over(1);
    out_.after(kComm, kCompute);
    if (asks && hooks) await_cycle();
    if (asks && !hooks) request(call.factors.size());
    out_.collective(kComm, "factors from " + first, reduce ? Func::reduce : Func::all_reduce,
                    kDataParallel, DataType::float32, call.packed, reduce ? call.root : 0);
  }

  void pack(std::size_t f) {
    out_.compute(kCompute, "pack " + plan_.factors[f].name, plan_.compute.pack(plan_.factors[f]));
  }

  void unpack(std::size_t f) {
    out_.compute(kCompute, "unpack " + plan_.factors[f].name,
                 plan_.compute.unpack(plan_.factors[f]));
  }

  // Requests of tensors that a hook hands over. The pass waits for them, but the host makes them:
  // on the compute stream, calls beside them would prolong them.
  void hand_over(std::size_t tensors) {
    const Picoseconds time = plan_.compute.requests(tensors);
    if (time == 0) return;
    out_.after(kHost, kCompute);
    out_.compute(kHost, "requests", time);
    out_.after(kCompute, kHost);
  }

  // Requests in front of a call.
  void request(std::size_t tensors) {
    out_.compute(kComm, "requests", plan_.compute.requests(tensors));
  }

  // Horovod's wait for its next cycle, for a call that shares the cycle with no other.
  void await_cycle() { out_.pace(kComm, "cycle", plan_.compute.cycle()); }

  // Unpacks the sums of factors on the ranks that received them.
  void unpack_factors() {
    if (plan_.leaves_out(KfacExclude::factor_comm)) return;
    const bool reduce = plan_.scheme.reduction == FactorReduction::reduce;
    for (const FactorCall& call : plan_.calls)
      for (const std::size_t f : call.factors)
        if (!reduce || is_mine(f)) unpack(f);
  }

  // Calls leave in their order, each after its last factor.
  void send_after(std::size_t f) {
    if (next_call_ < plan_.calls.size() && plan_.calls[next_call_].factors.back() == f)
      send(plan_.calls[next_call_++]);
  }

  void hook(std::size_t f) {
    factor(f);
    send_after(f);
  }

  void forward(bool hooks) {
    std::size_t layer = 0;
    for (std::size_t m = 0; m < plan_.modules.size(); ++m) {
      const bool has_factors =
          2 * layer < plan_.factors.size() && plan_.factors[2 * layer].module == m;
      if (has_factors && hooks) hook(2 * layer);
      if (has_factors) ++layer;
      out_.compute(kCompute, "forward " + plan_.modules[m].name, plan_.modules[m].forward);
    }
  }

  // Gradients that become ready within a cycle of Horovod share a call. With hooks, factors G are
  // computed between the modules' backward passes, and count as part of them.
  void backward(bool hooks) {
    std::vector<Module> timed = plan_.modules;
    if (hooks)
      for (std::size_t f = 1; f < plan_.factors.size(); f += 2)
        timed[plan_.factors[f].module].backward += plan_.compute.factor(plan_.factors[f]);
    const auto cycle = static_cast<Picoseconds>(
        std::llround(plan_.spec.parallel.cycle_ms * 1e3 * static_cast<double>(kPicosPerMicro)));
    const std::vector<FusedGroup> groups = fuse_by_waiting(timed, cycle);
    std::size_t layer = plan_.factors.size() / 2;
    for (std::size_t g = groups.size(); g-- > 0;) {
      for (std::size_t m = groups[g].end; m-- > groups[g].first;) {
        out_.compute(kCompute, "backward " + plan_.modules[m].name, plan_.modules[m].backward);
        hand_over(plan_.modules[m].tensors.size());
        if (layer == 0 || plan_.factors[2 * layer - 1].module != m) continue;
        --layer;
        if (hooks) hook(2 * layer + 1);
      }
      if (groups[g].numel == 0) continue;
      out_.after(kComm, kCompute);
      await_cycle();
      out_.collective(kComm, "gradients " + std::to_string(g), Func::all_reduce, kDataParallel,
                      plan_.spec.precision.gradients, groups[g].numel, 0, g + 1);
    }
  }

  void factors_after_backward() {
    for (std::size_t f = 0; f < plan_.factors.size(); ++f) factor(f);
    for (const FactorCall& call : plan_.calls) send(call);
    out_.after(kCompute, kComm);
  }

  void invert() {
    const bool sends =
        !plan_.scheme.sends_gradients && !plan_.leaves_out(KfacExclude::inverse_comm);
    for (std::size_t f = 0; f < plan_.factors.size(); ++f) {
      const Factor& factor = plan_.factors[f];
      out_.compute(kCompute, "visit", plan_.compute.visit());
      if (is_mine(f))
        out_.compute(kCompute, "inverse of " + factor.name, plan_.compute.inverse(factor));
      if (plan_.is_local(f) || !sends) continue;
      pack(f);
      out_.after(kComm, kCompute);
      request(1);
      await_cycle();
      out_.collective(kComm, "inverse of " + factor.name, Func::broadcast, kDataParallel,
                      DataType::float32, factor.packed(), plan_.owners[f]);
    }
    out_.after(kCompute, kComm);
    for (std::size_t f = 0; sends && f < plan_.factors.size(); ++f)
      if (!plan_.is_local(f)) unpack(f);
  }

  void precondition() {
    const bool sends = plan_.scheme.sends_gradients && !plan_.leaves_out(KfacExclude::inverse_comm);
    for (std::size_t f = 0; f + 1 < plan_.factors.size(); f += 2) {
      const Factor &a = plan_.factors[f], &g = plan_.factors[f + 1];
      if (!plan_.scheme.sends_gradients || is_mine(f))
        out_.compute(kCompute, "precondition " + plan_.modules[a.module].name,
                     plan_.compute.precondition(a, g));
      if (!sends) continue;
      out_.after(kComm, kCompute);
      request(1);
      await_cycle();
      out_.collective(kComm, "gradient of " + plan_.modules[a.module].name, Func::broadcast,
                      kDataParallel, DataType::float32, a.dimension * g.dimension, plan_.owners[f]);
    }
    out_.after(kCompute, kComm);
  }

  const Plan& plan_;
  const RankStep step_;
  ProgramBuilder out_;
  std::size_t next_call_ = 0;
};

std::string gigabytes(double bytes) {
  const long long tenths = std::llround(bytes / 1e8);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB";
}

// Whether the job would fit with parallel.variant=dp, under which a rank keeps its own factors.
bool fits_with_own_factors(const JobSpec& spec) {
  JobSpec other = spec;
  other.parallel.kfac.variant = KfacVariant::dp;
  try {
    return gpu_memory(other)->total() <= spec.device.memory_bytes;
  } catch (const Error&) {  // its other keys do not go with dp
    return false;
  }
}

// Inverting takes a copy of the factor beside it and its inverse, in fp32. What does not fit
// without factors is left to check_state_memory().
void check_memory(const Plan& plan) {
  const JobSpec& spec = plan.spec;
  const double have = spec.device.memory_bytes;
  if (have <= 0) return;
  for (const Factor& factor : plan.factors) {
    if (3 * 4 * factor.elements() <= have) continue;
    throw Error(spec.source_of("model") + ": " + factor.name + " has dimension " +
                std::to_string(factor.dimension) + ", and inverting it takes " +
                gigabytes(3 * 4 * factor.elements()) + ", but the device " + spec.device.name +
                " has " + gigabytes(have) +
                "; use parallel.variant=ssgd, or a device with more memory "
                "(device.memory_bytes=0: no check)");
  }
  const double all = gpu_memory(spec)->total(), kept = second_order_bytes(spec);
  if (all <= have || all - kept > have) return;
  throw Error(spec.source_of("model") + ": factors and inverses take " + gigabytes(kept) +
              " beside " + gigabytes(all - kept) +
              " of weights, gradients, optimizer state and activations, and the device " +
              spec.device.name + " has " + gigabytes(have) + "; use " +
              (fits_with_own_factors(spec) ? "parallel.variant=dp, which keeps a rank's own"
                                           : "parallel.variant=ssgd") +
              ", or a device with more memory (device.memory_bytes=0: no check)");
}

// Ranks that invert something have a role each, all others share one.
Workload with_roles(const Plan& plan, const std::vector<RankStep>& steps) {
  const int ranks = plan.spec.cluster.gpus();
  const auto role_of_rank = [&](int rank) {
    Role role{"kfac", {}};
    for (RankStep step : steps) {
      step.rank = rank;
      role.iterations.push_back(Writer(plan, step).write());
    }
    return role;
  };
  std::map<int, std::uint16_t> known;
  std::vector<Role> roles;
  const int nobody = ranks;  // owns nothing
  VectorBy<WorldRank, std::uint16_t> role_of;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool inverts =
        std::find(plan.owners.begin(), plan.owners.end(), rank) != plan.owners.end();
    const auto [at, added] =
        known.emplace(inverts ? rank : nobody, static_cast<std::uint16_t>(roles.size()));
    if (added) roles.push_back(role_of_rank(at->first));
    role_of.push_back(at->second);
  }
  Workload workload = data_parallel_workload(plan.spec, roles.front());
  workload.roles = std::move(roles);
  workload.role_of = std::move(role_of);
  return workload;
}

}  // namespace

double second_order_bytes(const JobSpec& spec) {
  if (spec.parallel.kfac.variant == KfacVariant::ssgd) return 0;
  StepTimes no_times;
  no_times.layers.resize(spec.model->layers.size());
  const std::vector<Factor> factors =
      factors_of(*spec.model, modules_of(*spec.model, no_times), spec.parallel.micro_batch);
  const KfacScheme scheme = kfac_scheme(spec);
  const std::vector<int> owners = inverting_ranks(spec, scheme, factors);
  std::map<int, double> kept;  // by rank; one stands for all where they keep the same
  for (std::size_t f = 0; f < factors.size(); ++f)
    kept[scheme.sends_gradients ? owners[f] : 0] += 2 * 4 * factors[f].elements();
  double most = 0;
  for (const auto& [rank, bytes] : kept) most = std::max(most, bytes);
  return most;
}

Workload plan_kfac(const JobSpec& spec) {
  check_data_parallel(spec);
  const KfacPlan& kfac = spec.parallel.kfac;
  const StepTimes times = step_times(spec);
  Plan plan{spec,
            kfac_scheme(spec),
            KfacCompute(spec),
            times.optimizer,
            modules_of(*spec.model, times),
            {},
            {},
            {}};
  if (kfac.variant == KfacVariant::ssgd) return with_roles(plan, {{0, false, false}});
  plan.factors = factors_of(*spec.model, plan.modules, spec.parallel.micro_batch);
  if (plan.factors.empty())
    throw Error(spec.source_of("parallel.variant") + ": the model " + spec.model->name +
                " has no linear maps or convolutions whose factors K-FAC could invert; use "
                "parallel.variant=ssgd, or another model");
  check_memory(plan);
  plan.owners = inverting_ranks(spec, plan.scheme, plan.factors);
  plan.calls =
      factor_calls(spec, plan.scheme, plan.modules, plan.factors, plan.owners, plan.compute);

  const int cycle = std::lcm(kfac.factor_every, kfac.inverse_every);
  using Updates = std::pair<bool, bool>;  // of factors, of inverses
  const auto updates = [&](int i) {
    return Updates(i % kfac.factor_every == 0, i % kfac.inverse_every == 0);
  };
  std::map<Updates, int> often;
  for (int i = 0; i < cycle; ++i) ++often[updates(i)];
  std::vector<Updates> distinct;  // the commonest comes last, as the steady state
  for (const auto& [step, count] : often) distinct.push_back(step);
  std::stable_sort(distinct.begin(), distinct.end(),
                   [&](const Updates& a, const Updates& b) { return often[a] < often[b]; });
  std::vector<RankStep> steps;
  for (const auto& [factors, inverses] : distinct) steps.push_back({0, factors, inverses});
  std::vector<std::uint32_t> order;
  for (int i = 0; i < cycle; ++i)
    order.push_back(static_cast<std::uint32_t>(
        std::find(distinct.begin(), distinct.end(), updates(i)) - distinct.begin()));
  Workload workload = with_roles(plan, steps);
  if (steps.size() > 1) {
    workload.order = std::move(order);
    workload.cycle = static_cast<std::uint32_t>(cycle);
  }
  return workload;
}

}  // namespace ghostrank
