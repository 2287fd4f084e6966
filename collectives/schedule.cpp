// Names, buffer sizes and the cutting of a block into slices: what every schedule shares.
//
// Units: elements. Threading: pure functions.
#include "collectives/schedule.h"

#include <algorithm>
#include <array>

namespace ghostrank {

std::string_view name_of(Func func) {
  static constexpr std::array<std::string_view, kFuncs> kNames{
      "allreduce",  "reduce_scatter", "all_gather", "broadcast", "reduce",
      "all_to_all", "send_recv",      "barrier",    "gather",    "scatter"};
  return kNames[static_cast<std::size_t>(func)];
}

std::string_view name_of(Protocol protocol) {
  static constexpr std::array<std::string_view, 3> kNames{"Simple", "LL", "LL128"};
  return kNames[static_cast<std::size_t>(protocol)];
}

std::optional<Protocol> protocol_named(std::string_view name) {
  for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
    if (name_of(protocol) == name) return protocol;
  }
  return std::nullopt;
}

std::uint64_t work_elements(const Collective& c) {
  switch (c.func) {
    case Func::all_reduce:
    case Func::broadcast:
    case Func::reduce:
    case Func::send_recv:
      return c.count;
    case Func::reduce_scatter:
    case Func::all_gather:
    case Func::all_to_all:
    case Func::gather:
    case Func::scatter:
      return static_cast<std::uint64_t>(c.size) * c.count;
    case Func::barrier:
      return 0;
  }
  return 0;
}

std::uint64_t input_elements(const Collective& c) {
  return c.func == Func::all_to_all ? work_elements(c) : 0;
}

Block slice_of(const Block& block, const Step& step, std::uint32_t s) {
  const std::uint64_t length = step.slice_elements == 0 ? block.count : step.slice_elements;
  const std::uint64_t begin = std::min(block.count, s * length);
  return {block.offset + begin, std::min(length, block.count - begin), block.buffer};
}

}  // namespace ghostrank
