#include "emulator/verify/elements.h"

#include <algorithm>
#include <cstring>

#include "collectives/common/kernel.h"

namespace ghostrank {
namespace {

template <typename T>
struct Whole {
  using Element = T;
  static Element make(Value v) { return static_cast<Element>(v); }
  static bool equal(Element a, Element b) { return a == b; }
  static double number(Element e) { return static_cast<double>(e); }
};
struct FloatType {
  using Element = float;
  static Element make(Value v) { return v; }
  static bool equal(Element a, Element b) { return a == b; }
  static double number(Element e) { return e; }
};
struct Bf16Type {
  using Element = Bf16;
  static Element make(Value v) { return Bf16::from(v); }
  static bool equal(Element a, Element b) { return a.bits == b.bits; }
  static double number(Element e) { return e.value(); }
};
struct HalfType {
  using Element = Half;
  static Element make(Value v) { return Half::from(v); }
  static bool equal(Element a, Element b) { return a.bits == b.bits; }
  static double number(Element e) { return e.value(); }
};

// Calls `f` with the traits of the type.
template <typename F>
auto as_type(DataType type, F f) {
  switch (type) {
    case DataType::int32:
      return f(Whole<std::int32_t>{});
    case DataType::int64:
      return f(Whole<std::int64_t>{});
    case DataType::uint8:
      return f(Whole<std::uint8_t>{});
    case DataType::float32:
      return f(FloatType{});
    case DataType::float16:
      return f(HalfType{});
    case DataType::bfloat16:
      break;
  }
  return f(Bf16Type{});
}

template <typename Type>
const typename Type::Element* read(const std::byte* bytes) {
  return reinterpret_cast<const typename Type::Element*>(bytes);
}

template <typename Type>
typename Type::Element* write(std::byte* bytes) {
  return reinterpret_cast<typename Type::Element*>(bytes);
}

}  // namespace

GHOSTRANK_KERNEL void put_values(DataType type, std::byte* to, const Value* values,
                                 std::uint64_t count) {
  as_type(type, [=]<typename Type>(Type) {
    auto* e = write<Type>(to);
    for (std::uint64_t i = 0; i < count; ++i) e[i] = Type::make(values[i]);
  });
}

void put_value(DataType type, std::byte* to, Value value, std::uint64_t count) {
  as_type(type,
          [=]<typename Type>(Type) { std::fill_n(write<Type>(to), count, Type::make(value)); });
}

std::vector<double> as_numbers(DataType type, const std::byte* elements, std::uint64_t count) {
  return as_type(type, [=]<typename Type>(Type) {
    const auto* e = read<Type>(elements);
    std::vector<double> numbers(count);
    for (std::uint64_t i = 0; i < count; ++i) numbers[i] = Type::number(e[i]);
    return numbers;
  });
}

std::uint64_t count_different(DataType type, const std::byte* elements, const std::byte* others,
                              std::uint64_t count) {
  const std::uint32_t bytes = bytes_of(type);
  std::uint64_t different = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    different += std::memcmp(elements + i * bytes, others + i * bytes, bytes) == 0 ? 0 : 1;
  return different;
}

GHOSTRANK_KERNEL std::uint64_t count_unequal(DataType type, const std::byte* elements,
                                             const Value* values, std::uint64_t count) {
  return as_type(type, [=]<typename Type>(Type) {
    const auto* e = read<Type>(elements);
    std::uint64_t unequal = 0;
    for (std::uint64_t i = 0; i < count; ++i)
      unequal += Type::equal(e[i], Type::make(values[i])) ? 0 : 1;
    return unequal;
  });
}

}  // namespace ghostrank
