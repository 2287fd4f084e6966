#include "collectives/common/data_type.h"

#include "collectives/common/kernel.h"

namespace ghostrank {
namespace {

template <typename T>
T sum(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
float sum(float a, float b) { return a + b; }
// rounded(): the lower half of a NaN is 0 here, whether it is one of the two or a new one.
Bf16 sum(Bf16 a, Bf16 b) { return Bf16::rounded(a.value() + b.value()); }
Half sum(Half a, Half b) { return Half::from(a.value() + b.value()); }

template <typename T>
void add(std::byte* into, const std::byte* from, std::uint64_t count) {
  auto* a = reinterpret_cast<T*>(into);
  const auto* b = reinterpret_cast<const T*>(from);
  for (std::uint64_t i = 0; i < count; ++i) a[i] = sum(a[i], b[i]);
}

}  // namespace

std::string_view name_of(DataType type) {
  switch (type) {
    case DataType::uint8:
      return "uint8";
    case DataType::float16:
      return "float16";
    case DataType::bfloat16:
      return "bfloat16";
    case DataType::int32:
      return "int32";
    case DataType::float32:
      return "float32";
    case DataType::int64:
      return "int64";
  }
  return "";
}

GHOSTRANK_KERNEL void add_elements(DataType type, std::byte* into, const std::byte* from,
                                   std::uint64_t count) {
  switch (type) {
    case DataType::int32:
      return add<std::int32_t>(into, from, count);
    case DataType::int64:
      return add<std::int64_t>(into, from, count);
    case DataType::uint8:
      return add<std::uint8_t>(into, from, count);
    case DataType::float32:
      return add<float>(into, from, count);
    case DataType::bfloat16:
      return add<Bf16>(into, from, count);
    case DataType::float16:
      return add<Half>(into, from, count);
  }
}

}  // namespace ghostrank
