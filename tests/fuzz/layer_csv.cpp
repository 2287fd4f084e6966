// A table of layers in the form of SwitchML's dnn_benchmark.
#include <string>

#include "profiles/error.h"
#include "profiles/model/model.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  try {
    const std::string text(fuzz::text_of(data, size));
    make_model(read_layer_csv(text, "net.csv", "net"));
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
