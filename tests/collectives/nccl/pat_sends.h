// The sends of a rank in an all-gather or reduce-scatter by PAT, in the form of the files of known
// answers: a list of [peer, bytes].
#pragma once

#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "collectives/nccl/schedules/pat.h"

namespace ghostrank::test {

// `question` holds op ("AG" or "RS"), nranks, rank, and the bytes of a block (size) and of a chunk.
inline nlohmann::json pat_sends(const nlohmann::json& question) {
  const bool gathers = question["op"] == "AG";
  const int n = question["nranks"], rank = question["rank"];
  const std::uint64_t size = question["size"], chunk = question["chunk"];
  const NcclPatPattern pattern =
      nccl_pat_pattern(gathers ? Func::all_gather : Func::reduce_scatter, n, size, chunk);
  nlohmann::json sends = nlohmann::json::array();
  for (std::uint64_t at = 0; at < size; at += chunk)
    for (const NcclPatPattern::Message& message : pattern.messages) {
      const int distance = 1 << message.dimension;
      const int peer = (rank + (gathers ? n - distance : distance)) % n;
      sends.push_back({peer, message.blocks.size() * std::min(chunk, size - at)});
    }
  return sends;
}

}  // namespace ghostrank::test
