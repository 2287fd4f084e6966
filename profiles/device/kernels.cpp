#include "profiles/device/kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace ghostrank {
namespace {

// Output tiles that GEMM libraries offer; a smaller one reuses its operands less. The shares are
// assumed, relative to the largest.
struct Tile {
  double m, n, share;
};
constexpr std::array kTiles{Tile{256, 128, 1},  Tile{128, 256, 1},  Tile{128, 128, .93},
                            Tile{256, 64, .85}, Tile{64, 256, .85}, Tile{128, 64, .8},
                            Tile{64, 128, .8},  Tile{64, 64, .6}};
constexpr double kFill = 256;
constexpr double kUnaligned = .4;
constexpr double kVector = 8;  // elements
// Share of what products reach; between the forward and the backward that FlashAttention-2 reports.
constexpr double kFusedAttention = .75;
constexpr double kBackward = 2.5;  // fused attention: products backward against forward

bool aligned(double size) { return std::fmod(size, kVector) == 0; }

}  // namespace

KernelModel::KernelModel(const DeviceProfile& device, double peak_tflops)
    : peak_(peak_tflops * 1e12 * device.kernels.matmul),
      bandwidth_(device.memory_GBps * 1e9 * device.kernels.memory),
      multiprocessors_(device.multiprocessors),
      start_(device.kernels.launch_us * 1e-6) {}

double FusedAttention::flops() const {
  const double forward = 4 * batch * heads * queries * keys * width / (causal ? 2 : 1);
  return backward ? kBackward * forward : forward;
}

double FusedAttention::bytes(double element) const {
  const double forward = element * batch * width * 2 * (heads * queries + key_heads * keys);
  return backward ? 2 * forward : forward;
}

Kernels KernelModel::product(double m, double n, double k, double batch, double element,
                             Operands) const {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles = batch * std::ceil(m / tile.m) * std::ceil(n / tile.n);
    const double flops = std::ceil(tiles / multiprocessors_) * 2 * tile.m * tile.n * (k + kFill);
    fastest = std::min(fastest, flops * multiprocessors_ / (peak_ * tile.share));
  }
  if (!aligned(m) || !aligned(n) || !aligned(k)) fastest /= kUnaligned;
  const double bytes = element * batch * (m * k + k * n + m * n);
  return {std::max(fastest, bytes / bandwidth_) + start_, 1};
}

Kernels KernelModel::memory(double bytes, MemoryKernel) const {
  return {bytes / bandwidth_ + start_, 1};
}

Kernels KernelModel::fused_attention(const FusedAttention& shape, double element) const {
  return {std::max(shape.flops() / (peak_ * kFusedAttention), shape.bytes(element) / bandwidth_) +
              start_,
          1};
}

}  // namespace ghostrank
