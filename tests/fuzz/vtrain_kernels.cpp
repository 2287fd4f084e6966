// Kernels that vTrain recorded as tables, with the sizes of a small job.
#include "tools/calibrate/vtrain_kernels.h"

#include "profiles/error.h"
#include "profiles/input/yaml.h"
#include "profiles/load/tree.h"
#include "tests/fuzz/kernel_rows.h"

namespace {

constexpr const char* kJob =
    "model: {kind: transformer, architecture: gpt2, layers: 2, hidden: 64, heads: 2, ffn: 256, "
    "sequence: 16, vocabulary: 512}\ndevice: a100-sxm-80gb\n"
    "precision: {parameters: fp16, gradients: fp16}\ncluster: {nodes: 1, gpus_per_node: 1}\n"
    "parallel: {framework: megatron, attention: unfused}\n";

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const LoadedJob job =
      load_tree(parse_yaml(kJob, std::make_shared<Source>(Source{"job", "job", true})), "job");
  static const fuzz::MemoryFile file;
  try {
    const RecordedKernels found =
        read_vtrain_kernels({file.with(fuzz::text_of(data, size))}, job.spec);
    ++fuzz::accepted;
    fuzz::require_sizes_and_times(found.tables);
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
