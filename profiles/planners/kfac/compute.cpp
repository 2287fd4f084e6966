#include "profiles/planners/kfac/compute.h"

#include <cmath>

namespace ghostrank {
namespace {

constexpr double kFittedRate = 8.45e12;  // FLOP/s
constexpr double kFittedInverse = 0.099e-3, kFittedSquare = 1.697e-3, kFittedVisit = 0.134e-3;  // s
constexpr double kFittedRequest = 4.8e-6, kFittedCycle = 11.3e-6;                               // s
// Bytes moved for an element of the triangle: its row and column are written (torch.triu_indices)
// and read, the element read and written; back, the rows and columns of both triangles are written,
// and read for the upper triangle, for its mirror image and for the lower one.
constexpr double kIndices = 2 * 8, kElement = 4;
constexpr double kPackBytes = kIndices + (kIndices + 2 * kElement);
constexpr double kUnpackBytes = 2 * kIndices + 3 * (kIndices + 2 * kElement);
constexpr double kPublishedInverse = 3.64e-3, kPublishedExponent = 4.77e-4;

Picoseconds picos(double seconds) {
  return static_cast<Picoseconds>(std::llround(seconds * static_cast<double>(kPicosPerSecond)));
}

}  // namespace

KfacCompute::KfacCompute(const JobSpec& spec)
    : spec_(spec), cost_(spec.parallel.kfac.cost), ranks_(spec.cluster.gpus()) {}

const ComputeModel& KfacCompute::device() const {
  if (!device_) device_.emplace(spec_);
  return *device_;
}

Picoseconds KfacCompute::products(double flops, const std::string& what) const {
  const Picoseconds own = device().products(flops, what);  // checks the type and the size
  return cost_ == KfacCost::rtx2080ti ? picos(flops / kFittedRate) : own;
}

Picoseconds KfacCompute::factor(const Factor& factor) const {
  const double averaged = 3 * 4 * factor.elements();  // bytes: two matrices read, one written
  return products(factor.flops(), factor.name) + device().memory(averaged, factor.name);
}

Picoseconds KfacCompute::inverse(const Factor& factor) const {
  const auto d = static_cast<double>(factor.dimension);
  switch (cost_) {
    case KfacCost::spdkfac:
      return picos(kPublishedInverse * std::exp(kPublishedExponent * d));
    case KfacCost::rtx2080ti:
      return picos(kFittedInverse + kFittedSquare * std::pow(d / 1024, 2));
    case KfacCost::device:
      break;
  }
  return device().products(d * d * d, "the inverse of " + factor.name);
}

Picoseconds KfacCompute::visit() const {
  return cost_ == KfacCost::rtx2080ti ? picos(kFittedVisit) : 0;
}

Picoseconds KfacCompute::precondition(const Factor& a, const Factor& g) const {
  const auto in = static_cast<double>(a.dimension), out = static_cast<double>(g.dimension);
  return products(2 * in * out * (in + out), "the gradient of " + g.name);
}

Picoseconds KfacCompute::pack(const Factor& factor) const {
  return device().memory(kPackBytes * static_cast<double>(factor.packed()), factor.name);
}

Picoseconds KfacCompute::unpack(const Factor& factor) const {
  return device().memory(kUnpackBytes * static_cast<double>(factor.packed()), factor.name);
}

Picoseconds KfacCompute::requests(std::size_t tensors) const {
  return cost_ == KfacCost::rtx2080ti
             ? picos(kFittedRequest * static_cast<double>(tensors) * ranks_)
             : 0;
}

Picoseconds KfacCompute::cycle() const {
  return cost_ == KfacCost::rtx2080ti ? picos(kFittedCycle * ranks_) : 0;
}

}  // namespace ghostrank
