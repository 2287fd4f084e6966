// Half precision: rounds every element to the nearest float16, so that the all-reduce moves half
// the bytes.
//
// Error of an element: half a unit in the last place, that is |x| / 2^11 above 2^-14 and 2^-25
// below it. Elements beyond 65,504 become infinite; no bound holds for them.
#include "collectives/compress/quantise/half_width.h"

namespace ghostrank {
namespace {

double error(std::span<const float> tensor, const CompressionOptions&) {
  return std::max(largest_of(tensor) * 0x1p-11, 0x1p-25);
}

}  // namespace

const Compressor kFp16{.name = "fp16",
                       .exchange = Func::all_reduce,
                       .payload = DataType::float16,
                       .cost = kHalfWidthCost,
                       .size = HalfWidth<Half>::size,
                       .compress = HalfWidth<Half>::compress,
                       .decompress = HalfWidth<Half>::decompress,
                       .error = error};

}  // namespace ghostrank
