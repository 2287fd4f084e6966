// Brain floats: rounds every element to the nearest bfloat16, so that the all-reduce moves half the
// bytes, as PyTorch's bf16_compress_hook does.
//
// Error of an element: half a unit in the last of 8 bits, |x| / 2^8 at most; 2^-133 below the least
// normal number. Beyond the largest bfloat16 elements become infinite; no bound holds for them.
#include <algorithm>
#include <cmath>

#include "collectives/compress/methods.h"

namespace ghostrank {
namespace {

std::uint64_t size(std::uint64_t elements, const CompressionOptions&) { return elements; }

void compress(std::span<const float> tensor, const CompressionOptions&, std::byte* payload) {
  auto* brain = reinterpret_cast<Bf16*>(payload);
  for (std::size_t i = 0; i < tensor.size(); ++i) brain[i] = Bf16::from(tensor[i]);
}

void decompress(std::span<const std::byte> payload, const CompressionOptions&,
                std::span<float> tensor) {
  const auto* brain = reinterpret_cast<const Bf16*>(payload.data());
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = brain[i].value();
}

double error(std::span<const float> tensor, const CompressionOptions&) {
  double largest = 0;
  for (const float x : tensor) largest = std::max(largest, std::abs(static_cast<double>(x)));
  return std::max(largest * 0x1p-8, 0x1p-133);
}

}  // namespace

// A cast reads 4 bytes and writes 2, or the reverse.
const Compressor kBf16{.name = "bf16",
                       .exchange = Func::all_reduce,
                       .payload = DataType::bfloat16,
                       .cost = {6 / 900.0, 6 / 900.0, kLaunchUs, kLaunchUs,
                                "6 bytes an element through a V100's memory, 900 GB/s, and a "
                                "kernel's launch: a lower bound"},
                       .size = size,
                       .compress = compress,
                       .decompress = decompress,
                       .error = error};

}  // namespace ghostrank
