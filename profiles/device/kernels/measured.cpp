#include "profiles/device/kernels/measured.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiles/device/device.h"

namespace ghostrank {
namespace {

// Chosen because they predicted 255 products of an H200 best when each was left out in turn. The
// distances are squared, in logarithms of sizes (a factor of e is 1), except that kInParts is an
// axis; a neighbour's weight is 1 over the square of its squared distance.
constexpr std::size_t kNeighbours = 6;
constexpr double kSamePoint = .02;  // added to every squared distance: no weight is infinite
constexpr double kInParts = 2;  // of sizes that are not in whole vectors: other kernels run them
constexpr double kOtherOperands = .05, kOtherAttention = 1;
constexpr double kNobodyKnows = 4;  // "no correction" weighs as a neighbour at this distance

double weight(double squared_distance) { return 1 / (squared_distance * squared_distance); }

Corrections::Point point_of(const ProductShape& shape) {
  return {std::log(shape.m), std::log(shape.n), std::log(shape.k), std::log(shape.batch),
          in_whole_vectors(shape) ? 0 : kInParts};
}

Corrections::Point point_of(const FusedAttention& shape) {
  return {std::log(shape.batch * shape.heads), std::log(shape.queries), std::log(shape.keys),
          std::log(shape.width_in_tiles())};
}

int kind_of(const FusedAttention& shape) {
  return (shape.causal ? 1 : 0) + (shape.backward ? 2 : 0) + (shape.dropout ? 4 : 0);
}

KernelFormula stated_of(const DeviceProfile& device, OperandType type) {
  return stated_formula(device, peak_tflops(device, type));
}

Corrections corrections_of(std::span<const MeasuredProduct> products, const KernelFormula& formula,
                           double element) {
  Corrections out(kOtherOperands);
  for (const MeasuredProduct& one : products)
    out.add(point_of(one.shape), static_cast<int>(one.shape.operands),
            std::log(one.seconds / formula.product(one.shape, element)));
  return out;
}

Corrections corrections_of(std::span<const MeasuredAttention> attention, OperandType type,
                           const KernelFormula& formula) {
  Corrections out(kOtherAttention);
  for (const MeasuredAttention& one : attention)
    if (one.type == type)
      out.add(point_of(one.shape), kind_of(one.shape),
              std::log(one.seconds / formula.attention(one.shape, bytes_of(type))));
  return out;
}

bool by_shape(const MeasuredProduct& a, const MeasuredProduct& b) { return a.shape < b.shape; }

}  // namespace

double bytes_of(OperandType type) {
  switch (type) {
    case OperandType::bf16:
    case OperandType::fp16:
      return 2;
    case OperandType::fp8:
      return 1;
    case OperandType::tf32:
    case OperandType::fp32:
      break;
  }
  return 4;
}

void Corrections::add(const Point& point, int kind, double logarithm) {
  known_.push_back({point, kind, logarithm});
}

double Corrections::at(const Point& point, int kind, std::optional<std::size_t> without) const {
  std::vector<std::pair<double, double>> near;  // squared distance, logarithm
  near.reserve(known_.size());
  for (std::size_t i = 0; i < known_.size(); ++i) {
    if (i == without) continue;
    double distance = kSamePoint + (known_[i].kind == kind ? 0 : between_kinds_);
    for (std::size_t axis = 0; axis < point.size(); ++axis)
      distance += std::pow(known_[i].point[axis] - point[axis], 2);
    near.emplace_back(distance, known_[i].logarithm);
  }
  const auto most = near.begin() + static_cast<std::ptrdiff_t>(std::min(kNeighbours, near.size()));
  std::partial_sort(near.begin(), most, near.end());
  double weights = weight(kNobodyKnows), sum = 0;
  for (auto at = near.begin(); at != most; ++at) {
    weights += weight(at->first);
    sum += weight(at->first) * at->second;
  }
  return std::exp(sum / weights);
}

MeasuredKernels::MeasuredKernels(KernelTables tables, const DeviceProfile& device)
    : tables_(std::move(tables)) {
  for (const MeasuredProduct& one : tables_.products)
    products_[one.shape.type].products.push_back(one);
  for (auto& [type, known] : products_) {
    std::sort(known.products.begin(), known.products.end(), by_shape);
    known.formula = fitted_formula(stated_of(device, type), known.products, bytes_of(type));
    known.corrections = corrections_of(known.products, known.formula, bytes_of(type));
  }
  for (const MeasuredAttention& one : tables_.attention)
    if (!attention_.contains(one.type))
      attention_[one.type] =
          corrections_of(tables_.attention, one.type, stated_of(device, one.type));
  std::sort(tables_.transfers.begin(), tables_.transfers.end(),
            [](const MeasuredTransfer& a, const MeasuredTransfer& b) { return a.bytes < b.bytes; });
}

double MeasuredKernels::product(const ProductShape& shape, const KernelFormula& stated,
                                double element) const {
  const auto known = products_.find(shape.type);
  if (known == products_.end()) return stated.product(shape, element);
  const auto& [products, formula, corrections] = known->second;
  if (element == bytes_of(shape.type)) {
    const auto at =
        std::lower_bound(products.begin(), products.end(), MeasuredProduct{shape, 0}, by_shape);
    if (at != products.end() && at->shape == shape) return at->seconds;
  }
  return formula.product(shape, element) *
         corrections.at(point_of(shape), static_cast<int>(shape.operands));
}

// Below the smallest measured size the time is constant, beyond the largest the bytes per second.
std::optional<double> MeasuredKernels::along_elementwise(double bytes) const {
  const MeasuredTransfer* below = nullptr;
  for (const MeasuredTransfer& one : tables_.transfers) {
    if (one.kind != MemoryKernel::elementwise) continue;
    if (bytes <= one.bytes) {
      if (!below) return one.seconds;
      const double share = (bytes - below->bytes) / (one.bytes - below->bytes);
      return std::lerp(below->seconds, one.seconds, share);
    }
    below = &one;
  }
  if (!below) return std::nullopt;
  return below->seconds * bytes / below->bytes;
}

double MeasuredKernels::memory(MemoryKernel kind, double bytes, double element,
                               const KernelFormula& stated) const {
  const auto plain = [&](double size) {
    return along_elementwise(size).value_or(stated.memory(size));
  };
  if (kind == MemoryKernel::elementwise) return plain(bytes);
  // How much slower this kind is, interpolated over the logarithms of the sizes; constant beyond.
  const auto same = [&](const MeasuredTransfer& one) {
    return one.kind == kind && one.element == element;
  };
  const bool known = std::any_of(tables_.transfers.begin(), tables_.transfers.end(), same);
  const MeasuredTransfer *below = nullptr, *above = nullptr;
  for (const MeasuredTransfer& one : tables_.transfers) {
    if (known ? !same(one) : one.kind != kind) continue;
    if (one.bytes <= bytes) below = &one;
    if (one.bytes >= bytes && !above) above = &one;
  }
  const auto slower = [&](const MeasuredTransfer& one) { return one.seconds / plain(one.bytes); };
  if (!below && !above) return plain(bytes);
  if (!below || !above) return plain(bytes) * slower(below ? *below : *above);
  const double width = std::log(above->bytes / below->bytes);
  const double share = width > 0 ? std::log(bytes / below->bytes) / width : 0;
  return plain(bytes) * std::lerp(slower(*below), slower(*above), share);
}

double MeasuredKernels::attention(const FusedAttention& shape, OperandType type,
                                  const KernelFormula& stated, double element) const {
  for (const MeasuredAttention& one : tables_.attention)
    if (one.type == type && one.shape == shape && element == bytes_of(type)) return one.seconds;
  const auto known = attention_.find(type);
  if (known == attention_.end()) return stated.attention(shape, element);
  return stated.attention(shape, element) * known->second.at(point_of(shape), kind_of(shape));
}

double held_out_error(const KernelTables& tables, const DeviceProfile& device) {
  constexpr std::size_t kEnough = 3, kMostFits = 20;
  double sum = 0;
  std::size_t held = 0;
  const auto hold = [&](double predicted, double measured) {
    sum += std::abs(predicted / measured - 1);
    ++held;
  };
  std::map<OperandType, std::vector<MeasuredProduct>> by_type;
  for (const MeasuredProduct& one : tables.products) by_type[one.shape.type].push_back(one);
  for (const auto& [type, products] : by_type) {
    if (products.size() < kEnough) continue;
    // Each fit takes as long as there are products, so of many several are left out at a time.
    const std::size_t parts = std::min(products.size(), kMostFits);
    for (std::size_t part = 0; part < parts; ++part) {
      std::vector<MeasuredProduct> left_out, others;
      for (std::size_t i = 0; i < products.size(); ++i)
        (i % parts == part ? left_out : others).push_back(products[i]);
      const KernelFormula formula = fitted_formula(stated_of(device, type), others, bytes_of(type));
      const Corrections corrections = corrections_of(others, formula, bytes_of(type));
      for (const MeasuredProduct& one : left_out)
        hold(formula.product(one.shape, bytes_of(type)) *
                 corrections.at(point_of(one.shape), static_cast<int>(one.shape.operands)),
             one.seconds);
    }
  }
  for (const auto& [type, word] : kOperandTypes) {
    std::vector<MeasuredAttention> own;
    for (const MeasuredAttention& one : tables.attention)
      if (one.type == type) own.push_back(one);
    if (own.size() < kEnough) continue;
    const KernelFormula formula = stated_of(device, type);
    const Corrections corrections = corrections_of(own, type, formula);
    for (std::size_t out = 0; out < own.size(); ++out)
      hold(formula.attention(own[out].shape, bytes_of(type)) *
               corrections.at(point_of(own[out].shape), kind_of(own[out].shape), out),
           own[out].seconds);
  }
  return held == 0 ? 0 : sum / static_cast<double>(held);
}

}  // namespace ghostrank
