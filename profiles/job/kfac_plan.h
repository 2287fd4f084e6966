// How a job preconditions its gradients by K-FAC (profiles/planners/kfac). `automatic` is what the
// variant's authors do. Threading: plain values.
#pragma once

#include <cstdint>

namespace ghostrank {

enum class KfacVariant : std::uint8_t { ssgd, d, mpd, spd, pad, dp };
enum class FactorLaunch : std::uint8_t { automatic, overlap, after_backward };
enum class FactorFusion : std::uint8_t { automatic, none, layer, threshold, optimal };
enum class InversePlacement : std::uint8_t { automatic, none, round_robin, lbp, block };
enum class SecondOrderSend : std::uint8_t { automatic, inverses, gradients };
enum class KfacCost : std::uint8_t { device, rtx2080ti, spdkfac };
// Parts of a step to leave out, to measure the time that each adds: every value leaves out all that
// the value before it leaves out, and one part more.
enum class KfacExclude : std::uint8_t { nothing, inverse_comm, inverses, factor_comm };

struct KfacPlan {
  KfacVariant variant = KfacVariant::spd;
  FactorLaunch launch = FactorLaunch::automatic;
  FactorFusion fusion = FactorFusion::automatic;
  double fusion_mb = 64;  // MiB of a call, for FactorFusion::threshold
  InversePlacement placement = InversePlacement::automatic;
  std::uint64_t local_below = 1024;  // lbp: every rank inverts smaller factors itself
  SecondOrderSend send = SecondOrderSend::automatic;
  int factor_every = 1, inverse_every = 1;  // steps
  KfacCost cost = KfacCost::device;
  KfacExclude exclude = KfacExclude::nothing;
};

}  // namespace ghostrank
