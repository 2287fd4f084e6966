// Names and buffer sizes, which all schedules share.
//
// Units: elements. Threading: pure functions.
#include "collectives/schedule.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace ghostrank {
namespace {

// Sums n counts, starting at index `first`, `stride` apart.
std::uint64_t sum_of(const Collective& c, std::ptrdiff_t first, std::ptrdiff_t stride, int n) {
  std::uint64_t sum = 0;
  for (std::ptrdiff_t i = 0; i < n; ++i) sum += (*c.counts)[first + i * stride];
  return sum;
}

}  // namespace

std::string_view name_of(Func func) {
  static constexpr std::array<std::string_view, kFuncs> kNames{
      "allreduce", "reduce_scatter", "all_gather", "broadcast", "reduce",       "all_to_all",
      "send_recv", "barrier",        "gather",     "scatter",   "all_gather_v", "all_to_all_v"};
  return kNames[static_cast<std::size_t>(func)];
}

std::string_view name_of(Reduction reduction) {
  static constexpr std::array<std::string_view, kReductions> kNames{"sum", "prod", "min",
                                                                    "max", "avg",  "mulsum"};
  return kNames[static_cast<std::size_t>(reduction)];
}

std::optional<Reduction> reduction_named(std::string_view name) {
  for (int i = 0; i < kReductions; ++i)
    if (name_of(static_cast<Reduction>(i)) == name) return static_cast<Reduction>(i);
  return std::nullopt;
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

std::size_t counts_needed(Func func, int size) {
  const std::size_t n = size;
  if (func == Func::all_to_all_v) return n * n;
  return func == Func::all_gather_v ? n : 0;
}

std::uint64_t work_elements(const Collective& c, GroupRank rank) {
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
      return c.size * c.count;
    case Func::all_gather_v:
      return sum_of(c, 0, 1, c.size);
    case Func::all_to_all_v:
      return sum_of(c, rank, c.size, c.size);
    case Func::barrier:
      return 0;
  }
  return 0;
}

std::uint64_t input_elements(const Collective& c, GroupRank rank) {
  if (c.func == Func::all_to_all_v)
    return sum_of(c, static_cast<std::ptrdiff_t>(rank) * c.size, 1, c.size);
  return c.func == Func::all_to_all ? work_elements(c, rank) : 0;
}

std::uint64_t call_elements(const Collective& c) {
  if (c.func != Func::all_to_all_v) return work_elements(c, 0);
  const std::uint64_t n = c.size;
  return (std::accumulate(c.counts->begin(), c.counts->end(), std::uint64_t{0}) + n - 1) / n;
}

std::uint64_t input_elements(const Schedule& schedule, GroupRank r) {
  const Collective& c = schedule.collective();
  const std::uint64_t own = input_elements(c, r);
  return own == 0 && schedule.out_of_place() ? work_elements(c, r) : own;
}

}  // namespace ghostrank
