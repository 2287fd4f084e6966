// The table at the top of schedule.h as code: what every element holds before a collective, and
// what it must hold after it. Symbolic; used by the checker.
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

  Value initial_work(Rank r, std::uint64_t element) const;
  Value initial_input(Rank r, std::uint64_t element) const;
  // Of the work buffer; nothing where any content will do.
  std::optional<Value> required(Rank r, std::uint64_t element) const;

 private:
  Value from(Rank rank, std::uint64_t element) const;
  Value exchanged(Rank source, Rank target, std::uint64_t element) const;
  Value before(Rank r, std::uint64_t element) const;  // the table's first column, work buffer

  Collective c_;
  Layout layout_;
  bool out_of_place_;
  std::vector<std::uint32_t> only_;  // by rank
  std::uint32_t every_;
};

}  // namespace ghostrank
