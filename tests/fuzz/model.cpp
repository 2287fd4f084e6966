// A model profile: YAML to the model it describes.
#include "profiles/model/model.h"

#include <memory>

#include "profiles/error.h"
#include "profiles/load/locate.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const auto source =
      std::make_shared<const Source>(Source{"model.yaml", "model.yaml", true});
  try {
    const YamlValue given = parse_yaml(fuzz::text_of(data, size), source);
    const Model model = make_model(resolve_profile(given, kModelProfile, ""));
    fuzz::require(model.tensors() <= kMaxTensors);
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
