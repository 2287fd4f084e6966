#include "emulator/verify.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "collectives/layout.h"
#include "emulator/verify_values.h"

namespace ghostrank {
namespace {

// bfloat16: the upper half of a float; sums are formed in float and rounded to nearest even.
struct Bf16 {
  std::uint16_t bits;
  static Bf16 from(float f) {
    auto u = std::bit_cast<std::uint32_t>(f);
    u += 0x7fffu + ((u >> 16) & 1u);
    return {static_cast<std::uint16_t>(u >> 16)};
  }
  float value() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

// Sums wrap around, so that those of some ranks, which may be negative, do no harm to that of all.
template <typename T>
struct Whole {
  using Element = T;
  static Element make(Value v) { return static_cast<Element>(v); }
  static Element sum(Element a, Element b) {
    return static_cast<Element>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
  static bool equal(Element a, Element b) { return a == b; }
};
struct FloatType {
  using Element = float;
  static Element make(Value v) { return static_cast<Element>(v); }
  static Element sum(Element a, Element b) { return a + b; }
  static bool equal(Element a, Element b) { return a == b; }
};
struct Bf16Type {
  using Element = Bf16;
  static Element make(Value v) { return Bf16::from(static_cast<float>(v)); }
  static Element sum(Element a, Element b) { return Bf16::from(a.value() + b.value()); }
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
typename Type::Element* elements(std::byte* bytes) {
  return reinterpret_cast<typename Type::Element*>(bytes);
}

// values(index, count, out) gives those of a row.
template <typename Type, typename Values>
void write(std::byte* buffer, std::uint64_t first, std::uint64_t count, Values values) {
  ValueRow row;
  for_each_row(first, count, [&](std::uint64_t index, std::uint64_t n) {
    values(index, n, row.data());
    typename Type::Element* e = elements<Type>(buffer) + index;
    for (std::uint64_t i = 0; i < n; ++i) e[i] = Type::make(row[i]);
  });
}

template <typename Type>
void poison(std::byte* buffer, std::uint64_t first, std::uint64_t count) {
  std::fill_n(elements<Type>(buffer) + first, count, Type::make(kPoisonValue));
}

// The elements from `first` on against the values from `index` on.
template <typename Type, typename Values>
Checked compare(const std::byte* buffer, std::uint64_t first, std::uint64_t index,
                std::uint64_t count, Values values) {
  Checked checked{count, 0};
  ValueRow row;
  const auto* e = reinterpret_cast<const typename Type::Element*>(buffer) + first;
  for_each_row(index, count, [&](std::uint64_t at, std::uint64_t n) {
    values(at, n, row.data());
    std::uint32_t wrong = 0;
    for (std::uint64_t i = 0; i < n; ++i) wrong += Type::equal(e[i], Type::make(row[i])) ? 0 : 1;
    checked.wrong += wrong;
    e += n;
  });
  return checked;
}

// The values of one rank of a collective, as write and compare want them.
auto own_of(const Collective& c, Rank rank, std::uint64_t salt) {
  return [&c, rank, salt](std::uint64_t index, std::uint64_t count, Value* out) {
    own_values(rank, c.size, salt, index, count, out);
  };
}

template <typename Type>
void fill(const Collective& c, Rank rank, std::uint64_t salt, std::byte* work, std::byte* input) {
  const auto own = own_of(c, rank, salt);
  const std::uint64_t elements = work_elements(c, rank);
  switch (c.func) {
    case Func::all_reduce:
    case Func::reduce:
    case Func::reduce_scatter:
      return write<Type>(work, 0, elements,
                         [&](std::uint64_t index, std::uint64_t count, Value* out) {
                           contributed_values(rank, c.size, salt, index, count, out);
                         });
    case Func::broadcast:
    case Func::send_recv:
    case Func::scatter:
      if (rank == c.root) return write<Type>(work, 0, elements, own);
      return poison<Type>(work, 0, elements);
    case Func::all_gather:
    case Func::all_gather_v:
    case Func::gather: {
      const Block block = Layout(c).work(rank, rank);
      poison<Type>(work, 0, elements);
      return write<Type>(work, block.offset, block.count, own);
    }
    case Func::all_to_all:
    case Func::all_to_all_v: {
      const Layout layout(c);
      const Block from = layout.input(rank, rank), to = layout.work(rank, rank);
      const std::size_t element = sizeof(typename Type::Element);
      write<Type>(input, 0, input_elements(c, rank), own);
      poison<Type>(work, 0, elements);
      std::copy_n(input + from.offset * element, from.count * element,
                  work + to.offset * element);  // the own block never travels
      return;
    }
    case Func::barrier:
      return;
  }
}

// Every block of the rank's work buffer against what its owner had for the rank.
template <typename Type>
Checked check_blocks(const Collective& c, Rank rank, std::uint64_t salt, const std::byte* work) {
  const bool exchanged = c.func == Func::all_to_all || c.func == Func::all_to_all_v;
  const Layout layout(c);
  Checked checked;
  for (Rank owner = 0; owner < c.size; ++owner) {
    const Block to = layout.work(rank, owner);
    const std::uint64_t from = exchanged ? layout.input(owner, rank).offset : to.offset;
    const Checked block = compare<Type>(work, to.offset, from, to.count, own_of(c, owner, salt));
    checked.elements += block.elements;
    checked.wrong += block.wrong;
  }
  return checked;
}

template <typename Type>
Checked check(const Collective& c, Rank rank, std::uint64_t salt, const std::byte* work) {
  const auto expect = [&](std::uint64_t first, auto values) {
    return compare<Type>(work, first, first, c.count, values);
  };
  const auto sum = [&](std::uint64_t index, std::uint64_t count, Value* out) {
    sum_values(salt, index, count, out);
  };
  const auto roots = own_of(c, c.root, salt);
  const std::uint64_t mine = static_cast<std::uint64_t>(rank) * c.count;
  switch (c.func) {
    case Func::all_reduce:
      return expect(0, sum);
    case Func::reduce:
      return rank == c.root ? expect(0, sum) : Checked{};
    case Func::reduce_scatter:
      return expect(mine, sum);
    case Func::broadcast:
    case Func::send_recv:
      return expect(0, roots);
    case Func::scatter:
      return expect(mine, roots);
    case Func::gather:
      return rank == c.root ? check_blocks<Type>(c, rank, salt, work) : Checked{};
    case Func::all_gather:
    case Func::all_to_all:
    case Func::all_gather_v:
    case Func::all_to_all_v:
      return check_blocks<Type>(c, rank, salt, work);
    case Func::barrier:
      return {};
  }
  return {};
}

}  // namespace

void fill_buffers(const Collective& c, DataType type, Rank rank, std::uint64_t salt,
                  bool out_of_place, std::byte* work, std::byte* input) {
  as_type(type, [&]<typename Type>(Type) {
    const bool swapped = out_of_place && input_elements(c, rank) == 0;  // no input of its own
    fill<Type>(c, rank, salt, swapped ? input : work, input);
    if (out_of_place) poison<Type>(work, 0, work_elements(c, rank));
  });
}

Checked check_buffers(const Collective& c, DataType type, Rank rank, std::uint64_t salt,
                      const std::byte* work) {
  return as_type(type, [&]<typename Type>(Type) { return check<Type>(c, rank, salt, work); });
}

void add_elements(DataType type, std::byte* into, const std::byte* from, std::uint64_t count) {
  as_type(type, [&]<typename Type>(Type) {
    auto* a = elements<Type>(into);
    const auto* b = reinterpret_cast<const typename Type::Element*>(from);
    for (std::uint64_t i = 0; i < count; ++i) a[i] = Type::sum(a[i], b[i]);
  });
}

}  // namespace ghostrank
