// See contract.h; follows the table in schedule.h row by row.
#include "collectives/check/contract.h"

namespace ghostrank {

Contract::Contract(const Collective& c, bool out_of_place, Contributions& contributions)
    : c_(c), layout_(c), out_of_place_(out_of_place), every_(contributions.every(c.size)) {
  for (GroupRank r = 0; r < c.size; ++r) only_.push_back(contributions.only(r));
}

Value Contract::from(GroupRank rank, std::uint64_t element) const {
  return {only_[rank], static_cast<std::uint32_t>(element)};
}

// The data that `source` has for `target`, by its offset in the target's work buffer.
Value Contract::exchanged(GroupRank source, GroupRank target, std::uint64_t element) const {
  const std::uint64_t into_block = element - layout_.work(target, source).offset;
  return from(source, layout_.input(source, target).offset + into_block);
}

Value Contract::before(GroupRank r, std::uint64_t element) const {
  const Value own = from(r, element);
  switch (c_.func) {
    case Func::all_reduce:
    case Func::reduce_scatter:
    case Func::reduce:
      return own;
    case Func::all_gather:
    case Func::all_gather_v:
    case Func::gather:
      return layout_.block_at(r, element) == r ? own : Value{};
    case Func::all_to_all:
    case Func::all_to_all_v:
      return layout_.block_at(r, element) == r ? exchanged(r, r, element) : Value{};
    case Func::broadcast:
    case Func::scatter:
    case Func::send_recv:
      return r == c_.root ? own : Value{};
    case Func::barrier:
      break;
  }
  return {};
}

Value Contract::initial_work(GroupRank r, std::uint64_t element) const {
  return out_of_place_ ? Value{} : before(r, element);
}

Value Contract::initial_input(GroupRank r, std::uint64_t element) const {
  // An all-to-all has an input of its own. Other functions: the in-place content of the work
  // buffer.
  const bool own = c_.func == Func::all_to_all || c_.func == Func::all_to_all_v;
  return own ? from(r, element) : before(r, element);
}

std::optional<Value> Contract::required(GroupRank r, std::uint64_t element) const {
  const Value sum{every_, static_cast<std::uint32_t>(element)};
  switch (c_.func) {
    case Func::all_reduce:
      return sum;
    case Func::reduce:
      if (r == c_.root) return sum;
      break;
    case Func::reduce_scatter:
      if (layout_.block_at(r, element) == r) return sum;
      break;
    case Func::all_gather:
    case Func::all_gather_v:
      return from(layout_.block_at(r, element), element);
    case Func::gather:
      if (r == c_.root) return from(layout_.block_at(r, element), element);
      break;
    case Func::scatter:
      if (layout_.block_at(r, element) == r) return from(c_.root, element);
      break;
    case Func::broadcast:
      return from(c_.root, element);
    case Func::all_to_all:
    case Func::all_to_all_v:
      return exchanged(layout_.block_at(r, element), r, element);
    case Func::send_recv:
      if (r == c_.root || r == c_.target) return from(c_.root, element);
      break;
    case Func::barrier:
      break;
  }
  return std::nullopt;
}

}  // namespace ghostrank
