// Half precision: rounds every element to the nearest float16, so that the all-reduce moves half
// the bytes.
//
// Error of an element: half a unit in the last place, that is |x| / 2^11 above 2^-14 and 2^-25
// below it. Elements beyond 65,504 become infinite; no bound holds for them.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "collectives/compress/methods.h"

namespace ghostrank {
namespace {

std::uint64_t size(std::uint64_t elements, const CompressionOptions&) { return elements; }

void compress(std::span<const float> tensor, const CompressionOptions&, std::byte* payload) {
  auto* half = reinterpret_cast<Half*>(payload);
  for (std::size_t i = 0; i < tensor.size(); ++i) half[i] = Half::from(tensor[i]);
}

void decompress(std::span<const std::byte> payload, const CompressionOptions&,
                std::span<float> tensor) {
  const auto* half = reinterpret_cast<const Half*>(payload.data());
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = half[i].value();
}

double error(std::span<const float> tensor, const CompressionOptions&) {
  double largest = 0;
  for (const float x : tensor) largest = std::max(largest, std::abs(static_cast<double>(x)));
  return std::max(largest * 0x1p-11, 0x1p-25);
}

}  // namespace

// A cast reads 4 bytes and writes 2, or the reverse.
const Compressor kFp16{.name = "fp16",
                       .exchange = Func::all_reduce,
                       .payload = DataType::float16,
                       .cost = {6 / 900.0, 6 / 900.0, kLaunchUs, kLaunchUs,
                                "6 bytes an element through a V100's memory, 900 GB/s, and a "
                                "kernel's launch: a lower bound"},
                       .size = size,
                       .compress = compress,
                       .decompress = decompress,
                       .error = error};

}  // namespace ghostrank
