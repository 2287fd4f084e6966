// See accesses.h.
#include "collectives/check/accesses.h"

namespace ghostrank {

bool Sharing::note(int actor, const Block& block) {
  bool shared = false;
  for (std::uint64_t e = block.offset; e < block.offset + block.count; ++e) {
    if (user_[e] == kNobody) user_[e] = actor;
    shared |= user_[e] != actor;
  }
  return shared;
}

AccessOrder::AccessOrder(std::uint64_t elements, int actors)
    : actors_(actors), reads_(elements * actors_, 0), writes_(elements * actors_, 0) {}

std::optional<AccessOrder::Conflict> AccessOrder::access(int actor, const Block& block, bool write,
                                                         const std::uint32_t* heard) {
  const std::size_t self = actor;
  for (std::uint64_t e = block.offset; e < block.offset + block.count; ++e) {
    std::uint32_t* reads = reads_.data() + e * actors_;
    std::uint32_t* writes = writes_.data() + e * actors_;
    for (std::size_t other = 0; other < actors_; ++other)
      if (other != self && (writes[other] > heard[other] || (write && reads[other] > heard[other])))
        return Conflict{e, static_cast<int>(other)};
    (write ? writes : reads)[self] = heard[self];
  }
  return std::nullopt;
}

}  // namespace ghostrank
