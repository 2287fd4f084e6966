// An MSCCL file: XML to an algorithm, and its proof. A proved algorithm must be right for other
// counts, and its export, if it can be exported, must be readable again.
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "collectives/check/checker.h"
#include "profiles/algorithms/msccl_file.h"
#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"

namespace {

// The proof is exact at any cost, but the fuzzer's time is limited.
bool is_small(const ghostrank::MscclAlgorithm& algorithm) {
  std::uint64_t work = 0;
  for (const auto& rank : algorithm.ranks) {
    work += algorithm.chunks_per_loop + rank.scratch_chunks;
    for (const auto& tb : rank.threadblocks)
      for (const auto& step : tb.steps) work += 1 + step.count;
  }
  return work < 20'000;
}

// Empty: MSCCL cannot express it.
std::optional<std::string> exported(const ghostrank::Schedule& schedule) {
  try {
    return to_xml(ghostrank::to_msccl(schedule, "again"));
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

bool is_readable(const std::string& xml) {
  try {
    ghostrank::parse_msccl(xml, "again.xml");
    return true;
  } catch (const ghostrank::Error&) {
    return false;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  try {
    const auto algorithm =
        std::make_shared<const MscclAlgorithm>(parse_msccl(fuzz::text_of(data, size), "algo.xml"));
    if (!is_small(*algorithm)) return 0;
    prove_msccl(algorithm, "algo.xml");
    const std::uint64_t count = 3 * std::uint64_t{chunks_per_block(*algorithm)};
    const Collective c{algorithm->func, static_cast<int>(algorithm->ranks.size()), count, 4,
                       algorithm->root};
    const auto schedule = msccl_schedule(algorithm, c, {});
    fuzz::require(check(*schedule).ok);
    const std::optional<std::string> again = exported(*schedule);
    fuzz::require(!again || is_readable(*again));
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
