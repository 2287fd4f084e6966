#include "profiles/planners/kfac/scheme.h"

#include <array>
#include <string>

#include "profiles/error.h"
#include "profiles/planners/kfac/placement.h"

namespace ghostrank {
namespace {

constexpr bool kHooks = true, kGradients = true;

struct Row {
  KfacVariant variant;
  KfacScheme scheme;
};
constexpr std::array<Row, 6> kVariants{
    {{KfacVariant::ssgd, {}},
     {KfacVariant::d,
      {FactorReduction::all_reduce, !kHooks, FactorFusion::threshold, InversePlacement::none}},
     {KfacVariant::mpd,
      {FactorReduction::all_reduce, !kHooks, FactorFusion::threshold,
       InversePlacement::round_robin}},
     {KfacVariant::spd,
      {FactorReduction::all_reduce, kHooks, FactorFusion::optimal, InversePlacement::lbp}},
     {KfacVariant::pad,
      {FactorReduction::reduce, kHooks, FactorFusion::optimal, InversePlacement::block}},
     {KfacVariant::dp,
      {FactorReduction::none, !kHooks, FactorFusion::none, InversePlacement::round_robin,
       kGradients}}}};

[[noreturn]] void refuse(const JobSpec& spec, const std::string& key, const std::string& why) {
  throw Error(spec.source_of("parallel." + key) + ": " + why);
}

void check(const JobSpec& spec, const KfacScheme& scheme) {
  const KfacPlan& kfac = spec.parallel.kfac;
  if (scheme.fusion == FactorFusion::threshold && kfac.fusion_mb <= 0)
    refuse(spec, "factor_mb",
           "a fusion threshold of 0 MiB fuses nothing; give a size, or use "
           "parallel.factor_fusion=none for a call per factor");
  if (scheme.fusion == FactorFusion::layer && scheme.overlap)
    refuse(spec, "factor_fusion",
           "the two factors of a layer are computed in different passes and cannot share a call; "
           "use parallel.factor_launch=after_backward, or another parallel.factor_fusion");
  if (scheme.sends_gradients && scheme.placement != InversePlacement::round_robin)
    refuse(spec, "second_order",
           "who preconditions a layer needs both of its factors; use "
           "parallel.inverse_placement=round_robin, or parallel.second_order=inverses");
  if (kfac.fusion != FactorFusion::automatic && scheme.reduction == FactorReduction::none)
    refuse(spec, "factor_fusion", "under variant dp no factor is sent; leave it out");
  if (spec.parallel.allreduce_cost != AllReduceCostModel::cluster &&
      scheme.fusion != FactorFusion::optimal)
    refuse(spec, "allreduce_cost",
           "only parallel.factor_fusion=optimal asks what a call costs; leave it out");
  if (kfac.local_below != KfacPlan{}.local_below && scheme.placement != InversePlacement::lbp)
    refuse(spec, "local_below",
           "only the placement lbp lets every rank invert small factors; leave it out, or use "
           "parallel.inverse_placement=lbp");
  if (kfac.send != SecondOrderSend::automatic && scheme.placement == InversePlacement::none)
    refuse(spec, "second_order",
           "every rank inverts all factors and sends nothing; leave it out, or use another "
           "parallel.inverse_placement");
  const bool owners = scheme.reduction != FactorReduction::all_reduce;
  const bool everywhere = scheme.placement == InversePlacement::none ||
                          (scheme.placement == InversePlacement::lbp && kfac.local_below > 1);
  if (owners && everywhere)
    refuse(spec, "inverse_placement",
           "under this variant a factor reaches one rank alone, so no other can invert it; use "
           "parallel.inverse_placement=round_robin or block");
}

}  // namespace

KfacScheme kfac_scheme(const JobSpec& spec) {
  const KfacPlan& kfac = spec.parallel.kfac;
  KfacScheme out;
  for (const Row& row : kVariants)
    if (row.variant == kfac.variant) out = row.scheme;
  if (kfac.variant == KfacVariant::ssgd) return out;  // the loader notes keys without effect
  if (kfac.launch != FactorLaunch::automatic) out.overlap = kfac.launch == FactorLaunch::overlap;
  // SPD-KFAC's authors sent every G alone when they made their figures (kfac_pytorch, commits
  // ebefd14 to bb6324d, January and February 2021).
  out.fuses_g = kfac.variant != KfacVariant::spd || kfac.fusion != FactorFusion::automatic;
  if (kfac.fusion != FactorFusion::automatic)
    out.fusion = kfac.fusion;
  else if (out.overlap && out.fusion == FactorFusion::threshold)
    out.fusion = FactorFusion::optimal;
  else if (!out.overlap && out.fusion == FactorFusion::optimal)
    out.fusion = FactorFusion::threshold;
  if (kfac.placement != InversePlacement::automatic) out.placement = kfac.placement;
  if (kfac.send != SecondOrderSend::automatic)
    out.sends_gradients = kfac.send == SecondOrderSend::gradients;
  check(spec, out);
  return out;
}

std::vector<int> inverting_ranks(const JobSpec& spec, const KfacScheme& scheme,
                                 const std::vector<Factor>& factors) {
  const int ranks = spec.cluster.gpus();
  std::vector<std::uint64_t> dimensions;
  for (const Factor& factor : factors) dimensions.push_back(factor.dimension);
  // A rank that alone computes, or preconditions with, the factors of a layer needs both of them.
  const bool together = scheme.sends_gradients || scheme.reduction == FactorReduction::none;
  switch (scheme.placement) {
    case InversePlacement::round_robin:
      return place_round_robin(factors.size(), ranks, together);
    case InversePlacement::lbp:
      return place_balanced(dimensions, ranks, spec.parallel.kfac.local_below);
    case InversePlacement::block:
      return place_blocks(dimensions, ranks);
    case InversePlacement::automatic:
    case InversePlacement::none:
      break;
  }
  return std::vector<int>(factors.size(), kEveryRank);
}

}  // namespace ghostrank
