// A result file: the job to play again, and the numbers to compare.
#include <string>

#include "profiles/error.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "tests/fuzz/fuzz.h"
#include "tools/report/result_json.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::MemoryFile file;
  const std::string path = file.with(fuzz::text_of(data, size));
  try {
    read_result(path);
    load_job(path, {});
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
