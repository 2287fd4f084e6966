// The before/after table of schedule.h as code: the symbolic content of every element before a
// collective, and the content required after it. Used by the checkers.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/check/contributions.h"
#include "collectives/layout.h"
#include "collectives/schedule.h"

namespace ghostrank {

class Contract {
 public:
  Contract(const Collective& c, bool out_of_place, Contributions& contributions);

  Value initial_work(GroupRank r, std::uint64_t element) const;
  Value initial_input(GroupRank r, std::uint64_t element) const;
  // Required content of the work buffer; nullopt: any content will do.
  std::optional<Value> required(GroupRank r, std::uint64_t element) const;

 private:
  Value from(GroupRank rank, std::uint64_t element) const;
  Value exchanged(GroupRank source, GroupRank target, std::uint64_t element) const;
  // The table's first column, for the work buffer.
  Value before(GroupRank r, std::uint64_t element) const;

  Collective c_;
  Layout layout_;
  bool out_of_place_;
  std::vector<std::uint32_t> only_;  // by rank: the multiset {rank}
  std::uint32_t every_;
};

}  // namespace ghostrank
