// A profile of PyTorch as the tables of its kernels, which a device profile can hold.
#include "tools/calibrate/kineto_kernels.h"

#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::MemoryFile file;
  try {
    const KinetoKernels found = read_kineto_kernels({file.with(fuzz::text_of(data, size))});
    ++fuzz::accepted;
    for (const MeasuredProduct& one : found.tables.products)
      fuzz::require(one.seconds > 0 && one.shape.flops() > 0);
    for (const MeasuredTransfer& one : found.tables.transfers)
      fuzz::require(one.seconds > 0 && one.bytes > 0);
    for (const MeasuredAttention& one : found.tables.attention)
      fuzz::require(one.seconds > 0 && one.shape.flops() > 0);
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
