// Short texts that stand for many things: Slurm's node lists, counts of the v-variants and
// expectations of the command line.
#include <string>

#include "emulator/control/node_list.h"
#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"
#include "tools/report/expectation.h"
#include "tools/verbs/counts.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  const std::string text(fuzz::text_of(data, size));
  if (const auto names = expand_node_list(text)) {
    fuzz::require(names->size() <= kMaxListedNodes);
    ++fuzz::accepted;
  }
  static const fuzz::MemoryFile file;  // parse_counts() reads the file that a text names
  constexpr int kRanks = 8;
  for (const Func func : {Func::all_gather_v, Func::all_to_all_v}) {
    try {
      const Counts counts = parse_counts(file.with(text), func, kRanks);
      fuzz::require(counts->size() == (func == Func::all_gather_v ? kRanks : kRanks * kRanks));
      ++fuzz::accepted;
    } catch (const Error& refused) {
      fuzz::require(*refused.what() != '\0');
    }
  }
  try {
    fuzz::require(!parse_expectation(text).path.empty());
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
