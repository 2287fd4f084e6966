// See contract.h and the table in schedule.h, row by row.
#include "collectives/contract.h"

namespace ghostrank {

Contract::Contract(const Collective& c, Contributions& contributions)
    : c_(c), every_(contributions.every(c.size)) {
  for (Rank r = 0; r < c.size; ++r) only_.push_back(contributions.only(r));
}

Value Contract::from(std::uint64_t rank, std::uint64_t element) const {
  return {only_[static_cast<std::size_t>(rank)], static_cast<std::uint32_t>(element)};
}

Value Contract::initial_work(Rank r, std::uint64_t element) const {
  const auto rank = static_cast<std::uint64_t>(r);
  const Value own = from(rank, element);
  switch (c_.func) {
    case Func::all_reduce:
    case Func::reduce_scatter:
    case Func::reduce:
      return own;
    case Func::all_gather:
    case Func::gather:
    case Func::all_to_all:  // the own block of the input is at the same place
      return element / c_.count == rank ? own : Value{};
    case Func::broadcast:
    case Func::scatter:
      return r == c_.root ? own : Value{};
    case Func::send_recv:
      return r == 0 ? own : Value{};
    case Func::barrier:
      break;
  }
  return {};
}

Value Contract::initial_input(Rank r, std::uint64_t element) const {
  return from(static_cast<std::uint64_t>(r), element);
}

std::optional<Value> Contract::required(Rank r, std::uint64_t element) const {
  const auto rank = static_cast<std::uint64_t>(r);
  const Value sum{every_, static_cast<std::uint32_t>(element)};
  switch (c_.func) {
    case Func::all_reduce:
      return sum;
    case Func::reduce:
      if (r == c_.root) return sum;
      break;
    case Func::reduce_scatter:
      if (element / c_.count == rank) return sum;
      break;
    case Func::all_gather:
      return from(element / c_.count, element);
    case Func::gather:
      if (r == c_.root) return from(element / c_.count, element);
      break;
    case Func::scatter:
      if (element / c_.count == rank) return from(static_cast<std::uint64_t>(c_.root), element);
      break;
    case Func::broadcast:
      return from(static_cast<std::uint64_t>(c_.root), element);
    case Func::all_to_all:
      return from(element / c_.count, rank * c_.count + element % c_.count);
    case Func::send_recv:
      if (r < 2) return from(0, element);
      break;
    case Func::barrier:
      break;
  }
  return std::nullopt;
}

}  // namespace ghostrank
