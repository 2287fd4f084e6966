// A job file: loads it, and plans it if it is small enough to plan quickly.
#include "profiles/job/job.h"

#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/model/model.h"
#include "profiles/planners/plan.h"
#include "tests/fuzz/fuzz.h"

namespace {

constexpr int kFewGpus = 64;
constexpr std::size_t kFewTensors = 10'000;

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::MemoryFile file;
  try {
    const LoadedJob job = load_job(file.with(fuzz::text_of(data, size)), {});
    const bool small_model = !job.spec.model || job.spec.model->tensors() <= kFewTensors;
    if (job.spec.cluster.gpus() <= kFewGpus && small_model) plan_workload(job.spec);
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
