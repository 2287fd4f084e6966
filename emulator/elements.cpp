#include "emulator/elements.h"

#include <algorithm>

#include "collectives/kernel.h"

namespace ghostrank {
namespace {

template <typename T>
struct Whole {
  using Element = T;
  static Element make(Value v) { return static_cast<Element>(v); }
  static bool equal(Element a, Element b) { return a == b; }
};
struct FloatType {
  using Element = float;
  static Element make(Value v) { return static_cast<Element>(v); }
  static bool equal(Element a, Element b) { return a == b; }
};
struct Bf16Type {
  using Element = Bf16;
  static Element make(Value v) { return Bf16::from(static_cast<float>(v)); }
  static bool equal(Element a, Element b) { return a.bits == b.bits; }
};

// Calls `f` with what the type is played as.
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
