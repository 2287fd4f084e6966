// A profile of PyTorch as the tables of its kernels, which a device profile can hold.
#include "tools/calibrate/kineto_kernels.h"

#include "profiles/error.h"
#include "tests/fuzz/kernel_rows.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::MemoryFile file;
  try {
    const RecordedKernels found = read_kineto_kernels({file.with(fuzz::text_of(data, size))});
    ++fuzz::accepted;
    fuzz::require_sizes_and_times(found.tables);
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
