// Numbers, sizes, rates and lists of ranks as people write them. A size that is read and written
// out reads back as the same, a rate as some rate.
#include "profiles/input/quantity.h"

#include <string>

#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"
#include "tools/arguments.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  const std::string text(fuzz::text_of(data, size));
  bool accepted = parse_number(text) || parse_boolean(text);
  if (const auto bytes = parse_size(text)) {
    fuzz::require(parse_size(size_text(*bytes)) == bytes);
    accepted = true;
  }
  if (const auto rate = parse_rate(text)) {
    fuzz::require(*rate >= 0 && parse_rate(rate_text(*rate)).has_value());
    accepted = true;
  }
  try {
    constexpr int kRanks = 4096;
    const auto ranks = parse_ranks(text, kRanks);
    fuzz::require(!ranks.empty() && ranks.front() >= WorldRank(0) &&
                  ranks.back() < WorldRank(kRanks));
    accepted = true;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  fuzz::accepted += accepted;
  return 0;
}
