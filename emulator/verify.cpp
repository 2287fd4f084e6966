#include "emulator/verify.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "collectives/layout.h"
#include "emulator/assert.h"

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

struct Int32Type {
  using Element = std::int32_t;
  static Element make(std::int64_t v) { return static_cast<Element>(v); }
  static Element sum(Element a, Element b) {
    return static_cast<Element>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
  static bool equal(Element a, Element b) { return a == b; }
};
struct FloatType {
  using Element = float;
  static Element make(std::int64_t v) { return static_cast<Element>(v); }
  static Element sum(Element a, Element b) { return a + b; }
  static bool equal(Element a, Element b) { return a == b; }
};
struct Bf16Type {
  using Element = Bf16;
  static Element make(std::int64_t v) { return Bf16::from(static_cast<float>(v)); }
  static Element sum(Element a, Element b) { return Bf16::from(a.value() + b.value()); }
  static bool equal(Element a, Element b) { return a.bits == b.bits; }
};

// Everything is a small integer: exact in every type, whatever the order of the additions.
constexpr std::int64_t kLargest = 250;  // exact in bfloat16
constexpr std::int64_t kPoison = 251;   // no sum: what a check never expects

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  return x * 0x94d049bb133111ebULL >> 32;
}

// One of 0 .. bound - 1, bound < 2^32.
std::int64_t drawn(std::uint64_t seed, std::uint64_t index, std::uint64_t bound) {
  return static_cast<std::int64_t>(mix(index * 0x9e3779b97f4a7c15ULL + seed) * bound >> 32);
}

// What `rank` of `size` has at global element `index`, where nothing is added up. All ranks
// together have at most kLargest.
std::int64_t own_value(Rank rank, int size, std::uint64_t salt, std::uint64_t index) {
  const auto r = static_cast<std::uint64_t>(rank), n = static_cast<std::uint64_t>(size);
  if (n <= kLargest) return drawn(r * 0xd1b54a32d192ed03ULL + salt, index, kLargest / n + 1);
  const std::uint64_t every = (n + kLargest - 1) / kLargest;
  return (r + index + salt) % every == 0 ? 1 : 0;
}

// What the contributions of all ranks add up to.
std::int64_t sum_of_all(std::uint64_t salt, std::uint64_t index) {
  return drawn(~salt, index, kLargest + 1);
}

// What a rank adds: its own value; the last one what is missing to the sum. So nobody who compares
// a sum has to ask every rank. What some ranks have together is never below -kLargest.
std::int64_t contribution(Rank rank, int size, std::uint64_t salt, std::uint64_t index) {
  if (rank < size - 1) return own_value(rank, size, salt, index);
  std::int64_t left = sum_of_all(salt, index);
  for (Rank r = 0; r < size - 1; ++r) left -= own_value(r, size, salt, index);
  return left;
}

template <typename Type>
typename Type::Element* elements(std::byte* bytes) {
  return reinterpret_cast<typename Type::Element*>(bytes);
}

template <typename Type, typename Value>
void write(std::byte* buffer, std::uint64_t first, std::uint64_t count, Value value) {
  for (std::uint64_t i = first; i < first + count; ++i)
    elements<Type>(buffer)[i] = Type::make(value(i));
}

template <typename Type, typename Value>
Checked compare(const std::byte* buffer, std::uint64_t first, std::uint64_t count, Value value) {
  Checked checked{count, 0};
  const auto* e = reinterpret_cast<const typename Type::Element*>(buffer);
  for (std::uint64_t i = first; i < first + count; ++i) {
    if (!Type::equal(e[i], Type::make(value(i)))) ++checked.wrong;
  }
  return checked;
}

