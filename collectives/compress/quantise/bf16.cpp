// Brain floats: rounds every element to the nearest bfloat16, so that the all-reduce moves half the
// bytes, as PyTorch's bf16_compress_hook does.
//
// Error of an element: half a unit in the last of 8 bits, |x| / 2^8 at most; 2^-133 below the least
// normal number. Beyond the largest bfloat16 elements become infinite; no bound holds for them.
#include "collectives/compress/quantise/half_width.h"

namespace ghostrank {
namespace {

double error(std::span<const float> tensor, const CompressionOptions&) {
  return std::max(largest_of(tensor) * 0x1p-8, 0x1p-133);
}

}  // namespace

const Compressor kBf16{.name = "bf16",
                       .exchange = Func::all_reduce,
                       .payload = DataType::bfloat16,
                       .cost = kHalfWidthCost,
                       .size = HalfWidth<Bf16>::size,
                       .compress = HalfWidth<Bf16>::compress,
                       .decompress = HalfWidth<Bf16>::decompress,
                       .error = error};

}  // namespace ghostrank
