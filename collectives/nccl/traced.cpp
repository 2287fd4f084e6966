#include "collectives/nccl/traced.h"

#include <set>

namespace ghostrank {

bool nccl_is_traced(std::string_view library, std::span<const std::int32_t> node_of,
                    std::string_view played) {
  const int most = played.ends_with("/LL128") ? kMostRanksTracedByLl128 : kMostRanksTraced;
  return library == kTracedNccl && std::ssize(node_of) <= most &&
         std::set<std::int32_t>(node_of.begin(), node_of.end()).size() == node_of.size();
}

}  // namespace ghostrank
