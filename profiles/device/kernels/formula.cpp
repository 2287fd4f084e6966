#include "profiles/device/kernels/formula.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "profiles/median.h"

namespace ghostrank {
namespace {

struct Tile {
  double m, n, share;
};
// Output tiles that GEMM libraries offer; a smaller one reuses its operands less. The shares are
// assumed, relative to the largest.
constexpr std::array kTiles{Tile{256, 128, 1},  Tile{128, 256, 1},  Tile{128, 128, .93},
                            Tile{256, 64, .85}, Tile{64, 256, .85}, Tile{128, 64, .8},
                            Tile{64, 128, .8},  Tile{64, 64, .6}};
// Tiles that cuBLAS chooses from on Hopper, by the names of its kernels, each also transposed. The
// shares grow as the reuse of operands, m n / (m + n), to the power of .3, up to that of 256 x 128:
// this predicted products of an H200 best when each was left out in turn.
constexpr std::array kFineTiles{Tile{256, 128, 1},    Tile{192, 192, 1},    Tile{320, 128, 1},
                                Tile{256, 192, 1},    Tile{256, 160, 1},    Tile{224, 128, .986},
                                Tile{192, 128, .969}, Tile{176, 128, .959}, Tile{160, 128, .947},
                                Tile{128, 128, .917}, Tile{128, 96, .876},  Tile{128, 64, .812},
                                Tile{64, 64, .745}};
constexpr double kUnaligned = .4;
constexpr double kVector = 8;  // elements
// Share of the products' speed: between the forward's and backward's that FlashAttention-2 reports.
constexpr double kFusedAttention = .75;
constexpr double kWidthOfTile = 64;
constexpr double kFp8Result = 2;   // bytes: products of fp8 give bf16
constexpr double kBackward = 2.5;  // fused attention: products backward against forward

constexpr std::array kFills{0., 64., 128., 192., 256., 384., 512., 768., 1024.};
constexpr double kSettled = 1e-4;
constexpr int kRounds = 6;  // of the search for the speed at which the median distance is 0

bool aligned(double size) { return std::fmod(size, kVector) == 0; }

// Logarithms of predicted over measured times.
std::vector<double> distances(const KernelFormula& formula,
                              std::span<const MeasuredProduct> products, double element) {
  std::vector<double> out;
  out.reserve(products.size());
  for (const MeasuredProduct& one : products)
    out.push_back(std::log(formula.product(one.shape, element) / one.seconds));
  return out;
}

double mean_distance(std::span<const double> logarithms) {
  double sum = 0;
  for (const double one : logarithms) sum += std::abs(one);
  return sum / static_cast<double>(logarithms.size());
}

}  // namespace

bool in_whole_vectors(const ProductShape& shape) {
  return aligned(shape.m) && aligned(shape.n) && aligned(shape.k);
}

double FusedAttention::flops() const {
  const double forward = 4 * batch * heads * queries * keys * width / (causal ? 2 : 1);
  return backward ? kBackward * forward : forward;
}

double FusedAttention::width_in_tiles() const {
  return std::ceil(width / kWidthOfTile) * kWidthOfTile;
}

double FusedAttention::bytes(double element) const {
  const double forward = element * batch * width * 2 * (heads * queries + key_heads * keys);
  return backward ? 2 * forward : forward;
}

double KernelFormula::product(const ProductShape& shape, double element) const {
  const auto& [m, n, k, batch, type, operands] = shape;
  double fastest = std::numeric_limits<double>::infinity();
  const auto try_tile = [&](double rows, double columns, double share) {
    const double tiles = batch * std::ceil(m / rows) * std::ceil(n / columns);
    const double flops = std::ceil(tiles / multiprocessors) * 2 * rows * columns * (k + fill);
    fastest = std::min(fastest, flops * multiprocessors / (flops_per_second * share));
  };
  if (fine_tiles)
    for (const Tile& tile : kFineTiles) {
      try_tile(tile.m, tile.n, tile.share);
      try_tile(tile.n, tile.m, tile.share);
    }
  else
    for (const Tile& tile : kTiles) try_tile(tile.m, tile.n, tile.share);
  if (!in_whole_vectors(shape)) fastest /= kUnaligned;
  const double result = type == OperandType::fp8 ? kFp8Result : element;
  const double bytes = batch * (element * (m * k + k * n) + result * m * n);
  return std::max(fastest, bytes / bytes_per_second) + start;
}

double KernelFormula::memory(double bytes) const { return bytes / bytes_per_second + start; }

double KernelFormula::attention(const FusedAttention& shape, double element) const {
  const double flops = shape.flops() * shape.width_in_tiles() / shape.width;
  return std::max(flops / (flops_per_second * kFusedAttention),
                  shape.bytes(element) / bytes_per_second) +
         start;
}

KernelFormula stated_formula(const DeviceProfile& device, double peak_tflops) {
  KernelFormula formula;
  formula.flops_per_second = peak_tflops * 1e12 * device.kernels.matmul;
  formula.bytes_per_second = device.memory_GBps * 1e9 * device.kernels.memory;
  formula.multiprocessors = device.multiprocessors;
  formula.start = device.kernels.launch_us * 1e-6;
  return formula;
}

KernelFormula fitted_formula(KernelFormula formula, std::span<const MeasuredProduct> products,
                             double element) {
  KernelFormula best = formula;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < 2 * kFills.size(); ++i) {
    KernelFormula candidate = formula;
    candidate.fill = kFills[i / 2];
    candidate.fine_tiles = i % 2 == 1;
    for (int round = 0; round < kRounds; ++round) {
      const double middle = median(distances(candidate, products, element));
      candidate.flops_per_second *= std::exp(middle);
      if (std::abs(middle) < kSettled) break;
    }
    const double distance = mean_distance(distances(candidate, products, element));
    if (distance < least) least = distance, best = candidate;
  }
  return best;
}

}  // namespace ghostrank
