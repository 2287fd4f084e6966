// Flags of the form -s path=value, one per line, on a small job.
#include <sstream>
#include <string>
#include <vector>

#include "profiles/error.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "tests/fuzz/fuzz.h"

constexpr std::string_view kJob =
    "model: {kind: layers, dtype: float32,"
    "        layers: [{name: a, parameters: [4], forward_us: 1, backward_us: 1}]}";

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::MemoryFile file;
  std::vector<std::string> overrides;
  std::istringstream lines{std::string(fuzz::text_of(data, size))};
  for (std::string line; std::getline(lines, line);) overrides.push_back(line);
  try {
    load_job(file.with(kJob), overrides);
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