template <typename Type>
void fill(const Collective& c, Rank rank, std::uint64_t salt, std::byte* work, std::byte* input) {
  const auto own = [&](std::uint64_t i) { return own_value(rank, c.size, salt, i); };
  const auto poison = [](std::uint64_t) { return kPoison; };
  const std::uint64_t elements = work_elements(c, rank);
  switch (c.func) {
    case Func::all_reduce:
    case Func::reduce:
    case Func::reduce_scatter:
      return write<Type>(work, 0, elements,
                         [&](std::uint64_t i) { return contribution(rank, c.size, salt, i); });
    case Func::broadcast:
    case Func::send_recv:
    case Func::scatter:
      if (rank == c.root) return write<Type>(work, 0, elements, own);
      return write<Type>(work, 0, elements, poison);
    case Func::all_gather:
    case Func::all_gather_v:
    case Func::gather: {
      const Block block = Layout(c).work(rank, rank);
      write<Type>(work, 0, elements, poison);
      return write<Type>(work, block.offset, block.count, own);
    }
    case Func::all_to_all:
    case Func::all_to_all_v: {
      const Layout layout(c);
      const Block from = layout.input(rank, rank), to = layout.work(rank, rank);
      const std::size_t element = sizeof(typename Type::Element);
      write<Type>(input, 0, input_elements(c, rank), own);
      write<Type>(work, 0, elements, poison);
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
    const Checked block = compare<Type>(work, to.offset, to.count, [&](std::uint64_t i) {
      return own_value(owner, c.size, salt, from + (i - to.offset));
    });
    checked.elements += block.elements;
    checked.wrong += block.wrong;
  }
  return checked;
}

template <typename Type>
Checked check(const Collective& c, Rank rank, std::uint64_t salt, const std::byte* work) {
  const auto sum = [&](std::uint64_t i) { return sum_of_all(salt, i); };
  const auto roots = [&](std::uint64_t i) { return own_value(c.root, c.size, salt, i); };
  const auto r = static_cast<std::uint64_t>(rank);
  switch (c.func) {
    case Func::all_reduce:
      return compare<Type>(work, 0, c.count, sum);
    case Func::reduce:
      return rank == c.root ? compare<Type>(work, 0, c.count, sum) : Checked{};
    case Func::reduce_scatter:
      return compare<Type>(work, r * c.count, c.count, sum);
    case Func::broadcast:
    case Func::send_recv:
      return compare<Type>(work, 0, c.count, roots);
    case Func::scatter:
      return compare<Type>(work, r * c.count, c.count, roots);
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

bool verifiable(DataType type) {
  return type == DataType::int32 || type == DataType::float32 || type == DataType::bfloat16;
}

void fill_buffers(const Collective& c, DataType type, Rank rank, std::uint64_t salt,
                  bool out_of_place, std::byte* work, std::byte* input) {
  const auto fill_all = [&]<typename Type>(Type) {
    const bool swapped = out_of_place && input_elements(c, rank) == 0;  // no input of its own
    fill<Type>(c, rank, salt, swapped ? input : work, input);
    const auto poison = [](std::uint64_t) { return kPoison; };
    if (out_of_place) write<Type>(work, 0, work_elements(c, rank), poison);
  };
  if (type == DataType::int32) return fill_all(Int32Type{});
  if (type == DataType::float32) return fill_all(FloatType{});
  GHOSTRANK_ASSERT(type == DataType::bfloat16);
  fill_all(Bf16Type{});
}

Checked check_buffers(const Collective& c, DataType type, Rank rank, std::uint64_t salt,
                      const std::byte* work) {
  if (type == DataType::int32) return check<Int32Type>(c, rank, salt, work);
  if (type == DataType::float32) return check<FloatType>(c, rank, salt, work);
  GHOSTRANK_ASSERT(type == DataType::bfloat16);
  return check<Bf16Type>(c, rank, salt, work);
}

void add_elements(DataType type, std::byte* into, const std::byte* from, std::uint64_t count) {
  const auto add = [&]<typename Type>(Type) {
    auto* a = elements<Type>(into);
    const auto* b = reinterpret_cast<const typename Type::Element*>(from);
    for (std::uint64_t i = 0; i < count; ++i) a[i] = Type::sum(a[i], b[i]);
  };
  if (type == DataType::int32) return add(Int32Type{});
  if (type == DataType::float32) return add(FloatType{});
  GHOSTRANK_ASSERT(type == DataType::bfloat16);
  add(Bf16Type{});
}

}  // namespace ghostrank
