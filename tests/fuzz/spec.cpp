// Pipelines as text: a .spec is read, or refused with its line number.
#include "switch/dpdk/spec.h"

#include <stdexcept>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  try {
    const dpdk::Spec spec = dpdk::parse_spec(fuzz::text_of(data, size), "x.spec");
    fuzz::require(!spec.instructions.empty() && spec.registers.size() <= 256);
    ++fuzz::accepted;
  } catch (const std::runtime_error& error) {
    fuzz::require(std::string_view(error.what()).starts_with("x.spec:"));
  }
  return 0;
}
