// Records of one rank of a captured run: read, merged, and written as a profile, which is read as a
// model; likewise its gradients, whose overlaps must be readable.
#include "profiles/capture/gradients.h"
#include "profiles/capture/merge.h"
#include "profiles/capture/profile_text.h"
#include "profiles/error.h"
#include "profiles/model/model.h"
#include "profiles/planners/tensors.h"
#include "tests/fuzz/fuzz.h"

namespace {

bool is_readable(const std::string& overlaps, std::uint64_t block) {
  using namespace ghostrank;
  try {
    measured_overlaps(
        parse_yaml(overlaps, std::make_shared<Source>(Source{"overlaps", "overlaps", true})),
        block);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::MemoryFile file;
  std::string profile;
  try {
    const CapturedRank rank = read_captured_rank(file.with(fuzz::text_of(data, size)));
    const Captured captured = merge_capture({rank});
    call_cost(captured.reductions);
    profile = capture_profile(captured, {1e9, 5}, captured.model, {"fuzzed"});
    if (rank.gradients.block > 0) {
      tensor_magnitudes({rank}, captured.layers);
      fuzz::require(is_readable(tensor_overlaps({rank}, captured.layers), rank.gradients.block));
    }
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
    return 0;
  }
  // The profile reads as a model, unless it has types or sizes that no model may have.
  try {
    YamlValue description =
        parse_yaml(profile, std::make_shared<Source>(Source{"profile", "profile", true}));
    std::erase_if(description.children,
                  [](const YamlValue& child) { return child.key == "schema"; });
    make_model(description);
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
